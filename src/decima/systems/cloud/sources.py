"""Texts that say which jobs are to be placed.

``generated`` (the default, in the package), ``generated:pattern=burst,n=200``; ``normal`` and ``burst``, the published
traces; ``redrawn:trace=burst`` for jobs drawn from them; or the path of a csv file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from decima.core.grammar import Option, read_options, split_options
from decima.core.registry import Registry, options_of
from decima.systems.cloud.generator import PATTERNS, Generator, redrawn
from decima.systems.cloud.workload import PlacementWorkload, load_jobs


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
    from decima.systems.cloud.traces import load_trace

    return load_trace(trace)


def _redrawn(seed: int, trace: str = "normal", interarrival_s: float | None = None) -> PlacementWorkload:
    return redrawn(_published(trace), PATTERNS[trace] if interarrival_s is None else interarrival_s, seed)


_GAP = Option("interarrival_s", "mean gap of the Poisson arrivals in seconds", float)
SOURCES: Registry[Source] = Registry(
    "source of jobs",
    others="or the path of a .csv file",
    group="decima.cloud.sources",
    adopt=lambda name, make: Source(name, (make.__doc__ or "").split("\n")[0], make, options_of(make, "seed")),
)
_SOURCES = (
    Source(
        "generated",
        "jobs drawn from documented distributions; in the package, needs no network",
        _generated,
        (
            Option("pattern", "normal (50 jobs, gaps of 60 s) or burst (100 jobs, 6 s)"),
            Option("n", "number of jobs", int),
            _GAP,
        ),
    ),
    Source(
        "normal",
        "the published trace with normal arrivals, 50 jobs",
        lambda seed: _published("normal"),
        drawn=False,
    ),
    Source(
        "burst",
        "the published trace with burst arrivals, 100 jobs",
        lambda seed: _published("burst"),
        drawn=False,
    ),
    Source(
        "redrawn",
        "jobs drawn from a published trace, Poisson arrivals: held-out traces",
        _redrawn,
        (Option("trace", "normal or burst"), _GAP),
    ),
)
for _source in _SOURCES:
    SOURCES.add(_source.name, _source)


@dataclass(frozen=True)
class JobsSpec:
    """Which jobs a text means."""

    text: str
    make: Callable[[int], PlacementWorkload]
    drawn: bool  # whether another seed gives other jobs
    path: Path | None = None  # the file, if it is one

    def workload(self, seed: int = 0) -> PlacementWorkload:
        """The jobs of a seed."""
        return self.make(seed)

    def workloads(self, seeds: Iterable[int]) -> list[PlacementWorkload]:
        """The jobs of several seeds; of a file or trace the same each time."""
        if not self.drawn:
            workload = self.make(0)
            return [workload for _ in seeds]
        return [self.make(seed) for seed in seeds]


def parse_placement_jobs(text: str) -> JobsSpec:
    """Read a text that says which jobs are meant.

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
    return JobsSpec(text, lambda seed: source.make(seed, **options), source.drawn)
