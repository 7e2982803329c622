"""The named recipes, as fields of :class:`decima.training.recipe.Recipe` that differ from its defaults."""

from typing import Any

_FAST: dict[str, Any] = {
    "algorithm": "ppo",
    "sequences": 2,
    "rollouts": 8,
    "epochs": 2,
    "minibatches": 4,
    "lr_start": 1e-3,
    "lr_end": 1e-4,
    "lr_shape": "geometric",
    "gradient_norm": 1.0,
    "loss_reduction": "mean",
    "entropy_start": 0.01,
    "entropy_end": 0.0,
    "entropy_iterations": None,
    "effect_classes": True,
    "baseline": "regression",
    "baseline_memory": 0.9,
    "horizon_s": 200.0,
    "normalise": "all",
    "teacher": "capped_srw",
    "teacher_iterations": 40,
    "teacher_lr": 2e-3,
    "teacher_lr_end": 5e-4,
}
# `paper`: Algorithm 1, the defaults. `fast`: every ingredient's worth is in the training report.
RECIPES: dict[str, dict[str, Any]] = {
    "paper": {},
    "fast-batch": _FAST | {"teacher_parameters": {"c0": 2.71, "c1": -0.157, "power": 0.307, "release": 2.036}},
    "fast-stream": _FAST | {"teacher_parameters": {"c0": 1.33, "c1": 0.3, "power": 0.141, "release": 1.093}},
}
