"""Graphs of a client's jobs, checked."""

from __future__ import annotations

import math

import numpy as np

from decima.exceptions import WorkloadError
from decima.service import scheduler_pb2 as protocol
from decima.service.durations import Durations, Measured, ProfileBook
from decima.service.errors import exhausted, invalid
from decima.service.limits import Limits
from decima.simulator.tables import stage_levels
from decima.workload.profile import JobProfile, Stage

LARGEST_MS = 1e15
_NOTHING = np.zeros(0)


def checked_number(where: str, name: str, value: float, low: float = 0.0, high: float = LARGEST_MS) -> float:
    """The number, if it is from ``low`` to ``high``.

    Raises:
        RefusalError: It is not, or NaN.
    """
    if not low <= value <= high:
        raise invalid(f"{where}: {name} is {value!r}; expected a number from {low:g} to {high:g}")
    return value


class JobGraph:
    """What is known of a job apart from its state.

    Attributes:
        label: The client's id of the job, for error messages.
        stage_ids: The client's stage ids in its order, which is that of the stages in the mirror.
        index: Local index by stage id.
        profile: The graph; its durations are the nominal ones at the time it was sent.
        levels: Edges from each stage on the longest path down.
        durations: Nominal durations.
        finished: Per stage, finished tasks as the client says.
        schedulable: Local indices of the stages that may be chosen, as the client says.
        known_work_ms: Total work after its profile, 0 if it has none.
    """

    def __init__(self, message: protocol.Job, book: ProfileBook, limits: Limits, session: Measured) -> None:
        self.label = message.job
        where = f"job {message.job!r:.60}"
        if not message.job or len(message.job) > limits.text:
            raise invalid(f"a job id is {message.job!r:.60}; expected 1 to {limits.text} characters")
        for name in ("name", "profile"):
            if len(getattr(message, name)) > limits.text:
                raise invalid(f"{where}: {name} is longer than {limits.text} characters")
        self.arrival_ms = checked_number(where, "arrival_ms", message.arrival_ms, low=-LARGEST_MS)
        self.priority = checked_number(where, "priority", message.priority, low=-LARGEST_MS)
        self.cap = checked_number(where, "cap", message.cap, low=-LARGEST_MS)
        self._take_stages(where, message, limits)
        self.levels = stage_levels(self.profile)
        told = [stage.duration_ms if stage.duration_known else stage.duration_ms or None for stage in message.stages]
        known = told
        book_profile = book.find(message.profile)
        if book_profile is not None:
            profiled = book.durations_ms(message.profile, self.profile)
            known = [mine if mine is not None else theirs for mine, theirs in zip(told, profiled, strict=True)]
        self.known_work_ms = 0.0 if book_profile is None else book_profile.work_ms
        self.durations = Durations(known, session)
        self.finished = [0] * len(self.stage_ids)
        self.schedulable: list[int] = []

    def _take_stages(self, where: str, message: protocol.Job, limits: Limits) -> None:
        stages = message.stages
        if not stages:
            raise invalid(f"{where} has no stages; expected at least one")
        if len(stages) > limits.job_stages:
            raise exhausted(f"{where} has {len(stages)} stages; the service takes {limits.job_stages}")
        edges = sum(len(stage.parents) for stage in stages)
        if edges > limits.job_edges:
            raise exhausted(f"{where} has {edges} edges; the service takes {limits.job_edges}")
        self.stage_ids = tuple(stage.stage for stage in stages)
        self.index = {stage: index for index, stage in enumerate(self.stage_ids)}
        if len(self.index) < len(stages):
            raise invalid(f"{where}: a stage id is given twice")
        made = []
        for stage in stages:
            here = f"{where}, stage {stage.stage}"
            if not 1 <= stage.num_tasks <= limits.tasks:
                raise invalid(f"{here}: num_tasks is {stage.num_tasks}; expected 1 to {limits.tasks}")
            checked_number(here, "duration_ms", stage.duration_ms)
            missing = [parent for parent in stage.parents if parent not in self.index]
            if missing:
                raise invalid(f"{here}: there is no parent {missing[0]}")
            parents = tuple(self.index[parent] for parent in stage.parents)
            duration = np.array([stage.duration_ms])
            made.append(
                Stage(str(stage.stage), stage.num_tasks, parents, (1,), (_NOTHING,), (_NOTHING,), (duration,))
            )
        try:
            self.profile = JobProfile(message.job, tuple(made), "service")
        except WorkloadError as error:
            raise invalid(str(error)) from error

    def continues(self, old: JobGraph) -> None:
        """Take over what was learned of the same job when it had fewer stages.

        Raises:
            RefusalError: Its old stages have changed.
        """
        count = len(old.stage_ids)
        same = self.stage_ids[:count] == old.stage_ids and all(
            (mine.num_tasks, mine.parents) == (theirs.num_tasks, theirs.parents)
            for mine, theirs in zip(self.profile.stages[:count], old.profile.stages, strict=True)
        )
        if not same:
            raise invalid(f"job {self.label!r:.60} was sent again, but its first {count} stages are not those it had")
        self.durations.measured[:count] = old.durations.measured
        self.finished[:count] = old.finished
        self.schedulable = old.schedulable

    def nominal(self) -> tuple[list[float], np.ndarray, np.ndarray, float]:
        """Nominal durations of the stages in ms, and what follows from them.

        Returns:
            Durations, work of the heaviest path and time of the longest path down from each stage, work of the job.
        """
        durations = self.durations.nominal_ms()
        works = [duration * stage.num_tasks for duration, stage in zip(durations, self.profile.stages, strict=True)]
        path_work = self.profile.longest_path_down(works)
        path = self.profile.longest_path_down(durations)
        return durations, path_work, path, max(math.fsum(works), self.known_work_ms)

    def countable_finished(self) -> list[int]:
        """Finished tasks per stage, where a stage counts as finished only after its parents.

        Spark runs a stage again when its output is lost, while stages behind it stay finished; schedulers may rely on
        descendants of an unfinished stage being unfinished.
        """
        finished = list(self.finished)
        done = [False] * len(finished)
        for index in self.profile.topological_order:
            stage = self.profile.stages[index]
            if finished[index] == stage.num_tasks:
                done[index] = all(done[parent] for parent in stage.parents)
                finished[index] -= not done[index]
        return finished
