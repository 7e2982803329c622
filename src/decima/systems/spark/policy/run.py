"""One training of Decima's policy on the simulated Spark cluster."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from decima.core.errors import ConfigError
from decima.learning.rollout import RolloutBackend
from decima.learning.run import TrainingRun
from decima.learning.store import read_policy
from decima.systems.spark.policy.agent import DecimaAgent
from decima.systems.spark.policy.architecture import Architecture
from decima.systems.spark.policy.episodes import Episodes
from decima.systems.spark.policy.growth import grown_weights
from decima.systems.spark.policy.kernel.inference import decide_learned
from decima.systems.spark.policy.task import Task
from decima.systems.spark.policy.validation import TaskValidation
from decima.systems.spark.schedulers import Scheduler, make_scheduler
from decima.systems.spark.schedulers.registry import LEARNED


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
