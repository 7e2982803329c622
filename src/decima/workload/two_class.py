"""Jobs of two classes, long and short, for questions about order and idling.

A job's length is its work, the time it takes on one executor. It is one task, or that much work in several tasks of one
stage, or of the stages of a random DAG. Durations are the same in every wave and at every parallelism.

Source: Duan and Wu, "Improving Learning-Based DAG Scheduling by Inserting Deliberate Idle Slots", long jobs of 50 s or
normally distributed lengths, short ones of 10 s. Differs: shares, DAGs and widths are not given there; a normal
distribution is ``VARIANTS`` equally likely lengths here, so that all workloads of some options share their profiles.
"""

import functools
import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields
from hashlib import sha256
from statistics import NormalDist

import numpy as np

from decima.core.checks import is_number, is_whole
from decima.core.errors import ConfigError
from decima.core.grammar import Option
from decima.workload.arrivals import Part
from decima.workload.profile import JobProfile, Stage, frozen
from decima.workload.sources import SIZES, WorkloadSource, get_source
from decima.workload.synthetic import SyntheticParameters, random_dag

ORIGIN = "two-class"
VARIANTS = 100  # profiles of a class whose lengths or DAGs differ
OPTIONS = (
    Option("long_s", "length of long jobs in executor seconds, or its mean (default 50)", float),
    Option("short_s", "length of short jobs in executor seconds (default 10)", float),
    Option("share", "part of the jobs that are long (default 0.5)", float),
    Option("sigma_s", "standard deviation of the lengths of long jobs, normally distributed (default 0)", float),
    Option("stages", "mean number of stages of a random DAG; 1: a single stage (default 1)", int),
    Option("tasks", "tasks of every stage, equally long (default 1)", int),
)
_LONGEST_S = 1e9


@dataclass(frozen=True)
class TwoClasses:
    """Parameters of the generator.

    Raises:
        ConfigError: One is out of range.
    """

    long_s: float = 50.0  # mean length of long jobs in executor seconds
    short_s: float = 10.0  # length of short jobs in executor seconds
    share: float = 0.5  # part of the jobs that are long
    sigma_s: float = 0.0  # standard deviation of the length of long jobs; lengths at or below 0 are drawn again
    stages: int = 1  # mean number of stages of a random DAG; 1: a single stage
    tasks: int = 1  # tasks of every stage

    def __post_init__(self) -> None:
        for name, most in (("stages", 100), ("tasks", 1_000_000)):
            value = getattr(self, name)
            if not is_whole(value) or not 1 <= value <= most:
                raise ConfigError(f"{name} is {value!r}; expected a whole number from 1 to {most:,}")
        for name in ("long_s", "short_s"):
            value = getattr(self, name)
            if not is_number(value) or not 0.001 <= value <= _LONGEST_S:
                raise ConfigError(f"{name} is {value!r}; expected a length from 0.001 to {_LONGEST_S:g} seconds")
        if not is_number(self.share) or not 0.0 <= self.share <= 1.0:
            raise ConfigError(f"share is {self.share!r}; expected the part of jobs that are long, from 0 to 1")
        if not is_number(self.sigma_s) or not 0.0 <= self.sigma_s <= self.long_s:
            raise ConfigError(
                f"sigma_s is {self.sigma_s!r}; expected a standard deviation from 0 to the mean, {self.long_s:g} s"
            )

    def profiles(self) -> tuple[JobProfile, ...]:
        """Profiles of long jobs, by length, then those of short ones; always the same objects."""
        return _profiles(float(self.long_s), float(self.short_s), float(self.sigma_s), self.stages, self.tasks)

    def parts(self) -> tuple[Part, Part]:
        """Long and short jobs among :meth:`profiles`."""
        short = VARIANTS if self.stages > 1 else 1
        share = float(self.share)
        return Part(share, len(self.profiles()) - short), Part(1.0 - share, short)

    def digest(self) -> str:
        """SHA-256 of the parameters, which determine profiles and parts."""
        values = [(field.name, float(getattr(self, field.name))) for field in fields(self)]
        return sha256(repr((VARIANTS, values, astuple(SyntheticParameters()))).encode("ascii")).hexdigest()


@functools.lru_cache(maxsize=32)
def _profiles(long_s: float, short_s: float, sigma_s: float, stages: int, tasks: int) -> tuple[JobProfile, ...]:
    dag = stages > 1
    long = _lengths_ms(long_s, sigma_s)
    if dag and len(long) == 1:
        long *= VARIANTS
    short = [1000.0 * short_s] * (VARIANTS if dag else 1)
    return tuple(
        _profile(name, number, length_ms, len(lengths), stages, tasks)
        for name, lengths in (("long", long), ("short", short))
        for number, length_ms in enumerate(lengths)
    )


def _lengths_ms(mean_s: float, sigma_s: float) -> list[float]:
    """Equally likely lengths in whole ms: midpoints of ``VARIANTS`` parts of the distribution."""
    if sigma_s == 0.0:
        return [1000.0 * mean_s]
    normal = NormalDist(mean_s, sigma_s)
    below = normal.cdf(0.0)
    middles = (below + (1.0 - below) * (number + 0.5) / VARIANTS for number in range(VARIANTS))
    return [max(float(round(1000.0 * normal.inv_cdf(middle))), 1.0) for middle in middles]


