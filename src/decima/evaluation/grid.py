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
from decima.core.system import SystemScheduler, SystemSettings, SystemWorkload, form_for, objective_of, system_of
from decima.evaluation.pool import RunPool
from decima.evaluation.tuning import TEST_SEED, TuneResult, describe_pool

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
    system = system_of(settings)
    objective = objective_of(system, metric)
    fixed = dict(fixed or {})
    if not grid:
        raise ConfigError("the grid is empty; expected values of one parameter at least, such as alpha=-1+0")
    if both := set(grid) & set(fixed):
        raise ConfigError(f"{', '.join(sorted(both))} is both in the grid and fixed; expected it once")
    count = int(np.prod([len(values) for values in grid.values()]))
    if count > MOST_CANDIDATES:
        raise ConfigError(f"the grid has {count:,} combinations; expected at most {MOST_CANDIDATES:,}")
    default = form_for(system.make_scheduler(name, **fixed), train)
    if not hasattr(default, "parameters"):
        raise ConfigError(f"scheduler {name} is not a compiled heuristic; only these can be tuned")
    points = [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]
    candidates = [system.make_scheduler(name, **(default.values | point)) for point in points]
    against = None if baseline is None else system.make_scheduler(baseline)
    label = baseline if isinstance(baseline, str) else getattr(against, "name", None)
    with RunPool(train, settings, seeds=train_seeds, workers=workers, backend=backend) as pool:
        scores = pool.measure(candidates, (objective,), progress=progress)[objective.column]
        loss = np.where(np.isnan(scores).any(axis=1), np.inf, objective.loss(scores.mean(axis=1)))
        best = candidates[int(np.argmin(loss))]
        policies = {"tuned": best, "default": default} | ({} if against is None else {label: against})
        train_scores = pool.measure(list(policies.values()), (objective,))[objective.column]
        about = {"train": describe_pool(pool), "test": None, "search": {"grid": files.plain(dict(grid))}}
    test_scores = ()
    if test is not None:
        seeds = range(TEST_SEED, TEST_SEED + len(test)) if test_seeds is None else test_seeds
        with RunPool(test, settings, seeds=seeds, workers=workers, backend=backend) as pool:
            test_scores = pool.measure(list(policies.values()), (objective,))[objective.column]
            about["test"] = describe_pool(pool)
    column = objective.with_unit("mean")
    return TuneResult(
        scheduler=name,
        parameters=dict(best.values),
        tuned=tuple(grid),
        objective=objective,
        settings=settings,
        train=dict(zip(policies, train_scores, strict=True)),
        test=dict(zip(policies, test_scores, strict=bool(len(test_scores)))),
        baseline=None if against is None else label,
        curve=[point | {column: float(np.mean(row))} for point, row in zip(points, scores, strict=True)],
        about=about,
    )


def grid_table(result: TuneResult) -> pandas.DataFrame:
    """Table of a grid search: its parameters and the mean score on training workloads."""
    import pandas

    return pandas.DataFrame(result.curve)
