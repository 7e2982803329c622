"""Protocol between the algorithms and a policy that acts in a system and learns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import numpy as np

from decima.learning.loss import Gradient, Loss
from decima.learning.returns import Episode
from decima.learning.rollout import RolloutBackend, RolloutJob, Teacher, rollout_seeds


class Optimised(Protocol):
    """Weights with an optimiser."""

    def apply(self, gradient: np.ndarray, learning_rate: float, largest_norm: float | None = None) -> float:
        """Take one step; returns the norm of the gradient."""

    def restart_adam(self) -> None:
        """Forget the optimiser's moments."""

    def state(self) -> dict[str, np.ndarray]:
        """Weights and the optimiser's state."""

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Take over what :meth:`state` returned."""


class WeightLearner(Optimised, Protocol):
    """Weights, their gradients and an optimiser."""

    @property
    def weights(self) -> np.ndarray:
        """Float32 [parameters], a copy."""

    def gradient(
        self, batch: Any, decisions: np.ndarray, advantages: np.ndarray, log_prob: np.ndarray, loss: Loss
    ) -> Gradient:
        """Gradient of the summed loss of some decisions of a batch, see ``Learner.gradient``."""


class Agent(Protocol):
    """Network, batches and actions that a system provides for training by the shared algorithms.

    Records of episodes are the agent's own business: algorithms only hand them back. Decisions are numbered through
    all records of an iteration.

    Attributes:
        learner: Weights, gradients and optimiser.
        columns: Columns of the curve that :meth:`describe` fills.
        headline: The one of them that a progress bar shows.
        summary_width: Numbers that summarise the state at a decision.
        streaming: Whether jobs arrive over time.
        learns: What can be learned, see :mod:`decima.learning.loss`.
    """

    learner: WeightLearner
    columns: tuple[str, ...]
    headline: str
    summary_width: int
    streaming: bool
    learns: tuple[str, ...]

    def collect(
        self, iteration: int, sequences: int, rollouts: int, mean_length_s: float | None, teacher: Teacher | None = None
    ) -> list:
        """Run episodes with the present weights.

        Args:
            iteration: Iteration of the run; sequences and chance are a function of it and of the seed.
            sequences: Job sequences to draw.
            rollouts: Episodes per sequence.
            mean_length_s: Mean length of episodes of streams; None: to the end.
            teacher: Whose decisions are recorded; None: the policy's own.

        Returns:
            Records, the rollouts of every sequence one after the other.
        """

    def episodes(self, records: Sequence) -> list[Episode]:
        """Times, rewards and state summaries of all rollouts of one sequence."""

    def batch(self, records: Sequence) -> Any:
        """Records in the form of which the learner takes gradients."""

    def useful_decisions(self, records: Sequence) -> list[np.ndarray]:
        """Int64 per episode: the decisions with a choice."""

    def recorded_log_prob(self, records: Sequence, effect_classes: bool) -> np.ndarray:
        """Float32 [D]: log-probabilities of all decisions under the policy that decided."""

    def describe(self, records: Sequence) -> dict[str, float]:
        """Values of ``columns``."""

    def close(self) -> None:
        """Free threads and processes."""


class RolloutAgent:
    """Base of agents whose episodes run on a backend.

    Args:
        task: What to draw sequences of.
        architecture: Shape of the network.
        seed: Source of the initial weights, of sequences and of all chance in episodes.
        backend: Where episodes run; closed with the agent.
    """

    learner: Any

    def __init__(self, task: Any, architecture: Any, seed: int, backend: RolloutBackend) -> None:
        self.task, self.architecture, self.seed = task, architecture, seed
        self._backend = backend

    def run(self, iteration: int, sequences: Sequence, teacher: Teacher | None) -> list:
        """Records of one episode of each sequence with the present weights."""
        seeds = rollout_seeds(self.seed, iteration, len(sequences))
        jobs = [RolloutJob(sequence, seed, teacher) for sequence, seed in zip(sequences, seeds, strict=True)]
        return self._backend.collect(self.architecture, self.learner.weights, jobs)

    def close(self) -> None:
        """End the workers and the threads of the gradient."""
        self._backend.close()
        self.learner.close()


def numbered(choices: Iterable[np.ndarray]) -> list[np.ndarray]:
    """Decisions of each episode that are chosen by a mask, numbered through all episodes; int64."""
    groups, first = [], 0
    for chosen in choices:
        groups.append(first + np.flatnonzero(chosen))
        first += len(chosen)
    return groups
