"""A cluster state as a text of a few lines."""

from __future__ import annotations

from decima.systems.spark.state import ClusterState
from decima.workload.jobs import Workload

MOST_JOBS = 20


def describe_state(state: ClusterState, workload: Workload) -> str:
    """Time, executors and one line per job in the system, at most ``MOST_JOBS``; times in seconds."""
    running = int(state.stage_executors.sum())
    moving = int(state.executor_moving.sum())
    now_s = state.now_ms / 1000
    lines = [
        f"{now_s:.1f} s: {state.num_active} jobs in the system, {state.num_done} of {state.num_jobs} finished",
        f"executors: {state.num_executors}, {running} at a stage, {moving} moving, {state.num_source} offered",
    ]
    if state.num_active:
        lines.append(f"{'job':>5} {'name':<16} {'age_s':>8} {'stages':>7} {'tasks':>7} {'executors':>9} {'choices':>8}")
    for job in state.active[: min(state.num_active, MOST_JOBS)].tolist():
        own = slice(*state.job_first_stage[job : job + 2].tolist())
        tasks = int((state.stage_tasks[own] - state.stage_finished_tasks[own]).sum())
        lines.append(
            f"{job:>5} {workload.jobs[job].name:<16.16} {(state.now_ms - state.job_arrival_ms[job]) / 1000:>8.1f} "
            f"{state.job_unfinished[job]:>7} {tasks:>7} {state.job_attached[job]:>9} {state.job_frontier[job]:>8}"
        )
    if state.num_active > MOST_JOBS:
        lines.append(f"{'':>5} and {state.num_active - MOST_JOBS} more")
    return "\n".join(lines)
