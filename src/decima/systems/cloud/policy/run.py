"""One training of a placement policy."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from decima.core.errors import ConfigError
from decima.learning.rollout import RolloutBackend
from decima.learning.run import TrainingRun
from decima.learning.store import read_policy
from decima.systems.cloud.policy.agent import PlacementAgent
from decima.systems.cloud.policy.architecture import PlacementArchitecture
from decima.systems.cloud.policy.episodes import PlacementEpisodes, check_teacher
from decima.systems.cloud.policy.scheduler import LearnedPlacement, learned
from decima.systems.cloud.policy.task import PlacementTask
from decima.systems.cloud.policy.validation import PlacementValidation


@dataclass(frozen=True)
class PlacementRun(TrainingRun):
    """All that the outcome of a training depends on.

    Raises:
        ConfigError: The network is made for another number of VMs than the task has.
    """

    task: PlacementTask  # jobs, VMs, weights of cost
    architecture: PlacementArchitecture  # shape of the network

    def __post_init__(self) -> None:
        super().__post_init__()
        for settings in self.task.settings:
            self.architecture.require_vms(len(settings.cluster))

    def check_teacher(self, name: str, parameters: dict[str, float]) -> None:
        """Refuse what is neither a rule nor the search."""
        check_teacher(name, parameters)

    def make_scheduler(self, path: Path) -> LearnedPlacement:
        """The stored policy as a scheduler of placement."""
        return learned(str(path))

    def rollout_work(self) -> PlacementEpisodes:
        """Episodes of placement."""
        return PlacementEpisodes(self.task)

    def agent(self, backend: RolloutBackend, threads: int) -> PlacementAgent:
        """The network in its environment; its gradients take one thread."""
        adam = self.recipe.adam.options
        return PlacementAgent(self.task, self.architecture, self.seed, backend, weights=self._start(), **adam)

    def _start(self) -> np.ndarray | None:
        """Weights of the stored policy to begin with; None for random ones."""
        name = self.recipe.imitation.start_policy
        if name is None:
            return None
        stored = read_policy(name, PlacementArchitecture)
        if stored.architecture != self.architecture:
            raise ConfigError(f"recipe: start_policy {stored.name} has another network: {stored.architecture}")
        return stored.weights

    def validation(self, threads: int) -> PlacementValidation:
        """Scores against the per-job program."""
        budget = self.recipe.budget
        return PlacementValidation(
            self.task, self.architecture, budget.validation_sequences, budget.validation_seeds, threads
        )
