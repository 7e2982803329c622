"""List rules, and list schedulers with special executor rules: CPOP, PEFT, DLS, MinMin."""

import numpy as np

from decima.core.decision import Parameter
from decima.core.jit import njit
from decima.systems.heterogeneous import engine
from decima.systems.heterogeneous.engine import LEAST_LEFT, RESPONSE_RATIO, ListRule, Planner, list_rule
from decima.systems.heterogeneous.fields import plan_at
from decima.systems.heterogeneous.placement import time_on
from decima.systems.heterogeneous.result import Schedule
from decima.systems.heterogeneous.schedulers.priorities import (
    COEFFICIENTS,
    TRANSFER_PARTS,
    linear_priority,
    rank_down,
    rank_up,
)
from decima.systems.heterogeneous.schedulers.registry import register
from decima.systems.heterogeneous.settings import Rules
from decima.systems.heterogeneous.workload import Instance

# Sums of the same numbers in another order differ by so much of them at most.
_ROUNDING = 1e-9


@register(
    "cpop",
    "CPOP",
    "Topcuoglu, Hariri and Wu (2002), Section 4.2",
    Rules(slots="insertion", duplicate=False),
    open=("slots", "transfers", "drop_unread"),
)
def cpop(instance: Instance, rules: Rules, rng: np.random.Generator) -> ListRule:
    """Assign nodes by upward plus downward rank; the critical path on one executor.

    The other nodes go where they finish first. Jobs that arrive at the same time count as one DAG with one critical
    path.
    """
    mean_s = instance.mean_cost_s
    priority = rank_up(instance, node_s=mean_s) + rank_down(instance, node_s=mean_s)
    forced = np.full(len(instance), -1)
    start, child, _ = instance.children
    entries = np.diff(instance.parents[0]) == 0
    for arrival_s in np.unique(instance.arrival_s):
        roots = np.flatnonzero(entries & (instance.arrival_s == arrival_s))
        node = int(roots[np.argmax(priority[roots])])
        length = priority[node]
        path = [node]
        while True:
            below = child[start[node] : start[node + 1]]
            below = below[priority[below] >= length * (1.0 - _ROUNDING)]
            if not len(below):
                break
            node = int(below[0])
            path.append(node)
        forced[path] = _best_executor(instance, path)
    return list_rule(instance, rules, priority, forced=forced)


def _best_executor(instance: Instance, path: list[int]) -> int:
    """Executor with the smallest finite sum of a path's times, or -1."""
    cluster = instance.cluster
    if cluster.costs is not None:
        sums = cluster.costs[path].sum(axis=0)
        return int(np.argmin(sums)) if np.isfinite(sums).any() else -1
    return int(np.argmax(cluster.speeds))


@register(
    "peft",
    "PEFT",
    "Arabnejad and Barbosa, List scheduling algorithm for heterogeneous systems by an optimistic cost table (2014)",
    Rules(slots="insertion", duplicate=False),
    open=("decision", "slots", "transfers", "drop_unread"),
)
def peft(instance: Instance, rules: Rules, rng: np.random.Generator) -> ListRule:
    """Assign nodes by mean optimistic cost, where finish plus that cost is smallest."""
    table = optimistic_costs(instance)
    return list_rule(instance, rules, table.mean(axis=1), bias=table)


def optimistic_costs(instance: Instance) -> np.ndarray:
    """Optimistic cost from each node on each executor to the end, float64 [nodes, executors].

    Every child may choose its executor for itself; transfers take their mean time (Eq. 7 of the paper of PEFT).
    """
    start, child, data = instance.children
    return _table(instance.order, start, child, instance.cluster.mean_transfer_s(data), instance.times_s)


@njit(cache=True, nogil=True)
def _table(order, child_start, child, transfer, costs):
    nodes, executors = costs.shape
    table = np.zeros((nodes, executors))
    for position in range(nodes - 1, -1, -1):
        node = order[position]
        for edge in range(child_start[node], child_start[node + 1]):
            below = child[edge]
            cheapest = np.inf
            for executor in range(executors):
                cheapest = min(cheapest, table[below, executor] + costs[below, executor])
            for executor in range(executors):
                here = table[below, executor] + costs[below, executor]
                table[node, executor] = max(table[node, executor], min(here, cheapest + transfer[edge]))
    return table


@register(
    "dls",
    "DLS",
    "Sih and Lee, A compile-time scheduling heuristic for interconnection-constrained heterogeneous processor "
    "architectures (1993)",
    Rules(duplicate=False),
    open=("drop_unread",),
)
def dls(instance: Instance, rules: Rules, rng: np.random.Generator) -> Schedule:
    """Append the pair of node and executor with the largest dynamic level.

    Static levels have mean execution times where the paper has medians, as in the comparisons of Topcuoglu et al.
    """
    return _by_level(instance, rules, rank_up(instance, transfers=0.0, node_s=instance.mean_cost_s))


@register(
    "min_min",
    "MinMin",
    "Ibarra and Kim (1977), named by Maheswaran et al., dynamic mapping of a class of independent tasks (1999)",
    Rules(duplicate=False),
    open=("drop_unread",),
)
def min_min(instance: Instance, rules: Rules, rng: np.random.Generator) -> Schedule:
    """Append the node that finishes first of all, where it does."""
    return _by_level(instance, rules, -instance.mean_cost_s)


