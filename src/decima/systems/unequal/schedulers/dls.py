"""DLS: the pair of node and executor with the largest dynamic level goes first."""

import numpy as np
from numba import njit

from decima.core.cache import cached
from decima.systems.unequal.engine import Planner
from decima.systems.unequal.fields import plan_at
from decima.systems.unequal.placement import begin, inputs_there, put, time_on
from decima.systems.unequal.ranks import rank_up
from decima.systems.unequal.registry import register
from decima.systems.unequal.result import Schedule
from decima.systems.unequal.settings import Rules
from decima.systems.unequal.workload import Instance


@register(
    "dls",
    "DLS",
    "Sih and Lee, A compile-time scheduling heuristic for interconnection-constrained heterogeneous processor "
    "architectures (1993)",
    Rules(duplicate=False),
    open=("drop_unread",),
)
def dls(instance: Instance, rules: Rules, rng: np.random.Generator) -> Schedule:
    """Place the pair with the largest static level - start + (mean time - time on the executor); nodes are appended.

    Static levels have mean execution times where the paper has medians, as in the comparisons of Topcuoglu et al.
    """
    level = rank_up(instance, transfers=0.0)
    planner = Planner(instance, rules)
    _schedule(planner.record.address, level)
    return planner.schedule()


@cached(njit(cache=True, nogil=True))
def _schedule(address, level):
    state = plan_at(address)
    begin(state)
    nodes = state.nodes
    executors = state.executors
    state.sent_from = -np.inf
    there = np.empty((nodes, executors))  # when all data of a node that can be decided is on each executor
    for node in range(nodes):
        state.waiting[node] = state.parent_start[node + 1] - state.parent_start[node]
    size = 0
    arrived = 0
    while arrived < nodes:
        state.now = state.arrival[state.arriving[arrived]]
        while arrived < nodes and state.arrival[state.arriving[arrived]] <= state.now:
            node = state.arriving[arrived]
            if state.waiting[node] == 0:
                state.pool[size] = node
                there[node, :] = state.now
                size += 1
            arrived += 1
        while size > 0:
            best = -np.inf
            chosen = 0
            chosen_executor = 0
            for position in range(size):
                node = state.pool[position]
                for executor in range(executors):
                    start = max(there[node, executor], state.available[executor])
                    value = level[node] - start + (state.mean_time[node] - time_on(state, node, executor))
                    if value > best or (value == best and node < state.pool[chosen]):
                        best = value
                        chosen = position
                        chosen_executor = executor
            node = state.pool[chosen]
            size -= 1
            state.pool[chosen] = state.pool[size]
            start = max(there[node, chosen_executor], state.available[chosen_executor])
            put(state, node, chosen_executor, start, start + time_on(state, node, chosen_executor))
            for edge in range(state.child_start[node], state.child_start[node + 1]):
                child = state.child[edge]
                state.waiting[child] -= 1
                if state.waiting[child] == 0:
                    for executor in range(executors):
                        there[child, executor] = inputs_there(state, child, executor)
                    state.pool[size] = child
                    size += 1
