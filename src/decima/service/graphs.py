"""Job graphs that clients send: checked, and turned into profiles with nominal durations."""

from __future__ import annotations

import math

import numpy as np

from decima.checks import LARGEST_MS
from decima.exceptions import WorkloadError
from decima.service import scheduler_pb2 as protocol
from decima.service.durations import Durations, Measured, ProfileBook
from decima.service.errors import exhausted, invalid
from decima.service.limits import Limits
from decima.service.wire import checked_number
from decima.simulator.tables import stage_levels
from decima.workload.profile import JobProfile, Stage

_NOTHING = np.zeros(0)


class JobGraph:
    """Job as a client described it: everything but its state.

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
        self.arrival_ms, self.priority, self.cap = (
            checked_number(where, name, getattr(message, name), low=-LARGEST_MS)
            for name in ("arrival_ms", "priority", "cap")
        )
        self._take_stages(where, message, limits)
        self.levels = stage_levels(self.profile)
        profiled = book.durations_ms(message.profile, self.profile)
        known = [
            stage.duration_ms if stage.duration_known or stage.duration_ms else profiled_ms
            for stage, profiled_ms in zip(message.stages, profiled, strict=True)
        ]
        book_profile = book.find(message.profile)
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
        described = []
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
            described.append(
                Stage(str(stage.stage), stage.num_tasks, parents, (1,), (_NOTHING,), (_NOTHING,), (duration,))
            )
        try:
            self.profile = JobProfile(message.job, tuple(described), "service")
        except WorkloadError as error:
            raise invalid(str(error)) from error

    def continues(self, old: JobGraph) -> None:
        """Take over what was learned of the same job when it had fewer stages.

        Raises:
            RefusalError: Its old stages have changed.
        """
        count = len(old.stage_ids)
        same = self.stage_ids[:count] == old.stage_ids and all(
            (stage.num_tasks, stage.parents) == (before.num_tasks, before.parents)
            for stage, before in zip(self.profile.stages[:count], old.profile.stages, strict=True)
        )
        if not same:
            raise invalid(f"job {self.label!r:.60} was sent again, but its first {count} stages are not those it had")
        self.durations.measured[:count] = old.durations.measured
        self.finished[:count] = old.finished
        self.schedulable = old.schedulable

    def nominal(self) -> tuple[list[float], np.ndarray, np.ndarray, float]:
        """Nominal durations of the stages and what follows from them.

        Returns:
            Durations [stages]; work of the heaviest path down from each stage [stages]; time of the longest path down
            from each stage [stages]; work of the job; all in ms.
        """
        durations = self.durations.nominal_ms()
        works = [duration * stage.num_tasks for duration, stage in zip(durations, self.profile.stages, strict=True)]
        path_work = self.profile.longest_path_down(works)
        path = self.profile.longest_path_down(durations)
        return durations, path_work, path, max(math.fsum(works), self.known_work_ms)

    def countable_finished(self) -> list[int]:
        """Numbers of finished tasks per stage, where a stage counts as finished only after its parents.

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
