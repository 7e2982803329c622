"""Sharing of executors of several classes, the class being part of the choice.

A heuristic fills ``job_key`` and ``job_share`` and calls :func:`share_classes`. Where larger executors are avoided or
shares are counted in memory, executors of one class are given at a time, the smallest offered one that the chosen stage
fits; else those of several classes at once, the smallest first. With one class the rules are those of
``share_executors``, but for the order of stages of a job: by index, where the others take the runnable stage that has
waited longest.

Source: appendix F. Differs: how larger classes are used is not said there; it is a parameter here.
"""

from math import ceil, exp

from decima.core.decision import Parameter
from decima.core.jit import njit
from decima.systems.spark.fields import ACTIVE, NONE
from decima.systems.spark.rules.choices import choose_class, choose_idle, job_allocation
from decima.systems.spark.rules.classes import ANY_CLASS, best_fit, fits_class, fitting_offers, memory_kept
from decima.systems.spark.rules.frontier import stage_room
from decima.systems.spark.schedulers.fields import rule_of
from decima.systems.spark.schedulers.sharing import stands_still

ORDER_FIRST, EXACT_FIRST, FORBIDDEN = 0, 1, 2
LARGER = Parameter(
    "larger",
    0,
    0,
    2,
    "executors larger than needed: 0: the order of jobs decides; 1: jobs that they fit exactly go first; 2: not used",
)
BY_MEMORY = Parameter("by_memory", 0, 0, 1, "shares are counted in 0: executors, 1: memory")
# Thresholds with which no stage is troublesome.
NEVER_LONG, NEVER_HARD = 2.0, -1.0


@njit
def oversize(state, stage):
    """Classes from the smallest fitting one to the smallest offered fitting one."""
    smallest = 0
    while not fits_class(state, stage, smallest):
        smallest += 1
    return best_fit(state, stage) - smallest


@njit
def is_troublesome(state, stage, longest_ms, long, frag):
    """Whether a stage is long or fits few executors, as :func:`decima.systems.spark.schedulers.packing.troublesome`."""
    if state.row_nominal_ms[state.stage_row[stage]] >= long * longest_ms:
        return True
    count = 0
    for executor_class in range(state.num_classes):
        if fits_class(state, stage, executor_class):
            count += state.class_executors[executor_class]
    return count <= frag * state.num_executors


@njit
def longest_task_ms(state, job):
    """Largest nominal task duration of the stages of a job in ms."""
    longest = 0.0
    for stage in range(state.job_first_stage[job], state.job_first_stage[job + 1]):
        longest = max(longest, state.row_nominal_ms[state.stage_row[stage]])
    return longest


@njit
def group_is_waiting(state, job, longest_ms, long, frag):
    """Whether a troublesome stage of the job waits for a parent."""
    for stage in range(state.job_first_stage[job], state.job_first_stage[job + 1]):
        if is_troublesome(state, stage, longest_ms, long, frag) and state.stage_unsaturated_parents[stage] > 0:
            return True
    return False


@njit
def rank_stage(state, job, stage_rule, larger, long, frag):
    """Best stage of a job for the offered classes, and its rank; or NONE.

    Suppressed stages come last, then those that are not runnable (``stage_rule`` 0 and 1), then larger executors than
    needed count against a stage, then the critical path (``stage_rule`` 1 and 2) or the index decides.

    Returns:
        (stage, suppressed, classes too large).
    """
    best, best_rank, best_path, best_over = NONE, 0, 0.0, 0
    suppressing = False
    longest = 0.0
    if long <= 1.0 or frag >= 0.0:
        longest = longest_task_ms(state, job)
        suppressing = group_is_waiting(state, job, longest, long, frag)
    for stage in range(state.job_first_stage[job], state.job_first_stage[job + 1]):
        if not state.stage_in_frontier[stage]:
            continue
        over = oversize(state, stage)
        if larger == FORBIDDEN and over > 0:
            continue
        rank = over
        if stage_rule < 2 and not state.stage_runnable[stage]:
            rank += 16
        if suppressing and is_troublesome(state, stage, longest, long, frag):
            rank += 32
        path = 0.0 if stage_rule == 0 else state.row_path_work_ms[state.stage_row[stage]]
        if best == NONE or rank < best_rank or (rank == best_rank and path > best_path):
            best, best_rank, best_path, best_over = stage, rank, path, over
    return best, best_rank >= 32, best_over


@njit
def memory_of(state, counts):
    """Memory of a number of executors of each class."""
    memory = 0.0
    for executor_class in range(state.num_classes):
        memory += counts[executor_class] * state.class_memory[executor_class]
    return memory


@njit
def kept(state, job, by_memory):
    """What a job keeps, without what is being offered: executors, or their memory."""
    if not by_memory:
        return float(job_allocation(state, job))
    memory = memory_kept(state, job)
    if job == state.source_job and state.job_state[job] == ACTIVE:
        memory -= memory_of(state, state.class_offers)
    return memory


