"""Stretches of streams of a policy on the simulated Spark cluster."""

from __future__ import annotations

from itertools import count

import numpy as np

from decima.learning.streams import Pause, Samples, Stretch, StretchJob
from decima.systems.spark.loop import spawn_generators
from decima.systems.spark.policy.kernel.jobs import NUM_JOB_INPUTS, observe_embeddings, observe_jobs
from decima.systems.spark.policy.record import RecordFullError, collect_record, enlarge_buffers
from decima.systems.spark.policy.scheduler import LearnedScheduler
from decima.systems.spark.state import ClusterState


def run_stretch(state: ClusterState, scheduler: LearnedScheduler, job: StretchJob, scale: float) -> Stretch:
    """Run a stretch of a stream; repeated where buffers for decisions are too small.

    Args:
        state: Memory for the stream.
        scheduler: The policy, which records where the job says so.
        job: What to run.
        scale: Factor of times in a critic's inputs, in 1 / ms.
    """
    while True:
        scheduler.bind(state)
        begin = None if job.begin is None else job.begin.memory
        state.start(*spawn_generators(job.seed), scheduler.decision.address, begin)
        samples = _advance(state, job, scale)
        try:
            record = collect_record(state) if job.record else None
        except RecordFullError:
            enlarge_buffers(state, scheduler.architecture.num_features)
            continue
        pause = None
        if job.keep:
            last_s = float(state.job_arrival_ms.max()) / 1000.0
            pause = Pause(float(job.until_s), int(state.num_active), last_s, state.paused())
        return Stretch(record, samples, state.job_finish_ms / 1000.0, pause)


def _advance(state: ClusterState, job: StretchJob, scale: float) -> Samples | None:
    """Run to the end of the stretch, with a sample of the jobs every step."""
    until_ms = np.inf if job.until_s is None else 1000.0 * job.until_s
    samples = []
    if job.step_s is not None:
        step_ms = 1000.0 * job.step_s
        begin_ms = 0.0 if job.begin is None else 1000.0 * job.begin.time_s
        arrival_ms = float(state.job_arrival_ms.max())
        last_ms = min(until_ms, arrival_ms) if arrival_ms > 0.0 else until_ms  # a batch is looked at until it is done
        for number in count():
            now_ms = begin_ms + number * step_ms
            if now_ms > last_ms + 1e-6 * step_ms:
                break
            if number or job.begin is None:
                _run_to(state, now_ms)
            if job.crowd is not None and state.num_active > job.crowd:
                break
            samples.append(_sample(state, scale, job.width))
            if last_ms == np.inf and number and not state.num_active:
                break
    if len(samples) == 0 or until_ms == np.inf:
        _run_to(state, until_ms)
    if job.step_s is None:
        return None
    first = np.concatenate([[0], np.cumsum([len(jobs) for jobs, _, _ in samples])]).astype(np.int64)
    jobs, inputs = (np.concatenate([sample[part] for sample in samples]) for part in (0, 1))
    return Samples(first, jobs, inputs, np.array([area_ms for _, _, area_ms in samples]) / 1000.0)


def _run_to(state: ClusterState, time_ms: float) -> None:
    state.put(time_limit_ms=time_ms, truncated=0)
    state.advance()


def _sample(state: ClusterState, scale: float, width: int | None) -> tuple[np.ndarray, np.ndarray, float]:
    """Jobs in the system, their inputs of a critic, integral of their number."""
    present = int(state.num_active)
    jobs, inputs = np.empty(present, np.int32), np.empty((present, NUM_JOB_INPUTS), np.float32)
    observe_jobs(state.address, scale, jobs, inputs)
    if width is not None and width > NUM_JOB_INPUTS:
        embeddings = np.empty((present, width - NUM_JOB_INPUTS), np.float32)
        observe_embeddings(state.address, jobs, embeddings)
        inputs = np.hstack([inputs, embeddings])
    return jobs, inputs[:, :width], float(state.area_ms)
