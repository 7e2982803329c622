"""Decima's network on the simulated Spark cluster, as algorithms see it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from decima.core.objectives import get_objective
from decima.learning.agent import RolloutAgent, numbered
from decima.learning.backward import compiled_code
from decima.learning.gradient import Learner
from decima.learning.loss import PROBABILITIES, Loss
from decima.learning.returns import Episode
from decima.learning.rollout import RolloutBackend, Teacher
from decima.systems.spark.policy.batch import GraphBatch
from decima.systems.spark.policy.kernel.gradient import Chunk, Options, chunk_gradient
from decima.systems.spark.policy.kernel.layout import pack_layout
from decima.systems.spark.policy.kernel.observation import NUM_SUMMARY
from decima.systems.spark.policy.task import Task, children_of, sequences_of_rollouts

if TYPE_CHECKING:
    from decima.systems.spark.policy.architecture import Architecture
    from decima.systems.spark.policy.record import EpisodeRecord


# What a chunk needs stays in the cache.
CHUNK = 128


class DecimaLearner(Learner):
    """Weights, their gradients in compiled code, and Adam.

    Args:
        architecture: Shape of the network.
        weights: Float32 [parameters], where to start.
        chunk: Most decisions per chunk; changes results in the last digits only.
        **options: Threads, decay of Adam's moments and its epsilon, see :class:`.Learner`.
    """

    def __init__(self, architecture: Architecture, weights: np.ndarray, *, chunk: int = CHUNK, **options: Any) -> None:
        super().__init__(weights, chunk, **options)
        self._layout, self._temperature = pack_layout(architecture), float(architecture.residual_temperature)
        self._code = compiled_code()

    def chunk_gradient(
        self, batch: GraphBatch, decisions: np.ndarray, advantages: np.ndarray, log_prob: np.ndarray, loss: Loss
    ) -> tuple[np.ndarray, np.ndarray]:
        """Gradient of a chunk; see :meth:`.Learner.chunk_gradient`."""
        options = Options(
            loss.ratio, float(loss.clip), float(loss.entropy_weight), loss.effect_classes, self._temperature
        )
        chunk = Chunk(**batch.tensors(decisions))
        return chunk_gradient(self._code, self._layout, self._flat, chunk, advantages, log_prob, options)


class DecimaAgent(RolloutAgent):
    """Decima's network on the simulated Spark cluster.

    Args:
        task: Jobs, cluster and objective.
        architecture: Shape of the network.
        seed: Source of sequences and of all chance in episodes, and of the initial weights.
        backend: Where episodes run; closed with the agent.
        ends: What has an end of its own, one of :data:`decima.learning.algorithms.parts.ENDS`.
        weights: Float32 [parameters] to begin with; None: random ones.
        **options: Threads of the gradient and Adam's numbers, see :class:`.Learner`.
    """

    columns = ("decisions", "episode_s", "jct_s")
    headline = "jct_s"
    summary_width = NUM_SUMMARY
    learns = (PROBABILITIES,)

    def __init__(
        self,
        task: Task,
        architecture: Architecture,
        seed: int,
        backend: RolloutBackend,
        *,
        ends: str = "sequence",
        weights: np.ndarray | None = None,
        **options: Any,
    ) -> None:
        super().__init__(task, architecture, seed, backend)
        self.streaming, self._ends = task.streaming, ends
        self._children = children_of(task)[:2]
        weights = architecture.initial_weights(seed) if weights is None else weights
        self.learner = DecimaLearner(architecture, weights, **options)

    def collect(
        self, iteration: int, sequences: int, rollouts: int, mean_length_s: float | None, teacher: Teacher | None = None
    ) -> list[EpisodeRecord]:
        """Run episodes; see :meth:`decima.learning.agent.Agent.collect`."""
        length_s = mean_length_s if self.streaming else None
        drawn = self.task.training_sequences(self.seed, iteration, sequences, length_s)
        runs = sequences_of_rollouts(drawn, rollouts, self._ends, length_s, self.seed, iteration)
        return self.run(iteration, runs, teacher)

    def episodes(self, records: Sequence[EpisodeRecord]) -> list[Episode]:
        """Episodes with rewards of the task's objective, times in seconds."""
        rewards = get_objective(self.task.objective).rewards([record.progress for record in records])
        return [
            Episode(record.time_ms / 1000.0, record.end_ms / 1000.0, values, record.critic.astype(np.float64))
            for record, values in zip(records, rewards, strict=True)
        ]

    def batch(self, records: Sequence[EpisodeRecord]) -> GraphBatch:
        """The records as one graph."""
        return GraphBatch(records, *self._children)

    def useful_decisions(self, records: Sequence[EpisodeRecord]) -> list[np.ndarray]:
        """Decisions with a choice; see :func:`useful_decisions`."""
        return useful_decisions(records)

    def recorded_log_prob(self, records: Sequence[EpisodeRecord], effect_classes: bool) -> np.ndarray:
        """Log-probabilities of all decisions; see :func:`recorded_log_prob`."""
        return np.concatenate([recorded_log_prob(record, effect_classes) for record in records])

    def describe(self, records: Sequence[EpisodeRecord]) -> dict[str, float]:
        """Number of decisions, mean episode length, mean JCT of finished jobs."""
        jct_ms = np.concatenate([record.completion_ms - record.arrival_ms for record in records])
        finished = jct_ms[~np.isnan(jct_ms)]
        return {
            "decisions": int(sum(len(record.choice) for record in records)),
            "episode_s": float(np.mean([record.end_ms for record in records])) / 1000.0,
            "jct_s": float(finished.mean()) / 1000.0 if len(finished) else float("nan"),
        }


def useful_decisions(records: Sequence[EpisodeRecord]) -> list[np.ndarray]:
    """Per episode, the decisions with a choice, numbered through all records; int64.

    A decision with one stage to choose, one effect of every limit and no idle slot to choose has probability 1 whatever
    the weights are.
    """
    return numbered(
        (np.diff(record.decision_candidates) > 1) | (record.classes > 1) | (record.delay_free > 0) for record in records
    )


def recorded_log_prob(record: EpisodeRecord, effect_classes: bool) -> np.ndarray:
    """Log-probability of the recorded decisions, float32 [D]."""
    limit = record.log_prob_class if effect_classes else record.log_prob_limit
    log_prob = record.log_prob_stage + np.where(record.classes > 1, limit, np.float32(0.0))
    return log_prob + np.where(record.delay_free > 0, record.log_prob_delay, np.float32(0.0))
