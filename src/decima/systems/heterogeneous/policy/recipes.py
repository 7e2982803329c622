"""Recipes of policies that choose nodes: that of the paper (Algorithm 1), and ours."""

from decima.learning.recipe import register_recipe

_FAST = {
    "algorithm": "ppo",
    "teacher": "linear_rank",
    "teacher_iterations": 80,
    "teacher_sequences": 6,
    "teacher_lr": 3e-3,
    "teacher_lr_end": 5e-4,
    "epochs": 2,
    "minibatches": 4,
    "sequences": 4,
    "rollouts": 8,
    "lr_start": 3e-4,
    "lr_end": 5e-5,
    "lr_shape": "geometric",
    "gradient_norm": 1.0,
    "loss_reduction": "mean",
    "entropy_start": 0.0,
    "entropy_end": 0.0,
    "entropy_iterations": None,
    "effect_classes": True,
    "baseline": "regression",
    "baseline_memory": 0.9,
    "normalise": "sequence",
    "reward_scale_s": 1.0,
    "episode_start_s": None,
    "differential": False,
    "validate_every": 10,
    "validation_sequences": 40,
    "validation_seeds": 0,
    "iterations": 180,
}
# Algorithm 1, where episodes begin with 50 decisions and grow by 2 per iteration.
_PAPER = {
    "algorithm": "actor_critic",
    "episode_start_s": 50.0,
    "episode_end_s": 1000.0,
    "episode_growth_s": 2.0,
    "validation_seeds": 0,
    "validate_every": 20,
    "validation_sequences": 40,
    "iterations": 800,
}
register_recipe("paper-lachesis-batch", **_PAPER)
register_recipe("paper-lachesis-stream", **_PAPER)
register_recipe("fast-lachesis-batch", **_FAST)
register_recipe("fast-lachesis-stream", **_FAST)
