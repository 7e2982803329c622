"""Running episodes of the current policy: in threads, in processes or on a Ray cluster, with the same result."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from decima.core.errors import TrainingError, WorkerError
from decima.evaluation.workers import make_workers
from decima.systems.spark.loop import new_state
from decima.systems.spark.policy.architecture import Architecture
from decima.systems.spark.policy.task import JobSequence, Task
from decima.systems.spark.settings import Settings
from decima.systems.spark.state import ClusterState
from decima.systems.spark.tables import WorkloadTables

if TYPE_CHECKING:
    from decima.systems.spark.policy.record import EpisodeRecord

# Sequences whose tables and states a process keeps, for all its threads.
KEPT_SEQUENCES = 4


@dataclass(frozen=True)
class Teacher:
    """A scheduler whose decisions are recorded."""

    name: str  # registered name, with options as in ``"lookahead:64"``
    parameters: tuple[tuple[str, float], ...] = ()  # (name, value) pairs
    share: float = 1.0  # probability that its decision, not the policy's, is carried out
    idles: bool = False  # whether it is recorded too that it idles or does not


@dataclass(frozen=True)
class Branch:
    """Where an episode parts from others that are alike up to there."""

    at: float  # decision, as a part of the number of stages of the workload, from 0 to below 1
    seed: int  # source of the policy's draws from there on


@dataclass(frozen=True)
class RolloutJob:
    """One episode to run; everything that its record depends on besides task and weights."""

    sequence: JobSequence  # jobs and end of the episode
    seed: int  # source of task durations and of the policy's draws
    teacher: Teacher | None = None  # whose decisions to record; None: the policy's own
    greedy: bool = False  # whether the policy takes the likeliest action instead of drawing one
    branch: Branch | None = None  # from where on the policy draws from another seed; None: nowhere


class RolloutBackend(Protocol):
    """Backend on which episodes run. Records must not depend on the backend or on the number of its workers."""

    def collect(
        self, architecture: Architecture, weights: np.ndarray, jobs: Sequence[RolloutJob]
    ) -> list[EpisodeRecord]:
        """Run the jobs with these weights, float32 [parameters]; records in the order of the jobs."""

    def close(self) -> None:
        """Free the workers."""


def rollout_scheduler(architecture: Architecture, weights: np.ndarray, job: RolloutJob):
    """The recording policy for one episode."""
    from decima.systems.spark.policy.scheduler import LearnedScheduler
    from decima.systems.spark.schedulers import make_scheduler

    teacher = None if job.teacher is None else make_scheduler(job.teacher.name, **dict(job.teacher.parameters))
    return LearnedScheduler(
        architecture,
        weights,
        greedy=job.greedy,
        record=True,
        teacher=teacher,
        teacher_share=0.0 if job.teacher is None else job.teacher.share,
        interarrival_s=job.sequence.interarrival_s,
        teacher_idles=job.teacher is not None and job.teacher.idles,
    )


class Episodes:
    """Function from (architecture, weights, job) to the record of the episode; several threads may call it.

    Tables and idle states of the sequences used last are kept.

    Args:
        task: What to draw sequences of.
    """

    def __init__(self, task: Task) -> None:
        self._task = task
        self._lock = threading.Lock()
        self._entries: dict[JobSequence, tuple[WorkloadTables, Settings, list[ClusterState]]] = {}

    def __reduce__(self) -> tuple:
        """Pickle as the task alone."""
        return _episodes_of, (self._task.as_dict(),)

    def __call__(self, item: tuple[Architecture, np.ndarray, RolloutJob]) -> EpisodeRecord:
        """Run the episode."""
        from decima.systems.spark.policy.scheduler import record_episode

        architecture, weights, job = item
        tables, settings, idle = self._prepared(job.sequence)
        try:
            state = idle.pop()
        except IndexError:
            state = new_state(tables, settings)
        branch = None if job.branch is None else (int(job.branch.at * tables.num_stages), job.branch.seed)
        record = record_episode(state, rollout_scheduler(architecture, weights, job), job.seed, branch)
        idle.append(state)
        return record

    def _prepared(self, sequence: JobSequence) -> tuple[WorkloadTables, Settings, list[ClusterState]]:
        """Tables, settings and idle states of a sequence, which is drawn unless it is there."""
        with self._lock:
            entry = self._entries.pop(sequence, None)
            if entry is None:
                settings = self._task.sequence_settings(sequence)
                entry = WorkloadTables(self._task.workload(sequence), settings), settings, []
            self._entries[sequence] = entry
            while len(self._entries) > KEPT_SEQUENCES:
                del self._entries[next(iter(self._entries))]
        return entry


def _episodes_of(task: dict) -> Episodes:
    return Episodes(Task.from_dict(task))


class Rollouts:
    """Episodes on the workers of :mod:`decima.evaluation.workers`.

    Args:
        work: The task to draw sequences of; or, of another system, a function from (architecture, weights, job) to the
            record of an episode, which threads may call at the same time and processes can be sent.
        backend: ``"threads"``, ``"processes"`` or ``"ray"``; by default ``"ray"`` where ``RAY_ADDRESS`` is set, else
            ``"threads"``.
        workers: Number of workers, by default as many as there are cores.

    Raises:
        ConfigError: The backend is unknown, ``workers`` is no number, or Ray is not installed.
    """

    def __init__(self, work: Task | Callable, backend: str | None = None, workers: int | None = None) -> None:
        self._workers = make_workers(Episodes(work) if isinstance(work, Task) else work, backend, workers)

    def collect(self, architecture: Any, weights: np.ndarray, jobs: Sequence) -> list:
        """Run the jobs; see :class:`RolloutBackend`.

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
