"""Training on heterogeneous executors: agent, validation, run and recipes for the trainer of all systems."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from decima.core.errors import ConfigError
from decima.learning.agent import RolloutAgent, numbered
from decima.learning.automatic import KerasLearner
from decima.learning.loss import CRITIC, PROBABILITIES
from decima.learning.returns import Episode
from decima.learning.rollout import Rollouts, Teacher
from decima.learning.run import TrainingRun
from decima.learning.trainer import Score, ratio
from decima.systems.heterogeneous.engine import Planner
from decima.systems.heterogeneous.optimum.bounds import lower_bound
from decima.systems.heterogeneous.policy.architecture import NodeArchitecture
from decima.systems.heterogeneous.policy.batch import NodeBatch, SeenInstance
from decima.systems.heterogeneous.policy.network import NodeCritic, NodeNetwork
from decima.systems.heterogeneous.policy.planner import PolicyPlanner
from decima.systems.heterogeneous.policy.task import (
    REFERENCES,
    TEACHERS,
    NodeEpisode,
    NodeEpisodes,
    NodeSequence,
    NodeTask,
)
from decima.systems.heterogeneous.schedulers.registry import PlanScheduler, make_scheduler

_CHUNK = 256


class NodeAgent(RolloutAgent):
    """A network that chooses nodes, as algorithms see it.

    Rewards are minus the growth of the schedule over the lower bound of its instance, so that all instances count
    alike; their sum is minus the makespan over the bound. Times are decisions; every run of an
    instance has one per node.

    Args:
        task: What to draw.
        architecture: Shape of the network.
        seed: Source of the initial weights, of instances and of all chance in episodes.
        backend: Where episodes run; closed with the agent.
        threads: Threads of the gradient; no result depends on it.
    """

    columns = ("decisions", "above_bound", "teacher_followed")
    headline = "above_bound"
    summary_width = 2
    learns: tuple[str, ...] = (PROBABILITIES, CRITIC)

    def __init__(
        self, task: NodeTask, architecture: NodeArchitecture, seed: int, backend: Rollouts, *, threads: int = 1
    ) -> None:
        super().__init__(task, architecture, seed, backend)
        self.streaming = task.streaming
        self.network = NodeNetwork(architecture, task.depth())
        weights = architecture.initial_weights(seed)
        self.learner = KerasLearner(self.network, weights, threads=threads, chunk=_CHUNK)
        self._seen: dict[NodeSequence, tuple[SeenInstance, float]] = {}

    @cached_property
    def critic(self) -> NodeCritic:
        """Values of nodes for algorithms with a critic, created on demand."""
        return NodeCritic(self.network, self.seed + 1)

    def collect(
        self, iteration: int, sequences: int, rollouts: int, mean_length_s: float | None, teacher: Teacher | None = None
    ) -> list[NodeEpisode]:
        """Run episodes; ``mean_length_s`` counts decisions, as Algorithm 1 does, behind which nothing is learned."""
        drawn = self.task.training_sequences(self.seed, iteration, sequences)
        done = self.run(iteration, [sequence for sequence in drawn for _ in range(rollouts)], teacher)
        self._seen = {sequence: self._see(sequence) for sequence in drawn}
        if mean_length_s is None:
            return done
        lengths = np.random.default_rng([self.seed, iteration, 4]).exponential(mean_length_s, len(drawn))
        ends = np.repeat(np.maximum(2, lengths.astype(int)), rollouts)
        return [replace(each, record=each.record.until(end)) for each, end in zip(done, ends.tolist(), strict=True)]

    def _see(self, sequence: NodeSequence) -> tuple[SeenInstance, float]:
        instance = self.task.instance(sequence)
        return SeenInstance(instance, self.architecture), lower_bound(instance)

    def episodes(self, records: Sequence[NodeEpisode]) -> list[Episode]:
        """Episodes whose times count decisions."""
        played = []
        for each in records:
            length = each.record.length_s / self._seen[each.sequence][1]
            steps = np.arange(len(length) - 1, dtype=np.float64)
            summary = np.stack([length[:-1], length[:-1] ** 2], axis=1)
            played.append(Episode(steps, float(len(steps)), -np.diff(length), summary))
        return played

    def batch(self, records: Sequence[NodeEpisode]) -> NodeBatch:
        """The records with what was seen of their instances."""
        return NodeBatch([self._seen[each.sequence][0] for each in records], [each.record for each in records])

    def useful_decisions(self, records: Sequence[NodeEpisode]) -> list[np.ndarray]:
        """Decisions with several nodes to choose from, whose probability was below 1."""
        return numbered(each.record.candidates() > 1 for each in records)

    def recorded_log_prob(self, records: Sequence[NodeEpisode], effect_classes: bool) -> np.ndarray:
        """Log-probabilities of all decisions; there are no limits, so ``effect_classes`` has no effect."""
        return np.concatenate([each.record.log_prob for each in records]).astype(np.float32)

    def describe(self, records: Sequence[NodeEpisode]) -> dict[str, float]:
        """Number of decisions, mean schedule length over the bound, and share of the teacher's choices."""
        lengths = [each.record.length_s[-1] / self._seen[each.sequence][1] for each in records]
        followed = np.concatenate([each.record.chosen == each.record.wanted for each in records])
        return {
            "decisions": len(followed),
            "above_bound": float(np.mean(lengths)),
            "teacher_followed": float(followed.mean()),
        }


