"""Compiled code of the environment: observations, masks, actions, rewards and steps.

Every function is about row ``i`` of the arrays of :class:`decima.systems.spark.gym.padded.Memory`. Plain Python runs
:data:`observe` and :data:`take` as well, about states that compiled code does not know.
"""

from functools import cache

import numpy as np
from llvmlite import ir
from numba import types

from decima.core.decision import places
from decima.core.jit import INTERPRETED, intrinsic, njit
from decima.systems.spark import engine
from decima.systems.spark.decision import CLASS, DEFAULTS, DELAY, LIMIT, NUM_PARTS, STAGE
from decima.systems.spark.fields import NONE, WITHHELD, state_at

# What a row is about to do: nothing, take the action and go on, go on, go on to the first decision of an episode.
WAITS, ACTS, RUNS, BEGINS = 0, 1, 2, 3
# Codes of the engine that end a step. Beside them: there is no room for the jobs, stages or edges in the system.
ASKS, DONE, DEADLOCK, NO_ROOM = engine.NEEDS_DECISION, engine.DONE, engine.DEADLOCK, -1
# What a call ends with: all rows wait, or some still run.
FINISHED, UNFINISHED = -1, -2
# Numbers of a row, int64: what it is about to do, what the engine said last, the first part of the action that was
# invalid from 1 on (0: none), whether parked executors were offered again, rows present, rows filled before.
FACTS = (
    *("doing", "code", "invalid", "rescued"),
    *("jobs", "stages", "edges", "filled_jobs", "filled_stages", "filled_edges"),
)
# Numbers of a row, float64: time in ms, cost so far and reward of the last step in the unit of the objective.
AMOUNTS = ("time_ms", "cost", "reward")
# Sizes that all rows share; ``objective``: 0: Python computes costs, 1: ``avg_jct``, 2: ``makespan``.
SIZES = ("max_jobs", "max_stages", "max_edges", "delay_steps", "classes", "objective")
# Arrays of a row, float32, int32 and int8. A row of each kind has them one behind the other.
FLOATS = ("stages", "jobs", "time_s", "slot_left_s", "requests", "class_sizes")
INTS = (
    *("stage_job", "edges", "job_allocation", "source_job", "free_executors", "class_offers"),
    *("job_ids", "stage_ids"),
)
# Masks of the parts of an action first, those of a pair behind them.
MASKS = ("stage_mask", "executors_mask", "delays_mask", "classes_mask")
FLAGS = (*MASKS, "delay_mask", "stage_delayed", "class_mask")
F, V, S, A = places(FACTS), places(AMOUNTS), places(SIZES), places((*FLOATS, *INTS, *FLAGS))


@intrinsic(lambda _function, address: engine.advance(address))
def _call(_typing, function, address):
    """Call a compiled function of an int64 at an address: the engine is compiled once."""

    def codegen(_context, builder, _signature, args):
        word = ir.IntType(64)
        return builder.call(builder.inttoptr(args[0], ir.FunctionType(word, [word]).as_pointer()), [args[1]])

    return types.int64(types.int64, types.int64), codegen


@cache
def advance_address() -> int:
    """Address of :func:`decima.systems.spark.engine.advance` for compiled code."""
    if INTERPRETED:
        return 0
    engine.advance.compile((types.int64,))
    compiled = engine.advance.overloads[(types.int64,)]
    return compiled.library.get_pointer_to_function(compiled.fndesc.llvm_cfunc_wrapper_name)


# ---- observations ---------------------------------------------------------------------------------------------------


