"""The decision rule that most heuristics share: an order of jobs, a share of executors for each, a rule for stages.

A heuristic fills ``job_key`` (jobs are served in ascending order) and ``job_share`` (executors a job should
hold) for the active jobs and calls :func:`share_executors`.
"""

from numba import njit

from decima.core.decision import Parameter
from decima.systems.spark.fields import ACTIVE, NONE
from decima.systems.spark.rules.choices import choose, choose_idle, job_allocation, job_held
from decima.systems.spark.rules.frontier import stage_room
from decima.systems.spark.schedulers.fields import rule_of
from decima.systems.spark.schedulers.stages import pick_stage

UNLIMITED = 1e18

STICKY = Parameter(
    "sticky",
    1,
    0,
    1,
    "1: offered executors stay with their job while it can use them; 0: they follow the order",
)
STRICT = Parameter(
    "sticky",
    1,
    0,
    1,
    "1: offered executors stay with their job while it can use them; 0: up to its share only",
)
LEFTOVER = Parameter(
    "leftover", 1, 0, 2, "when every job has its share: 0: idle; 1: divided evenly over the frontier; 2: first in order"
)
STAGE_RULE = Parameter(
    "stage_rule",
    0,
    0,
    2,
    "0: runnable stages first, oldest first; 1: runnable first, critical path; 2: critical path",
)


@njit
def stands_still(state, job):
    """Whether executors have several sizes and none works for the job, moves to it, or is promised to what can run.

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
def _first_job(state, excess):
    """Job with the smallest key among those with a frontier stage (and below their share, unless ``excess``)."""
    rule = rule_of(state)
    best = NONE
    for index in range(state.num_active):
        job = state.active[index]
        if state.job_frontier[job] == 0:
            continue
        if not excess and job_allocation(state, job) >= rule.job_share[job] and not stands_still(state, job):
            continue
        if best == NONE or rule.job_key[job] < rule.job_key[best]:
            best = job
    return best


@njit
def share_executors(state, stay_factor, stage_rule, leftover):
    """Decide about the offered executors from ``job_key`` and ``job_share``.

    1. They stay with their own job if it can use them: all of them while the job holds at most ``stay_factor`` times
       its share, else only up to its share. 0 makes the share strict; below 0 their own job is not preferred at all.
    2. Otherwise they go to the first job below its share, up to the share, or one that stands still.
    3. When every job has its share, they are handed out nevertheless, in the same order: divided evenly among the
       stages of the frontier (``leftover`` 1), as many as the first can use (2), or not at all (0).
    """
    rule = rule_of(state)
    job = state.source_job
    offered = state.num_source
    if stay_factor >= 0.0 and job != NONE and state.job_state[job] == ACTIVE and state.job_frontier[job] > 0:
        share = rule.job_share[job]
        keep = offered
        if job_held(state, job) > stay_factor * share:
            keep = min(offered, int(min(share, UNLIMITED)) - job_allocation(state, job))
        if keep > 0:
            choose(state, pick_stage(state, job, stage_rule), keep)
            return
    job = _first_job(state, False)
    if job != NONE:
        stage = pick_stage(state, job, stage_rule)
        used = int(min(rule.job_share[job], UNLIMITED)) - job_allocation(state, job)
        choose(state, stage, max(1, min(used, stage_room(state, stage), offered)))
        return
    if leftover > 0:
        job = _first_job(state, True)
        if job != NONE:
            stage = pick_stage(state, job, stage_rule)
            used = offered if leftover == 2 else (offered - 1) // state.num_frontier + 1
            choose(state, stage, min(used, stage_room(state, stage)))
            return
    choose_idle(state)
