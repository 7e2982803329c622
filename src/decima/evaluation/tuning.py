"""Fitting of a heuristic's parameters by CMA-ES on training workloads, scored on held-out ones.

Every candidate meets the same workloads with the same seeds (common random numbers), so candidates differ by their
parameters alone and the result depends on the arguments only, not on the number of threads.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from decima.core import files
from decima.core.decision import Parameter
from decima.core.errors import ConfigError
from decima.core.objectives import Objective
from decima.core.progress import progress_bar
from decima.core.system import SystemScheduler, SystemSettings, SystemWorkload, form_for, objective_of, system_of
from decima.evaluation.cma_search import minimize
from decima.evaluation.pool import RunPool
from decima.evaluation.statistics import mean_interval, paired_change

if TYPE_CHECKING:
    import pandas

# First step of the search, as a part of each parameter's range.
FIRST_STEP = 0.15
# Test workloads have seeds of their own unless given.
TEST_SEED = 1_000_000


class Scaling:
    """Map between parameters and numbers from 0 to 1.

    It is logarithmic where the range of the parameter is positive and spans a factor of ten or more.
    """

    def __init__(self, parameters: Sequence[Parameter]) -> None:
        self.parameters = tuple(parameters)

    @staticmethod
    def _logarithmic(parameter: Parameter) -> bool:
        return parameter.low > 0.0 and parameter.high >= 10.0 * parameter.low

    def encode(self, values: Mapping[str, float]) -> np.ndarray:
        """Turn values by name into float64 [parameters] from 0 to 1."""
        unit = []
        for parameter in self.parameters:
            low, high, value = parameter.low, parameter.high, float(values[parameter.name])
            if self._logarithmic(parameter):
                unit.append(math.log(value / low) / math.log(high / low))
            else:
                unit.append((value - low) / (high - low))
        return np.array(unit)

    def decode(self, unit: np.ndarray) -> dict[str, float]:
        """Turn numbers from 0 to 1 into values by name, inside their bounds."""
        values = {}
        for parameter, part in zip(self.parameters, unit, strict=True):
            low, high = parameter.low, parameter.high
            value = low * (high / low) ** part if self._logarithmic(parameter) else low + part * (high - low)
            values[parameter.name] = float(min(max(value, low), high))
        return values


@dataclass(frozen=True, eq=False)
class TuneResult:
    """Tuned parameters and how good they are."""

    scheduler: str  # name of the scheduler
    parameters: dict[str, float]  # all its parameters by name, tuned and fixed
    tuned: tuple[str, ...]  # names of the tuned ones
    objective: Objective  # what was to be small, or great
    settings: SystemSettings  # the cluster
    train: dict[str, np.ndarray]  # float64 [workloads] per policy: ``tuned``, ``default`` and the baseline
    test: dict[str, np.ndarray]  # the same on held-out workloads; empty if there were none
    baseline: str | None  # label of the baseline, None if there was none
    curve: list[dict[str, float]] = field(repr=False)  # one row per generation: evaluations, best, median, step
    about: dict = field(repr=False)  # workloads, seeds, budget: what it takes to repeat the search

    def make(self) -> SystemScheduler:
        """The tuned scheduler."""
        return system_of(self.settings).make_scheduler(self.scheduler, **self.parameters)

    def table(self) -> pandas.DataFrame:
        """Mean, standard error and paired change per set of workloads and policy."""
        import pandas

        rows = []
        for name, scores in (("train", self.train), ("test", self.test)):
            for policy, values in scores.items():
                change = (0.0, 0.0, 0.0) if policy == "tuned" else paired_change(scores["tuned"], values)
                mean, sem, _, _ = mean_interval(values)
                rows.append((name, policy, mean, sem, *change))
        means = [self.objective.with_unit(statistic) for statistic in ("mean", "sem")]
        changes = ("tuned_change_percent", "tuned_change_low", "tuned_change_high")
        return pandas.DataFrame(rows, columns=["workloads", "policy", *means, *changes])

    def card(self) -> dict:
        """Collect everything about the result as plain JSON values; ``parameters`` is what ``make_scheduler`` takes."""
        scores = self.table().to_dict(orient="records")
        return files.plain(
            {
                "scheduler": self.scheduler,
                "parameters": self.parameters,
                "tuned": list(self.tuned),
                "metric": self.objective.column,
                "baseline": self.baseline,
                "scores": scores,
                "settings": self.settings.as_dict(),
                **self.about,
                "curve": self.curve,
            }
        )

    def save(self, path: str | Path) -> None:
        """Write the card to a JSON file."""
        files.atomic_write_text(path, json.dumps(self.card(), indent=2, allow_nan=False) + "\n")

    def __str__(self) -> str:
        values = ", ".join(f"{name}={self.parameters[name]:.3g}" for name in self.tuned)
        return f"{self.scheduler}({values})\n{self.table().round(2).to_string(index=False)}"

    def _repr_html_(self) -> str:
        values = ", ".join(f"{name} = {self.parameters[name]:.3g}" for name in self.tuned)
        return f"<p><b>{self.scheduler}</b>: {values}</p>{self.table().round(2).to_html(index=False, border=0)}"


class Fit:
    """What every search of parameters has: candidates, workloads and a baseline; arguments as of :func:`tune`.

    Raises:
        ConfigError: The scheduler is not a compiled heuristic, or an argument is out of range.
    """

    def __init__(
        self, name, train, settings, metric, fixed, baseline, test, train_seeds, test_seeds, workers, backend
    ) -> None:
        self.name, self.settings, self.fixed = name, settings, dict(fixed or {})
        self.system = system_of(settings)
        self.objective = objective_of(self.system, metric)
        self.default = form_for(self.system.make_scheduler(name, **self.fixed), train)
        if not hasattr(self.default, "parameters"):
            raise ConfigError(f"scheduler {name} is not a compiled heuristic; only these can be tuned")
        self.baseline = {}
        if baseline is not None:
            against = self.system.make_scheduler(baseline)
            self.baseline = {baseline if isinstance(baseline, str) else against.name: against}
        self.train = RunPool(train, settings, seeds=train_seeds, workers=workers, backend=backend)
        self.test = None
        if test is not None:
            seeds = range(TEST_SEED, TEST_SEED + len(test)) if test_seeds is None else test_seeds
            self.test = RunPool(test, settings, seeds=seeds, workers=workers, backend=backend)

    def candidate(self, values: Mapping[str, float]) -> SystemScheduler:
        """The scheduler with some values that are not its default ones."""
        return self.system.make_scheduler(self.name, **(self.default.values | values))

    def scores(self, pool: RunPool, schedulers: Sequence[SystemScheduler], progress: str | None = None) -> np.ndarray:
        """Scores of schedulers, float64 [schedulers, workloads]."""
        return pool.measure(schedulers, (self.objective,), progress=progress)[self.objective.column]

    def losses(self, scores: np.ndarray) -> np.ndarray:
        """Mean losses, float64 [schedulers]; infinite where a run has no score."""
        return np.where(np.isnan(scores).any(axis=1), np.inf, self.objective.loss(scores.mean(axis=1)))

    def result(self, best: SystemScheduler, tuned: Sequence[str], curve: list[dict], search: dict) -> TuneResult:
        """The best candidate, its default and the baseline, on training and test workloads."""
        policies = {"tuned": best, "default": self.default} | self.baseline
        scores: dict[str, dict] = {"train": {}, "test": {}}
        about: dict[str, dict | None] = {"train": None, "test": None, "search": search}
        for part, pool in (("train", self.train), ("test", self.test)):
            if pool is not None:
                with pool:
                    scores[part] = dict(zip(policies, self.scores(pool, list(policies.values())), strict=True))
                about[part] = describe_pool(pool)
        return TuneResult(
            scheduler=self.name,
            parameters=dict(best.values),
            tuned=tuple(tuned),
            objective=self.objective,
            settings=self.settings,
            **scores,
            baseline=next(iter(self.baseline), None),
            curve=curve,
            about=about,
        )


def tune(
    name: str,
    train: Sequence[SystemWorkload],
    settings: SystemSettings,
    *,
    test: Sequence[SystemWorkload] | None = None,
    train_seeds: Sequence[int] | None = None,
    test_seeds: Sequence[int] | None = None,
    metric: str | Objective = "avg_jct",
    budget: int = 400,
    seed: int = 0,
    fixed: Mapping[str, float] | None = None,
    start: Mapping[str, float] | None = None,
    baseline: str | SystemScheduler | None = None,
    population: int | None = None,
    workers: int | None = None,
    backend: str | None = None,
    progress: str | None = None,
) -> TuneResult:
    """Fit the tunable parameters of a registered, compiled scheduler.

    The defaults are among the candidates, so the result is never worse than they are on the training workloads.

    Args:
        name: Name of the scheduler.
        train: Workloads to minimise the mean score on.
        settings: The cluster, or the settings of another system.
        test: Held-out workloads; they take no part in the search.
        train_seeds: One seed per training workload, 0, 1, ... by default.
        test_seeds: One seed per test workload, 1000000, ... by default.
        metric: Name of the objective.
        budget: Candidates to try, each on all training workloads; the last generation is completed.
        seed: Random seed of the search.
        fixed: Values of parameters that are not to be tuned, for example ``{"stage_rule": 0}``; a preset may be among
            them, from whose values the search then begins.
        start: Where the search begins, for parameters that shall not begin at their default for such jobs.
        baseline: Scheduler to compare with, by name or as an object.
        population: Candidates per generation; by default it grows with the number of parameters.
        workers: Workers, all cores by default. The result does not depend on it.
        backend: Where the workers are, see :func:`decima.evaluation.workers.make_workers`. The result does not depend
            on it.
        progress: Label of a progress bar; None for no bar.

    Raises:
        UnknownSchedulerError: No such scheduler.
        ConfigError: It has nothing to tune, or an argument is out of range.
    """
    fit = Fit(name, train, settings, metric, fixed, baseline, test, train_seeds, test_seeds, workers, backend)
    tunable = [item for item in fit.default.parameters if item.tunable and item.name not in fit.fixed]
    if not tunable:
        besides = " besides the fixed ones" if fit.fixed else ""
        raise ConfigError(f"scheduler {name} has no parameter to tune{besides}")
    begin = form_for(fit.system.make_scheduler(name, **(fit.fixed | dict(start or {}))), train)
    scaling = Scaling(tunable)
    search = {"seed": int(seed), "population": population, "first_step": FIRST_STEP}
    tried = []  # losses

    def evaluate(units: np.ndarray) -> np.ndarray:
        losses = fit.losses(fit.scores(fit.train, [fit.candidate(scaling.decode(unit)) for unit in units]))
        tried.extend(losses)
        bar.set_postfix_str(f"best {min(tried):.2f}", refresh=False)
        bar.update(len(units))
        return losses

    with progress_bar(progress, budget, "candidate") as bar, fit.train:
        best = minimize(
            evaluate,
            scaling.encode(begin.values),
            sigma=FIRST_STEP,
            bounds=(0.0, 1.0),
            budget=budget,
            seed=seed,
            population=population,
            inject=[scaling.encode(fit.default.values)] if start else (),
        )
        search |= {"evaluations": best.curve[-1]["evaluations"]}
        names = [item.name for item in tunable]
        return fit.result(fit.candidate(scaling.decode(best.x)), names, best.curve, search)


def describe_pool(pool: RunPool) -> dict:
    """Description of a set of workloads: labels, sizes, seeds and a digest."""
    digest = hashlib.sha256()
    for workload in pool.workloads:
        digest.update(workload.signature().encode())
    return {
        "labels": sorted({workload.label for workload in pool.workloads}),
        "workloads": len(pool),
        "jobs": sum(len(workload.arrival_ms) for workload in pool.workloads),
        "seeds": pool.seeds,
        "digest": digest.hexdigest()[:16],
    }
