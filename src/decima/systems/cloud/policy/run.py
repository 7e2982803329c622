"""One training of a placement policy."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from decima.core.errors import ConfigError
from decima.evaluation.workers import map_threads
from decima.learning.rollout import RolloutBackend
from decima.learning.run import TrainingRun
from decima.learning.seeds import VALIDATION_SEED
from decima.learning.store import read_policy
from decima.learning.trainer import Score
from decima.systems.cloud.policy.agent import PlacementAgent
from decima.systems.cloud.policy.architecture import PlacementArchitecture
from decima.systems.cloud.policy.episodes import PlacementEpisodes, check_teacher
from decima.systems.cloud.policy.scheduler import LearnedPlacement, learned
from decima.systems.cloud.policy.task import PlacementTask
from decima.systems.cloud.result import PlacementOutcome, outcome_of
from decima.systems.cloud.schedulers.registry import make_placement
from decima.systems.cloud.system import Episode

REFERENCE = "ilp_beta"
REFERENCES = ("ilp_exact", "good_first", "aep")
# Added to what is lost of R_epi, as a share of R_fixed: at beta 0 the best rule may lose nothing.
FLOOR = 0.01


class PlacementValidation:
    """Loss of R_epi by a policy over that by ``ilp_beta``.

    A loss is R_fixed - R_epi plus 1 % of R_fixed.

    An episode that does not place all jobs counts as one with R_epi = 0.

    Args:
        task: Jobs, VMs, weights of cost.
        architecture: Shape of the network.
        sequences: Number of traces.
        runs: Runs of the sampled policy per trace; 0: only the greedy policy is measured.
        threads: Threads; no score depends on it.
    """

    lower_is_better = True

    def __init__(
        self, task: PlacementTask, architecture: PlacementArchitecture, sequences: int, runs: int, threads: int = 1
    ) -> None:
        self._architecture, self._runs, self._threads = architecture, runs, threads
        self._episodes = [
            Episode.of(task.workload(sequence), task.settings_of(sequence))
            for sequence in task.validation_sequences(sequences)
        ]
        self.columns = ("val_greedy", "val_cost", "val_duration_s", "val_complete") + ("val_sampled",) * (runs > 0)
        self._losses = np.array([self._loss(episode, make_placement(REFERENCE), 0)[0] for episode in self._episodes])

    @property
    def reference_loss(self) -> float:
        """Mean loss of ``ilp_beta`` as a share of R_fixed, plus 1 %."""
        return float(self._losses.mean())

    @property
    def references(self) -> dict[str, float]:
        """Mean score of rules."""
        return {name: self._measured(make_placement(name), 1)[0] for name in REFERENCES}

    def _loss(self, episode: Episode, scheduler, seed: int) -> tuple[float, PlacementOutcome]:
        episode.run(scheduler, seed)
        outcome = outcome_of(episode.state, episode.workload)
        fixed = episode.settings.rules.fixed_reward
        reward = 0.0 if np.isnan(outcome.reward) else outcome.reward
        return 1.0 - reward / fixed + FLOOR, outcome

    def _measured(self, scheduler, runs: int) -> tuple[float, list[PlacementOutcome]]:
        def work(item):
            index, episode = item
            losses = [self._loss(episode, scheduler, VALIDATION_SEED + run) for run in range(runs)]
            return np.mean([loss for loss, _ in losses]) / self._losses[index], losses[0][1]

        results = map_threads(work, list(enumerate(self._episodes)), self._threads)
        return float(np.mean([ratio for ratio, _ in results])), [outcome for _, outcome in results]

    def measure(self, weights: np.ndarray) -> Score:
        """Score of the greedy policy and of the sampled one."""
        greedy, outcomes = self._measured(LearnedPlacement(self._architecture, weights), 1)
        row = {"val_greedy": greedy}
        whole = [outcome for outcome in outcomes if not np.isnan(outcome.reward)]
        row["val_complete"] = len(whole) / len(outcomes)
        if whole:
            row["val_cost"] = float(np.mean([outcome.cost for outcome in whole]))
            row["val_duration_s"] = float(np.mean([outcome.mean_duration_s for outcome in whole]))
        if self._runs == 0:
            return Score(greedy, "greedy", row)
        sampled, _ = self._measured(LearnedPlacement(self._architecture, weights, greedy=False), self._runs)
        row["val_sampled"] = sampled
        return Score(min(greedy, sampled), "greedy" if greedy <= sampled else "sampled", row)


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
