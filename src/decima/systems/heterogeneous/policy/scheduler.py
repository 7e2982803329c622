"""Stored policies as schedulers of instances: Lachesis, Decima-DEFT and the best of several plans."""

from functools import lru_cache
from pathlib import Path

import numpy as np

from decima.core.decision import Parameter
from decima.core.grammar import Option
from decima.learning.store import StoredPolicy, read_policy
from decima.systems.heterogeneous.engine import ListRule, Planner
from decima.systems.heterogeneous.policy.architecture import NodeArchitecture
from decima.systems.heterogeneous.policy.planner import PolicyPlanner
from decima.systems.heterogeneous.result import Schedule
from decima.systems.heterogeneous.schedulers.registry import register
from decima.systems.heterogeneous.schedulers.static import best_rule_priority
from decima.systems.heterogeneous.settings import Rules
from decima.systems.heterogeneous.workload import Instance

POLICY = Option(
    "policy", "name of a stored policy, or path of its .weights.h5; empty: the one of this project", default=""
)


def load(name: str) -> StoredPolicy:
    """Weights and architecture of a stored policy, read again only if the file has changed.

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
    """Scheduler that takes the most probable nodes of a stored policy first.

    Args:
        instance: Jobs and cluster.
        rules: When and where nodes are placed.
        policy: Name or path.

    Raises:
        PolicyError: The policy cannot be read; when run, its scores are not finite.
    """
    stored = load(policy)
    planner = PolicyPlanner(instance, rules, stored.architecture)
    return ListRule(planner.planner, lambda: planner.run(stored.weights), planner.require_finite)


@register("lachesis", "Lachesis", "Luo et al., section IV", Rules(slots="insertion"), options=(POLICY,))
def lachesis(instance, rules, rng, policy=""):
    """A graph network scores the nodes that can be decided, the best goes first; DEFT."""
    return network_rule(instance, rules, policy or "lachesis-batch")


@register("decima_deft", "Decima-DEFT", "Luo et al., section V-B", Rules(slots="insertion"), options=(POLICY,))
def decima_deft(instance, rules, rng, policy=""):
    """Decima's network without edges and ranks scores the nodes, the best goes first; DEFT."""
    return network_rule(instance, rules, policy or "decima-deft-batch")


#: Name that means no policy.
NONE = "none"
_POLICY = Option(
    "policy", "name of a stored policy, or path of its .weights.h5; none: rules alone", default="lachesis-batch"
)


@register(
    "best_plan",
    "best of several plans",
    "this project",
    Rules(slots="insertion"),
    open=("slots", "duplicate", "transfers", "drop_unread"),
    options=(_POLICY,),
)
def best_plan(instance: Instance, rules: Rules, rng: np.random.Generator, policy: str) -> Schedule:
    """Choose the shortest of the plans of a policy and of simple rules; DEFT.

    The rules are upward ranks whose transfers count fully, in part or not at all, and the linear rule. Jobs that arrive
    later are known to it.

    Raises:
        PolicyError: The policy cannot be read, or its scores are not finite.
    """
    planner = Planner(instance, rules)
    shortest_s = planner.run(best_rule_priority(instance, rules))
    best = planner.schedule()
    if policy == NONE:
        return best
    stored = load(policy)
    network = PolicyPlanner(instance, rules, stored.architecture)
    return network.planner.schedule() if network.run(stored.weights) < shortest_s else best


@register(
    "best_sample",
    "best of sampled plans",
    "this project",
    Rules(slots="insertion"),
    open=("slots", "duplicate", "transfers", "drop_unread"),
    parameters=(Parameter("samples", 16.0, 0.0, 1e6, "plans drawn from the policy, in addition to the greedy one"),),
    options=(POLICY,),
    draws=True,
)
def best_sample(instance: Instance, rules: Rules, rng: np.random.Generator, samples: float, policy: str) -> Schedule:
    """Choose the shortest of a policy's greedy plan and of plans drawn from it; DEFT.

    Raises:
        PolicyError: The policy cannot be read, or its scores are not finite.
    """
    stored = load(policy or "lachesis-batch")
    network = PolicyPlanner(instance, rules, stored.architecture)
    shortest_s, best = network.run(stored.weights), network.planner.schedule()
    for _ in range(int(samples)):
        drawn_s = network.run(stored.weights, rng=rng)
        if drawn_s < shortest_s:
            shortest_s, best = drawn_s, network.planner.schedule()
    return best
