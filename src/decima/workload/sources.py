"""Workload sources by name, and the texts that name jobs.

A source offers job profiles under a name; every source draws batches and Poisson streams from them in the same way. A
new source is one module of this package with a :class:`WorkloadSource`, and its line in ``SOURCES``;
sources of other packages call :func:`register_source`.

The text ``tpch`` means 20 TPC-H jobs that are all there from the start, ``tpch:2g+10g,n=5`` five small ones,
``embedded:arrivals=poisson,n=200,interarrival_s=25`` a stream, ``two_class:load=0.8,executors=3`` one of that load,
``rare_long`` a workload that has a name of its own, ``alibaba:part=test,fraction=0.1`` a tenth of the second half of a
trace with its own arrivals, and ``jobs.json`` the jobs of a file.
"""

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from decima.core.checks import check_whole, is_number
from decima.core.errors import ConfigError, WorkloadError
from decima.core.grammar import Option, hint, read_options, read_value, split_options
from decima.core.registry import Registry, options_of
from decima.workload import arrivals
from decima.workload.jobs import Workload
from decima.workload.profile import JobProfile

# Seeds of workloads: tests have those below, whatever is tuned, selected or trained sees only those from here on.
TRAINING_SEED = 100_000
QUERIES = tuple(range(1, 23))
SIZES = Option("sizes", "job sizes to draw from: paper (six), released (seven), or some of them such as 2g+10g")
CHOSEN_QUERIES = Option("queries", "TPC-H queries to draw from, such as 1+6+14 or 1-16+20 (default all)")
JOB_OPTIONS = (
    Option(
        "arrivals",
        "batch: all jobs at the start; poisson: a Poisson stream (default if a stream option is given); trace: "
        "recorded arrivals (default if n is omitted, where the source has any)",
    ),
    Option("n", "jobs to draw; of a stream, those that arrive (default 20)", int),
    Option(
        "interarrival_s", "mean interarrival time of a stream, s (default 25); for training also a range such as 20-45"
    ),
    Option("load", "load of a stream, instead of interarrival_s: arrival rate × mean work / executors; or a range"),
    Option("executors", "cluster size to which load refers", int),
    Option("initial", "jobs of a stream that are present at time 0 (default 1)", int),
    Option("requests", "uniform: each stage of each job asks for memory from (0, 1], drawn apart from the jobs"),
)
# Workloads with a name of their own; what is written behind the name replaces options of the text.
PRESETS = {
    "half_long": "two_class:long_s=50,short_s=10,share=0.5,n=1000,load=0.8,executors=3",
    "rare_long": "two_class:long_s=200,short_s=10,share=0.1,n=1000,load=0.6,executors=2",
    "clocked_bursts": "clocked:burst=50,long_s=50,short_s=10,share=0.1,n=1000,load=0.6,executors=10",
    "half_tpch": "mixed:alpha=0.5,n=1000,load=0.6,executors=10",
    "tpch_busy": "tpch:n=1000,interarrival_s=14",
}
_STREAM_ONLY = ("interarrival_s", "load", "executors", "initial")
_LARGEST_LOAD = 10.0


