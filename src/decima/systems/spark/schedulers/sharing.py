"""Decision rule of most heuristics: order and shares of jobs, rule for stages.

A heuristic fills ``job_key`` (jobs are served in ascending order) and ``job_share`` (executors a job should
hold) for the active jobs and calls :func:`share_executors`.
"""

from dataclasses import replace

from decima.core.decision import Parameter
from decima.core.jit import njit
from decima.systems.spark.fields import ACTIVE, NONE
from decima.systems.spark.rules.choices import choose, choose_idle, job_allocation, job_held
from decima.systems.spark.rules.frontier import first_frontier_stage, stage_room
from decima.systems.spark.schedulers.fields import rule_of

UNLIMITED = 1e18

STICKY = Parameter(
    "sticky", 1, 0, 1, "1: offered executors stay with their job while it can use them; 0: they follow the order"
)
STRICT = replace(STICKY, doc="1: offered executors stay with their job while it can use them; 0: up to its share only")
LEFTOVER = Parameter(
    "leftover", 1, 0, 2, "when every job has its share: 0: idle; 1: divided evenly over the frontier; 2: first in order"
)
STAGE_RULE = Parameter(
    "stage_rule", 0, 0, 2, "0: runnable stages first, oldest first; 1: runnable first, critical path; 2: critical path"
)


@njit
def stands_still(state, job):
    """Whether with several classes no executor works for the job or will.

    Executors that wait for a later stage may all be too small for the one that can run: such a job is served whatever
    its share, or it would wait until nobody else wants executors, and for ever where nothing is handed out above the
    shares.
    """
    if state.num_classes == 1:
        return False
    for stage in range(state.job_first_stage[job], state.job_first_stage[job + 1]):
        if state.stage_executors[stage] + state.stage_moving[stage] > 0:
            return False
        if state.stage_runnable[stage] and state.stage_commit[stage] > 0:
            return False
    return True


@njit
def _deserted_stage(state, job):
    """With several classes a runnable stage without executors, which need larger ones; else NONE."""
    if state.num_classes > 1:
        stage = state.runnable_head[job]
        while stage != NONE:
            at_it = state.stage_executors[stage] + state.stage_moving[stage] + state.stage_commit[stage]
            if state.stage_in_frontier[stage] and at_it == 0:
                return stage
            stage = state.runnable_next[stage]
    return NONE


@njit
def _first_job(state, excess, limited, each):
    """Job of smallest key that executors may come to, below its share unless ``excess``."""
    rule = rule_of(state)
    best = NONE
    for index in range(state.num_active):
        job = state.active[index]
        if state.job_frontier[job] == 0 or (best != NONE and rule.job_key[job] >= rule.job_key[best]):
            continue
        held = job_allocation(state, job)
        full = not excess and held >= (each if each > 0.0 else rule.job_share[job])
        if not full and limited and held > 0:
            full = held + 1 > rule.job_most[job]
            full = full and _deserted_stage(state, job) == NONE
        if not full or stands_still(state, job):
            best = job
            if each > 0.0:
                break
    return best


@njit
def share_executors(state, stay_factor, stage_rule, leftover, limited=False, each=0.0):
    """Decide about the offered executors from ``job_key`` and ``job_share``.

    1. They stay with their own job if it can use them: all of them while the job holds at most ``stay_factor`` times
       its share, else only up to its share. 0 makes the share strict; below 0 their own job is not preferred at all.
    2. Otherwise they go to the first job below its share, up to the share, or one that is blocked.
    3. When every job has its share, they are handed out nevertheless, in the same order: divided evenly among the
       stages of the frontier (``leftover`` 1), the number that the first can use (2), or not at all (0).

    With ``limited``, executors come to another job up to ``job_most`` only. With ``each`` above 0, that is the share of
    every job and they are served in order of arrival: neither ``job_key`` nor ``job_share`` is read.
    """
    rule = rule_of(state)
    job = state.source_job
    offered = state.num_source
    if stay_factor >= 0.0 and job != NONE and state.job_state[job] == ACTIVE and state.job_frontier[job] > 0:
        share = each if each > 0.0 else rule.job_share[job]
        keep = offered
        if job_held(state, job) > stay_factor * share:
            keep = min(offered, int(min(share, UNLIMITED)) - job_allocation(state, job))
        if keep > 0:
            choose(state, pick_stage(state, job, stage_rule), keep)
            return
    job = _first_job(state, False, limited, each)
    excess = job == NONE and leftover > 0
    if excess:
        job = _first_job(state, True, limited, each)
    if job == NONE:
        choose_idle(state)
        return
    stage = pick_stage(state, job, stage_rule)
    allocation = job_allocation(state, job)
    used = int(min(each if each > 0.0 else rule.job_share[job], UNLIMITED)) - allocation
    if excess:
        used = offered if leftover == 2 else (offered - 1) // state.num_frontier + 1
    most = int(rule.job_most[job] if limited else UNLIMITED)
    if most <= allocation and _deserted_stage(state, job) != NONE:
        stage = _deserted_stage(state, job)
    used = min(used, most - allocation)
    choose(state, stage, max(1, min(used, stage_room(state, stage), offered)))


# ---- rules for which stage of a job to run next, shared by several schedulers ---------------------------------------


@njit
def first_runnable(state, job):
    """First stage of the frontier among the runnable ones of a job, or NONE."""
    stage = state.runnable_head[job]
    while stage != NONE and not state.stage_in_frontier[stage]:
        stage = state.runnable_next[stage]
    return stage


@njit
def pick_runnable_first(state, job):
    """First frontier stage, runnable ones first; NONE without.

    Source: the released heuristics; over time it drains all branches of the DAG (§7.1, fair scheduling).
    """
    if state.job_frontier[job] == 0:
        return NONE
    stage = first_runnable(state, job)
    return first_frontier_stage(state, job) if stage == NONE else stage


@njit
def pick_critical_path(state, job, runnable_first):
    """Frontier stage that heads the heaviest path to the sink, or NONE.

    Source: §7.1 (2), critical path by total work (§5.1, footnote 5).
    """
    best = NONE
    best_runnable = False
    best_path = 0.0
    if state.job_frontier[job] > 0:
        for stage in range(state.job_first_stage[job], state.job_first_stage[job + 1]):
            if not state.stage_in_frontier[stage]:
                continue
            runnable = runnable_first and state.stage_runnable[stage] == 1
            path = state.row_path_work_ms[state.stage_row[stage]]
            if best == NONE or (runnable and not best_runnable) or (runnable == best_runnable and path > best_path):
                best = stage
                best_runnable = runnable
                best_path = path
    return best


@njit
def pick_stage(state, job, rule):
    """Stage by rule: 0 runnable first, 1 runnable first by critical path, 2 critical path."""
    if rule == 0:
        return pick_runnable_first(state, job)
    return pick_critical_path(state, job, rule == 1)