class NodeValidation:
    """Schedules of greedy choices on fixed instances: mean makespan over the lower bound.

    Args:
        task: What to draw.
        architecture: Shape of the network.
        sequences: Number of instances.
    """

    lower_is_better = True

    def __init__(self, task: NodeTask, architecture: NodeArchitecture, sequences: int) -> None:
        instances = [task.instance(sequence) for sequence in task.validation_sequences(sequences)]
        self._bounds = np.array([lower_bound(instance) for instance in instances])
        self._planners = [PolicyPlanner(instance, task.rules, architecture) for instance in instances]
        self._task = task
        self.columns = ("val_greedy", *(f"val_ratio_{name}" for name in REFERENCES))

    @cached_property
    def references(self) -> dict[str, float]:
        """Score of each imitable rule with the task's placement rules."""
        rules, instances = self._task.rules, [planner.instance for planner in self._planners]
        return {
            name: self._score([Planner(each, rules).run(TEACHERS.find(name)(each, rules)) for each in instances])
            for name in REFERENCES
        }

    def _score(self, lengths_s: list[float]) -> float:
        return float(np.mean(np.array(lengths_s) / self._bounds))

    def measure(self, weights: np.ndarray) -> Score:
        """Score of weights, and its ratio to those of the references."""
        score = self._score([planner.run(weights) for planner in self._planners])
        ratios = {f"val_ratio_{name}": ratio(score, value) for name, value in self.references.items()}
        return Score(score, "greedy", {"val_greedy": score} | ratios)


@dataclass(frozen=True)
class NodeRun(TrainingRun):
    """One training of a policy that chooses nodes; every architecture fits every task.

    Raises:
        ConfigError: The recipe's teacher is not a heuristic that orders nodes.
    """

    task: NodeTask
    architecture: NodeArchitecture

    def check_teacher(self, name: str, parameters: dict[str, float]) -> None:
        """Refuse what is not a heuristic that orders nodes."""
        TEACHERS.find(name)
        if parameters:
            raise ConfigError(f"{name} has no parameter {next(iter(parameters))!r} as a teacher; it has none")

    def make_scheduler(self, path: Path) -> PlanScheduler:
        """The stored policy as a scheduler of instances."""
        return make_scheduler("lachesis", policy=str(path))

    def rollout_work(self) -> NodeEpisodes:
        """Function that runs an episode."""
        return NodeEpisodes(self.task)

    def agent(self, backend: Rollouts, threads: int) -> NodeAgent:
        """What acts and learns."""
        return NodeAgent(self.task, self.architecture, self.seed, backend, threads=threads)

    def validation(self, threads: int) -> NodeValidation:
        """What measures weights."""
        return NodeValidation(self.task, self.architecture, self.recipe.budget.validation_sequences)
