"""Texts that name the jobs.

``generated`` (the default, in the package), ``generated:pattern=burst,n=200``; ``normal`` and ``burst``, the published
traces; ``redrawn:trace=burst`` for jobs drawn from them; ``dag:jobs=jobs.json`` for DAG jobs, each simulated alone; or
the path of a csv file.

Distributions of generated jobs, the first three from the authors' generator, ``tawfiqul-islam/Workload-Generator``:

- type: 46 % CPU-bound, 45 % memory-bound, 9 % network-bound;
- cores per executor: 1 to 4, equally likely; memory: 4 to 12 GB in whole GB, equally likely;
- executors: 1 to 8, equally likely; a job of more than 24 cores or 60 GB, the largest of the published traces, is drawn
  again, as the authors made large jobs smaller by hand;
- duration: log-normal with the means of the published traces by type, 58.7, 33.4 and 116 s, and a coefficient of
  variation of 0.3, in whole seconds, at least 5;
- arrivals: a Poisson process with the mean interarrival times of the traces, 60 s (``normal``) or 6 s (``burst``).

Differs: durations are not drawn there but measured; the log-normal is ours.
"""

import csv
import io
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from decima.core import config
from decima.core.checks import check_whole, is_number
from decima.core.errors import ConfigError, DataUnavailableError, WorkloadError
from decima.core.grammar import Option, read_options, split_options
from decima.core.registry import Registry, options_of
from decima.systems.cloud.workload import (
    CPU_BOUND,
    MEMORY_BOUND,
    NETWORK_BOUND,
    PlacementJob,
    PlacementWorkload,
    jobs_of_rows,
    load_jobs,
    read_type,
)
from decima.workload.pinned import PinnedFiles

PATTERNS = {"normal": 60.0, "burst": 6.0}  # mean gap in seconds
JOBS = {"normal": 50, "burst": 100}  # jobs of the published traces
SHARES = {CPU_BOUND: 0.46, MEMORY_BOUND: 0.45, NETWORK_BOUND: 0.09}
MEAN_DURATION_S = {CPU_BOUND: 58.7, MEMORY_BOUND: 33.4, NETWORK_BOUND: 116.0}
VARIATION = 0.3  # standard deviation of durations over their mean
MOST_CORES, MOST_GB = 24, 60
LEAST_DURATION_S = 5.0
_MOST_JOBS = 1_000_000


@dataclass(frozen=True)
class Generator:
    """Parameters of the generator.

    Raises:
        ConfigError: One is out of range.
    """

    pattern: str = "normal"  # ``"normal"`` or ``"burst"``
    n: int | None = None  # jobs; 50 of ``normal``, 100 of ``burst`` when None
    interarrival_s: float | None = None  # mean gap; 60 s of ``normal``, 6 s of ``burst`` when None

    def __post_init__(self) -> None:
        if self.pattern not in PATTERNS:
            raise ConfigError(f"pattern must be {' or '.join(PATTERNS)}, got {self.pattern!r}")
        if self.n is not None:
            check_whole("n", self.n, least=1)
            if self.n > _MOST_JOBS:
                raise ConfigError(f"n is {self.n}; expected at most {_MOST_JOBS:,} jobs")
        _check_gap(self.gap_s)

    @property
    def gap_s(self) -> float:
        """Mean gap between arrivals in seconds."""
        return PATTERNS[self.pattern] if self.interarrival_s is None else self.interarrival_s

    def draw(self, seed: int = 0) -> PlacementWorkload:
        """Draw a workload; both patterns of a seed have the same jobs.

        Raises:
            ConfigError: The seed is not a whole number of at least 0.
        """
        rng, arrivals = _drawn_arrivals(seed, self.gap_s, JOBS[self.pattern] if self.n is None else self.n)
        jobs = [self._job(rng, arrival, number) for number, arrival in enumerate(arrivals, start=1)]
        return PlacementWorkload(tuple(jobs), f"generated, {self.pattern}")

    def _job(self, rng: np.random.Generator, arrival_s: float, number: int) -> PlacementJob:
        job_type = int(rng.choice(list(SHARES), p=list(SHARES.values())))
        while True:
            cores, memory, executors = int(rng.integers(1, 5)), int(rng.integers(4, 13)), int(rng.integers(1, 9))
            if cores * executors <= MOST_CORES and memory * executors <= MOST_GB:
                break
        sigma = math.sqrt(math.log1p(VARIATION**2))
        duration = MEAN_DURATION_S[job_type] * math.exp(sigma * rng.standard_normal() - sigma**2 / 2.0)
        return PlacementJob(
            arrival_s, number, job_type, cores, float(memory), executors, max(LEAST_DURATION_S, float(round(duration)))
        )


