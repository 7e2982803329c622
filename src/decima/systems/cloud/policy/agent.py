"""Placement policies as algorithms see them: probabilities and values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from decima.learning.agent import RolloutAgent, numbered
from decima.learning.loss import PROBABILITIES, VALUES
from decima.learning.replay import Transitions
from decima.learning.returns import Episode
from decima.learning.rollout import RolloutBackend, Teacher
from decima.systems.cloud.policy.architecture import PlacementArchitecture
from decima.systems.cloud.policy.episodes import Explorer
from decima.systems.cloud.policy.network import PlacementBatch, PlacementLearner
from decima.systems.cloud.policy.scheduler import PlacementRecord
from decima.systems.cloud.policy.task import PlacementTask


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
        **options: Adam's numbers, see :class:`.AdamWeights`.
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
        backend: RolloutBackend,
        *,
        weights: np.ndarray | None = None,
        **options: Any,
    ) -> None:
        super().__init__(task, architecture, seed, backend)
        weights = architecture.initial_weights(seed) if weights is None else weights
        self.learner = PlacementLearner(architecture, weights, **options)
        self._explorer = Explorer(task, architecture, seed)

    def collect(
        self, iteration: int, sequences: int, rollouts: int, mean_length_s: float | None, teacher: Teacher | None = None
    ) -> list[PlacementRecord]:
        """Run episodes; every trace is placed to its end."""
        drawn = self.task.training_sequences(self.seed, iteration, sequences)
        return self.run(iteration, [sequence for sequence in drawn for _ in range(rollouts)], teacher)

    def episodes(self, records: Sequence[PlacementRecord]) -> list[Episode]:
        """Episodes over jobs or steps."""
        per_job = self.task.reward == "per_job"
        episodes = []
        for record in records:
            when, end = (record.job, record.jobs) if per_job else (record.step, record.steps)
            episodes.append(Episode(when.astype(np.float64), float(end), record.reward, np.zeros((len(record), 0))))
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
        """Go on with the ongoing episode; see :meth:`decima.learning.algorithms.dqn.ValueAgent.explore`."""
        transitions, ended = self._explorer.go_on(self.learner.weights, iteration, steps, epsilon)
        return transitions, self.describe(ended) if ended else {}

    def explorer_state(self) -> tuple[dict[str, np.ndarray], dict]:
        """Where the ongoing episode is."""
        return self._explorer.state()

    def restore_explorer(self, arrays: dict[str, np.ndarray], counters: dict) -> None:
        """Bring the ongoing episode to where it was."""
        self._explorer.restore(arrays, counters, self.learner.weights)