@dataclass(frozen=True)
class WorkloadSource:
    """Job profiles under a name, and workloads drawn from them."""

    name: str  # what texts, cards and parameter files call it
    label: str  # what titles call it
    doc: str  # one sentence about it
    # Function that returns all profiles to draw from; its keywords are the options.
    profiles: Callable[..., tuple[JobProfile, ...]]
    # Function that returns a SHA-256, in hexadecimal, of the data behind the profiles; its keywords are the options
    # besides sizes.
    digest: Callable[..., str]
    options: tuple[Option, ...] = (SIZES,)  # what may be set
    available: Callable[[], bool] = lambda: True  # function that tells whether the data is on this machine
    # Function of a size in GB and a TPC-H query number; None where jobs are no TPC-H queries.
    query_profile: Callable[[float, int], JobProfile] | None = None
    # Function that returns the parts of the profiles and their probabilities, with the keywords of ``profiles``; None
    # where all profiles are equally likely.
    parts: Callable[..., tuple[arrivals.Part, ...]] | None = None
    # Function of the options that returns how many jobs of the second part every tick of a clock brings; None where
    # streams are Poisson streams.
    burst: Callable[..., int] | None = None
    # Function of seed, ``n`` (None: all) and the options that returns jobs with arrivals of their own; None where there
    # are no such.
    replay: Callable[..., Workload] | None = None

    def __reduce_ex__(self, protocol: int) -> str | tuple:
        """Pickle a registered source as its name, whose functions may be anonymous."""
        if self.name in SOURCES and SOURCES.find(self.name) is self:
            return get_source, (SOURCES.spelling(self),)
        return super().__reduce_ex__(protocol)

    @property
    def stream_arrivals(self) -> str:
        """How the jobs of a stream arrive: ``"poisson"`` or ``"clocked"``."""
        return "poisson" if self.burst is None else "clocked"

    def batch(
        self, n: int = 20, seed: int = 0, sizes: str | Sequence[str] = "paper", requests: str = "none", **options
    ) -> Workload:
        """Draw jobs with replacement, all present at the start.

        Args:
            n: Number of jobs.
            seed: 0 or more; chooses the jobs, the profiles themselves are always the same.
            sizes: ``"paper"`` (the paper's six), ``"released"`` (seven), one size, several as ``"2g+10g"``, or a list.
            requests: What stages ask for, see :func:`decima.workload.arrivals.with_requests`.
            **options: Further options of the source.

        Raises:
            ConfigError: ``n`` or ``seed`` is out of range.
            WorkloadError: There is no such size.
            DataUnavailableError: The data is not on this machine.

        Source: §7.2, batched arrivals.
        """
        profiles, parts = self._universe(sizes, options)
        workload = arrivals.batch(profiles, n, seed, label=self.label, parts=parts)
        return arrivals.with_requests(workload, requests, seed)

    def poisson(
        self,
        n: int,
        mean_interarrival_s: float,
        seed: int = 0,
        sizes: str | Sequence[str] = "paper",
        initial: int = 1,
        requests: str = "none",
        **options,
    ) -> Workload:
        """Draw jobs with replacement; they arrive as a Poisson process.

        Args:
            n: Number of arrivals, besides the initial jobs.
            mean_interarrival_s: Mean gap in seconds.
            seed: 0 or more; chooses jobs and gaps, the profiles themselves are always the same.
            sizes: As in :meth:`batch`.
            initial: Jobs present at time 0.
            requests: As in :meth:`batch`.
            **options: Further options of the source.

        Raises:
            ConfigError: A number is out of range.
            WorkloadError: There is no such size.
            DataUnavailableError: The data is not on this machine.

        Source: §7.2, continuous arrivals.
        """
        profiles, parts = self._universe(sizes, options)
        workload = arrivals.poisson(profiles, n, mean_interarrival_s, seed, initial, label=self.label, parts=parts)
        return arrivals.with_requests(workload, requests, seed)

    def stream(
        self,
        n: int,
        mean_interarrival_s: float,
        seed: int = 0,
        sizes: str | Sequence[str] = "paper",
        initial: int = 1,
        requests: str = "none",
        **options,
    ) -> Workload:
        """Draw a stream with this source's arrivals: periodic, or as in :meth:`poisson`."""
        if self.burst is None:
            return self.poisson(n, mean_interarrival_s, seed, sizes, initial, requests, **options)
        profiles, parts = self._universe(sizes, options)
        burst = self.burst(**options)
        workload = arrivals.clocked(
            profiles, n, mean_interarrival_s, seed, initial, label=self.label, parts=parts, burst=burst
        )
        return arrivals.with_requests(workload, requests, seed)

    def interarrival_s(self, load: float, executors: int, sizes: str | Sequence[str] = "paper", **options) -> float:
        """Mean gap in seconds of a stream with this load.

        Args:
            load: Arrival rate x mean nominal work of a job / executors; above 0, at most 10.
            executors: Executors of the cluster.
            sizes: As in :meth:`batch`.
            **options: Further options of the source.

        Raises:
            ConfigError: A number is out of range.
            WorkloadError: There is no such size.
        """
        if not is_number(load) or not 0.0 < load <= _LARGEST_LOAD:
            raise ConfigError(
                f"load is {load!r}; expected a number above 0 and up to {_LARGEST_LOAD:g}, of which 1 is all that the "
                "executors can do"
            )
        check_whole("executors", executors, least=1)
        profiles, parts = self._universe(sizes, options)
        parts = parts or (arrivals.Part(1.0, len(profiles)),)
        first, mean_ms = 0, 0.0
        for part in parts:
            works = [profile.work_ms for profile in profiles[first : first + part.count]]
            mean_ms += part.probability * math.fsum(works) / part.count
            first += part.count
        return mean_ms / 1000.0 / (executors * load)

    def batches(self, seeds: Sequence[int], jobs: int = 20, sizes: str = "paper") -> list[Workload]:
        """Draw one batch per seed."""
        return [self.batch(jobs, seed, sizes) for seed in seeds]

    def streams(
        self, seeds: Sequence[int], arrivals: int, interarrival_s: float, sizes: str = "paper"
    ) -> list[Workload]:
        """Draw one stream per seed, each with one job at the start."""
        return [self.stream(arrivals, interarrival_s, seed, sizes) for seed in seeds]

    def profile(self, size_gb: float, query: int) -> JobProfile:
        """Profile of one TPC-H query at the nearest measured size.

        Raises:
            WorkloadError: The source has no such query, or no queries at all.
        """
        if self.query_profile is None:
            raise WorkloadError(f"the jobs of source {self.name!r} are not TPC-H queries; expected tpch or embedded")
        return self.query_profile(size_gb, query)

    def _universe(
        self, sizes: str | Sequence[str], options: Mapping[str, Any]
    ) -> tuple[tuple[JobProfile, ...], tuple[arrivals.Part, ...]]:
        if SIZES in self.options:
            options = {"sizes": sizes, **options}
        elif sizes != "paper":
            raise ConfigError(f"source {self.name!r} has no sizes to choose from, got {sizes!r}")
        return self.profiles(**options), () if self.parts is None else self.parts(**options)


