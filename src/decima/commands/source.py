"""Where the jobs of a command come from: a file, or a kind of workload drawn by seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from decima.commands import options
from decima.exceptions import ConfigError

if TYPE_CHECKING:
    from decima.workload.jobs import Workload

# Where profiles come from: module of decima.workload, which has functions <name>_batch and <name>_poisson.
SOURCES = ("tpch", "embedded", "measured", "synthetic")
KINDS = tuple(f"{source}-{arrivals}" for source in SOURCES for arrivals in ("batch", "poisson"))


@dataclass(frozen=True)
class JobSource:
    """The options that choose a workload; None is an option that was not given.

    Raises:
        ConfigError: options contradict each other, or the kind is unknown.
    """

    file: options.JobsFile = None
    kind: options.Kind = None
    n: options.NumJobs = None
    interarrival_s: options.InterarrivalS = None
    initial: options.Initial = None
    sizes: options.Sizes = None

    def __post_init__(self) -> None:
        optional = {
            "--kind": self.kind,
            "--n": self.n,
            "--interarrival-s": self.interarrival_s,
            "--initial": self.initial,
            "--sizes": self.sizes,
        }
        given = [name for name, value in optional.items() if value is not None]
        if self.file is not None and given:
            raise ConfigError(f"{', '.join(given)} cannot be combined with the workload file {self.file}")
        if self.file is None and self.resolved_kind not in KINDS:
            raise ConfigError(f"unknown kind of workload {self.kind!r}; expected one of {', '.join(KINDS)}")
        if not self.streaming:
            for name in ("--interarrival-s", "--initial"):
                if name in given:
                    raise ConfigError(f"{name} has no meaning for {self.resolved_kind}; it describes a Poisson stream")

    @property
    def resolved_kind(self) -> str:
        """The kind to draw when there is no file."""
        return self.kind or KINDS[0]

    @property
    def streaming(self) -> bool:
        """Whether a Poisson stream is to be drawn."""
        return self.file is None and self.resolved_kind.endswith("-poisson")

    def workload(self, seed: int) -> Workload:
        """Read the file, or draw the workload of this seed.

        Raises:
            DecimaError: the file or an option is not as expected, or the data is missing.
        """
        from decima import workload

        if self.file is not None:
            return workload.load(self.file)
        sizes: str | list[str] = "paper" if self.sizes is None else self.sizes
        if "," in sizes:
            sizes = [size.strip() for size in sizes.split(",")]
        n = 20 if self.n is None else self.n
        draw = getattr(workload, self.resolved_kind.replace("-", "_"))
        if not self.streaming:
            return draw(n, seed, sizes)
        interarrival_s = 25.0 if self.interarrival_s is None else self.interarrival_s
        return draw(n, interarrival_s, seed, sizes, 1 if self.initial is None else self.initial)

    def workloads(self, seeds: Sequence[int]) -> list[Workload]:
        """One workload per seed; a file is read once and stands for all of them."""
        if self.file is not None:
            return [self.workload(0)] * len(seeds)
        return [self.workload(seed) for seed in seeds]


def count(number: int, word: str) -> str:
    """`1 job`, `20 jobs`."""
    return f"{number:,} {word}{'' if number == 1 else 's'}"
