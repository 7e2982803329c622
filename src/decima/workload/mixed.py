"""Workload source that mixes two classes of jobs with TPC-H queries.

Source: Duan and Wu, the mixed dataset with the share alpha of synthetic jobs. Differs: what the other jobs are is a
choice, the published TPC-H profiles by default, which have no size of 1 GB.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

from decima.core.checks import is_number
from decima.core.errors import ConfigError
from decima.core.grammar import Option
from decima.workload.arrivals import Part
from decima.workload.profile import JobProfile
from decima.workload.sources import SIZES, WorkloadSource, get_source
from decima.workload.two_class import OPTIONS, TwoClasses

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


def _parts(sizes: str | Sequence[str] = "paper", alpha: float = 0.5, base: str = "tpch", **options) -> tuple[Part, ...]:
    part = _alpha(alpha)
    ours = (Part(part * each.probability, each.count) for each in TwoClasses(**options).parts())
    return (*ours, Part(1.0 - part, len(_base(base).profiles(sizes=sizes))))


def _digest(alpha: float = 0.5, base: str = "tpch", **options) -> str:
    text = f"{_alpha(alpha)!r} {TwoClasses(**options).digest()} {_base(base).digest()}"
    return sha256(text.encode("ascii")).hexdigest()


SOURCE = WorkloadSource(
    "mixed",
    "two classes and TPC-H",
    "jobs of two_class and, for the rest, of another source",
    mixed_profiles,
    _digest,
    options=(
        Option("alpha", "part of the jobs that are of the two classes (default 0.5)", float),
        Option("base", f"source of the others: {', '.join(BASES)} (default tpch)"),
        SIZES,
        *OPTIONS,
    ),
    available=lambda: get_source("tpch").available(),
    parts=_parts,
)
