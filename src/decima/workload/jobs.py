"""Jobs that arrive at a cluster, and workloads of such jobs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from decima.core.checks import LARGEST_MS, is_name
from decima.core.display import table_html
from decima.core.errors import WorkloadError
from decima.workload.profile import WAVES, JobProfile, check_request, frozen

if TYPE_CHECKING:
    import pandas

_EPOCHS_MS = (3e11, 1e13)  # the years 1979 to 2286, in ms since 1970


@dataclass(frozen=True, eq=False)
class Job:
    """One arrival of a profile.

    Raises:
        WorkloadError: the arrival is not from 0 to `LARGEST_MS`, an initial job arrives later than 0, or the name
            is not a text.
    """

    profile: JobProfile
    arrival_ms: float = 0.0
    # Present when the run starts, without an arrival event; such a job has `arrival_ms` 0. When omitted: True for
    # `arrival_ms` 0. An explicit False at 0 makes the arrival an event at time 0.
    initial: bool | None = None
    name: str = ""  # shown in tables and figures; the profile's name when omitted
    # What the tasks of each stage of this job ask for: float64 [stages, 2], memory and CPUs, or [stages], memory only.
    # What the profile says when omitted.
    requests: np.ndarray | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.profile, JobProfile):
            raise WorkloadError(f"a job's profile is {type(self.profile).__name__}; expected a JobProfile")
        if not self.name:
            object.__setattr__(self, "name", self.profile.name)
        if not is_name(self.name):
            raise WorkloadError(f"a job's name is {self.name!r:.60}; expected a Unicode text")
        try:
            arrival_ms = float(self.arrival_ms)
        except (TypeError, ValueError, OverflowError):
            arrival_ms = math.nan
        if not 0.0 <= arrival_ms <= LARGEST_MS:
            raise WorkloadError(
                f"job {self.name!r}: arrival_ms is {self.arrival_ms!r:.60}; expected milliseconds from 0 to "
                f"{LARGEST_MS:g}{_epoch_hint(arrival_ms)}"
            )
        object.__setattr__(self, "arrival_ms", arrival_ms)
        initial = arrival_ms == 0.0 if self.initial is None else bool(self.initial)
        if initial and arrival_ms > 0.0:
            raise WorkloadError(f"job {self.name!r}: initial, yet it arrives at {arrival_ms} ms; expected 0")
        object.__setattr__(self, "initial", initial)
        if self.requests is not None:
            object.__setattr__(self, "requests", _requests(self))


@dataclass(frozen=True, eq=False)
class Workload:
    """Sequence of jobs under a label.

    Raises:
        WorkloadError: there is no job or no label, or a profile is missing from the universe.
    """

    jobs: tuple[Job, ...]  # at least one
    label: str  # shown in titles and file names, for example `TPC-H` or `synthetic`
    # The profiles that the jobs were drawn from, when known, else the distinct profiles of the jobs; workloads of one
    # universe share the simulator's tables.
    universe: tuple[JobProfile, ...] = ()
    # Settings of the cluster that the jobs bring, defaults of their runs; those of event logs have some.
    settings: Mapping[str, Any] = field(default_factory=dict, kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "jobs", tuple(self.jobs))
        if not is_name(self.label):
            raise WorkloadError(f"the workload's label is {self.label!r}; expected a non-empty Unicode text")
        if not self.jobs:
            raise WorkloadError(f"workload {self.label!r} has no jobs; expected at least one")
        object.__setattr__(self, "universe", tuple(self.universe) or self.profiles)
        for profile in set(self.profiles).difference(self.universe):
            raise WorkloadError(f"workload {self.label!r}: profile {profile.name!r} is not in the given universe")

    def __len__(self) -> int:
        return len(self.jobs)

    def __repr__(self) -> str:
        return f"Workload({self.label!r}, {len(self)} jobs)"

    def _repr_html_(self) -> str:
        table = self.describe()
        arrival_s = table["arrival_s"].to_numpy()
        spans = np.stack([arrival_s, arrival_s, arrival_s + table["critical_path_s"].to_numpy()], axis=1)
        return table_html(f"{self.label}: {len(self)} jobs", table, spans)

    def __deepcopy__(self, memo: dict) -> Workload:
        return self  # nothing of it can change

    @cached_property
    def profiles(self) -> tuple[JobProfile, ...]:
        """Distinct profile objects in order of first use."""
        return tuple(dict.fromkeys(job.profile for job in self.jobs))

    @cached_property
    def profile_index(self) -> np.ndarray:
        """Positions of the jobs' profiles in `universe`, int64 [jobs]."""
        position = {profile: index for index, profile in enumerate(self.universe)}
        return frozen(np.array([position[job.profile] for job in self.jobs], dtype=np.int64))

    @cached_property
    def first_stage(self) -> np.ndarray:
        """Number of stages before those of each job, int64 [jobs + 1]."""
        sizes = np.array([len(profile.stages) for profile in self.universe], dtype=np.int64)[self.profile_index]
        return frozen(np.concatenate([[0], np.cumsum(sizes)]))

    @cached_property
    def requests(self) -> np.ndarray:
        """Requests of the tasks of all stages, float64 [stages, 2]: memory and CPUs.

        Memory is 0 where a stage asks for none.
        """
        nominal = [np.array([stage.request for stage in profile.stages]) for profile in self.universe]
        places = zip(self.jobs, self.profile_index.tolist(), strict=True)
        return frozen(np.concatenate([nominal[at] if job.requests is None else job.requests for job, at in places]))

    @cached_property
    def arrival_ms(self) -> np.ndarray:
        """Times of arrival, float64 [jobs], ms."""
        return frozen(np.array([job.arrival_ms for job in self.jobs], dtype=np.float64))

    @cached_property
    def initial(self) -> np.ndarray:
        """Whether each job is present when the run starts, bool [jobs]."""
        return frozen(np.array([job.initial for job in self.jobs], dtype=bool))

    @cached_property
    def ideal_ms(self) -> np.ndarray:
        """Float64 ms [jobs], critical path: the time with unlimited executors and nominal task durations."""
        return frozen(np.array([job.profile.critical_path_ms for job in self.jobs], dtype=np.float64))

    @cached_property
    def draws(self) -> bool:
        """Whether a task may have one of several durations."""
        stages = (stage for job in self.jobs for stage in job.profile.stages)
        lists = (values for stage in stages for wave in WAVES for values in getattr(stage, wave))
        single = all(len(stage.levels) == 1 for job in self.jobs for stage in job.profile.stages)
        return not single or any(np.ptp(values) > 0.0 for values in lists if len(values))

    def signature(self) -> str:
        """Text of names, arrivals and nominal durations, which identifies the workload."""
        parts = []
        for job in self.jobs:
            tasks = [(stage.num_tasks, stage.parents, stage.mean_duration_ms) for stage in job.profile.stages]
            parts.append(repr((job.profile.name, job.arrival_ms, job.initial, tasks)))
            nominal = [stage.request for stage in job.profile.stages]
            requests = nominal if job.requests is None else list(map(tuple, job.requests.tolist()))
            if any(request != (0.0, 1.0) for request in requests):
                parts.append(repr(requests))
        return "".join(parts)

    def describe(self) -> pandas.DataFrame:
        """Table of the jobs: name, stages, tasks, work_s, critical_path_s (nominal durations), arrival_s."""
        import pandas

        return pandas.DataFrame(
            [
                {
                    "name": job.name,
                    "stages": len(job.profile.stages),
                    "tasks": job.profile.num_tasks,
                    "work_s": job.profile.work_ms / 1000.0,
                    "critical_path_s": job.profile.critical_path_ms / 1000.0,
                    "arrival_s": job.arrival_ms / 1000.0,
                }
                for job in self.jobs
            ]
        )


