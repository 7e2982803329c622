"""Nominal task durations of a client's stages: stated by it, from a profile, or estimated from finished tasks.

Source: §6.1 (Decima takes durations from earlier runs of a recurring job). Differs: where there was no earlier run, the
mean of the finished tasks stands in, first of the stage, else of its job, else of the session, else ``PRIOR_MS``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

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


@dataclass
class Durations:
    """Nominal durations of the stages of one job."""

    # Per stage the duration that was stated or profiled in ms, None where it has to be estimated.
    known: list[float | None]
    session: Measured  # what was measured in the whole session; shared by its jobs
    measured: list[Measured] = field(init=False)  # per stage what was measured

    def __post_init__(self) -> None:
        self.measured = [Measured() for _ in self.known]

    def measure(self, stage: int, tasks: int, total_ms: float) -> bool:
        """Note how many tasks of a stage were measured so far and the sum of their durations.

        Returns:
            True if that changed an estimate.
        """
        old = self.measured[stage]
        if (tasks, total_ms) == (old.tasks, old.total_ms):
            return False
        self.session.tasks += tasks - old.tasks
        self.session.total_ms += total_ms - old.total_ms
        self.measured[stage] = Measured(tasks, total_ms)
        return self.known[stage] is None

    def nominal_ms(self) -> list[float]:
        """Nominal durations of all stages in ms."""
        if None not in self.known:
            return list(self.known)
        tasks = sum(part.tasks for part in self.measured)
        session_mean_ms = self.session.mean_ms(PRIOR_MS)
        job = Measured(tasks, sum(part.total_ms for part in self.measured))
        job_mean_ms = job.mean_ms(session_mean_ms)
        return [
            part.mean_ms(job_mean_ms) if known is None else known
            for known, part in zip(self.known, self.measured, strict=True)
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

    def __len__(self) -> int:
        return len(self._profiles)

    def find(self, name: str) -> JobProfile | None:
        """Profile of a name, None if there is none."""
        return self._profiles.get(name)

    def durations_ms(self, name: str, graph: JobProfile) -> list[float | None]:
        """Nominal durations of a job's stages in ms according to a profile, None for those that are not in it.

        The job may be a part of the profiled one, parents first, as Spark reports its stages. A stage of it is the
        profiled stage with the same ancestors, task counts included; where there is none, task counts do not matter.
        Among stages that look the same, order decides.

        Args:
            name: Name of the profile.
            graph: The client's stages.
        """
        profile = self._profiles.get(name)
        matches: list[int | None] = [None] * len(graph.stages)
        if profile is not None:
            for with_tasks in (True, False):
                _match(matches, _ancestry(graph, with_tasks), _ancestry(profile, with_tasks))
        return [None if index is None else profile.stages[index].mean_duration_ms for index in matches]


def _ancestry(profile: JobProfile, with_tasks: bool) -> list[int]:
    """Return a number per stage, the same for stages with the same ancestors."""
    codes: list[int] = [0] * len(profile.stages)
    for index in profile.topological_order:
        stage = profile.stages[index]
        tasks = stage.num_tasks if with_tasks else 0
        codes[index] = hash((tasks, *sorted(codes[parent] for parent in stage.parents)))
    return codes


def _match(matches: list[int | None], wanted: Sequence[int], known: Sequence[int]) -> None:
    """Fill the gaps of ``matches`` with stages of the same code that are not taken, in order."""
    free = defaultdict(list)
    taken = set(matches)
    for index, code in reversed(list(enumerate(known))):
        if index not in taken:
            free[code].append(index)
    for index, code in enumerate(wanted):
        if matches[index] is None and free[code]:
            matches[index] = free[code].pop()
