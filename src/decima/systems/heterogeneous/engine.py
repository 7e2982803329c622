"""List scheduling: which node is taken next, at what time, until all are placed."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from decima.core.decision import call_decide
from decima.core.jit import njit
from decima.core.record import Record
from decima.systems.heterogeneous import graph
from decima.systems.heterogeneous.fields import PLAN, plan_at
from decima.systems.heterogeneous.placement import assign_node, begin, inputs_there, put, time_on
from decima.systems.heterogeneous.result import Schedule
from decima.systems.heterogeneous.settings import DECISIONS, Rules
from decima.systems.heterogeneous.workload import Instance

# How a node is chosen among those that can be decided: by a fixed priority, by the smallest work left in its job, or by
# the largest response ratio, by a network (:mod:`decima.systems.heterogeneous.policy.planner`), or elsewhere.
FIXED, LEAST_LEFT, RESPONSE_RATIO, NETWORK, OUTSIDE = 0, 1, 2, 3, 4
_PLAN = DECISIONS.index("plan")


class Planner:
    """Reusable memory for schedules of one instance; for one thread at a time.

    Args:
        instance: Jobs and cluster.
        rules: When and where nodes are placed.
        choice: FIXED: the largest priority goes first, the lower number among equals. LEAST_LEFT: the job with the
            smallest mean time of nodes not yet placed. RESPONSE_RATIO: the largest waiting time since a node could be
            decided, over that and its mean execution time.
        bias: Added to finish times before executors are compared, float64 [nodes, executors].
        forced: Executor that a node has to go to, or -1, int64 [nodes].
    """

    def __init__(
        self,
        instance: Instance,
        rules: Rules,
        *,
        choice: int = FIXED,
        bias: np.ndarray | None = None,
        forced: np.ndarray | None = None,
    ) -> None:
        self.instance, self.rules = instance, rules
        cluster = instance.cluster
        nodes, executors, jobs = len(instance), len(cluster), len(instance.jobs)
        copies = 2 * nodes if rules.duplicate else nodes
        extents = {"nodes": nodes, "executors": executors, "jobs": jobs, "nodes + 1": nodes + 1, "copies": copies}
        optional = {"costs": cluster.costs, "rates": None if cluster.uniform else cluster.rate, "bias": bias}
        optional |= {"forced": forced}
        extents |= {name: 0 if array is None else array.size for name, array in optional.items()}
        extents |= {"edges": len(instance.parents[1]), "gaps": copies if rules.slots == "insertion" else 0}
        self.record = record = Record(PLAN, extents)
        record.configure(
            nodes=nodes,
            executors=executors,
            jobs=jobs,
            rate=cluster.rate if cluster.uniform else 0.0,
            latency=cluster.latency_s,
            insertion=rules.slots == "insertion",
            duplicate=rules.duplicate,
            on_decision=rules.transfers == "decision",
            decision=DECISIONS.index(rules.decision),
            only_free=rules.decision == "idle",
            choice=choice,
            **{f"has_{name}": array is not None for name, array in optional.items()},
        )
        inputs = {
            "work": instance.work,
            "arrival": instance.arrival_s,
            "mean_time": instance.mean_time_s,
            "least_time": instance.least_time_s,
            "job": instance.job_of_node,
            "speeds": np.ones(executors) if cluster.speeds is None else cluster.speeds,
            "parent_start": instance.parents[0],
            "parent": instance.parents[1],
            "parent_data": instance.parents[2],
            "child_start": instance.children[0],
            "child": instance.children[1],
        }
        inputs |= {name: np.ravel(array) for name, array in optional.items() if array is not None}
        for name, array in inputs.items():
            record.bind(name, np.ascontiguousarray(array), copy=False)
        self.lent = False  # by the instance, which takes it back
        self._batch = bool(instance.arrival_s.max() == instance.arrival_s.min())
        self._fixed, self._planned = choice == FIXED, rules.decision == "plan"
        self.address, self._by_rank = record.address, record.by_rank
        record.arriving[:] = np.argsort(instance.arrival_s, kind="stable")

    def leave(self) -> None:
        """Leave the memory to the instance, for its next :func:`list_rule`.

        Nobody may use this planner before that.
        """
        if self.lent:
            vars(self.instance)["planner"], self.instance = self, None

    def run(self, priority: np.ndarray | None = None) -> float:
        """Schedule all nodes, and forget the former schedule.

        Args:
            priority: The largest goes first, float64 [nodes]; for FIXED; those of before when omitted.

        Returns:
            The makespan in seconds.
        """
        if priority is not None:
            self.set_priority(priority)
        if self._fixed and self._planned:
            return _plan(self.address)
        return _decide(self.address)

    def set_priority(self, priority: np.ndarray) -> None:
        """Set priorities, float64 [nodes]: the largest goes first."""
        key = -np.asarray(priority, dtype=np.float64)
        in_time = self._planned and not self._batch
        self._by_rank[:] = np.lexsort((key, self.instance.arrival_s)) if in_time else np.argsort(key, kind="stable")

    def schedule(self) -> Schedule:
        """Return the last schedule; all but the first copy of a node are duplicates."""
        record = self.record
        columns = (record.copy_node, record.copy_executor, record.copy_start, record.copy_finish)
        none = None if self.rules.duplicate else np.zeros(record.copies, dtype=bool)
        return Schedule(self.instance, *(column[: record.copies] for column in columns), none)


@dataclass(frozen=True)
class ListRule:
    """Rule that takes one node after the other, prepared for an instance."""

    planner: Planner
    run: Callable[[], object]  # schedules all nodes
    check: Callable[[], None] = lambda: None  # raises an error if decisions since then are of no use

    def schedule(self) -> Schedule:
        """Schedule all nodes."""
        self.run()
        return self.planner.schedule()


def list_rule(instance: Instance, rules: Rules, priority: np.ndarray | None = None, **options) -> ListRule:
    """Rule that takes nodes by priority, or as ``choice`` says; ``options`` are those of :class:`Planner`."""
    planner = None if options else vars(instance).pop("planner", None)
    if planner is None or planner.rules != rules:
        planner = Planner(instance, rules, **options)
    planner.instance, planner.lent = instance, not options
    if priority is not None:
        planner.set_priority(priority)
    return ListRule(planner, planner.run)


@njit
def _makespan(state):
    longest = 0.0
    for node in range(state.nodes):
        longest = max(longest, state.finish[node])
    return longest


@njit
def _begin_order(state):
    """Ranks from the order, and parents to wait for."""
    for rank_index in range(state.nodes):
        state.rank[state.by_rank[rank_index]] = rank_index
    for node in range(state.nodes):
        state.waiting[node] = state.parent_start[node + 1] - state.parent_start[node]
    state.size = 0
    state.running = 0


@njit(cache=True, nogil=True)
def _plan(address):
    """Assign all nodes in a fixed order and return the makespan."""
    state = plan_at(address)
    begin(state)
    _begin_order(state)
    ready = True
    for node in range(state.nodes):
        for edge in range(state.child_start[node], state.child_start[node + 1]):
            ready &= state.rank[state.child[edge]] > state.rank[node]
    if ready:
        for position in range(state.nodes):
            node = state.by_rank[position]
            assign_node(state, node, state.arrival[node])
        return _makespan(state)
    for node in range(state.nodes):
        if state.waiting[node] == 0:
            state.size = graph.push(state.pool, state.size, state.rank[node])
    while state.size > 0:
        node = state.by_rank[state.pool[0]]
        state.size = graph.pop(state.pool, state.size)
        assign_node(state, node, state.arrival[node])
        _release_children(state, node, state.arrival[node])
    return _makespan(state)


@njit
def begin_appending(state):
    """Nothing is placed or has arrived; data is sent once it is there."""
    begin(state)
    state.sent_from = -np.inf
    state.size = state.arrived = 0
    for node in range(state.nodes):
        state.waiting[node] = state.parent_start[node + 1] - state.parent_start[node]


@njit
def go_to_arrivals(state, there):
    """Let the next arrivals without parents into the pool; False: none are left.

    ``there`` [nodes, executors] takes when all data of a node of the pool is on each executor, in seconds.
    """
    if state.arrived == state.nodes:
        return False
    state.now = state.arrival[state.arriving[state.arrived]]
    while state.arrived < state.nodes and state.arrival[state.arriving[state.arrived]] <= state.now:
        node = state.arriving[state.arrived]
        if state.waiting[node] == 0:
            there[node, :] = state.now
            state.pool[state.size] = node
            state.size += 1
        state.arrived += 1
    return True


@njit
def append_from_pool(state, there, position, executor):
    """Append a node of the pool to an executor; let its children into the pool."""
    node = state.pool[position]
    state.size -= 1
    state.pool[position] = state.pool[state.size]
    start = max(there[node, executor], state.available[executor])
    put(state, node, executor, start, start + time_on(state, node, executor))
    for edge in range(state.child_start[node], state.child_start[node + 1]):
        child = state.child[edge]
        state.waiting[child] -= 1
        if state.waiting[child] == 0:
            for each in range(state.executors):
                there[child, each] = inputs_there(state, child, each)
            state.pool[state.size] = child
            state.size += 1


@njit
def _release_children(state, node, now):
    """One parent less to wait for."""
    for edge in range(state.child_start[node], state.child_start[node + 1]):
        child = state.child[edge]
        state.waiting[child] -= 1
        if state.waiting[child] == 0:
            offer(state, child, now)


@njit
def offer(state, node, now):
    """From now on a node can be decided."""
    state.since[node] = now
    if state.choice == FIXED:
        state.size = graph.push(state.pool, state.size, state.rank[node])
    else:
        state.pool[state.size] = node
        state.size += 1


@njit
def _take(state, now):
    """Remove the node to decide next from the pool."""
    if state.choice == FIXED:
        node = state.by_rank[state.pool[0]]
        state.size = graph.pop(state.pool, state.size)
        return node
    best = 0
    best_key = np.inf
    if state.choice == NETWORK:
        state.now = now
        call_decide(state.chooser, state)
    if state.choice >= NETWORK:
        best = state.taken
    for position in range(0 if state.choice >= NETWORK else state.size):
        node = state.pool[position]
        if state.choice == LEAST_LEFT:
            key = state.left[state.job[node]]
        else:
            waited = now - state.since[node]
            total = waited + state.mean_time[node]
            key = -waited / total if total > 0.0 else 0.0
        if key < best_key or (key == best_key and node < state.pool[best]):
            best = position
            best_key = key
    node = state.pool[best]
    state.size -= 1
    state.pool[best] = state.pool[state.size]
    return node


@njit
def _push_finish(state, time, node):
    hole = state.running
    state.running = hole + 1
    while hole > 0 and state.finish_time[(hole - 1) >> 1] > time:
        state.finish_time[hole] = state.finish_time[(hole - 1) >> 1]
        state.finish_node[hole] = state.finish_node[(hole - 1) >> 1]
        hole = (hole - 1) >> 1
    state.finish_time[hole] = time
    state.finish_node[hole] = node


@njit
def _pop_finish(state):
    first = state.finish_node[0]
    size = state.running - 1
    state.running = size
    time = state.finish_time[size]
    hole = 0
    child = 1
    while child < size:
        if child + 1 < size and state.finish_time[child + 1] < state.finish_time[child]:
            child += 1
        if state.finish_time[child] >= time:
            break
        state.finish_time[hole] = state.finish_time[child]
        state.finish_node[hole] = state.finish_node[child]
        hole = child
        child = 2 * hole + 1
    state.finish_time[hole] = time
    state.finish_node[hole] = state.finish_node[size]
    return first


@njit
def begin_decisions(state):
    """Nothing is placed, nothing can be decided, all work is left."""
    begin(state)
    _begin_order(state)
    state.arrived = 0
    for job in range(state.jobs):
        state.left[job] = 0.0
    for node in range(state.nodes):
        state.left[state.job[node]] += state.mean_time[node]


@njit
def _free(state, now):
    if not state.only_free:
        return state.executors
    free = 0
    for executor in range(state.executors):
        free += state.available[executor] <= now
    return free


@njit
def decide_now(state, now, most):
    """Assign what can be decided at a time, at most ``most`` nodes."""
    free = _free(state, now)
    while state.size > 0 and free > 0 and most > 0:
        most -= 1
        node = _take(state, now)
        state.left[state.job[node]] -= state.mean_time[node]
        chosen = assign_node(state, node, now)
        if state.only_free and state.available[chosen] > now:
            free -= 1
        if state.decision == _PLAN:
            _release_children(state, node, now)
        else:
            _push_finish(state, state.finish[node], node)


@njit
def _go_on(state):
    """Go to the next arrival or finish and offer nodes; False at the end."""
    if state.arrived == state.nodes and state.running == 0:
        return False
    now = np.inf
    if state.arrived < state.nodes:
        now = state.arrival[state.arriving[state.arrived]]
    if state.running > 0:
        now = min(now, state.finish_time[0])
    while state.arrived < state.nodes and state.arrival[state.arriving[state.arrived]] <= now:
        if state.waiting[state.arriving[state.arrived]] == 0:
            offer(state, state.arriving[state.arrived], now)
        state.arrived += 1
    while state.running > 0 and state.finish_time[0] <= now:
        _release_children(state, _pop_finish(state), now)
    state.now = now
    return True


@njit(cache=True, nogil=True)
def _decide(address):
    """Assign nodes at arrivals and finishes of nodes and return the makespan."""
    state = plan_at(address)
    begin_decisions(state)
    while _go_on(state):
        decide_now(state, state.now, state.nodes)
    return _makespan(state)


@njit(cache=True)
def step_plan(address, position):
    """Assign a node of the pool, or begin, and go to the next decision.

    Args:
        address: Of a plan whose choice is OUTSIDE.
        position: Position in the pool; below 0: begin.

    Returns:
        False where no decision follows.
    """
    state = plan_at(address)
    if position < 0:
        begin_decisions(state)
    else:
        state.taken = position
        decide_now(state, state.now, 1)
    while state.size == 0 or _free(state, state.now) == 0:
        if not _go_on(state):
            return False
    return True
