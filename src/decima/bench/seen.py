"""State of a cluster as an entry sees it: no ends, no arrivals ahead.

Jobs keep their numbers; arrays end with the last job that has arrived. Arrays of profiles have a row per stage.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from decima.core.errors import SchedulerError
from decima.systems.spark.fields import ARRIVING
from decima.systems.spark.state import ClusterState

SCALARS = (
    "now_ms",
    "num_executors",
    "num_source",
    "num_active",
    "num_frontier",
    "num_classes",
    "job_limit",
    "source_job",
    "moving_delay_ms",
)
# What a run changes; by job, by stage, by executor.
JOBS = ("job_attached", "job_moving", "job_commit", "job_outgoing", "job_state", "job_frontier", "job_unsaturated")
STAGES = (
    "stage_next",
    "stage_finished_tasks",
    "stage_commit",
    "stage_moving",
    "stage_executors",
    "stage_runnable",
    "stage_in_frontier",
    "stage_saturated",
    "stage_slot",
    "slot_end_ms",
)
EXECUTORS = ("executor_stage", "executor_job", "executor_start_ms", "executor_class")
# What arrives with a job.
JOB_FACTS = ("job_arrival_ms", "job_work_ms")
STAGE_FACTS = ("stage_job", "stage_tasks", "stage_memory", "stage_cpu")
ROW_FACTS = ("row_nominal_ms", "row_path_work_ms", "row_path_ms")


class Window:
    """Selection of what may be seen of a run, decision by decision."""

    def __init__(self, state: ClusterState) -> None:
        if (np.diff(state.job_arrival_ms) < 0.0).any():
            raise SchedulerError("jobs are not in order of arrival; expected those of a task of the benchmark")
        self._state, self._jobs = state, -1

    def content(self) -> dict[str, Any]:
        """Scalars and arrays by name; facts of jobs only where one has arrived since."""
        state = self._state
        jobs = int((state.job_state != ARRIVING).sum())
        end = int(state.job_first_stage[jobs])
        content: dict[str, Any] = {name: getattr(state, name) for name in SCALARS}
        content |= {name: getattr(state, name)[:jobs] for name in JOBS}
        content |= {name: getattr(state, name)[:end] for name in STAGES}
        content |= {name: getattr(state, name) for name in (*EXECUTORS, "class_offers")}
        content["active"] = state.active[: state.num_active]
        content["job_class_kept"] = state.job_class_kept[: jobs * state.num_classes]
        if jobs != self._jobs:
            self._jobs = jobs
            content |= self._facts(jobs, end)
        return content

    def _facts(self, jobs: int, end: int) -> dict[str, Any]:
        state = self._state
        rows = state.stage_row[:end]
        facts: dict[str, Any] = {name: getattr(state, name)[:jobs] for name in JOB_FACTS}
        facts |= {name: getattr(state, name)[:end] for name in STAGE_FACTS}
        facts |= {name: getattr(state, name)[rows] for name in ROW_FACTS}
        facts["job_first_stage"] = state.job_first_stage[: jobs + 1]
        facts["stage_row"] = facts["stage_group"] = np.arange(end)
        facts["group_fits"] = state.group_fits[state.stage_group[:end]]
        for name in ("parent", "child"):
            offset, values = getattr(state, f"{name}_offset"), getattr(state, name)
            lists = [values[offset[row] : offset[row + 1]] for row in rows]
            facts[f"{name}_offset"] = np.concatenate([[0], np.cumsum([len(each) for each in lists])]).astype(np.int32)
            facts[name] = np.concatenate(lists) if lists else values[:0]
        return facts | {"num_jobs": jobs, "num_stages": end}


class SeenState:
    """A cluster as :class:`Window` shows it; has the names of :class:`.ClusterState` and cannot be changed."""

    frontier = ClusterState.frontier

    def __init__(self, settings: Any) -> None:
        self.__dict__["settings"] = settings

    def renew(self, content: dict[str, Any]) -> None:
        """Show a later moment."""
        for values in content.values():
            if isinstance(values, np.ndarray):
                values.flags.writeable = False
        self.__dict__.update(content)

    def __getattr__(self, name: str) -> Any:
        raise SchedulerError(f"an entry sees no {name}: neither ends of running tasks nor jobs to come are shown")

    def __setattr__(self, name: str, value: Any) -> None:
        raise SchedulerError(f"an entry may not change {name} of the cluster; expected a decision")
