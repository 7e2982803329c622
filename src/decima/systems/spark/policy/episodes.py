"""Recorded episodes of a policy on the simulated Spark cluster."""

from __future__ import annotations

import threading

import numpy as np

from decima.learning.rollout import RolloutJob
from decima.learning.streams import Stretch, StretchJob
from decima.systems.spark.loop import new_state
from decima.systems.spark.policy.architecture import Architecture
from decima.systems.spark.policy.record import EpisodeRecord
from decima.systems.spark.policy.scheduler import LearnedScheduler, record_episode
from decima.systems.spark.policy.stretches import run_stretch
from decima.systems.spark.policy.task import JobSequence, Task
from decima.systems.spark.schedulers import make_scheduler
from decima.systems.spark.settings import Settings
from decima.systems.spark.state import ClusterState
from decima.systems.spark.tables import WorkloadTables

# Sequences whose tables and states a process keeps, for all its threads.
KEPT_SEQUENCES = 4
KEPT_STREAMS = 32  # of those that go on from iteration to iteration


def rollout_scheduler(architecture: Architecture, weights: np.ndarray, job: RolloutJob):
    """The recording policy for one episode."""
    teacher = None if job.teacher is None else make_scheduler(job.teacher.name, **dict(job.teacher.parameters))
    return LearnedScheduler(
        architecture,
        weights,
        greedy=False,
        record=True,
        teacher=teacher,
        teacher_share=0.0 if job.teacher is None else job.teacher.share,
        interarrival_s=job.sequence.interarrival_s,
        teacher_idles=job.teacher is not None and job.teacher.idles,
    )


class Episodes:
    """Runs (architecture, weights, job) to an episode's record; thread-safe.

    Tables and idle states of the sequences used last are kept.

    Args:
        task: What to draw sequences of.
        scale: Factor of times in a critic's inputs, in 1 / ms.
    """

    def __init__(self, task: Task, scale: float = 0.001) -> None:
        self._task, self._scale = task, scale
        self._lock = threading.Lock()
        self._entries: dict[JobSequence, tuple[WorkloadTables, Settings, list[ClusterState]]] = {}

    def __reduce__(self) -> tuple:
        """Pickle as the task and the scale alone."""
        return _episodes_of, (self._task.as_dict(), self._scale)

    def __call__(self, item: tuple[Architecture, np.ndarray, RolloutJob | StretchJob]) -> EpisodeRecord | Stretch:
        """Run the episode, or the stretch of a stream."""
        architecture, weights, job = item
        streams = isinstance(job, StretchJob)
        tables, settings, idle = self._prepared(job.sequence, KEPT_STREAMS if streams else KEPT_SEQUENCES)
        try:
            state = idle.pop()
        except IndexError:
            state = new_state(tables, settings)
        if streams:
            scheduler = LearnedScheduler(architecture, weights, greedy=False, record=job.record)
            record = run_stretch(state, scheduler, job, self._scale)
        else:
            record = record_episode(state, rollout_scheduler(architecture, weights, job), job.seed)
        idle.append(state)
        return record

    def _prepared(self, sequence: JobSequence, kept: int) -> tuple[WorkloadTables, Settings, list[ClusterState]]:
        """Tables, settings and idle states of a sequence, which is drawn unless it is there."""
        with self._lock:
            entry = self._entries.pop(sequence, None)
            if entry is None:
                settings = self._task.sequence_settings(sequence)
                entry = WorkloadTables(self._task.workload(sequence), settings), settings, []
            self._entries[sequence] = entry
            while len(self._entries) > kept:
                del self._entries[next(iter(self._entries))]
        return entry


def _episodes_of(task: dict, scale: float) -> Episodes:
    return Episodes(Task.from_dict(task), scale)