SOURCES: Registry[WorkloadSource] = Registry(
    "workload source",
    modules={
        "tpch": "decima.workload.tpch.profiles:SOURCE",
        "embedded": "decima.workload.embedded:SOURCE",
        "measured": "decima.workload.measured:SOURCE",
        "synthetic": "decima.workload.synthetic:SOURCE",
        "two_class": "decima.workload.two_class:SOURCE",
        "clocked": "decima.workload.two_class:CLOCKED",
        "mixed": "decima.workload.two_class:MIXED",
        "alibaba": "decima.workload.alibaba.source:SOURCE",
        "alibaba_like": "decima.workload.alibaba.source:LIKE",
        "file": "decima.workload.json_jobs:SOURCE",
    },
    group="decima.sources",
    adopt=lambda name, item: source_of(name, item),
)


def register_source(source: WorkloadSource) -> None:
    """Make a source known under its name."""
    SOURCES.add(source.name, source)


def source_of(name: str, draw: Callable[..., Workload]) -> WorkloadSource:
    """Source whose jobs a function draws.

    Args:
        name: What texts call it.
        draw: Function of ``seed`` and its options as keywords. Batches and streams draw from the universe of the
            workload of seed 0.

    Raises:
        ConfigError: It cannot be called.
    """
    if not callable(draw):
        raise ConfigError(f"{name} is {draw!r:.60}; expected a WorkloadSource or a function from a seed to a Workload")
    options = options_of(draw, "seed", "n")

    def replay(seed: int = 0, n: int | None = None, **values: Any) -> Workload:
        return draw(seed=seed, **values)

    def digest(**values: Any) -> str:
        return sha256(replay(**values).signature().encode()).hexdigest()

    doc = (draw.__doc__ or "").strip().split("\n")[0]
    profiles = lambda **values: replay(**values).universe  # noqa: E731
    return WorkloadSource(name, name, doc, profiles, digest, options, replay=replay)


def list_sources() -> list[str]:
    """Names of all workload sources, sorted."""
    return SOURCES.names()


def get_source(name: str) -> WorkloadSource:
    """Find a workload source by its name.

    Raises:
        ConfigError: There is none; the message lists those that are.
    """
    return SOURCES.find(name)