def redrawn(trace: PlacementWorkload, gap_s: float, seed: int) -> PlacementWorkload:
    """A held-out trace: jobs drawn from a trace with replacement, arrivals a Poisson process.

    Args:
        trace: Where the jobs come from; as many are drawn as it has.
        gap_s: Mean gap in seconds.
        seed: 0 or more.

    Raises:
        ConfigError: The seed or the gap is out of range.
    """
    _check_gap(gap_s)
    rng, arrivals = _drawn_arrivals(seed, gap_s, len(trace))
    chosen = rng.integers(len(trace), size=len(trace))
    jobs = [
        replace(trace.jobs[index], arrival_s=arrival, id=number)
        for number, (arrival, index) in enumerate(zip(arrivals, chosen, strict=True), start=1)
    ]
    return PlacementWorkload(tuple(jobs), f"{trace.label}, drawn anew")


def _check_gap(gap_s: float) -> None:
    if not is_number(gap_s) or not 0.0 < gap_s <= 1e6:
        raise ConfigError(f"interarrival_s is {gap_s!r}; expected seconds above 0, up to 1e+06")


def _drawn_arrivals(seed: int, gap_s: float, count: int) -> tuple[np.random.Generator, list[float]]:
    """Arrivals of a Poisson process in whole seconds, and a generator for the jobs."""
    check_whole("seed", seed, least=0)
    jobs_rng, gaps_rng = (np.random.default_rng(child) for child in np.random.SeedSequence(int(seed)).spawn(2))
    return jobs_rng, np.round(np.cumsum(gaps_rng.exponential(gap_s, count))).tolist()


@dataclass(frozen=True)
class Source:
    """Where placement jobs come from."""

    name: str
    doc: str
    make: Callable[..., PlacementWorkload]  # function of a seed and the options
    options: tuple[Option, ...] = ()
    drawn: bool = True  # whether another seed gives other jobs


def _generated(seed: int, **options: Any) -> PlacementWorkload:
    return Generator(**options).draw(seed)


def _published(trace: str) -> PlacementWorkload:
    return load_trace(trace)


def _redrawn(seed: int, trace: str = "normal", interarrival_s: float | None = None) -> PlacementWorkload:
    return redrawn(_published(trace), PATTERNS[trace] if interarrival_s is None else interarrival_s, seed)


def _dag(
    seed: int, jobs: str, executors: int = 4, cores: int = 2, memory_gb: float = 8.0, type: str = "cpu"
) -> PlacementWorkload:
    from decima.evaluation.run import simulate
    from decima.workload.sources import parse_jobs

    spec = parse_jobs(jobs if Path(jobs).is_file() else jobs.replace("+", ","))
    workload, job_type, placed = spec.workload(seed), read_type(type, "jobs 'dag'"), []
    for number, job in enumerate(sorted(workload.jobs, key=lambda job: job.arrival_ms), start=1):
        alone = replace(workload, jobs=(replace(job, arrival_ms=0.0),))
        seconds = simulate(alone, "fair", executors=executors, seed=seed).makespan_s
        arrival_s = job.arrival_ms / 1000.0
        placed.append(PlacementJob(arrival_s, number, job_type, cores, memory_gb, executors, seconds))
    return PlacementWorkload(tuple(placed), f"{workload.label}, each job alone on {executors} executors")


_GAP = Option("interarrival_s", "mean gap of the Poisson arrivals in seconds", float)
SOURCES: Registry[Source] = Registry(
    "source of jobs",
    others="or the path of a .csv file",
    group="decima.cloud.sources",
    adopt=lambda name, make: Source(name, (make.__doc__ or "").split("\n")[0], make, options_of(make, "seed")),
)
for _source in (
    Source(
        "generated",
        "jobs drawn from documented distributions; in the package, needs no network",
        _generated,
        (
            Option("pattern", "normal (50 jobs, mean interarrival time 60 s) or burst (100 jobs, 6 s)"),
            Option("n", "number of jobs", int),
            _GAP,
        ),
    ),
    Source(
        "normal", "the published trace with normal arrivals, 50 jobs", lambda seed: _published("normal"), drawn=False
    ),
    Source("burst", "the published trace with burst arrivals, 100 jobs", lambda seed: _published("burst"), drawn=False),
    Source(
        "redrawn",
        "jobs drawn from a published trace, Poisson arrivals: held-out traces",
        _redrawn,
        (Option("trace", "normal or burst"), _GAP),
    ),
    Source(
        "dag",
        "DAG jobs; a job runs as long as it does alone on its executors in the simulated Spark cluster",
        _dag,
        (
            Option("jobs", "file of jobs or profiles, or a source with + between its options", required=True),
            Option("executors", "of every job", int),
            Option("cores", "of each executor", int),
            Option("memory_gb", "of each executor", float),
            Option("type", "cpu, memory or network: what executors of a job compete for"),
        ),
    ),
):
    SOURCES.add(_source.name, _source)


