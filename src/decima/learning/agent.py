"""Protocol between the algorithms and a policy that acts in a system and learns."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from decima.learning.gradient import Learner
from decima.learning.returns import Episode
from decima.learning.rollout import RolloutJob, Rollouts, Teacher, rollout_seeds


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

    learner: Learner
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

    def __init__(self, task: Any, architecture: Any, seed: int, backend: Rollouts) -> None:
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


@dataclass(frozen=True, eq=False)
class Pause:
    """A stream that was stopped between two events; any worker can continue it."""

    time_s: float
    jobs: int  # in the system
    last_arrival_s: float
    memory: np.ndarray  # uint8, all that the run has changed


@dataclass(frozen=True, eq=False)
class StretchJob:
    """One stretch of a stream; its outcome also depends on task and weights."""

    sequence: Any  # jobs, a hashable description in the words of the system
    seed: int  # random seed of task durations and of the policy
    until_s: float | None = None  # end; None: when all jobs are done
    begin: Pause | None = None  # where it begins; None: at time 0
    step_s: float | None = None  # time between two samples; None: there are none
    width: int | None = None  # inputs of a job in a sample; None: all but embeddings
    crowd: int | None = None  # no more samples once there are more jobs than this
    record: bool = False  # whether the decisions are wanted
    keep: bool = False  # whether the end is wanted as a :class:`Pause`


@dataclass(frozen=True, eq=False)
class Samples:
    """The jobs in the system at T equal times, the first at the beginning."""

    first: np.ndarray  # int64 [T + 1], jobs at time t are entries ``first[t]:first[t + 1]``
    job: np.ndarray  # int32 [M], numbers of the jobs
    inputs: np.ndarray  # float32 [M, K], what a critic sees of them; column 0 is 0 for a job without work
    area_s: np.ndarray  # float64 [T], integral of the number of jobs since time 0, job-seconds

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Sums of values per job, float64 [M], at each time; float64 [T]."""
        totals = np.concatenate([[0.0], np.cumsum(values)])
        return totals[self.first[1:]] - totals[self.first[:-1]]


@dataclass(frozen=True, eq=False)
class Stretch:
    """What came of a stretch."""

    record: Any  # decisions, as the agent's other records; None if not wanted
    samples: Samples | None
    finish_s: np.ndarray  # float64 [J], when jobs finished; NaN for those that did not
    pause: Pause | None
