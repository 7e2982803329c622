"""Stored placement policies as schedulers."""

from __future__ import annotations

from decima.learning.store import greedy_of, read_policy
from decima.systems.cloud.policy.architecture import PlacementArchitecture
from decima.systems.cloud.policy.scheduler import LearnedPlacement

NAME, DEFAULT = "learned", "cloud-fast"


def learned(policy: str = DEFAULT, greedy: bool | None = None) -> LearnedPlacement:
    """A stored policy as a rule.

    Args:
        policy: Its name, or the path of its .weights.h5.
        greedy: Take the best action; else draw it. When omitted, as the card says.

    Raises:
        PolicyError: There is no such policy, or its files are damaged.
    """
    stored = read_policy(policy, PlacementArchitecture)
    scheduler = LearnedPlacement(
        stored.architecture, stored.weights, greedy_of(stored, None if greedy is None else bool(greedy)), NAME
    )
    scheduler.values = {"policy": str(policy), "greedy": int(scheduler.greedy)}
    return scheduler
