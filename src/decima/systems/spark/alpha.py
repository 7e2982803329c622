"""The tuned weighted fair baseline: the whole curve over alpha in one call.

Source: §7.1 (5): alpha from -2 to 2 in steps of 0.1; §7.2 takes the best alpha for each experiment.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from decima.core.errors import ConfigError
from decima.evaluation.pool import RunPool
from decima.systems.spark.schedulers import Scheduler, make_scheduler
from decima.systems.spark.settings import Settings
from decima.workload.jobs import Workload

if TYPE_CHECKING:
    import pandas

ALPHAS = tuple(round(0.1 * step, 1) for step in range(-20, 21))
# (sticky, stage_rule, order) as ``weighted_fair`` takes them. Runnable stages in order were better than both critical
# path rules in every setting we tried, so only they are tried with the other order of jobs.
VARIANTS = ((1, 0, 0), (0, 0, 0))
ALL_VARIANTS = (*((sticky, rule, 0) for sticky in (1, 0) for rule in (0, 1, 2)), (1, 0, 1), (0, 0, 1))
_SETTING = ["sticky", "stage_rule", "order", "alpha"]


@dataclass(frozen=True, eq=False)
class AlphaSweep:
    """Scores of weighted fair over alpha and variants."""

    # One row per setting and workload: alpha, sticky, stage_rule, order, seed, avg_jct_s. The seed names the workload.
    table: pandas.DataFrame = field(repr=False)
    settings: Settings  # the cluster

    def curve(self) -> pandas.DataFrame:
        """Table of mean scores over the workloads: sticky, stage_rule, order, alpha, avg_jct_s, sem_s."""
        groups = self.table.groupby(_SETTING, sort=True)["avg_jct_s"]
        return groups.agg(avg_jct_s="mean", sem_s="sem").reset_index()

    def best(self) -> dict[str, float]:
        """The single setting with the lowest mean over all workloads, as parameters of ``weighted_fair``."""
        row = self.curve().sort_values("avg_jct_s", kind="stable").iloc[0]
        return {"alpha": float(row.alpha)} | {name: int(row[name]) for name in _SETTING[:3]}

    def scheduler(self) -> Scheduler:
        """``weighted_fair`` with the best single setting."""
        return make_scheduler("weighted_fair", **self.best())

    def per_workload(self) -> pandas.DataFrame:
        """Best setting of each workload ("on each experiment"): seed, setting, avg_jct_s.

        This is a choice in hindsight: it sees the very durations it is scored on.
        """
        rows = self.table.groupby("seed", sort=False)["avg_jct_s"].idxmin()
        return self.table.loc[rows, ["seed", *_SETTING, "avg_jct_s"]].reset_index(drop=True)


def alpha_sweep(
    workloads: Sequence[Workload],
    settings: Settings,
    alphas: Sequence[float] = ALPHAS,
    variants: Sequence[tuple[int, ...]] = VARIANTS,
    seeds: Sequence[int] | None = None,
    *,
    workers: int | None = None,
    backend: str | None = None,
    progress: str | None = None,
) -> AlphaSweep:
    """Run weighted fair with every alpha and variant on every workload.

    Args:
        workloads: What to run.
        settings: The cluster.
        alphas: Exponents of a job's total work, 41 values from -2 to 2 by default.
        variants: (sticky, stage_rule) or (sticky, stage_rule, order) of ``weighted_fair``, all eight in
            ``ALL_VARIANTS``.
        seeds: One seed per workload, all different; 0, 1, ... by default.
        workers: Workers, all cores by default. The result does not depend on it.
        backend: See :func:`decima.evaluation.workers.make_workers`. The result does not depend on it.
        progress: Label of a progress bar; None for no bar.

    Raises:
        ConfigError: A list is empty, or a value is out of range or given twice.
    """
    import pandas

    grid = [(float(alpha), *(int(part) for part in (*variant, 0)[:3])) for variant in variants for alpha in alphas]
    if not grid:
        raise ConfigError("no alpha or no variant given; expected at least one of each")
    if len(set(grid)) != len(grid):
        raise ConfigError("an alpha or a variant is given twice")
    runs = RunPool(workloads, settings, seeds=seeds, workers=workers, backend=backend, keep=False)
    if len(set(runs.seeds)) != len(runs):
        raise ConfigError("a seed is given twice; expected different ones")
    names = ("alpha", "sticky", "stage_rule", "order")
    schedulers = [make_scheduler("weighted_fair", **dict(zip(names, setting, strict=True))) for setting in grid]
    with runs:
        scores = runs.measure(schedulers, progress=progress)["avg_jct_s"]
    columns = [np.repeat(column, len(runs)) for column in zip(*grid, strict=True)]
    frame = dict(zip(names, columns, strict=True)) | {"seed": np.tile(runs.seeds, len(grid))}
    return AlphaSweep(pandas.DataFrame(frame | {"avg_jct_s": scores.ravel()}), settings)
