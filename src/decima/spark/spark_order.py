"""Spark's own FIFO scheduling in the simulator: recorded orders of stages, and executors that no stage binds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from decima.exceptions import WorkloadError
from decima.schedulers import CompiledScheduler
from decima.simulator.kernels import NONE, choose, choose_idle, stage_room
from decima.simulator.state import ClusterState
from decima.simulator.state_type import CompiledDecision, state_at
from decima.workload.profile import JobProfile, Stage


@CompiledDecision
def _first_in_order(address):
    state = state_at(address)
    best = NONE
    for stage in range(state.num_stages):
        if state.stage_in_frontier[stage] and (
            best == NONE or state.job_priority[stage] < state.job_priority[best]
        ):
            best = stage
    if best == NONE:
        choose_idle(state)
    else:
        choose(state, best, min(stage_room(state, best), state.num_source))


class RecordedOrder(CompiledScheduler):
    """Free executors go to the runnable stage that comes first in a given order of all stages of all jobs.

    Ordered by Spark job, then Spark stage, this is Spark's FIFO apart from what :func:`one_task_per_stage` is for.
    """

    def __init__(self, rank: Sequence[float]) -> None:
        super().__init__("recorded_order", _first_in_order)
        self.rank = np.asarray(rank, dtype=np.float64)

    def bind(self, state: ClusterState) -> None:
        """Hand the order to a state before its run starts.

        Raises:
            WorkloadError: there is not one rank per stage of the workload.
        """
        if len(self.rank) != state.tables.num_stages:
            raise WorkloadError(f"{len(self.rank)} ranks for {state.tables.num_stages} stages; expected one each")
        super().bind(state)
        state.bind("job_priority", self.rank)


def one_task_per_stage(profile: JobProfile, executors: int) -> tuple[JobProfile, list[int]]:
    """The same job with every task as a stage of its own, so that no executor is bound beyond one task.

    In the simulator, as in the paper, an executor works on a stage until that has no task left. Unmodified Spark
    decides anew after every task. The first tasks of a stage, as many as there are executors, take durations of its
    first wave, all others of its later waves.

    Args:
        profile: The job.
        executors: Of the cluster.

    Returns:
        The job, and for each of its stages the index of the stage it is a task of.
    """
    stages: list[Stage] = []
    origin: list[int] = []
    tasks: dict[int, tuple[int, ...]] = {}
    for index in profile.topological_order:
        stage = profile.stages[index]
        parents = tuple(task for parent in stage.parents for task in tasks[parent])
        tasks[index] = tuple(range(len(stages), len(stages) + stage.num_tasks))
        later = tuple(
            rest if len(rest) else first if len(first) else fresh
            for fresh, first, rest in zip(stage.fresh, stage.first, stage.rest, strict=True)
        )
        for number in range(stage.num_tasks):
            task = replace(stage, name=f"{stage.name}/{number}", num_tasks=1, parents=parents)
            stages.append(task if number < executors else replace(task, first=later, rest=later))
            origin.append(index)
    return JobProfile(profile.name, tuple(stages), profile.source), origin
