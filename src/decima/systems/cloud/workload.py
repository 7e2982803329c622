"""Jobs with executors to be placed on VMs.

Times of this package are seconds, as in the published traces, so that mode ``released`` repeats their arithmetic.

Source: Islam et al., TPDS 2022, section 3 (jobs) and the traces published with it.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from decima.core.checks import is_name, is_number, is_whole
from decima.core.errors import WorkloadError
from decima.systems.cloud import tabular
from decima.systems.cloud.catalog import MIB_PER_GB, Cluster

if TYPE_CHECKING:
    import pandas

CPU_BOUND, MEMORY_BOUND, NETWORK_BOUND = 1, 2, 3
# The applications that the authors' workload generator gives these numbers.
TYPES = {CPU_BOUND: "WordCount (CPU)", MEMORY_BOUND: "Sort (memory)", NETWORK_BOUND: "PageRank (network)"}
_WORDS = {"cpu": CPU_BOUND, "memory": MEMORY_BOUND, "network": NETWORK_BOUND}
COLUMNS = ("arrival_s", "id", "type", "cores", "memory_gb", "executors", "duration_s")
_MOST_EXECUTORS = 100_000


@dataclass(frozen=True)
class PlacementJob:
    """A job all of whose executors have to be placed before it starts.

    Raises:
        WorkloadError: A number is out of range.
    """

    arrival_s: float
    id: int  # unique in a workload
    type: int  # 1 CPU-bound, 2 memory-bound (both run best spread), 3 network-bound (runs best on one VM)
    cores: int  # of each executor
    memory_gb: float  # of each executor; counted in MiB, parts of which are rounded up
    executors: int
    duration_s: float  # run time when well placed

    def __post_init__(self) -> None:
        where = f"job {self.id!r}"
        if not is_number(self.arrival_s) or not 0.0 <= self.arrival_s <= 1e12:
            raise WorkloadError(f"{where}: arrival_s is {self.arrival_s!r}; expected seconds from 0 to 1e+12")
        if not is_whole(self.type) or self.type not in TYPES:
            known = ", ".join(f"{number} {name}" for number, name in TYPES.items())
            raise WorkloadError(f"{where}: type is {self.type!r}; expected {known}")
        for name, least, most in (("id", 0, 10**15), ("cores", 1, 10**6), ("executors", 1, _MOST_EXECUTORS)):
            value = getattr(self, name)
            if not is_whole(value) or not least <= value <= most:
                raise WorkloadError(f"{where}: {name} is {value!r}; expected a whole number from {least} to {most:,}")
        for name, least, most in (("memory_gb", 0.0, 1e6), ("duration_s", 1e-3, 1e9)):
            value = getattr(self, name)
            if not is_number(value) or not least <= value <= most or value == 0.0:
                raise WorkloadError(f"{where}: {name} is {value!r}; expected a number above {least:g}, up to {most:g}")

    @property
    def memory_mib(self) -> int:
        """Memory of an executor in whole MiB."""
        return math.ceil(self.memory_gb * MIB_PER_GB)


@dataclass(frozen=True, eq=False)
class PlacementWorkload:
    """Jobs in order of arrival, under a label.

    Raises:
        WorkloadError: There is no job, arrivals go back, or an id occurs twice.
    """

    jobs: tuple[PlacementJob, ...]
    label: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "jobs", tuple(self.jobs))
        if not self.jobs:
            raise WorkloadError(f"workload {self.label!r} has no jobs; expected at least one")
        if not is_name(self.label):
            raise WorkloadError(f"the workload's label is {self.label!r}; expected a text")
        for before, after in zip(self.jobs, self.jobs[1:], strict=False):
            if after.arrival_s < before.arrival_s:
                raise WorkloadError(
                    f"job {after.id} arrives at {after.arrival_s:g} s, after job {before.id} at "
                    f"{before.arrival_s:g} s; expected jobs in order of arrival"
                )
        for number, times in Counter(job.id for job in self.jobs).items():
            if times > 1:
                raise WorkloadError(f"id {number} occurs {times} times; expected every job once")

    def __len__(self) -> int:
        return len(self.jobs)

    def __repr__(self) -> str:
        return f"PlacementWorkload({self.label!r}, {len(self)} jobs)"

    @cached_property
    def arrival_ms(self) -> np.ndarray:
        """float64 ms [jobs]."""
        return 1000.0 * np.array([job.arrival_s for job in self.jobs])

    def signature(self) -> str:
        """Digest of all jobs."""
        return hashlib.sha256(repr([astuple(job) for job in self.jobs]).encode()).hexdigest()

    def require_room(self, cluster: Cluster) -> None:
        """Check that every job fits the empty cluster.

        Raises:
            WorkloadError: One never can; the message names it and the number of its executors that fit.
        """
        fitting: dict[tuple[int, int], int] = {}
        for job in self.jobs:
            shape = job.cores, job.memory_mib
            if shape not in fitting:
                fitting[shape] = sum(
                    vm.quantity * min(vm.cores // shape[0], vm.memory_mib // shape[1]) for vm in cluster.types
                )
            if fitting[shape] < job.executors:
                raise WorkloadError(
                    f"job {job.id}: {fitting[shape]} of its {job.executors} executors ({job.cores} cores, "
                    f"{job.memory_gb:g} GB each) fit the empty cluster ({cluster.label}, {len(cluster)} VMs)"
                )

    def frame(self) -> pandas.DataFrame:
        """Table of the jobs, columns :data:`COLUMNS`."""
        import pandas

        return pandas.DataFrame([astuple(job) for job in self.jobs], columns=list(COLUMNS))


def load_jobs(path: str | Path) -> PlacementWorkload:
    """Read jobs from a csv file with the columns :data:`COLUMNS`; malformed rows are left out.

    Types are 1, 2, 3 or cpu, memory, network.

    Raises:
        OSError: The file cannot be read.
        WorkloadError: It is not such a table, or no row is left; the message has the reason.

    Warns:
        UserWarning: Rows are left out, with reasons.
    """
    from decima.workload.left_out import LeftOut

    jobs: list[PlacementJob] = []
    seen: set[int] = set()
    left_out, unsorted = LeftOut(str(path)), ""
    for where, row in tabular.read_rows(path, COLUMNS, left_out=left_out):
        with left_out.member():
            job = _job(where, row)
            if job.id in seen:
                raise WorkloadError(f"{where}: id {job.id} was there before; expected every job once")
            seen.add(job.id)
            jobs.append(job)
            if len(jobs) > 1 and job.arrival_s < jobs[-2].arrival_s:  # of the file, no fault of one row
                unsorted = f"{where}: arrival_s is {job.arrival_s:g} after {jobs[-2].arrival_s:g}"
    if unsorted:
        raise WorkloadError(f"{unsorted}; expected rows in order of arrival")
    left_out.finish(len(jobs))
    return PlacementWorkload(tuple(jobs), Path(path).stem)


def jobs_of_rows(rows: Sequence[Sequence[float]], label: str) -> PlacementWorkload:
    """Workload of rows in the order of :data:`COLUMNS`, as the published traces."""
    return PlacementWorkload(
        tuple(
            PlacementJob(float(a), int(i), int(k), int(c), float(m), int(n), float(d)) for a, i, k, c, m, n, d in rows
        ),
        label,
    )


def read_type(text: str, where: str) -> int:
    """Number of a type from its number or word.

    Raises:
        WorkloadError: There is no such type.
    """
    types = _WORDS | {str(number): number for number in TYPES}
    job_type = types.get(text.lower().removesuffix(".0"))
    if job_type is None:
        raise WorkloadError(f"{where}: type is {text!r}; expected 1, 2 or 3, or one of {', '.join(_WORDS)}")
    return job_type


def _job(where: str, row: dict[str, str]) -> PlacementJob:
    values = (
        tabular.number(where, "arrival_s", row["arrival_s"]),
        tabular.whole(where, "id", row["id"], least=0),
        read_type(row["type"], where),
        tabular.whole(where, "cores", row["cores"]),
        tabular.number(where, "memory_gb", row["memory_gb"], above=True),
        tabular.whole(where, "executors", row["executors"]),
        tabular.number(where, "duration_s", row["duration_s"], above=True),
    )
    try:
        return PlacementJob(*values)
    except WorkloadError as error:
        raise WorkloadError(f"{where}: {error}") from error
