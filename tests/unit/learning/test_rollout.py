import os

import numpy as np
import pytest

from decima.core.errors import TrainingError
from decima.learning.rollout import RolloutJob, Rollouts, Teacher, rollout_seeds
from decima.systems.spark.policy.episodes import Episodes
from tests.unit.learning.small import NETWORK, STREAM, TASK, assert_same_records

WEIGHTS = NETWORK.initial_weights(0)


def jobs(task, teacher=None):
    length_s = 60.0 if task.streaming else None
    sequences = task.training_sequences(5, 0, 2, length_s)
    return [RolloutJob(sequences[k % 2], seed, teacher) for k, seed in enumerate(rollout_seeds(5, 0, 5))]


def collect(kind, workers, task, work):
    backend = Rollouts(Episodes(task), kind, workers)
    try:
        return backend.collect(NETWORK, WEIGHTS, work), backend.collect(NETWORK, 0.5 * WEIGHTS, work)
    finally:
        backend.close()


@pytest.mark.parametrize("task", [TASK, STREAM], ids=["batch", "stream"])
def test_records_do_not_depend_on_the_number_of_threads(task):
    alone, alone_again = collect("threads", 1, task, jobs(task))
    several, several_again = collect("threads", 3, task, jobs(task))
    assert_same_records(alone, several)
    assert_same_records(alone_again, several_again)
    assert len({record.end_ms for record in alone}) > 1
    if task.streaming:
        assert any(record.truncated for record in alone)


def test_threads_and_processes_give_the_same_records():
    work = jobs(STREAM, Teacher("capped_srw", (("c0", 2.0),), 0.5))
    threads, threads_again = collect("threads", 2, STREAM, work)
    processes, processes_again = collect("processes", 2, STREAM, work)
    assert_same_records(threads, processes)
    assert_same_records(threads_again, processes_again)


def test_a_teacher_that_always_acts_gives_its_own_run():
    from decima.systems.spark.schedulers import make_scheduler
    from decima.systems.spark.state import ClusterState
    from decima.systems.spark.system import run_state
    from decima.systems.spark.tables import WorkloadTables

    backend = Rollouts(Episodes(TASK), "threads", 2)
    for job in jobs(TASK, Teacher("fair")):
        record = backend.collect(NETWORK, WEIGHTS, [job])[0]
        state = ClusterState(WorkloadTables(TASK.workload(job.sequence), TASK.cluster), TASK.cluster)
        run_state(state, make_scheduler("fair"), job.seed)
        np.testing.assert_array_equal(record.completion_ms, state.job_finish_ms)
    backend.close()


def test_a_worker_that_dies_is_one_error():
    backend = Rollouts(Episodes(TASK), "processes", 1)
    assert backend.collect(NETWORK, WEIGHTS, []) == []
    backend._workers._pool.submit(os._exit, 3)
    with pytest.raises(TrainingError, match="a worker process died"):
        backend.collect(NETWORK, WEIGHTS, jobs(TASK))
    backend.close()
