"""Recorded episodes of a policy on the simulated Spark cluster."""

import threading
from itertools import count
from math import log1p, sqrt

import numpy as np

from decima.core.jit import njit
from decima.learning.agent import Pause, Samples, Stretch, StretchJob
from decima.learning.rollout import RolloutJob
from decima.systems.spark.fields import state_at
from decima.systems.spark.policy.architecture import Architecture
from decima.systems.spark.policy.fields import policy_of
from decima.systems.spark.policy.kernel.embedding import embed
from decima.systems.spark.policy.kernel.inference import prepare
from decima.systems.spark.policy.kernel.layout import EMBEDDING
from decima.systems.spark.policy.record import EpisodeRecord, RecordFullError, collect_record, enlarge_buffers
from decima.systems.spark.policy.scheduler import LearnedScheduler, record_episode
from decima.systems.spark.policy.task import JobSequence, Task
from decima.systems.spark.schedulers import make_scheduler
from decima.systems.spark.settings import Settings
from decima.systems.spark.state import ClusterState, new_state, spawn_generators
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
        ends = until_ms == np.inf and arrival_ms > 0.0  # a batch is looked at until it is done
        last_ms = max(begin_ms, arrival_ms) if ends else until_ms
        for number in count():
            now_ms = begin_ms + number * step_ms
            if now_ms > last_ms + 1e-6 * step_ms:
                break
            if number or job.begin is None:
                _run_to(state, now_ms)
            if number and job.crowd is not None and state.num_active > job.crowd:
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


# Meaning of every input by its name. Times are in units in which the horizon of the discount is 1,500 s, divided by
# executors where they are work. No input counts or sorts jobs: that would jump when a job comes.
JOB_INPUTS = {
    "some_work": "work / (work + 1.2), 0 for a job without work",
    "log_work": "logarithm of the work left",
    "work": "work left",
    "root_work": "its square root",
    "ahead": "work of others that is done before it if the least is served first, sum of min(work, work of each)",
    "larger_than": "soft rank: sum over the others of their share in the work of both",
    "path": "longest path left, one task per stage",
    "soft_jobs": "soft number of jobs, sum of work / (work + 3)",
    "all_work": "work left of all jobs",
    "held": "executors that work for it, move to it or are promised to it, as a saturating share",
    "executors": "the same, as a share of all executors",
    "in_flight": "share of its work that running tasks have",
}
NUM_JOB_INPUTS = len(JOB_INPUTS)
NUM_WORK_INPUTS = list(JOB_INPUTS).index("held")  # the first ones: of the work alone, not of who does it


@njit(cache=True, nogil=True)
def observe_jobs(address, scale, jobs, inputs):
    """Store the inputs of all jobs in the system.

    Args:
        address: Of the state.
        scale: Factor of all times, in 1 / ms.
        jobs: int32 [n], for the numbers of the jobs.
        inputs: float32 [n, 12], for :data:`JOB_INPUTS`.
    """
    state = state_at(address)
    count = state.num_active
    executors = float(state.num_executors)
    work = np.zeros(count)
    total = soft = 0.0
    for index in range(count):
        job = state.active[index]
        left = path = flying = held = 0.0
        for stage in range(state.job_first_stage[job], state.job_first_stage[job + 1]):
            tasks = state.stage_tasks[stage] - state.stage_finished_tasks[stage]
            if tasks > 0:
                row = state.stage_row[stage]
                left += tasks * state.row_nominal_ms[row]
                path = max(path, state.row_path_ms[row])
                flying += (state.stage_next[stage] - state.stage_finished_tasks[stage]) * state.row_nominal_ms[row]
                held += state.stage_executors[stage] + state.stage_moving[stage] + state.stage_commit[stage]
        left *= scale / executors
        flying *= scale / executors
        jobs[index] = job
        work[index] = left
        total += left
        soft += left / (left + 3.0)
        inputs[index, 0] = left / (left + 1.2)
        inputs[index, 1] = log1p(left) / 3.0
        inputs[index, 2] = left / 30.0
        inputs[index, 3] = sqrt(left) / 4.25
        inputs[index, 6] = path * scale / 60.0
        inputs[index, 9] = held / (held + 0.16 * executors)
        inputs[index, 10] = held / (0.4 * executors)
        inputs[index, 11] = flying / (left + 0.2)
    for index in range(count):
        mine = work[index]
        ahead = 0.5 * mine
        larger = 0.0
        for other in range(count):
            if other != index:
                ahead += min(mine, work[other])
                larger += work[other] / (work[other] + mine + 0.02)
        inputs[index, 4] = ahead / 50.0
        inputs[index, 5] = larger / 4.0
        inputs[index, 7] = soft / 5.0
        inputs[index, 8] = total / 80.0


@njit(cache=True, nogil=True)
def observe_embeddings(address, jobs, inputs):
    """Store the policy's embeddings y of jobs (§5.1) as y / (1 + abs(y)).

    Args:
        address: Of the state, with a policy that has a graph embedding.
        jobs: int32 [n], numbers of jobs in the system.
        inputs: float32 [n, embedding].
    """
    state = state_at(address)
    policy = policy_of(state)
    if not policy.net_ready:
        prepare(state)
    embed(state)
    width = policy.net_layout[EMBEDDING]
    for index in range(len(jobs)):
        for k in range(width):
            y = policy.net_y[jobs[index] * width + k]
            inputs[index, k] = y / (np.float32(1.0) + abs(y))
