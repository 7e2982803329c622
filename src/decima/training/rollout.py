"""Running episodes of the current policy: in threads or in processes, with the same result."""

from __future__ import annotations

import multiprocessing
import numbers
import os
import signal
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from decima.exceptions import ConfigError, TrainingError
from decima.policy.architecture import Architecture
from decima.simulator.state import ClusterState
from decima.simulator.tables import WorkloadTables
from decima.training.task import JobSequence, Task

if TYPE_CHECKING:
    from decima.policy.record import EpisodeRecord


@dataclass(frozen=True)
class Teacher:
    """A heuristic whose decisions are recorded."""

    name: str  # registered name
    parameters: tuple[tuple[str, float], ...] = ()  # (name, value) pairs
    share: float = 1.0  # probability that its decision, not the policy's, is carried out


@dataclass(frozen=True)
class RolloutJob:
    """One episode to run; everything that its record depends on besides task and weights."""

    sequence: JobSequence  # jobs and end of the episode
    seed: int  # source of task durations and of the policy's draws
    teacher: Teacher | None = None  # whose decisions to record; None: the policy's own


class RolloutBackend(Protocol):
    """Backend on which episodes run. Records must not depend on the backend or on the number of its workers."""

    def collect(
        self, architecture: Architecture, weights: np.ndarray, jobs: Sequence[RolloutJob]
    ) -> list[EpisodeRecord]:
        """Run the jobs with these weights, float32 [parameters]; records in the order of the jobs."""

    def close(self) -> None:
        """Free the workers."""


def check_workers(workers: int | None) -> int:
    """Number of workers, all cores by default.

    Raises:
        ConfigError: It is no whole number of at least 1.
    """
    if workers is None:
        return os.cpu_count() or 1
    if isinstance(workers, bool) or not isinstance(workers, numbers.Integral) or workers < 1:
        raise ConfigError(f"workers must be a whole number of at least 1, got {workers!r}")
    return int(workers)


def rollout_scheduler(architecture: Architecture, weights: np.ndarray, job: RolloutJob):
    """The sampling, recording policy for one episode."""
    from decima.policy.scheduler import LearnedScheduler
    from decima.schedulers import make_scheduler

    teacher = None if job.teacher is None else make_scheduler(job.teacher.name, **dict(job.teacher.parameters))
    return LearnedScheduler(
        architecture,
        weights,
        greedy=False,
        record=True,
        teacher=teacher,
        teacher_share=0.0 if job.teacher is None else job.teacher.share,
        interarrival_s=job.sequence.interarrival_s,
    )


class SequenceStates:
    """Tables and idle states of recently used sequences.

    Args:
        task: What to draw sequences of.
        keep: Sequences to keep.
    """

    def __init__(self, task: Task, keep: int) -> None:
        self._task = task
        self._keep = keep
        self._entries: dict[JobSequence, tuple[WorkloadTables, object, list[ClusterState]]] = {}

    def prepare(self, sequence: JobSequence) -> None:
        """Draw the sequence unless it is there."""
        if sequence in self._entries:
            self._entries[sequence] = self._entries.pop(sequence)
            return
        settings = self._task.sequence_settings(sequence)
        self._entries[sequence] = (WorkloadTables(self._task.workload(sequence), settings), settings, [])
        while len(self._entries) > self._keep:
            del self._entries[next(iter(self._entries))]

    def run(self, architecture: Architecture, weights: np.ndarray, job: RolloutJob) -> EpisodeRecord:
        """One episode of a prepared sequence; may be called from several threads."""
        from decima.policy.scheduler import record_episode

        tables, settings, idle = self._entries[job.sequence]
        try:
            state = idle.pop()
        except IndexError:
            state = ClusterState(tables, settings)
        record = record_episode(state, rollout_scheduler(architecture, weights, job), job.seed)
        idle.append(state)
        return record


class ThreadBackend:
    """Episodes in threads of this process; the compiled core releases the interpreter lock.

    Args:
        task: What to draw sequences of.
        workers: Threads, all cores by default.
    """

    def __init__(self, task: Task, workers: int | None = None) -> None:
        self.workers = check_workers(workers)
        self._task = task
        self._pool = ThreadPoolExecutor(self.workers, thread_name_prefix="rollout")

    def collect(
        self, architecture: Architecture, weights: np.ndarray, jobs: Sequence[RolloutJob]
    ) -> list[EpisodeRecord]:
        """Run the jobs; see :class:`RolloutBackend`."""
        sequences = list(dict.fromkeys(job.sequence for job in jobs))
        states = SequenceStates(self._task, len(sequences))
        for sequence in sequences:
            states.prepare(sequence)
        if jobs:
            _ = rollout_scheduler(architecture, weights, jobs[0]).decision.address  # compile before threads start
        return list(self._pool.map(lambda job: states.run(architecture, weights, job), jobs))

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown(cancel_futures=True)


class ProcessBackend:
    """Episodes in processes of this machine.

    Args:
        task: What to draw sequences of.
        workers: Processes, all cores by default.
    """

    def __init__(self, task: Task, workers: int | None = None) -> None:
        self.workers = check_workers(workers)
        self._task = task.as_dict()
        # Ctrl-C reaches the whole process group; what to do about it is decided here alone.
        self._pool = ProcessPoolExecutor(
            self.workers,
            mp_context=multiprocessing.get_context("spawn"),
            initializer=signal.signal,
            initargs=(signal.SIGINT, signal.SIG_IGN),
        )

    def collect(
        self, architecture: Architecture, weights: np.ndarray, jobs: Sequence[RolloutJob]
    ) -> list[EpisodeRecord]:
        """Run the jobs; see :class:`RolloutBackend`."""
        work = [(self._task, architecture, weights, job) for job in jobs]
        try:
            return list(self._pool.map(run_in_worker, work))
        except BrokenProcessPool as error:
            raise TrainingError("a worker process died, perhaps for want of memory") from error

    def close(self) -> None:
        """End the processes."""
        self._pool.shutdown(cancel_futures=True)


_STATES: dict[str, SequenceStates] = {}


def run_in_worker(work: tuple[dict, Architecture, np.ndarray, RolloutJob]) -> EpisodeRecord:
    """One episode in another process, from (task as a dict, architecture, weights, job)."""
    task, architecture, weights, job = work
    key = repr(task)
    if key not in _STATES:
        _STATES.clear()
        _STATES[key] = SequenceStates(Task.from_dict(task), keep=4)
    states = _STATES[key]
    states.prepare(job.sequence)
    return states.run(architecture, weights, job)
