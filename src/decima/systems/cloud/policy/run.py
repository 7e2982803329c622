"""One training of a placement policy: agent, validation, run."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from decima.core.checks import is_number
from decima.core.errors import ConfigError
from decima.evaluation.workers import map_threads
from decima.learning import returns
from decima.learning.agent import RolloutAgent, numbered
from decima.learning.algorithms.dqn import Transitions
from decima.learning.loss import PROBABILITIES, VALUES
from decima.learning.rollout import VALIDATION_SEED, Rollouts, Teacher
from decima.learning.run import TrainingRun
from decima.learning.store import read_policy
from decima.learning.trainer import Score
from decima.systems.cloud.policy.architecture import PlacementArchitecture
from decima.systems.cloud.policy.episodes import BUDGET, SEARCH, Explorer, PlacementEpisodes, episode_of
from decima.systems.cloud.policy.network import PlacementBatch, PlacementLearner
from decima.systems.cloud.policy.scheduler import LearnedPlacement, PlacementRecord, learned
from decima.systems.cloud.policy.task import PlacementTask
from decima.systems.cloud.result import PlacementOutcome, outcome_of
from decima.systems.cloud.schedulers.registry import make_placement
from decima.systems.cloud.system import Episode

REFERENCE = "ilp_beta"
REFERENCES = ("ilp_exact", "good_first", "aep")
# Added to what is lost of R_epi, as a share of R_fixed: at beta 0 the best rule may lose nothing.
FLOOR = 0.01


class PlacementAgent(RolloutAgent):
    """A placement network in its environment; see :class:`decima.learning.agent.Agent` for the methods.

    Episodes are not seen over seconds: with rewards per job their time counts jobs, with those of Table 3 steps.
    Rollouts of one trace are then compared at the same job, and a discount of 0.9 per step is a horizon of
    -1 / ln 0.9 = 9.49.

    Args:
        task: Jobs, VMs, weights of cost.
        architecture: Shape of the network.
        seed: Source of the initial weights, of traces and of all chance in episodes.
        backend: Where episodes run; closed with the agent.
        weights: Float32 [parameters], where to start; random ones when omitted.
    """

    columns = ("decisions", "steps", "cost", "duration_s", "complete", "reward")
    headline = "reward"
    summary_width = 0
    streaming = False
    learns = (PROBABILITIES, VALUES)

    def __init__(
        self,
        task: PlacementTask,
        architecture: PlacementArchitecture,
        seed: int,
        backend: Rollouts,
        *,
        weights: np.ndarray | None = None,
    ) -> None:
        super().__init__(task, architecture, seed, backend)
        weights = architecture.initial_weights(seed) if weights is None else weights
        self.learner = PlacementLearner(architecture, weights)
        self._explorer = Explorer(task, architecture, seed)

    def collect(
        self, iteration: int, sequences: int, rollouts: int, mean_length_s: float | None, teacher: Teacher | None = None
    ) -> list[PlacementRecord]:
        """Run episodes; every trace is placed to its end."""
        drawn = self.task.training_sequences(self.seed, iteration, sequences)
        return self.run(iteration, [sequence for sequence in drawn for _ in range(rollouts)], teacher)

    def episodes(self, records: Sequence[PlacementRecord]) -> list[returns.Episode]:
        """Episodes over jobs or steps."""
        per_job = self.task.reward == "per_job"
        episodes = []
        for record in records:
            when, end = (record.job, record.jobs) if per_job else (record.step, record.steps)
            episodes.append(
                returns.Episode(when.astype(np.float64), float(end), record.reward, np.zeros((len(record), 0)))
            )
        return episodes

    def batch(self, records: Sequence[PlacementRecord]) -> PlacementBatch:
        """The records as flat arrays."""
        return PlacementBatch(records, self.architecture.form == "vector")

    def useful_decisions(self, records: Sequence[PlacementRecord]) -> list[np.ndarray]:
        """All of them: what leaves no choice is not recorded."""
        return numbered(np.ones(len(record), bool) for record in records)

    def recorded_log_prob(self, records: Sequence[PlacementRecord], effect_classes: bool) -> np.ndarray:
        """Log-probabilities of all decisions; VMs that are alike are one action."""
        return np.concatenate([record.log_prob for record in records])

    def describe(self, records: Sequence[PlacementRecord]) -> dict[str, float]:
        """Decisions, and means over the episodes; cost and duration over those that placed all jobs."""
        whole = [record for record in records if record.complete]
        means = {
            "decisions": sum(len(record) for record in records),
            "steps": float(np.mean([record.steps for record in records])),
            "complete": len(whole) / len(records),
            "reward": float(np.mean([record.total for record in records])),
        }
        if whole:
            means["cost"] = float(np.mean([record.cost for record in whole]))
            means["duration_s"] = float(np.mean([record.duration_s for record in whole]))
        return means

    # ---- values: see decima.learning.algorithms.dqn.ValueAgent ----------------------------------------------------

    def explore(self, iteration: int, steps: int, epsilon: float) -> tuple[Transitions, dict[str, float]]:
        """Continue the ongoing episode; see :meth:`decima.learning.algorithms.dqn.ValueAgent.explore`."""
        transitions, ended = self._explorer.go_on(self.learner.weights, iteration, steps, epsilon)
        return transitions, self.describe(ended) if ended else {}

    def explorer_state(self) -> tuple[dict[str, np.ndarray], dict]:
        """Where the ongoing episode is."""
        return self._explorer.state()

    def restore_explorer(self, arrays: dict[str, np.ndarray], counters: dict) -> None:
        """Bring the ongoing episode to where it was."""
        self._explorer.restore(arrays, counters)


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
        self._episodes = [episode_of(task, sequence) for sequence in task.validation_sequences(sequences)]
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
        """Refuse what is neither a rule nor the search, or a wrong option of one."""
        if name != SEARCH:
            make_placement(name, **parameters)
            return
        if unknown := set(parameters) - {"budget"}:
            raise ConfigError(f"unknown option of the teacher {SEARCH}: {', '.join(sorted(unknown))}; it has: budget")
        budget = parameters.get("budget", BUDGET)
        if not is_number(budget) or budget < 1 or budget != int(budget):
            raise ConfigError(
                f"budget of the teacher {SEARCH} must be a whole number of at least 1, got {budget!r:.60}"
            )

    def make_scheduler(self, path: Path) -> LearnedPlacement:
        """The stored policy as a scheduler of placement."""
        return learned(str(path))

    def rollout_work(self) -> PlacementEpisodes:
        """Episodes of placement."""
        return PlacementEpisodes(self.task)

    def agent(self, backend: Rollouts, threads: int) -> PlacementAgent:
        """The network in its environment; its gradients take one thread."""
        return PlacementAgent(self.task, self.architecture, self.seed, backend, weights=self._start())

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
