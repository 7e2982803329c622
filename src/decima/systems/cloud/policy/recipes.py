"""Recipes of placement: those of the paper (Table 5, Algorithms 1 and 2), and ours."""

from decima.learning.recipe import register_recipe

_REINFORCE = {
    "sequences": 1,
    "episode_start_s": None,
    "differential": False,
    "entropy_start": 0.0,
    "entropy_end": 0.0,
    "entropy_iterations": None,
}
#: One policy for all lists of VMs and betas: imitation of the per-job program with beta, then PPO without discount.
FAST = _REINFORCE | {
    "algorithm": "ppo",
    "sequences": 8,
    "rollouts": 8,
    "epochs": 2,
    "minibatches": 4,
    "lr_start": 1e-2,
    "lr_end": 1e-3,
    "lr_shape": "geometric",
    "gradient_norm": 1.0,
    "loss_reduction": "mean",
    "entropy_start": 0.05,
    "trace_s": 5.0,
    "normalise": "sequence",
    "reward_scale_s": 1.0,
    "teacher": "ilp_beta",
    "teacher_iterations": 6,
    "teacher_sequences": 8,
    "validate_every": 10,
    "validation_sequences": 24,
    "validation_seeds": 0,
    "checkpoint_every": 20,
    "iterations": 120,
}
#: Algorithm 2 with Table 5: ten episodes per iteration, learning rate 0.001, discount 0.9 per step, no baseline.
PAPER_REINFORCE = _REINFORCE | {
    "algorithm": "reinforce",
    "rollouts": 10,
    "baseline": "none",
    "normalise": "all",
    "horizon_s": 9.491221581029903,
    "reward_scale_s": 1.0,
    "validate_every": 1000,
    "validation_seeds": 0,
    "checkpoint_every": 1000,
    "iterations": 10_000,
}
#: Algorithm 1 with Table 5: ten steps per iteration, batches of 64 out of 10,000 transitions, eps 0.001.
PAPER_DQN = {
    "algorithm": "dqn",
    "validate_every": 1000,
    "validation_seeds": 0,
    "checkpoint_every": 1000,
    "iterations": 10_000,
}
register_recipe("fast-placement", **FAST)
register_recipe("paper-placement", **PAPER_REINFORCE)
register_recipe("paper-dqn-placement", **PAPER_DQN)