@njit
def _give(state, stage, most, any_class):
    """Decide for a stage, at most ``most`` executors, best fit first."""
    executor_class = ANY_CLASS if any_class or state.num_classes == 1 else best_fit(state, stage)
    count = min(most, min(stage_room(state, stage), fitting_offers(state, stage, executor_class)))
    choose_class(state, stage, max(1, count), executor_class)


@njit
def _up_to_share(state, job, stage, by_memory):
    """Executors of the class that the stage would get, until the job has its share."""
    unit = state.class_memory[best_fit(state, stage)] if by_memory else 1.0
    return int(min((rule_of(state).job_share[job] - kept(state, job, by_memory)) / unit + 1e-9, 1e9))


@njit
def _first_stage(state, excess, stage_rule, larger, price, by_memory, long, frag):
    """Stage of the first job below its share (with ``excess``: of any)."""
    rule = rule_of(state)
    best, best_suppressed, best_level, best_key = NONE, False, 0, 0.0
    for index in range(state.num_active):
        job = state.active[index]
        if state.job_frontier[job] == 0:
            continue
        # Suppression and larger classes only put a job further back.
        if best != NONE and larger != EXACT_FIRST and not best_suppressed and rule.job_key[job] >= best_key:
            continue
        if not excess and kept(state, job, by_memory) >= rule.job_share[job] - 1e-9 and not stands_still(state, job):
            continue
        stage, suppressed, over = rank_stage(state, job, stage_rule, larger, long, frag)
        if stage == NONE:
            continue
        level = over if larger == EXACT_FIRST else 0
        key = rule.job_key[job] * exp(price * over)
        first = best == NONE or suppressed < best_suppressed
        if not first and suppressed == best_suppressed:
            first = level < best_level or (level == best_level and key < best_key)
        if first:
            best, best_suppressed, best_level, best_key = stage, suppressed, level, key
    return best


@njit
def share_classes(state, stay_factor, stage_rule, leftover, larger, price, by_memory, long, frag):
    """Decide about the offered executors from ``job_key`` and ``job_share``.

    1. They stay with their own job if it can use them: while it keeps less than ``stay_factor`` times its share, else
       only up to its share; below 0 their own job is not preferred.
    2. Otherwise they go to the first job below its share, up to the share, or one that is blocked. ``job_key`` counts
       exp(``price`` x classes too large) times; with ``larger`` 1 jobs that the executors fit exactly go first, with 2
       no larger ones are used.
    3. When every job has its share, they are handed out in the same order: divided evenly among the stages of the
       frontier (``leftover`` 1), the number that the first can use (2), or not at all (0).

    A stage that is suppressed (``long`` and ``frag`` as in :mod:`.packing`) comes behind all others.
    """
    rule = rule_of(state)
    job = state.source_job
    offered = state.num_source
    any_class = larger == ORDER_FIRST and price == 0.0 and not by_memory
    if stay_factor >= 0.0 and job != NONE and state.job_state[job] == ACTIVE and state.job_frontier[job] > 0:
        stage, suppressed, _ = rank_stage(state, job, stage_rule, larger, long, frag)
        if stage != NONE and not suppressed:
            keep = offered
            share = rule.job_share[job]
            offer = memory_of(state, state.class_offers) if by_memory else float(offered)
            if kept(state, job, by_memory) + offer > stay_factor * share:
                keep = _up_to_share(state, job, stage, by_memory)
            if keep > 0:
                _give(state, stage, keep, any_class)
                return
    stage = _first_stage(state, False, stage_rule, larger, price, by_memory, long, frag)
    if stage != NONE:
        _give(state, stage, _up_to_share(state, state.stage_job[stage], stage, by_memory), any_class)
        return
    if leftover > 0:
        stage = _first_stage(state, True, stage_rule, larger, price, by_memory, long, frag)
        if stage != NONE:
            _give(state, stage, offered if leftover == 2 else (offered - 1) // state.num_frontier + 1, any_class)
            return
    choose_idle(state)


@njit
def set_weighted_shares(state, alpha, order, by_memory):
    """Fill keys and shares of weighted fair sharing: T^alpha / sum T^alpha.

    The sum is over jobs that can use more executors. ``order`` 0 serves jobs by arrival, 1 small total work first.
    """
    rule = rule_of(state)
    weights = 0.0
    for index in range(state.num_active):
        job = state.active[index]
        work = state.job_work_ms[job]
        weight = work**alpha if work > 0.0 else 1.0
        rule.job_key[job] = index if order == 0.0 else work
        rule.job_share[job] = weight
        if state.job_unsaturated[job] > 0:
            weights += weight
    total = memory_of(state, state.class_executors) if by_memory else float(state.num_executors)
    for index in range(state.num_active):
        job = state.active[index]
        share = total * rule.job_share[job] / weights if weights > 0.0 else 1.0
        rule.job_share[job] = share if by_memory else ceil(share - 1e-9)
