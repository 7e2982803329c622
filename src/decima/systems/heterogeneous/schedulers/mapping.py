"""Mapping heuristics: MCT, MET, MaxMin, Sufferage and ETF; MinMin is in :mod:`.static`."""

import numpy as np

from decima.core.jit import njit
from decima.systems.heterogeneous import engine
from decima.systems.heterogeneous.engine import ListRule, Planner, list_rule
from decima.systems.heterogeneous.fields import plan_at
from decima.systems.heterogeneous.placement import time_on
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
    there = np.empty((state.nodes, state.executors))
    engine.begin_appending(state)
    while engine.go_to_arrivals(state, there):
        while state.size > 0:
            chosen, chosen_executor, most, tie = -1, 0, -np.inf, -np.inf
            for position in range(state.size):
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
            engine.append_from_pool(state, there, chosen, chosen_executor)
