"""One training of a Decima policy: what it is, and the trainer that does it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from decima.evaluation.workers import check_workers
from decima.exceptions import ConfigError
from decima.policy.architecture import Architecture
from decima.training.agent import DecimaAgent
from decima.training.recipe import Recipe
from decima.training.rollout import RolloutBackend, Rollouts
from decima.training.task import Task
from decima.training.trainer import Trainer
from decima.training.validation import TaskValidation


@dataclass(frozen=True)
class TrainingRun:
    """Everything that the outcome of a training is a function of, if its budget is a number of iterations.

    Raises:
        ConfigError: The task's cluster is larger than the architecture allows.
    """

    task: Task  # jobs, cluster and objective
    recipe: Recipe  # how to learn, and when to stop
    architecture: Architecture  # shape of the network
    seed: int  # source of all chance

    def __post_init__(self) -> None:
        allowed = self.architecture.max_executors
        if self.task.executors > allowed:
            raise ConfigError(f"the task has {self.task.executors} executors, the architecture allows {allowed}")

    def identity(self) -> dict:
        """Description that a resumed run must share with the one it continues; JSON-ready."""
        return {
            "task": self.task.as_dict(),
            "recipe": self.recipe.without_limits(),
            "architecture": self.architecture.as_dict(),
            "seed": self.seed,
        }

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
            ConfigError: The run would never stop, or arguments contradict each other.
        """
        recipe, budget, threads = self.recipe, self.recipe.budget, check_workers(workers)
        if backend is None or isinstance(backend, str):
            backend = Rollouts(self.task, backend, workers)
        agent = DecimaAgent(
            self.task,
            self.architecture,
            self.seed,
            backend,
            threads=threads,
            betas=(recipe.adam.adam_beta1, recipe.adam.adam_beta2),
            epsilon=recipe.adam.adam_epsilon,
        )
        validation = TaskValidation(
            self.task, self.architecture, budget.validation_sequences, budget.validation_seeds, threads
        )
        return Trainer(
            recipe.make_algorithm(agent, self.seed),
            validation,
            budget,
            folder,
            identity=self.identity(),
            progress=progress,
            tensorboard=tensorboard,
        )