@dataclass(frozen=True)
class JobSpec:
    """Jobs that a text means: those of a file, or a draw from a source."""

    text: str  # the text
    path: Path | None = None  # the file; None for a draw
    source: WorkloadSource | None = None  # what is drawn from; None for a file
    # ``"batch"``; how a stream of the source comes, ``"poisson"`` or ``"clocked"``; or ``"trace"``, its own arrivals.
    arrivals: str = "batch"
    n: int | None = None  # jobs to draw; None where the text does not say
    # Mean gap of a stream in seconds, or its lowest and highest value.
    interarrival_s: float | tuple[float, float] = 25.0
    initial: int = 1  # jobs of a stream that are present at time 0
    requests: str = "none"  # what stages ask for
    options: dict[str, Any] = field(default_factory=dict)  # options of the source

    @property
    def settings(self) -> dict[str, Any]:
        """Settings of the cluster that the jobs of a file bring, or none."""
        from decima.workload import load
        from decima.workload.parquet import read_settings

        if self.path is None or not self.path.is_file():
            return {}
        return read_settings(self.path) if self.path.suffix == ".parquet" else dict(load(self.path).settings)

    def workload(self, seed: int) -> Workload:
        """Read the file, or draw the workload of this seed.

        Raises:
            DecimaError: The file or an option is not as expected, or the data is missing.
        """
        if self.path is not None:
            from decima.workload import load

            return load(self.path)
        if self.arrivals == "trace":
            workload = self.source.replay(seed=seed, n=self.n, **self.options)
            return arrivals.with_requests(workload, self.requests, seed)
        n = 20 if self.n is None else self.n
        if self.arrivals == "batch":
            return self.source.batch(n, seed, requests=self.requests, **self.options)
        if isinstance(self.interarrival_s, tuple):
            raise ConfigError(f"jobs {self.text!r}: a range of gaps is for training; expected one number of seconds")
        return self.source.stream(
            n, self.interarrival_s, seed, initial=self.initial, requests=self.requests, **self.options
        )

    def workloads(self, seeds: Sequence[int]) -> list[Workload]:
        """Read a file once for all seeds, or draw one workload per seed."""
        if self.path is not None:
            return [self.workload(0)] * len(seeds)
        return [self.workload(seed) for seed in seeds]


def parse_jobs(text: str) -> JobSpec:
    """Understand a text such as ``tpch``, ``synthetic:n=5,sizes=xs+s`` or ``jobs.json``.

    Whatever does not begin with the name of a source is a path, if it has a dot or a slash.

    Raises:
        ConfigError: There is no such source or option, options contradict each other, or a value is out of range.
    """
    name, _ = SOURCES.split(text)
    if name not in (*list_sources(), *PRESETS) and ":" not in name:
        if "." in text or "/" in text or os.path.isdir(text):
            return JobSpec(text, path=Path(text))
        names = [*list_sources(), *PRESETS]
        raise ConfigError(
            f"unknown jobs {text!r}{hint(name, names)}; expected a workload source ({', '.join(names)}), with options "
            "such as tpch:n=20, or the path of a file or folder of jobs"
        )
    preset = PRESETS.get(name, name)
    source = get_source(name if preset == name else preset.partition(":")[0])
    where = f"jobs {text!r}"
    first = source.options[0].name if source.options else None
    texts = split_options(text, first, name)[1]
    known = (*JOB_OPTIONS, *source.options)
    choices = read_options((split_options(preset)[1] if preset != name else {}) | texts, known, where)
    if missing := [option.name for option in source.options if option.required and option.name not in choices]:
        raise ConfigError(f"{where}: {missing[0]} is missing; expected {name}:{missing[0]}=VALUE")
    values = {option.name: choices.pop(option.name) for option in JOB_OPTIONS if option.name in choices}
    if texts.get("arrivals") == "batch":  # what a preset says about its stream is of no use then
        values = {key: value for key, value in values.items() if key in texts or key not in _STREAM_ONLY}
    if "interarrival_s" in texts:
        values = {key: value for key, value in values.items() if key in texts or key not in ("load", "executors")}
    _settle_arrivals(source, values, where)
    _settle_gap(source, values, choices, where)
    if (requests := values.get("requests", "none")) not in arrivals.REQUESTS:
        raise ConfigError(f"{where}: requests is {requests!r}; expected {' or '.join(arrivals.REQUESTS)}")
    return JobSpec(text, source=source, options=choices, **values)


