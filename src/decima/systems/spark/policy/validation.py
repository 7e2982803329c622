"""Scores of Decima's policies on sequences that are neither trained nor tested on."""

from __future__ import annotations

import numpy as np

from decima.core.objectives import get_objective
from decima.evaluation.pool import RunPool
from decima.learning.seeds import VALIDATION_SEED
from decima.learning.validation import Score
from decima.systems.spark.policy.architecture import Architecture
from decima.systems.spark.policy.scheduler import LearnedScheduler
from decima.systems.spark.policy.task import Task


class TaskValidation:
    """Scores on fixed sequences and seeds, the same for all policies and heuristics.

    Args:
        task: Jobs, cluster and objective.
        architecture: Shape of the network.
        sequences: Number of sequences.
        runs: Runs of the sampled policy per sequence; 0: only the greedy policy is measured, once.
        threads: Threads; no score depends on it.
    """

    def __init__(
        self, task: Task, architecture: Architecture, sequences: int, runs: int, threads: int | None = None
    ) -> None:
        workloads = [task.workload(sequence) for sequence in task.validation_sequences(sequences)]
        copies = max(1, runs)
        count = len(workloads) * copies
        self._modes = {"greedy": True} | ({"sampled": False} if runs > 0 else {})
        self._task, self._architecture = task, architecture
        self._objective = get_objective(task.objective)
        self.lower_is_better = self._objective.direction == "min"
        self._pool = RunPool(
            workloads * copies,
            task.cluster,
            seeds=range(VALIDATION_SEED, VALIDATION_SEED + count),
            workers=threads,
            backend="threads",  # a few runs; rollouts may have taken all cores of a Ray cluster
        )
        ratios = (f"val_ratio_{name}" for name in task.reference_schedulers())
        self.columns = (*(f"val_{mode}" for mode in self._modes), *ratios)
        self._references: dict[str, float] | None = None

    @property
    def references(self) -> dict[str, float]:
        """Mean score of each reference heuristic, computed once."""
        if self._references is None:
            named = self._task.reference_schedulers()
            self._references = dict(zip(named, self._mean(list(named.values())), strict=True))
        return self._references

    def measure(self, weights: np.ndarray) -> Score:
        """Mean scores of the greedy and the sampled policy, with ratios to references."""
        policies = [LearnedScheduler(self._architecture, weights, greedy=greedy) for greedy in self._modes.values()]
        scores = dict(zip(self._modes, self._mean(policies), strict=True))
        mode = min(scores, key=lambda name: self._objective.loss(scores[name]))
        row = {f"val_{name}": score for name, score in scores.items()}
        ratios = {f"val_ratio_{name}": scores[mode] / score for name, score in self.references.items()}
        return Score(scores[mode], mode, row | ratios)

    def _mean(self, schedulers) -> list[float]:
        scores = self._pool.measure(schedulers, (self._objective,))[self._objective.column]
        return [float(value) for value in scores.mean(axis=1)]
