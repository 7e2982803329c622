"""Recipes of policies that choose nodes: that of the paper (Algorithm 1), and ours."""

from decima.learning.recipe import FAST, register_recipe

_FAST = FAST | {
    "teacher": "linear_rank",
    "teacher_iterations": 80,
    "teacher_sequences": 6,
    "teacher_lr": 3e-3,
    "teacher_lr_end": 5e-4,
    "sequences": 4,
    "lr_start": 3e-4,
    "lr_end": 5e-5,
    "normalise": "sequence",
    "reward_scale_s": 1.0,
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
