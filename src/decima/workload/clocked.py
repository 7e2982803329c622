"""Workload source of two classes whose short jobs come in periodic bursts.

Every tick brings ``burst`` short jobs; long ones arrive as a Poisson process between them. How long a tick is follows
from the mean gap of all jobs, or from the load, and the share of long jobs.
"""

from __future__ import annotations

from hashlib import sha256

from decima.core.grammar import Option
from decima.workload.sources import WorkloadSource
from decima.workload.two_class import OPTIONS, TwoClasses

BURST = 20


def _classes(burst: int = BURST, share: float = 0.1, **options) -> TwoClasses:
    return TwoClasses(share=share, **options)


def _burst(burst: int = BURST, **options) -> int:
    return burst


def _digest(**options) -> str:
    return sha256(f"{_burst(**options)} {_classes(**options).digest()}".encode("ascii")).hexdigest()


SOURCE = WorkloadSource(
    "clocked",
    "two classes, short jobs on a clock",
    "two_class (by default with a share of 0.1) as a stream whose short jobs come in bursts at fixed gaps",
    lambda **options: _classes(**options).profiles(),
    _digest,
    options=(Option("burst", f"short jobs of every tick (default {BURST})", int), *OPTIONS),
    parts=lambda **options: _classes(**options).parts(),
    burst=_burst,
)
