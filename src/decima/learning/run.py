"""One training of a policy: what it is, and the trainer that does it.

A run of another system is a subclass with a task, an agent and a validation of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from decima.core.errors import ConfigError
from decima.evaluation.workers import check_workers
from decima.learning.recipe import Recipe
from decima.learning.rollout import RolloutBackend, Rollouts
from decima.learning.store import read_policy
from decima.learning.trainer import Trainer
from decima.learning.validation import TaskValidation, Validation
from decima.systems.spark.policy.agent import Agent, DecimaAgent
from decima.systems.spark.policy.architecture import Architecture
from decima.systems.spark.policy.growth import grown_weights
from decima.systems.spark.policy.task import Task


@dataclass(frozen=True)
class TrainingRun:
    """Everything that the outcome of a training is a function of, if its budget is a number of iterations.

    Raises:
        ConfigError: The task's cluster is larger than the architecture allows, or has another number of classes.
    """

    task: Task  # jobs, cluster and objective
    recipe: Recipe  # how to learn, and when to stop
    architecture: Architecture  # shape of the network
    seed: int  # source of all chance

    def __post_init__(self) -> None:
        allowed = self.architecture.max_executors
        if self.task.executors > allowed:
            raise ConfigError(f"the task has {self.task.executors} executors, the architecture allows {allowed}")
        wanted, given = self.architecture.executor_classes, max(1, len(self.task.cluster.classes))
        if wanted not in (0, given):
            raise ConfigError(f"the architecture is for {wanted} classes of executors, the task has {given}")

    def identity(self) -> dict:
        """Description that a resumed run must share with the one it continues; JSON-ready."""
        return {
            "task": self.task.as_dict(),
            "recipe": self.recipe.without_limits(),
            "architecture": self.architecture.as_dict(),
            "seed": self.seed,
        }

    # ---- what another system replaces ---------------------------------------------------------------------------

    def rollout_work(self) -> Any:
        """What the workers of :class:`Rollouts` are made from."""
        return self.task

    def agent(self, backend: RolloutBackend, threads: int) -> Agent:
        """What acts and learns."""
        adam = self.recipe.adam
        return DecimaAgent(
            self.task,
            self.architecture,
            self.seed,
            backend,
            ends=self.recipe.imitation.ends,
            threads=threads,
            betas=(adam.adam_beta1, adam.adam_beta2),
            epsilon=adam.adam_epsilon,
            weights=self._start(),
        )

    def validation(self, threads: int) -> Validation:
        """What measures weights."""
        budget = self.recipe.budget
        return TaskValidation(
            self.task, self.architecture, budget.validation_sequences, budget.validation_seeds, threads
        )

    def _start(self) -> np.ndarray | None:
        """Weights grown from the stored policy to begin with; None for random ones."""
        name = self.recipe.imitation.start_policy
        return None if name is None else grown_weights(read_policy(name), self.architecture, self.seed)

    # ---- the trainer --------------------------------------------------------------------------------------------

    def trainer(
        self,
        folder: str | Path,
        *,
        backend: str | RolloutBackend | None = None,
        workers: int | None = None,
        progress: bool = False,
        tensorboard: bool = True,
    ) -> Trainer:
        """The trainer of this run; it can be used once.

        Args:
            folder: Where checkpoint and curve go.
            backend: Where rollouts run, a name as in :class:`Rollouts` or a :class:`RolloutBackend`; no result depends
                on it.
            workers: Workers of the backend and threads of the gradient, all cores by default; no result depends on it.
            progress: Show a progress bar.
            tensorboard: Write TensorBoard events.

        Raises:
            ConfigError: The run would never stop, arguments contradict each other, or the policy to begin with is of
                another shape.
            PolicyError: There is no such policy.
        """
        threads = check_workers(workers)
        if backend is None or isinstance(backend, str):
            backend = Rollouts(self.rollout_work(), backend, workers)
        agent = self.agent(backend, threads)
        validation = self.validation(threads)
        return Trainer(
            self.recipe.make_algorithm(agent, self.seed),
            validation,
            self.recipe.budget,
            folder,
            identity=self.identity(),
            progress=progress,
            tensorboard=tensorboard,
        )
