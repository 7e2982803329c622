"""Scores on sequences that are neither trained nor tested on; they select the checkpoint to keep."""

from __future__ import annotations

import numpy as np

from decima.evaluation.pool import RunPool
from decima.policy.architecture import Architecture
from decima.training.recipe import Recipe
from decima.training.task import VALIDATION_SEED, Task


class Validation:
    """Fixed sequences and seeds; every policy and heuristic meets the same ones.

    Args:
        task: Jobs, cluster and metric.
        recipe: Number of sequences and of runs of each.
        threads: Threads; no score depends on it.
    """

    def __init__(self, task: Task, recipe: Recipe, threads: int | None = None) -> None:
        workloads = [task.workload(sequence) for sequence in task.validation_sequences(recipe.validation_sequences)]
        runs = max(1, recipe.validation_seeds)
        count = len(workloads) * runs
        self._sampled = recipe.validation_seeds > 0
        self._task = task
        self._pool = RunPool(
            workloads * runs,
            task.cluster,
            seeds=range(VALIDATION_SEED, VALIDATION_SEED + count),
            threads=threads,
        )
        self._references: dict[str, float] | None = None

    @property
    def references(self) -> dict[str, float]:
        """Mean score of each reference heuristic, computed once."""
        if self._references is None:
            named = self._task.reference_schedulers()
            scores = self._mean(list(named.values()))
            self._references = dict(zip(named, scores, strict=True))
        return self._references

    def scores(self, architecture: Architecture, weights: np.ndarray) -> dict[str, float]:
        """Columns of the curve: mean score of the greedy and the sampled policy, and their ratios to the references."""
        from decima.policy.scheduler import LearnedScheduler

        modes = {"greedy": True} | ({"sampled": False} if self._sampled else {})
        policies = [LearnedScheduler(architecture, weights, greedy=greedy) for greedy in modes.values()]
        row = {f"val_{name}": score for name, score in zip(modes, self._mean(policies), strict=True)}
        for name, reference in self.references.items():
            row[f"val_ratio_{name}"] = min(row[f"val_{mode}"] for mode in modes) / reference
        return row

    def _mean(self, schedulers) -> list[float]:
        scores = self._pool.measure(schedulers, (self._task.metric,))[self._task.metric]
        return [float(value) for value in scores.mean(axis=1)]