def _requests(job: Job) -> np.ndarray:
    stages = job.profile.stages
    try:
        requests = np.array(job.requests, dtype=np.float64)
    except (TypeError, ValueError):
        requests = np.zeros(0)
    if requests.shape not in ((len(stages),), (len(stages), 2)):
        raise WorkloadError(
            f"job {job.name!r}: requests are {job.requests!r:.60}; expected memory, or memory and CPUs, of each of "
            f"{len(stages)} stages"
        )
    if requests.ndim == 1:
        requests = np.stack([requests, np.ones(len(stages))], axis=1)
    if not (np.isfinite(requests) & (requests > 0.0)).all():
        for stage, (memory, cpu) in zip(stages, requests.tolist(), strict=True):
            for name, value in (("memory", memory), ("cpu", cpu)):
                check_request(f"job {job.name!r}, stage {stage.name!r}", name, value)
    return frozen(requests)


def _epoch_hint(arrival_ms: float) -> str:
    """Hint that a time that is too large may be a Unix time."""
    for unit, per_ms in (("microseconds", 1e3), ("nanoseconds", 1e6)):
        if _EPOCHS_MS[0] <= arrival_ms / per_ms <= _EPOCHS_MS[1]:
            return f"; it looks like {unit} since 1970: divide by {per_ms:,.0f}, or count from the trace's beginning"
    return ""
