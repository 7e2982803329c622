"""Episodes of the current policy on threads, processes or Ray, and their seeds."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from decima.core.errors import TrainingError, WorkerError
from decima.evaluation.workers import make_workers
from decima.learning.perceptron import NetworkShape

# Tests have sequence seeds below 100,000, tuning those from there on, validation and training begin here.
VALIDATION_SEED = 150_000
SEQUENCE_SEED = 200_000


@dataclass(frozen=True)
class Teacher:
    """A scheduler whose decisions are recorded."""

    name: str  # registered name, with options as in ``"weighted_fair:paper"``
    parameters: tuple[tuple[str, float], ...] = ()  # (name, value) pairs
    share: float = 1.0  # probability that its decision, not the policy's, is carried out
    idles: bool = False  # whether it is recorded too that it idles or does not


@dataclass(frozen=True)
class RolloutJob:
    """One episode to run; everything that its record depends on besides task and weights."""

    sequence: Any  # jobs and end of the episode, a hashable description in the words of the system
    seed: int  # random seed of task durations and of the policy
    teacher: Teacher | None = None  # whose decisions to record; None: the policy's own


class Rollouts:
    """Episodes on the workers of :mod:`decima.evaluation.workers`.

    Args:
        work: Function from (architecture, weights, job) to the record of an episode, which threads may call at the same
            time and processes can be sent.
        backend: ``"threads"``, ``"processes"`` or ``"ray"``; by default ``"ray"`` where ``RAY_ADDRESS`` is set, else
            ``"threads"``.
        workers: Number of workers, by default the number of cores.

    Raises:
        DecimaError: The backend is unknown, or Ray and not installed, or ``workers`` is not a number.
    """

    def __init__(self, work: Callable, backend: str | None = None, workers: int | None = None) -> None:
        self._workers = make_workers(work, backend, workers)

    def collect(self, architecture: NetworkShape, weights: np.ndarray, jobs: Sequence) -> list:
        """Run the jobs with these weights, float32 [parameters]; records in the order of the jobs.

        They depend neither on the backend nor on the number of workers.

        Raises:
            TrainingError: A worker died.
        """
        try:
            return self._workers.map([(architecture, weights, job) for job in jobs])
        except WorkerError as error:
            raise TrainingError(str(error)) from error

    def close(self) -> None:
        """Free the workers."""
        self._workers.close()


def rollout_seeds(seed: int, iteration: int, count: int) -> list[int]:
    """Seeds of an iteration's episodes, for durations of tasks and draws of the policy.

    Args:
        seed: Seed of the training run.
        iteration: From 0.
        count: Number of episodes.
    """
    rng = np.random.default_rng([seed, iteration, 1])
    return [int(value) for value in rng.integers(2**62, size=count)]


def sequence_seed(rng: np.random.Generator) -> int:
    """Seed of a sequence to train on, which is none of tests, tuning or validation."""
    return SEQUENCE_SEED + int(rng.integers(2**31 - SEQUENCE_SEED))