def _by_level(instance: Instance, rules: Rules, level: np.ndarray) -> Schedule:
    """Append by the largest level less start, plus mean time less time there."""
    planner = Planner(instance, rules)
    planner.record.bind("mean_time", instance.mean_cost_s, copy=False)
    _schedule(planner.record.address, level)
    return planner.schedule()


@njit(cache=True, nogil=True)
def _schedule(address, level):
    state = plan_at(address)
    there = np.empty((state.nodes, state.executors))
    engine.begin_appending(state)
    while engine.go_to_arrivals(state, there):
        while state.size > 0:
            best = -np.inf
            chosen = 0
            chosen_executor = 0
            for position in range(state.size):
                node = state.pool[position]
                for executor in range(state.executors):
                    start = max(there[node, executor], state.available[executor])
                    value = level[node] - start + (state.mean_time[node] - time_on(state, node, executor))
                    if value > best or (value == best and node < state.pool[chosen]):
                        best = value
                        chosen = position
                        chosen_executor = executor
            engine.append_from_pool(state, there, chosen, chosen_executor)


@register("fifo_deft", "FIFO-DEFT", "Luo et al., Section V-B", Rules(decision="idle"))
def fifo_deft(instance: Instance, rules: Rules, rng: np.random.Generator) -> ListRule:
    """Assign nodes in the order of their jobs' arrivals, then of their numbers, by DEFT."""
    return list_rule(instance, rules, -instance.arrival_s)


@register("sjf_deft", "SJF-DEFT", "Luo et al., Section V-B", Rules(decision="idle"))
def sjf_deft(instance: Instance, rules: Rules, rng: np.random.Generator) -> ListRule:
    """Assign nodes of the job with the least mean execution time left by DEFT.

    Differs: the paper's sentence about it repeats the one about FIFO.
    """
    return list_rule(instance, rules, choice=LEAST_LEFT)


@register("hrrn_deft", "HRRN-DEFT", "Luo et al., Section V-B", Rules(decision="idle"))
def hrrn_deft(instance: Instance, rules: Rules, rng: np.random.Generator) -> ListRule:
    """Assign the node with the highest response ratio by DEFT.

    Waiting begins when a node can be decided, so that with ``plan`` and ``event`` nothing waits. The usual ratio,
    waiting plus execution time over execution time, gives the same order.
    """
    return list_rule(instance, rules, choice=RESPONSE_RATIO)


@register("high_rank_up_deft", "HighRankUp-DEFT", "Luo et al., Section V-B", Rules())
def high_rank_up_deft(instance: Instance, rules: Rules, rng: np.random.Generator) -> ListRule:
    """Assign the node with the largest upward rank of Eq. 5 by DEFT."""
    return list_rule(instance, rules, rank_up(instance))


@register("heft", "HEFT", "Topcuoglu, Hariri and Wu (2002), Section 4.1", Rules(slots="insertion", duplicate=False))
def heft(instance: Instance, rules: Rules, rng: np.random.Generator) -> ListRule:
    """Assign the node with the largest upward rank where it finishes first, without copies."""
    return list_rule(instance, rules, rank_up(instance, node_s=instance.mean_cost_s))


@register("random_deft", "random", "ours, for comparison", Rules(), draws=True)
def random_deft(instance: Instance, rules: Rules, rng: np.random.Generator) -> ListRule:
    """Assign nodes by DEFT, in an order that the seed chooses."""
    return list_rule(instance, rules, rng.random(len(instance)))


_DISCOUNT = Parameter("discount", 0.25, 0.0, 1.0, "factor on transfer times in the rank", tunable=True)


@register("discounted_rank", "discounted rank", "ours", Rules(slots="insertion"), parameters=(_DISCOUNT,))
def discounted_rank(instance: Instance, rules: Rules, rng: np.random.Generator, discount: float) -> ListRule:
    """Assign the node with the largest discounted upward rank by DEFT with insertion.

    A good placement avoids most transfers, so the full mean transfer time overstates what is still to come.
    """
    return list_rule(instance, rules, rank_up(instance, transfers=discount))


@register("linear_rank", "Linear rule", "this project", Rules(slots="insertion"))
def linear_rank(instance, rules, rng):
    """The largest weighted sum of logarithms of ranks, work and transfers goes first; DEFT."""
    return list_rule(instance, rules, linear_priority(instance, COEFFICIENTS[rules.decision]))


def best_rule_priority(instance: Instance, rules: Rules) -> np.ndarray:
    """Priorities of the simple rule whose schedule of this instance is the shortest, float64 [nodes].

    Simple rules are upward ranks with discounted transfers, and the linear rule with the weights for the decisions.
    Where jobs arrive later, that looks into the future: only the whole schedule decides which rule it is.

    Args:
        instance: Jobs and cluster.
        rules: How nodes are decided and placed.
    """
    ranks = [rank_up(instance, transfers=discount) for discount in TRANSFER_PARTS]
    linear = linear_priority(instance, COEFFICIENTS[rules.decision])
    return min([*ranks, linear], key=Planner(instance, rules).run)
