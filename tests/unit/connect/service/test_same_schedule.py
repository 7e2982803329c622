"""The simulator as a client of the service: exactly the schedule of the scheduler in this process."""

import numpy as np
import pytest

import decima
from decima.connect.service.simulator_client import RemoteScheduler
from decima.core.errors import ServiceError
from decima.workload import synthetic_batch, synthetic_poisson
from tests.drivers import Idler
from tests.random_clusters import random_workload
from tests.services import SERVED, running, sessions_of

STREAM = synthetic_poisson(7, 8.0, seed=3, initial=2)
WORKLOADS = {"batch": synthetic_batch(4, seed=1), "stream": STREAM, "odd": random_workload(np.random.default_rng(5))}


@pytest.fixture(scope="module")
def service():
    """All schedulers."""
    with running(sessions_of()) as service:
        yield service


def require_same(mine, theirs):
    np.testing.assert_array_equal(mine.completion_ms, theirs.completion_ms)
    assert mine.log.decision_lists() == theirs.log.decision_lists()


@pytest.mark.parametrize("mode", ["paper", "released"])
@pytest.mark.parametrize("workload", WORKLOADS)
@pytest.mark.parametrize("name", SERVED)
def test_same_schedule(service, name, workload, mode):
    remote = RemoteScheduler(service.target, name)
    for seed in (0, 7):
        here = decima.simulate(WORKLOADS[workload], name, 12, seed, mode=mode, log=True)
        there = decima.simulate(WORKLOADS[workload], remote, 12, seed, mode=mode, log=True)
        require_same(there, here)
    assert remote.fallbacks == 0
    remote.close()
    assert len(service.sessions) == 0


def test_sampled_policy_draws_the_same():
    with running(sessions_of("decima:greedy=0")) as service:
        remote = RemoteScheduler(service.target)
        here = decima.simulate(STREAM, "decima", 12, 3, log=True, parameters={"greedy": 0})
        require_same(decima.simulate(STREAM, remote, 12, 3, log=True), here)
        assert not np.array_equal(decima.simulate(STREAM, remote, 12, 4).completion_ms, here.completion_ms)
        remote.close()


def test_scheduler_written_in_python():
    sessions = sessions_of("fifo")
    sessions.offering._makers["idler"] = lambda: Idler(idle=0.0)
    with running(sessions) as service:
        for mode in ("paper", "released"):
            remote = RemoteScheduler(service.target, "idler")
            here = decima.simulate(STREAM, Idler(idle=0.0), 12, 3, mode=mode, log=True)
            require_same(decima.simulate(STREAM, remote, 12, 3, mode=mode, log=True), here)
            remote.close()


def test_parameters_belong_to_the_service():
    with running(sessions_of("weighted_fair:alpha=-2")) as other:
        remote = RemoteScheduler(other.target)
        here = decima.simulate(STREAM, "weighted_fair", 12, 3, log=True, parameters={"alpha": -2.0})
        require_same(decima.simulate(STREAM, remote, 12, 3, log=True), here)
        remote.close()


def test_many_jobs_come_and_go():
    """The mirror is moved and enlarged many times."""
    jobs = synthetic_poisson(25, 3.0, seed=5)
    with running(sessions_of("decima", "released_fifo")) as service:
        for name in service.sessions.offering.names:
            remote = RemoteScheduler(service.target, name)
            require_same(decima.simulate(jobs, remote, 30, 1, log=True), decima.simulate(jobs, name, 30, 1, log=True))
            remote.close()


def test_unknown_scheduler_is_refused(service):
    with pytest.raises(ServiceError, match=r"scheduler 'nobody' is not offered here; offered: .*INVALID_ARGUMENT"):
        decima.simulate(STREAM, RemoteScheduler(service.target, "nobody"), 3)
