"""Rules for which stage of a job to run next, shared by several schedulers."""

from numba import njit

from decima.systems.spark.fields import NONE
from decima.systems.spark.rules.frontier import first_frontier_stage


@njit
def pick_runnable_first(state, job):
    """First frontier stage in the job's runnable list, else its first frontier stage by index, else NONE.

    Source: the released heuristics; over time it drains all branches of the DAG (§7.1, fair scheduling).
    """
    if state.job_frontier[job] == 0:
        return NONE
    stage = state.runnable_head[job]
    while stage != NONE:
        if state.stage_in_frontier[stage]:
            return stage
        stage = state.runnable_next[stage]
    return first_frontier_stage(state, job)


@njit
def pick_critical_path(state, job, runnable_first):
    """Frontier stage that heads the heaviest path to the sink, or NONE; ``runnable_first``: among runnable ones if any.

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
    """Stage by rule number: 0 runnable first in order, 1 runnable first by critical path, 2 critical path."""
    if rule == 0:
        return pick_runnable_first(state, job)
    return pick_critical_path(state, job, rule == 1)
