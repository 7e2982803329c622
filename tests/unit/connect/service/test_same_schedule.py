"""The simulator as a client of the service: exactly the schedule of the scheduler in this process."""

import numpy as np
import pytest

import decima
from decima.connect.service.reports import REPORTED
from decima.connect.service.sessions import Offering, Sessions
from decima.connect.service.simulator_client import RemoteScheduler
from decima.core.errors import DecimaError, ServiceError
from decima.systems.spark.fields import FIELDS
from decima.systems.spark.schedulers.interface import CompiledScheduler
from decima.workload import synthetic_batch, synthetic_poisson
from tests.drivers import Idler, Through
from tests.random_clusters import random_workload
from tests.services import SERVED, running, sessions_of
from tests.unit.connect.service import reading_rules

STREAM, SHORT = synthetic_poisson(7, 8.0, seed=3, initial=2), synthetic_poisson(3, 8.0, seed=3, initial=1)
WORKLOADS = {"batch": synthetic_batch(4, seed=1), "stream": STREAM, "odd": random_workload(np.random.default_rng(5))}


@pytest.fixture(scope="module")
def service():
    """All schedulers."""
    with running(sessions_of()) as service:
        yield service


def require_same(remote, jobs, scheduler, executors, seed, parameters=None, **settings):
    """Simulate jobs with a scheduler here and by the service, which gives the same; returns the result."""
    here = decima.simulate(jobs, scheduler, executors, seed, log=True, parameters=parameters, **settings)
    there = decima.simulate(jobs, remote, executors, seed, log=True, **settings)
    np.testing.assert_array_equal(there.completion_ms, here.completion_ms)
    assert there.log.decision_lists() == here.log.decision_lists()
    assert remote.fallbacks == 0
    return here


@pytest.mark.parametrize("mode", ["paper", "released"])
@pytest.mark.parametrize("workload", WORKLOADS)
@pytest.mark.parametrize("name", SERVED)
def test_same_schedule(service, name, workload, mode):
    with RemoteScheduler(service.target, name) as remote:
        for seed in (0, 7):
            require_same(remote, WORKLOADS[workload], name, 12, seed, mode=mode)
    assert len(service.sessions) == 0


def test_sampled_policy_draws_the_same():
    with running(sessions_of("decima:greedy=0")) as service, RemoteScheduler(service.target) as remote:
        here = require_same(remote, STREAM, "decima", 12, 3, {"greedy": 0})
        assert not np.array_equal(decima.simulate(STREAM, remote, 12, 4).completion_ms, here.completion_ms)


def test_scheduler_written_in_python():
    sessions = sessions_of("fifo")
    sessions.offering._makers["idler"] = lambda: Idler(idle=0.0)
    with running(sessions) as service, RemoteScheduler(service.target, "idler") as remote:
        for mode in ("paper", "released"):
            require_same(remote, STREAM, Idler(idle=0.0), 12, 3, mode=mode)


def offering(*schedulers):
    """Sessions that offer these scheduler objects by their names."""
    return Sessions(Offering({each.name: (lambda each=each: each) for each in schedulers}))


def compiled(name):
    """A toy whose code reads one field and declares nothing."""
    return CompiledScheduler(name, getattr(reading_rules, name))


@pytest.mark.parametrize("mode", ["paper", "released"])
def test_every_reported_field_is_as_in_a_simulation(mode):
    toys = [reading_rules.Reads(field) for field in sorted(REPORTED)]
    with running(offering(*toys)) as service:
        for toy in toys:
            with RemoteScheduler(service.target, toy.name) as remote:
                require_same(remote, WORKLOADS["odd"] if mode == "paper" else SHORT, toy, 12, 3, mode=mode)


@pytest.mark.parametrize("field", sorted(FIELDS - REPORTED))
def test_other_fields_are_refused_by_name(field):
    with pytest.raises(DecimaError, match=f"scheduler reads_{field} reads {field}, which no client reports"):
        offering(reading_rules.Reads(field))


@pytest.mark.parametrize("name", ["by_unfinished", "by_unexhausted", "by_unsaturated_parents"])
def test_what_a_compiled_rule_reads_is_filled(name):
    with running(offering(compiled(name))) as service, RemoteScheduler(service.target) as remote:
        for mode in ("paper", "released"):
            for workload in WORKLOADS.values():
                require_same(remote, workload, compiled(name), 12, 3, mode=mode)


@pytest.mark.parametrize("hidden", [False, True])
@pytest.mark.parametrize(("name", "field"), [("by_calls", "job_calls"), ("by_selected", "stage_selected")])
def test_or_is_found_in_its_code_and_refused(name, field, hidden):
    scheduler = Through(compiled(name)) if hidden else compiled(name)
    with pytest.raises(DecimaError, match=f"scheduler {name} reads .*{field}, which no client reports"):
        offering(scheduler)


@pytest.mark.parametrize("name", ["spark_fifo", "fair"])
def test_a_scheduler_that_reads_an_unusual_setting_is_refused(service, name):
    """FIFO of Spark reads whether idle executors are offered again, fair does not."""
    with RemoteScheduler(service.target, name) as remote:
        if name == "fair":
            require_same(remote, STREAM, name, 12, 3, mode="paper", reoffer=False)
        else:
            with pytest.raises(ServiceError, match=r"spark_fifo reads reoffer, which this client.*OpenRequest.unlike"):
                decima.simulate(STREAM, remote, 12, mode="paper", reoffer=False)


def test_parameters_belong_to_the_service():
    with running(sessions_of("weighted_fair:alpha=-2")) as service, RemoteScheduler(service.target) as remote:
        require_same(remote, STREAM, "weighted_fair", 12, 3, {"alpha": -2.0})


def test_many_jobs_come_and_go():
    """The mirror is moved and enlarged many times."""
    jobs = synthetic_poisson(25, 3.0, seed=5)
    with running(sessions_of("decima", "released_fifo")) as service:
        for name in service.sessions.offering.names:
            with RemoteScheduler(service.target, name) as remote:
                require_same(remote, jobs, name, 30, 1)


def test_unknown_scheduler_is_refused(service):
    with pytest.raises(ServiceError, match=r"scheduler 'nobody' is not offered here; offered: .*INVALID_ARGUMENT"):
        decima.simulate(STREAM, RemoteScheduler(service.target, "nobody"), 3)


def test_a_session_ends_with_its_run():
    """Of 64 runs none is left, with the object kept and with one object each."""
    jobs = synthetic_batch(1, seed=1)
    with running(sessions_of("fifo")) as service:
        remote = RemoteScheduler(service.target)
        for _ in range(32):
            decima.simulate(jobs, remote, 2)
        assert len(service.sessions) == 0
        for _ in range(32):
            decima.simulate(jobs, RemoteScheduler(service.target), 2)
        assert len(service.sessions) == 0
