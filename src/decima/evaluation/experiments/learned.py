"""The stored policies of a run, as rows of comparisons."""

from __future__ import annotations

from typing import TYPE_CHECKING

from decima.evaluation.experiments.store import Context
from decima.schedulers import make_scheduler

if TYPE_CHECKING:
    from decima.policy.scheduler import LearnedScheduler

# With whom policies are compared, paired by sequence.
BASELINES = ("fair", "weighted_fair_arrival", "weighted_fair", "capped_srw")


def learned_policy(context: Context, use: str, greedy: bool | None = None) -> LearnedScheduler:
    """The policy that the run names for a use.

    Args:
        context: The run.
        use: ``"batch"``, ``"stream"`` or ``"released"``.
        greedy: Take the likeliest action, or draw it, as in training. When omitted, as the policy's card says, which is
            what was better on validation sequences.
    """
    return make_scheduler("decima", policy=context.policies[use], greedy=greedy)


def learned_schedulers(context: Context, use: str) -> dict[str, LearnedScheduler]:
    """The policy twice: ``decima`` as its card says, and the other way, ``decima_sampled`` or ``decima_greedy``."""
    stored = learned_policy(context, use)
    other = "decima_sampled" if stored.greedy else "decima_greedy"
    return {"decima": stored, other: learned_policy(context, use, greedy=not stored.greedy)}
