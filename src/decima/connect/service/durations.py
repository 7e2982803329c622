"""Nominal task durations of a client's stages: stated, from a profile, or estimated from tasks.

Source: §6.1 (Decima takes durations from earlier runs of a recurring job). Differs: where there was no earlier run, the
mean of the finished tasks replaces it, first of the stage, else of its job, else of the session, else ``PRIOR_MS``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from decima.connect.service.dag import Dag
from decima.workload.profile import JobProfile

#: Nominal duration before any task of the session has finished.
PRIOR_MS = 1000.0


@dataclass
class Measured:
    """Sum and number of measured task durations."""

    tasks: int = 0
    total_ms: float = 0.0

    def mean_ms(self, otherwise: float) -> float:
        """Mean duration, or another number if none was measured."""
        return self.total_ms / self.tasks if self.tasks else otherwise


class Durations:
    """Nominal durations of the stages of one job.

    Args:
        known: Per stage the duration that was stated or profiled in ms, None where it has to be estimated.
        session: What was measured in the whole session; shared by its jobs.

    Attributes:
        measured_tasks: Per stage, measured tasks.
        measured_ms: Per stage, the sum of their durations in ms.
    """

    def __init__(self, known: list[float | None], session: Measured) -> None:
        self.known = known
        self.measured_tasks = [0] * len(known)
        self.measured_ms = [0.0] * len(known)
        self._session = session

    def continues(self, old: Durations) -> None:
        """Take over what was measured when the job had fewer stages."""
        count = len(old.known)
        self.measured_tasks[:count], self.measured_ms[:count] = old.measured_tasks, old.measured_ms

    def measure(self, stage: int, tasks: int, total_ms: float) -> bool:
        """Record the number of measured tasks of a stage and the sum of their durations.

        Returns:
            True if that changed an estimate.
        """
        old_tasks, old_ms = self.measured_tasks[stage], self.measured_ms[stage]
        if (tasks, total_ms) == (old_tasks, old_ms):
            return False
        self._session.tasks += tasks - old_tasks
        self._session.total_ms += total_ms - old_ms
        self.measured_tasks[stage], self.measured_ms[stage] = tasks, total_ms
        return self.known[stage] is None

    def nominal_ms(self) -> list[float]:
        """Nominal durations of all stages in ms."""
        if None not in self.known:
            return self.known
        session_mean_ms = self._session.mean_ms(PRIOR_MS)
        job_mean_ms = Measured(sum(self.measured_tasks), sum(self.measured_ms)).mean_ms(session_mean_ms)
        return [
            known if known is not None else total_ms / tasks if tasks else job_mean_ms
            for known, tasks, total_ms in zip(self.known, self.measured_tasks, self.measured_ms, strict=True)
        ]


class ProfileBook:
    """Profiles by name, in which the stages of a client's jobs are looked up.

    Args:
        profiles: The profiles; of several with the same name the first counts.
    """

    def __init__(self, profiles: Iterable[JobProfile] = ()) -> None:
        self._profiles: dict[str, JobProfile] = {}
        for profile in profiles:
            self._profiles.setdefault(profile.name, profile)
        self._graphs: dict[str, Dag] = {}  # as far as they were asked for

    def __len__(self) -> int:
        return len(self._profiles)

    def find(self, name: str) -> JobProfile | None:
        """Profile of a name, None if there is none."""
        return self._profiles.get(name)

    def durations_ms(self, name: str, graph: Dag) -> list[float | None]:
        """Nominal durations of a job's stages in ms by a profile, None for unknown stages.

        The job may be a part of the profiled one, parents first, as Spark reports its stages. A stage of it is the
        profiled stage with the same ancestors, task counts included; where there is none, task counts do not matter.
        Among stages that look the same, order decides.

        Args:
            name: Name of a profile that is there.
            graph: The client's stages.
        """
        profile = self._profiles[name]
        if name not in self._graphs:
            self._graphs[name] = Dag.of_profile(profile)
        matches: list[int | None] = [None] * len(graph)
        for with_tasks in (True, False):
            _match(matches, graph.ancestry(with_tasks), self._graphs[name].ancestry(with_tasks))
        return [None if index is None else profile.stages[index].mean_duration_ms for index in matches]


def _match(matches: list[int | None], wanted: Sequence[int], known: Sequence[int]) -> None:
    """Fill the gaps of ``matches`` with free stages of the same code, in order."""
    free = defaultdict(list)
    taken = set(matches)
    for index, code in reversed(list(enumerate(known))):
        if index not in taken:
            free[code].append(index)
    for index, code in enumerate(wanted):
        if matches[index] is None and free[code]:
            matches[index] = free[code].pop()
