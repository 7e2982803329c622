"""One training of Decima's policy on the simulated Spark cluster."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from decima.core.errors import ConfigError
from decima.core.objectives import get_objective
from decima.evaluation.pool import RunPool
from decima.learning.rollout import RolloutBackend
from decima.learning.run import TrainingRun
from decima.learning.seeds import VALIDATION_SEED
from decima.learning.store import read_policy
from decima.learning.trainer import Score
from decima.systems.spark.policy.agent import DecimaAgent
from decima.systems.spark.policy.architecture import Architecture
from decima.systems.spark.policy.episodes import Episodes
from decima.systems.spark.policy.growth import grown_weights
from decima.systems.spark.policy.kernel.inference import decide_learned
from decima.systems.spark.policy.scheduler import LearnedScheduler
from decima.systems.spark.policy.task import Task
from decima.systems.spark.schedulers import Scheduler, make_scheduler
from decima.systems.spark.schedulers.registry import LEARNED


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


@dataclass(frozen=True)
class DecimaRun(TrainingRun):
    """A training of Decima's network for a task on the Spark cluster.

    Raises:
        ConfigError: The task's cluster is larger than the architecture allows, or has another number of classes; or
            the recipe's teacher is unknown or learned.
    """

    task: Task
    architecture: Architecture

    def __post_init__(self) -> None:
        super().__post_init__()
        allowed = self.architecture.max_executors
        if self.task.executors > allowed:
            raise ConfigError(f"the task has {self.task.executors} executors, the architecture allows {allowed}")
        wanted, classes = self.architecture.executor_classes, max(1, len(self.task.cluster.classes))
        if wanted not in (0, classes):
            raise ConfigError(f"the architecture is for {wanted} classes of executors, the task has {classes}")

    def check_teacher(self, name: str, parameters: dict[str, float]) -> None:
        """Refuse an unknown scheduler, a wrong parameter, or a policy that would teach itself."""
        if getattr(make_scheduler(name, **parameters), "decision", None) is decide_learned:
            raise ConfigError(
                f"{name!r} is a learned policy, which would teach itself; expected a heuristic, or a planner as in "
                "lookahead:64"
            )

    def make_scheduler(self, path: Path) -> Scheduler:
        """The stored policy as a scheduler of the Spark cluster."""
        return make_scheduler(LEARNED, policy=str(path))

    def rollout_work(self) -> Episodes:
        """Episodes of the task."""
        return Episodes(self.task)

    def agent(self, backend: RolloutBackend, threads: int) -> DecimaAgent:
        """Agent on the cluster, from the recipe's stored policy if there is one."""
        start = self.recipe.imitation.start_policy
        weights: np.ndarray | None = None
        if start is not None:
            weights = grown_weights(read_policy(start, Architecture), self.architecture, self.seed)
        return DecimaAgent(
            self.task,
            self.architecture,
            self.seed,
            backend,
            ends=self.recipe.imitation.ends,
            threads=threads,
            weights=weights,
            **self.recipe.adam.options,
        )

    def validation(self, threads: int) -> TaskValidation:
        """Mean objective on fixed sequences."""
        budget = self.recipe.budget
        return TaskValidation(
            self.task, self.architecture, budget.validation_sequences, budget.validation_seeds, threads
        )