@dataclass(frozen=True)
class JobsSpec:
    """Which jobs a text means."""

    text: str
    make: Callable[[int], PlacementWorkload]
    drawn: bool  # whether another seed gives other jobs
    path: Path | None = None  # the file, if it is one

    def __reduce__(self) -> tuple:
        return parse_placement_jobs, (self.text,)

    @cached_property
    def _fixed(self) -> PlacementWorkload:
        return self.make(0)

    def workload(self, seed: int = 0) -> PlacementWorkload:
        """The jobs of a seed; those of a file or trace are read once."""
        return self.make(seed) if self.drawn else self._fixed

    def workloads(self, seeds: Iterable[int]) -> list[PlacementWorkload]:
        """The jobs of several seeds; of a file or trace the same each time."""
        return [self.workload(seed) for seed in seeds]


def parse_placement_jobs(text: str) -> JobsSpec:
    """Read a text that names jobs.

    Raises:
        ConfigError: The source or an option is unknown.
    """
    if text.endswith(".csv"):
        path = Path(text)
        return JobsSpec(text, lambda seed: load_jobs(path), False, path)
    name, _ = SOURCES.split(text)
    _, texts = split_options(text, name=name)
    source = SOURCES.find(name)
    options = read_options(texts, source.options, f"jobs {text!r}")
    if missing := [option.name for option in source.options if option.required and option.name not in options]:
        raise ConfigError(f"jobs {text!r}: {missing[0]} is missing; expected {name}:{missing[0]}=VALUE")
    path = next((Path(value) for key, value in options.items() if key == "jobs" and Path(value).is_file()), None)
    return JobsSpec(text, lambda seed: source.make(seed, **options), source.drawn, path)


# ---- the two traces published with the paper -------------------------------------------------------------------------

# ``jobs.csv`` (50 jobs, normal arrivals) and ``jobs_burst.csv`` (100 jobs, burst) state no licence and are never
# a part of this project. Source: GitHub ``tawfiqul-islam/RM_DeepRL``, folder ``input``, at this commit.
COMMIT = "899064657d0fcbd5c4d637defc6c038a9b976ce2"
BASE_URL = f"https://raw.githubusercontent.com/tawfiqul-islam/RM_DeepRL/{COMMIT}/input"
CHECKSUMS = {
    "jobs.csv": "a080a1a56068b0aa5dfdbbc3be1c517103c49fe92626f4d1b881c3d7383595e3",
    "jobs_burst.csv": "7f940ec92f36578e881da087b7497acf41e039400e21210a5a0e9ea613ca1f2d",
}
TRACES = {"normal": "jobs.csv", "burst": "jobs_burst.csv"}
_REMEDY = (
    f"Set {config.MIRROR_VARIABLE} to a folder with cloud_vm/jobs.csv and run 'decima data fetch cloud-vm', or run it "
    "with network access. The source 'generated' needs no data."
)


def traces_folder() -> Path:
    """Folder of the fetched traces."""
    return config.data_root() / "raw" / "cloud_vm"


def fetch_traces(*, force: bool = False) -> Path:
    """Fetch and verify the traces that are not there yet.

    Args:
        force: Fetch again what is already there.

    Returns:
        The folder of the files.

    Raises:
        DataUnavailableError: The source cannot be reached or lacks a file.
        ChecksumError: A file of the source differs from the checksum kept here.
    """
    return _files().fetch(traces_folder(), force=force, all_or_none=True)


def _files() -> PinnedFiles:
    return PinnedFiles("cloud-vm", "cloud_vm", BASE_URL, CHECKSUMS, _REMEDY)


def fetch_line(force: bool) -> str:
    """Fetch, for ``decima data fetch cloud-vm``, and describe what is there."""
    folder = fetch_traces(force=force)
    source = config.mirror_dir() or "the public repository"
    return f"cloud-vm: {len(CHECKSUMS)} files in {folder}, verified (source: {source})"


def status_line() -> str:
    """What ``decima data status`` says of the traces."""
    present = sum((traces_folder() / name).is_file() for name in CHECKSUMS)
    whole = sum(map(is_verified, CHECKSUMS))
    return f"{whole} of {len(CHECKSUMS)} files verified, {present} present, in {traces_folder()}"


def is_verified(name: str) -> bool:
    """Whether a file is there, unchanged."""
    return _files().is_verified(traces_folder() / name, name)


def traces_available() -> bool:
    """Whether both traces are on this machine, unchanged."""
    return all(map(is_verified, CHECKSUMS))


def load_trace(name: str) -> PlacementWorkload:
    """One of the published traces.

    Args:
        name: ``"normal"`` or ``"burst"``.

    Raises:
        DataUnavailableError: It was not fetched.
        ChecksumError: The file was changed.
    """
    if name not in TRACES:
        raise WorkloadError(f"unknown trace {name!r}; expected {' or '.join(TRACES)}")
    path = traces_folder() / TRACES[name]
    try:
        content = path.read_bytes()
    except FileNotFoundError as error:
        raise DataUnavailableError(
            f"the trace {name} is not at {path}: run 'decima data fetch cloud-vm'. {_REMEDY}"
        ) from error
    _files().check(content, TRACES[name], path)
    return jobs_of_rows(list(csv.reader(io.StringIO(content.decode("ascii")))), f"{name} trace")
