"""Stored policies as schedulers of instances."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from decima.core.grammar import Option
from decima.learning.store import StoredPolicy, read_policy
from decima.systems.unequal.engine import ListRule
from decima.systems.unequal.policy.architecture import NodeArchitecture
from decima.systems.unequal.policy.planner import PolicyPlanner
from decima.systems.unequal.settings import Rules
from decima.systems.unequal.workload import Instance

POLICY = Option(
    "policy", "name of a stored policy, or path of its .weights.h5; empty: the one of this project", default=""
)


def load(name: str) -> StoredPolicy:
    """Weights and architecture of a stored policy; read once as long as the file does not change.

    Raises:
        PolicyError: There is none of that name, or it is damaged or of another kind.
    """
    path = Path(name if name.endswith(".h5") else f"{name}.weights.h5")
    changed = path.stat().st_mtime_ns if path.is_file() else 0
    return _load(name, changed)


@lru_cache(maxsize=16)
def _load(name: str, changed: int) -> StoredPolicy:
    return read_policy(name, NodeArchitecture)


def network_rule(instance: Instance, rules: Rules, policy: str) -> ListRule:
    """Rule that takes the likeliest nodes of a stored policy first.

    Args:
        instance: Jobs and cluster.
        rules: When and where nodes are placed.
        policy: Name or path.

    Raises:
        PolicyError: The policy cannot be read; when run, its scores are not finite.
    """
    stored = load(policy)
    planner = PolicyPlanner(instance, rules, stored.architecture)
    return ListRule(
        planner.planner,
        lambda: planner.run(stored.weights),
        lambda: planner.resume(stored.weights),
        planner.require_finite,
    )
