"""Grid search over parameters of a heuristic, as in appendix F for Graphene*."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from decima.core import files
from decima.core.errors import ConfigError
from decima.core.grammar import key_values, read_value
from decima.core.objectives import Objective
from decima.core.system import SystemScheduler, SystemSettings, SystemWorkload
from decima.evaluation.tuning import Fit, TuneResult

if TYPE_CHECKING:
    import pandas

MOST_CANDIDATES = 100_000


def read_grid(text: str) -> dict[str, list[float]]:
    """Read a grid: ``alpha=-1+-0.5+0,larger=0+1``.

    Raises:
        ConfigError: The text is not of that form, or a value is given twice.
    """
    grid = {}
    for name, values in key_values(text.split(","), f"grid {text!r}").items():
        grid[name] = [read_value(value, float, f"grid {text!r}: {name}") for value in values.split("+")]
        if len(set(grid[name])) < len(grid[name]):
            raise ConfigError(f"grid {text!r}: a value of {name} is given twice")
    return grid


def grid_search(
    name: str,
    train: Sequence[SystemWorkload],
    settings: SystemSettings,
    grid: Mapping[str, Sequence[float]],
    *,
    test: Sequence[SystemWorkload] | None = None,
    train_seeds: Sequence[int] | None = None,
    test_seeds: Sequence[int] | None = None,
    metric: str | Objective = "avg_jct",
    fixed: Mapping[str, float] | None = None,
    baseline: str | SystemScheduler | None = None,
    workers: int | None = None,
    backend: str | None = None,
    progress: str | None = None,
) -> TuneResult:
    """Try every combination of some values of a compiled heuristic's parameters.

    All combinations meet the same workloads with the same seeds. The first of the best wins.

    Args:
        name: Name of the scheduler.
        train: Workloads to score the combinations on.
        settings: The cluster, or the settings of another system.
        grid: Values by parameter.
        test: Held-out workloads.
        train_seeds: One seed per training workload, 0, 1, ... by default.
        test_seeds: One seed per test workload, 1000000, ... by default.
        metric: Name of the objective.
        fixed: Values of other parameters.
        baseline: Scheduler to compare with.
        workers: Workers, all cores by default. The result does not depend on it.
        backend: Where the workers are.
        progress: Label of a progress bar; None for no bar.

    Returns:
        The best combination; ``curve`` has a row per combination, see :func:`grid_table`.

    Raises:
        UnknownSchedulerError: No such scheduler.
        ConfigError: It has no such parameter, a value is out of range, or there are too many combinations.
    """
    if not grid:
        raise ConfigError("the grid is empty; expected values of one parameter at least, such as alpha=-1+0")
    if both := set(grid) & set(fixed or {}):
        raise ConfigError(f"{', '.join(sorted(both))} is both in the grid and fixed; expected it once")
    count = int(np.prod([len(values) for values in grid.values()]))
    if count > MOST_CANDIDATES:
        raise ConfigError(f"the grid has {count:,} combinations; expected at most {MOST_CANDIDATES:,}")
    fit = Fit(name, train, settings, metric, fixed, baseline, test, train_seeds, test_seeds, workers, backend)
    points = [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]
    candidates = [fit.candidate(point) for point in points]
    with fit.train:
        scores = fit.scores(fit.train, candidates, progress)
        best = candidates[int(np.argmin(fit.losses(scores)))]
        column = fit.objective.with_unit("mean")
        curve = [point | {column: float(np.mean(row))} for point, row in zip(points, scores, strict=True)]
        return fit.result(best, list(grid), curve, {"grid": files.plain(dict(grid))})


def grid_table(result: TuneResult) -> pandas.DataFrame:
    """Table of a grid search: its parameters and the mean score on training workloads."""
    import pandas

    return pandas.DataFrame(result.curve)
