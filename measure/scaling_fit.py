"""Fit of `measure.scaling_model` to measured profiles: exponents, intervals, hold-out errors.

Every effect is an exponent per query, b_q, drawn from a normal population: b_q ~ N(b, s²). Slopes within cells that
differ in nothing else give an estimate and a variance per query, and b and s follow by restricted maximum likelihood.
The more uncertain the estimate of a query is, the more its exponent is drawn to b. With four executor counts and three
scales a query says little on its own. Intervals come from a bootstrap over queries.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np
import pandas

from decima.workload.measured import parse_name
from decima.workload.profile import WAVES
from measure.scaling_model import KINDS, Pooled, ScalingModel, stage_kinds

if TYPE_CHECKING:
    from decima.workload.profile import JobProfile

BOOTSTRAP = 1000
SEED = 0
# Weight of a cell: its number of durations, up to this many, for beyond it runs differ more than the tasks of a run do.
FULL_WEIGHT = 20
_CELL = ["query", "stage", "scale", "wave"]


def cells(profiles: Iterable[JobProfile]) -> pandas.DataFrame:
    """Tabulate mean durations, one row per query, stage, scale, wave and level.

    Columns: those names, `kind` (`"growing"` or `"fixed"`), `num_tasks`, `count` (durations), `mean_ms`, `log_ms`,
    `weight`.

    Args:
        profiles: named as by `decima.workload.measured.profile_name`, each query at two scales or more.
    """
    by_query: dict[int, dict[float, JobProfile]] = {}
    for profile in profiles:
        query, scale = parse_name(profile.name)
        by_query.setdefault(query, {})[scale] = profile
    rows = []
    for query, of_scale in by_query.items():
        kinds = stage_kinds(of_scale[min(of_scale)], of_scale[max(of_scale)])
        for scale, profile in of_scale.items():
            for number, (stage, growth) in enumerate(zip(profile.stages, kinds, strict=True)):
                for wave in WAVES:
                    for level, values in zip(stage.levels, getattr(stage, wave), strict=True):
                        if len(values):
                            cell = (query, number, scale, wave, level, growth, stage.num_tasks)
                            rows.append((*cell, len(values), values.mean()))
    table = pandas.DataFrame(
        rows, columns=["query", "stage", "scale", "wave", "level", "kind", "num_tasks", "count", "mean_ms"]
    )
    table["log_ms"] = np.log(table["mean_ms"])
    table["weight"] = np.minimum(table["count"], FULL_WEIGHT) / FULL_WEIGHT
    return table


def fit(table: pandas.DataFrame, bootstrap: int = BOOTSTRAP) -> ScalingModel:
    """Estimate all exponents.

    Returns:
        The model, without the overhead of a task, of which profiles say nothing.
    """
    parallelism = {wave: pooled_exponents(table[table["wave"] == wave], "level", _CELL, bootstrap) for wave in WAVES}
    # New executors were measured at few executor counts, or one; what cannot be told is that of the first tasks.
    if table[table["wave"] == "fresh"]["level"].nunique() < 2:
        parallelism["fresh"] = parallelism["first"]
    # Fresh tasks are those of a cold executor, whose time says little about the input.
    warm = table[table["wave"] != "fresh"]
    group = ["query", "stage", "level", "wave"]
    size = {growth: pooled_exponents(warm[warm["kind"] == growth], "scale", group, bootstrap) for growth in KINDS}
    return ScalingModel(parallelism, size, overhead_ms=0.0)


def pooled_exponents(table: pandas.DataFrame, variable: str, group: list[str], bootstrap: int = BOOTSTRAP) -> Pooled:
    """Estimate the exponent of one variable, pooled over queries, with intercepts per group.

    Args:
        table: rows of `cells`.
        variable: column whose exponent is wanted.
        group: columns that tell rows apart which differ in that variable alone; the first is `query`.
        bootstrap: draws behind the interval.

    Returns:
        The exponents; zeros where the variable has a single value.
    """
    if table[variable].nunique() < 2:
        return Pooled(0.0, 0.0, 0.0, 0.0, 0.0)
    keys = [table[name] for name in group]
    weight = table["weight"].to_numpy()
    total = table["weight"].groupby(keys).transform("sum")

    def centred(values: pandas.Series) -> np.ndarray:
        return (values - (values * table["weight"]).groupby(keys).transform("sum") / total).to_numpy()

    x, y = centred(np.log(table[variable])), centred(table["log_ms"])
    query = table["query"].to_numpy()
    names = np.unique(query)
    sums = np.array([
        [np.sum(part) for part in (weight[of] * x[of] ** 2, weight[of] * x[of] * y[of])]
        for of in (query == name for name in names)
    ])  # fmt: skip
    names, (sxx, sxy) = names[sums[:, 0] > 0], sums[sums[:, 0] > 0].T
    slopes = sxy / sxx
    of_row = pandas.Series(slopes, index=names).reindex(query).fillna(0.0).to_numpy()
    freedom = len(table) - table.groupby(group).ngroups - len(names)
    noise = float(np.sqrt(np.sum(weight * (y - of_row * x) ** 2) / freedom))
    variances = noise**2 / sxx
    mean, spread = population(slopes, variances)
    share = spread**2 / (spread**2 + variances)
    rng = np.random.default_rng(SEED)
    draws = rng.integers(len(slopes), size=(bootstrap, len(slopes)))
    means = [population(slopes[draw], variances[draw])[0] for draw in draws]
    low, high = np.percentile(means, [2.5, 97.5])
    shrunk = mean + share * (slopes - mean)
    return Pooled(
        mean,
        float(low),
        float(high),
        spread,
        noise,
        {int(name): float(one) for name, one in zip(names, shrunk, strict=True)},
    )


def population(estimates: np.ndarray, variances: np.ndarray) -> tuple[float, float]:
    """Estimate mean and standard deviation of a normal population from noisy values.

    Args:
        estimates: float64 [units].
        variances: of the estimates, float64 [units].
    """
    from scipy.optimize import minimize_scalar

    def mean_at(spread: float) -> float:
        return float(np.average(estimates, weights=1.0 / (spread**2 + variances)))

    def loss(spread: float) -> float:
        of = spread**2 + variances
        return float(np.sum(np.log(of) + (estimates - mean_at(spread)) ** 2 / of) + np.log(np.sum(1.0 / of)))

    spread = float(minimize_scalar(loss, bounds=(0.0, 2.0), method="bounded", options={"xatol": 1e-5}).x)
    return mean_at(spread), spread


def predict(
    model: ScalingModel, known: pandas.DataFrame, asked: pandas.DataFrame, variable: str, forms: Mapping[str, float]
) -> pandas.DataFrame:
    """Predict cells from others that differ in one variable.

    Args:
        model: fitted to `known`.
        known: cells to predict from.
        asked: cells to predict.
        variable: `"level"` or `"scale"`.
        forms: further models by name: the same exponent for all.

    Returns:
        The rows of `asked` that have a known cell, with a column of log errors (measured over predicted) per model:
        `model`, and the given names.
    """
    group = [*_CELL, "level"]
    group.remove(variable)
    reference = known.assign(
        at=known["weight"] * np.log(known[variable]), value=known["weight"] * known["log_ms"]
    ).groupby(group)[["weight", "at", "value"]].sum()  # fmt: skip
    rows = asked.merge(reference, left_on=group, right_index=True, suffixes=("", "_known"))
    distance = np.log(rows[variable]) - rows["at"] / rows["weight_known"]
    if variable == "level":
        exponent = [model.parallelism[row.wave].value(row.query) for row in rows.itertuples()]
    else:
        exponent = [0.0] * len(rows)  # the model knows no effect of the scale on a task
    start = rows["value"] / rows["weight_known"]
    for name, exponents in {"model": np.array(exponent), **forms}.items():
        rows[name] = rows["log_ms"] - start - exponents * distance
    return rows.drop(columns=["at", "value", "weight_known"])


def residuals(model: ScalingModel, table: pandas.DataFrame) -> pandas.DataFrame:
    """Log of measured over fitted duration per cell.

    Cells that are the only one of their query, stage and wave are left out: they fit whatever the model says.
    """
    expected = np.log([
        model.factor(row.query, row.wave, row.level) for row in table.itertuples()
    ])  # fmt: skip
    left = table["log_ms"] - expected
    keys = [table["query"], table["stage"], table["wave"]]
    level = (left * table["weight"]).groupby(keys).transform("sum") / table["weight"].groupby(keys).transform("sum")
    together = left.groupby(keys).transform("size") > 1
    return table.assign(residual=left - level)[together]