def _profile(name: str, number: int, length_ms: float, variants: int, stages: int, tasks: int) -> JobProfile:
    parents: list[tuple[int, ...]] = [()]
    parts = np.ones(1)
    if stages > 1:
        # A generator of its own for every profile: shapes depend on no length, share or number of tasks.
        rng = np.random.default_rng([number, int(name == "long")])
        parents = random_dag(rng, SyntheticParameters(mean_stages=stages, min_stages=2, max_stages=2 * stages))
        parts = rng.uniform(0.5, 1.5, len(parents))
    works = length_ms * (parts / math.fsum(parts.tolist()))
    profile_stages = []
    for index, (work_ms, above) in enumerate(zip(works.tolist(), parents, strict=True)):
        wave = (frozen(np.array([work_ms / tasks])),)
        profile_stages.append(Stage(str(index), tasks, above, (1,), wave, wave, wave))
    return JobProfile(name if variants == 1 else f"{name}-{number:03d}", tuple(profile_stages), ORIGIN)


SOURCE = WorkloadSource(
    "two_class",
    "two classes of jobs",
    "long and short jobs of given lengths, one task each or random DAGs",
    lambda **options: TwoClasses(**options).profiles(),
    lambda **options: TwoClasses(**options).digest(),
    options=OPTIONS,
    parts=lambda **options: TwoClasses(**options).parts(),
)

# ---- short jobs on a clock ------------------------------------------------------------------------------------------
# Every tick brings ``burst`` short jobs; long ones arrive as a Poisson process between them. How long a tick is follows
# from the mean gap of all jobs, or from the load, and the share of long jobs.

BURST = 20


def _classes(burst: int = BURST, share: float = 0.1, **options) -> TwoClasses:
    return TwoClasses(share=share, **options)


def _burst(burst: int = BURST, **options) -> int:
    return burst


def _digest(**options) -> str:
    return sha256(f"{_burst(**options)} {_classes(**options).digest()}".encode("ascii")).hexdigest()


CLOCKED = WorkloadSource(
    "clocked",
    "two classes, short jobs on a clock",
    "two_class (by default with a share of 0.1) as a stream whose short jobs come in bursts at fixed gaps",
    lambda **options: _classes(**options).profiles(),
    _digest,
    options=(Option("burst", f"short jobs of every tick (default {BURST})", int), *OPTIONS),
    parts=lambda **options: _classes(**options).parts(),
    burst=_burst,
)


# ---- jobs of two classes mixed with TPC-H queries (Duan and Wu) ------------------------------------------------------


BASES = ("tpch", "embedded", "measured", "synthetic")


def _base(base: str = "tpch") -> WorkloadSource:
    if base not in BASES:
        raise ConfigError(f"base is {base!r}; expected {', '.join(BASES[:-1])} or {BASES[-1]}")
    return get_source(base)


def _alpha(alpha: float = 0.5) -> float:
    if not is_number(alpha) or not 0.0 <= alpha <= 1.0:
        raise ConfigError(f"alpha is {alpha!r}; expected the part of jobs of the two classes, from 0 to 1")
    return float(alpha)


def mixed_profiles(
    sizes: str | Sequence[str] = "paper", alpha: float = 0.5, base: str = "tpch", **options
) -> tuple[JobProfile, ...]:
    """Profiles of the two classes, then those of the other source.

    Source: Duan and Wu, the mixed dataset with the share alpha of synthetic jobs. Differs: what the other jobs are is a
    choice, the published TPC-H profiles by default, which have no size of 1 GB.

    Args:
        sizes: Sizes of the other source's jobs.
        alpha: Part of the jobs that are of the two classes.
        base: The other source, one of ``BASES``.
        **options: Fields of :class:`decima.workload.two_class.TwoClasses`.

    Raises:
        ConfigError: An option is out of range.
        WorkloadError: There is no such size.
        DataUnavailableError: The data of the other source is not on this machine.
    """
    _alpha(alpha)
    return TwoClasses(**options).profiles() + _base(base).profiles(sizes=sizes)


def _mixed_parts(
    sizes: str | Sequence[str] = "paper", alpha: float = 0.5, base: str = "tpch", **options
) -> tuple[Part, ...]:
    part = _alpha(alpha)
    ours = (Part(part * each.probability, each.count) for each in TwoClasses(**options).parts())
    return (*ours, Part(1.0 - part, len(_base(base).profiles(sizes=sizes))))


def _mixed_digest(alpha: float = 0.5, base: str = "tpch", **options) -> str:
    text = f"{_alpha(alpha)!r} {TwoClasses(**options).digest()} {_base(base).digest()}"
    return sha256(text.encode("ascii")).hexdigest()


MIXED = WorkloadSource(
    "mixed",
    "two classes and TPC-H",
    "jobs of two_class and, for the rest, of another source",
    mixed_profiles,
    _mixed_digest,
    options=(
        Option("alpha", "part of the jobs that are of the two classes (default 0.5)", float),
        Option("base", f"source of the others: {', '.join(BASES)} (default tpch)"),
        SIZES,
        *OPTIONS,
    ),
    available=lambda: get_source("tpch").available(),
    parts=_mixed_parts,
)
