"""Recipes of Decima's policies, as fields that differ from the defaults of Algorithm 1."""

from typing import Any

from decima.learning.recipe import FAST, register_recipe

_FAST: dict[str, Any] = FAST | {
    "sequences": 4,
    "lr_start": 5e-4,
    "lr_end": 5e-5,
    "trace_s": 10.0,
    "trace_end_s": 100.0,
    "normalise": "all",
    "teacher": "capped_srw",
    "teacher_iterations": 40,
    "teacher_lr": 3e-3,
    "teacher_lr_end": 3e-3,
    "validation_sequences": 40,
    "iterations": 320,
}
_CONTINUING: dict[str, Any] = {
    "algorithm": "continuing",
    "epochs": 2,
    "minibatches": 8,
    "lr_start": 1e-3,
    "lr_end": 1e-4,
    "lr_shape": "geometric",
    "gradient_norm": 1.0,
    "loss_reduction": "mean",
    "entropy_start": 0.02,
    "entropy_end": 0.0,
    "entropy_iterations": 150,
    "effect_classes": True,
    "validate_every": 25,
}
# Every ingredient's worth is in the training report.
_RECIPES: dict[str, dict[str, Any]] = {
    "fast-batch": _FAST
    | {
        "lr_end": 2e-4,
        "trace_s": 30.0,
        "teacher_iterations": 80,
        "iterations": 200,
        "teacher_parameters": {"c0": 2.71, "c1": -0.157, "power": 0.307, "release": 2.036},
    },
    "fast-stream": _FAST
    | {
        "sequences": 2,
        "minibatches": 8,
        "teacher_sequences": 8,
        "validation_sequences": 20,
        "iterations": 220,
        "teacher_parameters": {"c0": 1.33, "c1": 0.3, "power": 0.141, "release": 1.093},
    },
    # From random weights on streams, by windows that never end for the learner.
    "continuing-stream": _CONTINUING | {"load_start": 0.5, "validation_sequences": 8, "iterations": 400},
    # The same on batches: windows of 40 s, a batch takes about five minutes.
    "continuing-batch": _CONTINUING
    | {
        "window_s": 40.0,
        "step_s": 1.0,
        "warm_up_s": 0.0,
        "horizon_s": 3000.0,
        "critic_step_s": 2.0,
        "critic_trace_s": 100.0,
        "validation_sequences": 40,
        "iterations": 500,
    },
    # For policies with idle slots: a linear rule that idles is the teacher. Its weights here are where tuning begins;
    # those of a workload are better (`decima tune idle_rule`). What a slot costs or gains shows after a long job.
    "idle": _FAST
    | {
        "lr_end": 1e-4,
        "trace_s": 200.0,
        "trace_end_s": 600.0,
        "teacher": "idle_rule",
        "teacher_idles": True,
        "teacher_parameters": {
            "c0": 30.0, "c1": 10.0, "power": 0.0, "release": 10.0, "base": -3.5, "soon": 3.0, "length": 1.0,
        },
        "teacher_lr_end": 1e-3,
        "teacher_iterations": 100,
        "teacher_sequences": 8,
        "validation_sequences": 60,
        "validation_seeds": 0,
        "iterations": 300,
    },
}  # fmt: skip
for _name, _values in _RECIPES.items():
    register_recipe(_name, **_values)