def _settle_arrivals(source: WorkloadSource, values: dict[str, Any], where: str) -> None:
    """Fill in how jobs arrive, and refuse what contradicts it."""
    stream, traced = source.stream_arrivals, source.replay is not None
    still = "trace" if traced and "n" not in values else "batch"
    arriving = values.setdefault("arrivals", stream if set(_STREAM_ONLY) & set(values) else still)
    if arriving not in (kinds := ["batch", stream, *(["trace"] * traced)]):
        raise ConfigError(f"{where}: arrivals is {arriving!r}; expected {' or '.join(kinds)}")
    if arriving != stream and (stray := [key for key in _STREAM_ONLY if key in values]):
        raise ConfigError(f"{where}: {' and '.join(stray)} describe a stream; expected them with arrivals={stream}")


def _settle_gap(source: WorkloadSource, values: dict[str, Any], options: dict[str, Any], where: str) -> None:
    """Replace the text of the gap, or the load, by seconds."""
    load, executors = values.pop("load", None), values.pop("executors", None)
    if "interarrival_s" in values:
        values["interarrival_s"] = _range(values["interarrival_s"], f"{where}: interarrival_s")
        if load is not None:
            raise ConfigError(f"{where}: load and interarrival_s both set the arrival rate; expected one of them")
    if (load is None) != (executors is None):
        raise ConfigError(f"{where}: load and executors belong together, such as load=0.8,executors=10")
    if load is not None:
        loads = _range(load, f"{where}: load")
        several = isinstance(loads, tuple)
        gaps = [source.interarrival_s(each, executors, **options) for each in (loads[::-1] if several else (loads,))]
        values["interarrival_s"] = tuple(gaps) if several else gaps[0]


def resolve_sizes(
    sizes: str | Sequence[str], known: Sequence[str], groups: Mapping[str, Sequence[str]], label: str
) -> tuple[str, ...]:
    """List the names of sizes, groups of them replaced by their members.

    Args:
        sizes: One name, several as ``"2g+10g"``, or a list.
        known: All sizes.
        groups: Names that stand for several sizes.
        label: What the sizes are of, for the error message.

    Raises:
        WorkloadError: A size is unknown or none is given.
    """
    names = sizes.split("+") if isinstance(sizes, str) else sizes
    chosen = tuple(size for name in names for size in groups.get(name, (name,)))
    expected = f"expected {', '.join(groups)} or some of {', '.join(known)}"
    if not chosen:
        raise WorkloadError(f"no {label} size is given; {expected}")
    for size in chosen:
        if size not in known:
            raise WorkloadError(f"{label} size {size!r} is unknown; {expected}")
    return chosen


def resolve_queries(queries: str | Sequence[int]) -> tuple[int, ...]:
    """List the numbers of TPC-H queries, ranges replaced by their members.

    Args:
        queries: ``"all"``, numbers and ranges as ``"1-16+20"``, or a list of numbers.

    Raises:
        WorkloadError: One is none of 1 to 22, is given twice, or none is given.
    """
    if queries == "all":
        return QUERIES
    expected = f"expected 1 to {QUERIES[-1]}, each once, such as 1-16+20"
    numbers = {str(number): number for number in QUERIES}
    chosen: list[int] = []
    as_text = isinstance(queries, str)
    for query in queries.split("+") if as_text else queries:
        first, dash, last = str(query).partition("-")
        ends = [numbers.get(end) for end in (first, last if dash else first)]
        if isinstance(query, bool) or isinstance(query, str) != as_text or None in ends or ends[0] > ends[1]:
            raise WorkloadError(f"TPC-H query {query!r} is unknown; {expected}")
        chosen += range(ends[0], ends[1] + 1)
    if not chosen or len(set(chosen)) != len(chosen):
        raise WorkloadError(f"TPC-H queries {queries!r:.60}: one is given twice, or none; {expected}")
    return tuple(chosen)


def file_digest(path: Path) -> str:
    """SHA-256 of a file in hexadecimal."""
    return sha256(path.read_bytes()).hexdigest()


def _range(text: str, where: str) -> float | tuple[float, float]:
    """Read one number, or the two ends of a range such as ``20-45``."""
    low, dash, high = text.partition("-")
    if low and dash and not low.endswith(("e", "E")):
        return read_value(low, float, where), read_value(high, float, where)
    return read_value(text, float, where)