def _clear(floats, ints, flags, facts, sizes, at):
    """Pad the rows that the last observation had and this one lacks; empty all masks."""
    for job in range(facts[F.jobs], facts[F.filled_jobs]):
        floats[at[A.jobs] + 3 * job : at[A.jobs] + 3 * job + 3] = 0
        ints[at[A.job_allocation] + job] = 0
        ints[at[A.job_ids] + job] = NONE
    for stage in range(facts[F.stages], facts[F.filled_stages]):
        floats[at[A.stages] + 8 * stage : at[A.stages] + 8 * stage + 8] = 0
        ints[at[A.stage_job] + stage] = NONE
        ints[at[A.stage_ids] + stage] = NONE
        if sizes[S.delay_steps] > 0:
            floats[at[A.slot_left_s] + stage] = 0
            flags[at[A.stage_delayed] + stage] = 0
        if sizes[S.classes] > 1:
            floats[at[A.requests] + 2 * stage : at[A.requests] + 2 * stage + 2] = 0
    for edge in range(facts[F.edges], facts[F.filled_edges]):
        ints[at[A.edges] + 2 * edge : at[A.edges] + 2 * edge + 2] = NONE
    filled = max(facts[F.stages], facts[F.filled_stages])
    flags[at[A.stage_mask] : at[A.stage_mask] + filled] = 0
    if sizes[S.delay_steps] > 0:
        flags[at[A.delay_mask] : at[A.delay_mask] + filled] = 0
    if sizes[S.classes] > 1:
        flags[at[A.class_mask] : at[A.class_mask] + filled * sizes[S.classes]] = 0
    # The masks of the other parts stand behind that of stages, the idle slot in between.
    flags[at[A.executors_mask] - 1 : at[A.delay_mask]] = 0
    facts[F.filled_jobs], facts[F.filled_stages], facts[F.filled_edges] = facts[F.jobs], facts[F.stages], facts[F.edges]


def observe_cluster(state, idle, floats, ints, flags, facts, amounts, sizes, at):
    """Write the arrays of a state; False if there is no room for it.

    Args:
        state: A cluster state.
        idle: Whether idling may be chosen.
        floats: float32 [n], a row of the memory.
        ints: int32 [n], likewise.
        flags: int8 [n], likewise.
        facts: int64, columns :data:`FACTS`.
        amounts: float64, columns :data:`AMOUNTS`.
        sizes: int64, columns :data:`SIZES`.
        at: int64, first entry of every array in its row.
    """
    amounts[V.time_ms] = state.now_ms
    num_stages = num_edges = 0
    for index in range(state.num_active):
        job = state.active[index]
        num_stages += state.job_first_stage[job + 1] - state.job_first_stage[job]
        for stage in range(state.job_first_stage[job], state.job_first_stage[job + 1]):
            row = state.stage_row[stage]
            num_edges += state.child_offset[row + 1] - state.child_offset[row]
    facts[F.jobs], facts[F.stages], facts[F.edges] = state.num_active, num_stages, num_edges
    if state.num_source > at[A.delays_mask] - at[A.executors_mask]:
        return False
    if state.num_active > sizes[S.max_jobs] or num_stages > sizes[S.max_stages] or num_edges > sizes[S.max_edges]:
        return False
    clear(floats, ints, flags, facts, sizes, at)
    offered, classes = state.num_source, sizes[S.classes]
    source_job = NONE
    row = edge = 0
    delayable = False
    for index in range(state.num_active):
        job = state.active[index]
        first, begin = state.job_first_stage[job], row
        remaining_ms = 0.0
        for stage in range(first, state.job_first_stage[job + 1]):
            profile = state.stage_row[stage]
            nominal_ms = state.row_nominal_ms[profile]
            unfinished = state.stage_tasks[stage] - state.stage_finished_tasks[stage]
            to_launch = state.stage_tasks[stage] - state.stage_next[stage]
            coming = state.stage_commit[stage] + state.stage_moving[stage]
            remaining_ms += unfinished * nominal_ms
            entry = at[A.stages] + 8 * row
            floats[entry] = state.stage_tasks[stage]
            floats[entry + 1] = to_launch
            floats[entry + 2] = unfinished
            floats[entry + 3] = nominal_ms / 1000.0
            floats[entry + 4] = state.row_path_work_ms[profile] / 1000.0
            floats[entry + 5] = state.stage_executors[stage]
            floats[entry + 6] = coming
            floats[entry + 7] = state.stage_runnable[stage]
            ints[at[A.stage_job] + row] = index
            ints[at[A.stage_ids] + row] = stage
            for child in range(state.child_offset[profile], state.child_offset[profile + 1]):
                ints[at[A.edges] + 2 * edge] = row
                ints[at[A.edges] + 2 * edge + 1] = begin + state.child[child]
                edge += 1
            chosen = offered > 0 and state.stage_in_frontier[stage] != 0
            flags[at[A.stage_mask] + row] = chosen
            if sizes[S.delay_steps] > 0:
                slot = state.stage_slot[stage]
                left_ms = state.slot_end_ms[stage] - state.now_ms if slot == WITHHELD else 0.0
                floats[at[A.slot_left_s] + row] = left_ms / 1000.0
                flags[at[A.stage_delayed] + row] = slot != 0
                # As in decima.systems.spark.rules.delays.delay_refusal.
                untouched = state.stage_next[stage] + coming == 0 and slot == 0
                if chosen and untouched and state.stage_runnable[stage]:
                    flags[at[A.delay_mask] + row] = 1
                    delayable = True
            if classes > 1:
                floats[at[A.requests] + 2 * row] = state.stage_memory[stage]
                floats[at[A.requests] + 2 * row + 1] = state.stage_cpu[stage]
                fit = state.group_fits[state.stage_group[stage]]
                for each in range(classes):
                    if chosen and state.class_offers[each] > 0 and (fit >> each) & 1:
                        flags[at[A.class_mask] + classes * row + each] = 1
                        flags[at[A.classes_mask] + 1 + each] = 1
            row += 1
        held = state.job_attached[job] + state.job_moving[job] + state.job_commit[job] - state.job_outgoing[job]
        if job == state.source_job and offered > 0:
            source_job = index
            held -= offered
        entry = at[A.jobs] + 3 * index
        floats[entry] = (state.now_ms - state.job_arrival_ms[job]) / 1000.0
        floats[entry + 1] = state.job_work_ms[job] / 1000.0
        floats[entry + 2] = remaining_ms / 1000.0
        ints[at[A.job_allocation] + index] = held
        ints[at[A.job_ids] + index] = job
    floats[at[A.time_s]] = state.now_ms / 1000.0
    ints[at[A.source_job]] = source_job
    ints[at[A.free_executors]] = offered
    flags[at[A.stage_mask] + sizes[S.max_stages]] = offered > 0 and idle
    flags[at[A.executors_mask] : at[A.executors_mask] + offered] = 1
    if sizes[S.delay_steps] > 0:
        flags[at[A.delays_mask]] = 1
        if delayable:
            flags[at[A.delays_mask] : at[A.delays_mask] + sizes[S.delay_steps] + 1] = 1
    if classes > 1:
        flags[at[A.classes_mask]] = 1
        for each in range(classes):
            floats[at[A.class_sizes] + 2 * each] = state.class_memory[each]
            floats[at[A.class_sizes] + 2 * each + 1] = state.class_cpu[each]
            ints[at[A.class_offers] + each] = state.class_offers[each]
    return True


