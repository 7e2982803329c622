"""One training of a policy in any system: task, recipe, network, seed, and their trainer."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from decima.core.errors import ConfigError, UnknownSchedulerError
from decima.evaluation.workers import check_workers
from decima.learning.agent import Agent
from decima.learning.perceptron import NetworkShape
from decima.learning.recipe import GONE, Recipe
from decima.learning.rollout import Rollouts
from decima.learning.trainer import Trainer, Validation


@dataclass(frozen=True)
class TrainingRun:
    """Everything that determines the outcome of a training with a budget in iterations.

    A system subclasses it with the five methods that raise NotImplementedError here.

    Raises:
        ConfigError: The recipe's teacher is none of the system's, or its parts do not fit each other.
    """

    # Jobs, machines and objective; cards have its ``label``, ``metric`` (column of the score that selects weights, in
    # seconds if it ends in ``_s``), ``data_version`` and ``as_dict()``.
    task: Any
    recipe: Recipe  # how to learn, and when to stop
    architecture: NetworkShape  # shape of the network
    seed: int  # source of all chance

    def __post_init__(self) -> None:
        teacher = self.recipe.imitation.teacher
        if teacher is None:
            return
        try:
            self.check_teacher(teacher, self.recipe.imitation.teacher_parameters)
        except (ConfigError, UnknownSchedulerError) as error:
            raise ConfigError(f"recipe: teacher: {error}") from error

    def identity(self) -> dict:
        """Description that a resumed run must share with the one it continues; JSON-ready."""
        return {
            "task": self.task.as_dict(),
            "data": self.task.data_version,
            "recipe": self.recipe.without_limits(),
            "architecture": self.architecture.as_dict(),
            "seed": self.seed,
        }

    @property
    def uses_tensorflow(self) -> bool:
        """Whether TensorFlow computes the gradients."""
        return True

    # ---- what a system adds -------------------------------------------------------------------------------------

    def check_teacher(self, name: str, parameters: dict[str, float]) -> None:
        """Refuse a scheduler that cannot be imitated in this system.

        Raises:
            ConfigError: There is none of that name, a parameter is wrong, or it is a learned policy.
        """
        raise NotImplementedError

    def make_scheduler(self, path: Path) -> Any:
        """A stored policy of the system as a scheduler."""
        raise NotImplementedError

    def rollout_work(self) -> Callable:
        """Function that runs an episode, see :class:`decima.learning.rollout.Rollouts`."""
        raise NotImplementedError

    def agent(self, backend: Rollouts, threads: int) -> Agent:
        """Policy that acts and learns."""
        raise NotImplementedError

    def validation(self, threads: int) -> Validation:
        """Measurement of weights."""
        raise NotImplementedError

    # ---- the trainer --------------------------------------------------------------------------------------------

    def trainer(
        self,
        folder: str | Path,
        *,
        backend: str | Rollouts | None = None,
        workers: int | None = None,
        progress: bool = False,
        tensorboard: bool = True,
        command: Sequence[str] | None = None,
    ) -> Trainer:
        """The trainer of this run; it can be used once.

        Args:
            folder: Where checkpoint and curve go.
            backend: Where rollouts run, a name as in :class:`Rollouts` or such an object; no result depends
                on it.
            workers: Workers of the backend and threads of the gradient, all cores by default; no result depends on it.
            progress: Show a progress bar.
            tensorboard: Write TensorBoard events.
            command: Words of the call that begins the run, see :class:`decima.learning.trainer.Trainer`.

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
            gone={"architecture": self.architecture.constants, "recipe": GONE},
            progress=progress,
            tensorboard=tensorboard,
            command=command,
        )
