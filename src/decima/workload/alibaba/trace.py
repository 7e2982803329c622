"""Trace as flat arrays, report of its anomalies, and workloads replayed from it."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

import numpy as np

from decima.core.checks import is_number, is_whole
from decima.core.errors import ConfigError
from decima.workload.arrivals import check_count
from decima.workload.jobs import Job, Workload
from decima.workload.profile import JobProfile, Stage

if TYPE_CHECKING:
    import pandas

PARTS = ("all", "train", "test")


@dataclass
class TraceReport:
    """Counts of the content of a trace and of its anomalies."""

    jobs: int = 0
    stages: int = 0
    tasks: int = 0
    edges: int = 0
    jobs_of_independent_tasks: int = 0  # left out: they have no DAG
    independent_stages: int = 0  # kept: stages without edges in jobs that have a DAG otherwise
    unfinished_jobs: int = 0  # left out: a stage did not end as Terminated, lacks instances or ends before its start
    jobs_without_plan: int = 0  # left out: a stage has no memory request above 0
    jobs_with_repeated_stage: int = 0  # left out: two rows have the same task number
    jobs_with_missing_parents: int = 0  # left out: a stage names a parent that the job does not have
    jobs_with_cycles: int = 0  # left out: stages wait for each other
    malformed_rows: int = 0  # left out; jobs with a text where a number is expected count as unfinished
    cut_names: int = 0  # kept without the parents that the cut took
    jobs_with_cut_names: int = 0
    repeated_parents: int = 0  # names that give a parent twice; taken once
    jobs_out_of_order: int = 0  # rows were not in the order of task numbers; sorted
    zero_durations: int = 0  # tasks under a second; taken as half a second
    requests_above_one: int = 0  # stages that ask for more memory than the largest executor has; cut at 1
    cpu_above_one: int = 0  # stages that ask for more than a core; they get one
    stages_without_durations: int = 0  # no finished instance was recorded; the length of the stage stands for all
    unfinished_instances: int = 0  # left out
    examples: dict[str, list[str]] = field(default_factory=dict)  # first jobs that are left out, by field

    def leave_out(self, reason: str, job: str) -> None:
        """Count a job that is left out, and keep the first three names."""
        setattr(self, reason, getattr(self, reason) + 1)
        names = self.examples.setdefault(reason, [])
        names += [job] if len(names) < 3 else []

    def left_out(self) -> str:
        """Sentence about jobs that have a DAG and are left out."""
        parts = []
        for reason, names in self.examples.items():
            count = getattr(self, reason)
            if reason != "jobs_of_independent_tasks":
                more = ", ..." if count > len(names) else ""
                parts.append(f"{count:,} {reason.replace('_', ' ')} ({', '.join(names)}{more})")
        return "; ".join(parts + [f"{self.malformed_rows:,} malformed rows"] * (self.malformed_rows > 0))

    def table(self) -> pandas.DataFrame:
        """Table with a row per number: ``what``, ``count`` and first names."""
        import pandas

        rows = [
            (item.name.replace("_", " "), getattr(self, item.name), " ".join(self.examples.get(item.name, ())))
            for item in fields(self)
            if item.name != "examples"
        ]
        return pandas.DataFrame(rows, columns=["what", "count", "examples"])


@dataclass(frozen=True, eq=False)
class Trace:
    """Jobs of a trace as flat arrays, stages in topological order.

    A workload is made of it by :meth:`workload`, which makes objects of the chosen jobs only.
    """

    label: str  # shown in titles
    source: str  # ``JobProfile.source`` of its jobs
    length_s: float  # time from the first possible arrival to the last; the first half of it trains
    job_names: tuple[str, ...]
    arrival_s: np.ndarray  # float64 [jobs], ascending
    first_stage: np.ndarray  # int64 [jobs + 1]
    stage_names: tuple[str, ...]
    num_tasks: np.ndarray  # int64 [stages]
    memory: np.ndarray  # float64 [stages], request of every task, above 0 and at most 1
    parent_offset: np.ndarray  # int64 [stages + 1]
    parent: np.ndarray  # int64 [edges], index inside the job
    duration_offset: np.ndarray  # int64 [stages + 1]
    duration_ms: np.ndarray  # float64 [durations]
    report: TraceReport
    _profiles: dict[int, JobProfile] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        self.duration_ms.setflags(write=False)

    def __len__(self) -> int:
        return len(self.job_names)

    @property
    def work_s(self) -> np.ndarray:
        """Work of the jobs in executor seconds, float64 [jobs]: tasks times mean recorded duration."""
        counts = np.diff(self.duration_offset)
        means = np.add.reduceat(self.duration_ms, self.duration_offset[:-1]) / counts
        return np.add.reduceat(self.num_tasks * means, self.first_stage[:-1]) / 1000.0

    def select(self, part: str = "all", fraction: float = 1.0, seed: int = 0, window_s: float | None = None):
        """Choose jobs.

        Args:
            part: ``"train"``, the arrivals of the first half of the time; ``"test"``, the others; or ``"all"``.
            fraction: Part of the jobs to keep, above 0 up to 1; the seed chooses which. Executors are to be thinned
                alike (:func:`thinned`), so that the load stays.
            seed: 0 or more.
            window_s: Length of a window inside the part, in seconds; where it lies, the seed chooses. None: all of it.

        Returns:
            Indices of the jobs, int64, ascending, and the time in seconds at which their part or window begins.

        Raises:
            ConfigError: An argument is not as described, or no job is left.
        """
        if part not in PARTS:
            raise ConfigError(f"part is {part!r}; expected {', '.join(PARTS[:-1])} or {PARTS[-1]}")
        if not is_number(fraction) or not 0.0 < fraction <= 1.0:
            raise ConfigError(f"fraction is {fraction!r}; expected a number above 0 and up to 1")
        check_count("seed", seed, least=0)
        half = self.length_s / 2.0
        begin, end = {"all": (0.0, self.length_s), "train": (0.0, half), "test": (half, self.length_s)}[part]
        keep_rng, window_rng = np.random.default_rng(int(seed)).spawn(2)
        if window_s is not None:
            if not is_number(window_s) or not 0.0 < window_s <= end - begin:
                raise ConfigError(f"window_s is {window_s!r}; expected seconds above 0, at most {end - begin:g}")
            begin += window_rng.uniform(0.0, end - begin - window_s)
            end = begin + window_s
        last = self.arrival_s <= end if end >= self.length_s else self.arrival_s < end
        chosen = np.flatnonzero((self.arrival_s >= begin) & last)
        if fraction < 1.0:
            count = round(fraction * len(chosen))
            chosen = np.sort(keep_rng.permutation(chosen)[:count])
        if not len(chosen):
            raise ConfigError(f"{self.label}: no job of part {part!r} is left at fraction {fraction:g}")
        return chosen, begin

    def workload(
        self,
        part: str = "all",
        fraction: float = 1.0,
        seed: int = 0,
        window_s: float | None = None,
        n: int | None = None,
    ) -> Workload:
        """Jobs with their recorded arrivals, counted from the beginning of the part or window.

        Args:
            part: As :meth:`select`, like the others.
            fraction: As there.
            seed: As there.
            window_s: As there.
            n: Only the first ``n`` to arrive. None: all.

        Raises:
            ConfigError: An argument is not as described, or there are fewer than ``n`` jobs.
        """
        chosen, begin = self.select(part, fraction, seed, window_s)
        if n is not None:
            if not is_whole(n) or not 1 <= n <= len(chosen):
                raise ConfigError(f"n is {n!r}; expected an integer from 1 to {len(chosen)}, the jobs of {self.label}")
            chosen = chosen[:n]
        return Workload(
            tuple(Job(self.profile(job), 1000.0 * float(self.arrival_s[job] - begin)) for job in chosen.tolist()),
            self.label,
        )

    def profile(self, job: int) -> JobProfile:
        """Profile of one job; always the same object."""
        if job not in self._profiles:
            first, end = self.first_stage[job : job + 2].tolist()
            self._profiles[job] = JobProfile(
                self.job_names[job], tuple(self._stage(row) for row in range(first, end)), self.source
            )
        return self._profiles[job]

    def _stage(self, row: int) -> Stage:
        begin, end = self.duration_offset[row : row + 2].tolist()
        wave = (self.duration_ms[begin:end],)
        first, last = self.parent_offset[row : row + 2].tolist()
        parents = tuple(self.parent[first:last].tolist())
        memory = float(self.memory[row])
        return Stage(self.stage_names[row], int(self.num_tasks[row]), parents, (1,), wave, wave, wave, memory=memory)


def thinned(executors: int, fraction: float) -> int:
    """Executors for a fraction of the jobs at the same load, at least 1."""
    return max(1, round(executors * fraction))