def take_action(state, action, choice, ints, flags, sizes, at):
    """Turn an action into the parts of a decision.

    A number that its mask excludes becomes the nearest one allowed.

    Args:
        state: A cluster state that the arrays show.
        action: int64, one number per part of an action.
        choice: float64 [NUM_PARTS], the decision is written here.
        ints: A row of the memory; so are the others, see :func:`observe_cluster`.
        flags: Likewise.
        sizes: Likewise.
        at: Likewise.

    Returns:
        First part that the mask excludes, from 1 on; 0 if the action is valid.
    """
    invalid = 0
    delays, classes = sizes[S.delay_steps] > 0, sizes[S.classes] > 1
    ends = (at[A.executors_mask], at[A.delays_mask], at[A.classes_mask], at[A.delay_mask])
    begin = at[A.stage_mask]
    slot = executors = steps = executor_class = part = 0
    for which in range(4):
        end = ends[which]
        if end > begin:
            number = nearest(flags[begin:end], action[part])
            if number != action[part] and invalid == 0:
                invalid = part + 1
            if which == 0:
                slot = number
            elif which == 1:
                executors = number
            elif which == 2:
                steps = number
            else:
                executor_class = number
            part += 1
        begin = end
    for which in range(NUM_PARTS):
        choice[which] = DEFAULTS[which]
    if slot == sizes[S.max_stages]:
        choice[STAGE] = NONE
        choice[LIMIT] = state.num_source
        return invalid
    stage = ints[at[A.stage_ids] + slot]
    choice[STAGE] = stage
    choice[LIMIT] = executors + 1
    if state.job_limit:
        choice[LIMIT] += ints[at[A.job_allocation] + ints[at[A.stage_job] + slot]]
    if delays and steps > 0 and flags[at[A.delay_mask] + slot]:
        choice[DELAY] = steps * float(state.row_nominal_ms[state.stage_row[stage]]) / sizes[S.delay_steps]
    elif classes and executor_class > 0 and flags[at[A.class_mask] + sizes[S.classes] * slot + executor_class - 1]:
        choice[CLASS] = executor_class - 1
    return invalid


