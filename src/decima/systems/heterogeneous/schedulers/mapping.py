"""Mapping heuristics: MCT, MET, MaxMin, Sufferage and ETF; MinMin is in :mod:`.static`."""

import numpy as np

from decima.core.jit import njit
from decima.systems.heterogeneous.engine import ListRule, Planner, list_rule
from decima.systems.heterogeneous.fields import plan_at
from decima.systems.heterogeneous.placement import begin, inputs_there, put, time_on
from decima.systems.heterogeneous.result import Schedule
from decima.systems.heterogeneous.schedulers.priorities import rank_up
from decima.systems.heterogeneous.schedulers.registry import register
from decima.systems.heterogeneous.settings import Rules
from decima.systems.heterogeneous.workload import Instance

_LATEST, _SUFFERS, _STARTS = 0, 1, 2
_RULES, _OPEN = Rules(duplicate=False), ("drop_unread",)
_MAHESWARAN = "Maheswaran et al., dynamic mapping of a class of independent tasks (1999)"


@register("mct", "MCT", _MAHESWARAN, _RULES, open=_OPEN)
def mct(instance: Instance, rules: Rules, rng: np.random.Generator) -> ListRule:
    """Append nodes in the order of arrivals, parents and numbers, each where it finishes first."""
    return list_rule(instance, rules, -instance.arrival_s)


@register("met", "MET", _MAHESWARAN, _RULES, open=_OPEN)
def met(instance: Instance, rules: Rules, rng: np.random.Generator) -> ListRule:
    """Append nodes in the same order, each to its fastest executor, busy or not."""
    return list_rule(instance, rules, -instance.arrival_s, forced=instance.times_s.argmin(axis=1))


@register("max_min", "MaxMin", _MAHESWARAN, _RULES, open=_OPEN)
def max_min(instance: Instance, rules: Rules, rng: np.random.Generator) -> Schedule:
    """Append the node whose earliest finish is the latest, where it finishes first."""
    return _mapped(instance, rules, _LATEST)


@register("sufferage", "Sufferage", _MAHESWARAN, _RULES, open=_OPEN)
def sufferage(instance: Instance, rules: Rules, rng: np.random.Generator) -> Schedule:
    """Append the node that loses most on its second best executor, to the best.

    Differs: one node at a time; the paper lets every executor take one before it computes the losses anew.
    """
    return _mapped(instance, rules, _SUFFERS)


@register("etf", "ETF", "Hwang et al., interprocessor communication times (1989)", _RULES, open=_OPEN)
def etf(instance: Instance, rules: Rules, rng: np.random.Generator) -> Schedule:
    """Append the node that can start first; among equals, that with the longest path."""
    return _mapped(instance, rules, _STARTS)


def _mapped(instance: Instance, rules: Rules, choice: int) -> Schedule:
    planner = Planner(instance, rules)
    _map(planner.address, choice, rank_up(instance, transfers=0.0, node_s=instance.mean_cost_s))
    return planner.schedule()


@njit(cache=True, nogil=True)
def _map(address, choice, level):
    """Append all nodes; of equal ones the lower number goes first, to the lower executor."""
    state = plan_at(address)
    begin(state)
    state.sent_from = -np.inf
    there = np.empty((state.nodes, state.executors))  # when all data of a node in the pool is on each executor
    for node in range(state.nodes):
        state.waiting[node] = state.parent_start[node + 1] - state.parent_start[node]
    size = arrived = 0
    while arrived < state.nodes:
        state.now = state.arrival[state.arriving[arrived]]
        while arrived < state.nodes and state.arrival[state.arriving[arrived]] <= state.now:
            node = state.arriving[arrived]
            if state.waiting[node] == 0:
                state.pool[size] = node
                there[node, :] = state.now
                size += 1
            arrived += 1
        while size > 0:
            chosen, chosen_executor, most, tie = -1, 0, -np.inf, -np.inf
            for position in range(size):
                node = state.pool[position]
                first, second, executor = np.inf, np.inf, 0
                for each in range(state.executors):
                    time = max(there[node, each], state.available[each])
                    lasts = time_on(state, node, each)
                    time = time + lasts if choice != _STARTS or lasts == np.inf else time
                    if time < first:
                        first, second, executor = time, first, each
                    else:
                        second = min(second, time)
                value = first if choice == _LATEST else second - first if choice == _SUFFERS else -first
                other = level[node] if choice == _STARTS else 0.0
                better = chosen < 0 or value > most or (value == most and other > tie)
                if better or (value == most and other == tie and node < state.pool[chosen]):
                    chosen, chosen_executor, most, tie = position, executor, value, other
            node = state.pool[chosen]
            size -= 1
            state.pool[chosen] = state.pool[size]
            start = max(there[node, chosen_executor], state.available[chosen_executor])
            put(state, node, chosen_executor, start, start + time_on(state, node, chosen_executor))
            for edge in range(state.child_start[node], state.child_start[node + 1]):
                child = state.child[edge]
                state.waiting[child] -= 1
                if state.waiting[child] == 0:
                    for each in range(state.executors):
                        there[child, each] = inputs_there(state, child, each)
                    state.pool[size] = child
                    size += 1
