"""The learned policy under its name among placement rules. Weights are read when it is made."""

from __future__ import annotations

from decima.core.grammar import Option
from decima.learning.store import greedy_of, read_policy
from decima.systems.cloud.policy.architecture import PlacementArchitecture
from decima.systems.cloud.policy.scheduler import LearnedPlacement
from decima.systems.cloud.schedulers.registry import register_placement

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


register_placement(
    NAME,
    "a trained network scores waiting and every VM, executor by executor",
    "Islam et al., TPDS 2022, section 6; the default policy is ours",
    learned,
    (
        Option("policy", f"name of a stored policy, or path of its .weights.h5 (default {DEFAULT})"),
        Option("greedy", "true: the best action; false: drawn at random (default: as its card says)", bool),
    ),
)