def _nearest(mask, number):
    """The 1 of a mask nearest to a number; of two the lower."""
    best = -1
    for entry in range(len(mask)):
        if mask[entry] and (best < 0 or abs(entry - number) < abs(best - number)):
            best = entry
    return max(best, 0)


# ---- compiled -------------------------------------------------------------------------------------------------------

clear, nearest = njit(_clear), njit(_nearest)
_observe, _take = njit(observe_cluster), njit(take_action)


@njit
def _may_idle(state):
    """Something happens after idling: an event, or another round of offers."""
    if state.heap_size > 0 or state.next_arrival < state.num_arrivals:
        return True
    if state.num_timers > 0 or state.num_selected > 0:
        return True
    return state.reoffer != 0 and state.num_marked > 0 and state.num_runnable_open > 0


@njit
def _cost(state, objective):
    """Cost so far in seconds, as the objectives of these names have it."""
    if objective == 1:
        return (state.area_ms + state.num_active * (state.now_ms - state.area_time_ms)) / 1000.0
    if state.num_done < state.num_jobs:
        return state.now_ms / 1000.0
    last_ms = 0.0
    for job in range(state.num_jobs):
        last_ms = max(last_ms, state.job_finish_ms[job])
    return last_ms / 1000.0


@njit
def _run(advance, address, facts):
    """Run to the next decision that has a choice, or to the end.

    Where every executor is parked and nothing is ahead, all of them are offered again, once.
    """
    state = state_at(address)
    while True:
        code = _call(advance, address)
        if code == ASKS and state.num_frontier == 0:
            for part in range(NUM_PARTS):
                state.action[part] = DEFAULTS[part]
            state.action[LIMIT] = state.num_source
            state.has_action = 1
        elif code == DEADLOCK and not facts[F.rescued]:
            facts[F.rescued] = 1
            engine.offer_all(address)
        else:
            return code


@njit(cache=True, nogil=True)
def step_clusters(first, last, strict, advance, addresses, actions, floats, ints, flags, facts, amounts, sizes, at):
    """Let some clusters do what they are about to do.

    A row that still runs at the end needs something of Python first, named by its code.

    Args:
        first: First row.
        last: Row behind the last one.
        strict: Whether an invalid action stops the call before anything happens.
        advance: Address of the engine.
        addresses: int64 [N], of the states.
        actions: int64 [N, parts].
        floats: float32 [N, n]; see :func:`observe_cluster` for the rest.
        ints: int32 [N, n].
        flags: int8 [N, n].
        facts: int64 [N, columns].
        amounts: float64 [N, columns].
        sizes: int64.
        at: int64.

    Returns:
        Row of an invalid action that stopped it, else :data:`FINISHED` or :data:`UNFINISHED`.
    """
    answer = FINISHED
    choice = np.empty(NUM_PARTS)
    for i in range(first, last):
        if facts[i, F.doing] == ACTS:
            state = state_at(addresses[i])
            facts[i, F.invalid] = _take(state, actions[i], choice, ints[i], flags[i], sizes, at)
            if strict and facts[i, F.invalid]:
                return i
            for part in range(NUM_PARTS):
                state.action[part] = choice[part]
    for i in range(first, last):
        if facts[i, F.doing] == WAITS:
            continue
        state = state_at(addresses[i])
        if facts[i, F.doing] == ACTS:
            facts[i, F.doing] = RUNS
            facts[i, F.rescued] = 0
            state.has_action = 1
        code = _run(advance, addresses[i], facts[i])
        facts[i, F.code] = code
        if code != ASKS and code != DONE and code != DEADLOCK:
            answer = UNFINISHED
            continue
        idle = code == ASKS and _may_idle(state)
        if not _observe(state, idle, floats[i], ints[i], flags[i], facts[i], amounts[i], sizes, at):
            facts[i, F.code] = NO_ROOM
        if facts[i, F.doing] == RUNS and sizes[S.objective] > 0:
            cost = _cost(state, sizes[S.objective])
            amounts[i, V.reward] = amounts[i, V.cost] - cost
            amounts[i, V.cost] = cost
        facts[i, F.doing] = WAITS
    return answer


@njit(cache=True)
def observe(address, floats, ints, flags, facts, amounts, sizes, at):
    """Write the arrays of the state at an address, see :func:`observe_cluster`."""
    state = state_at(address)
    return _observe(state, _may_idle(state), floats, ints, flags, facts, amounts, sizes, at)
