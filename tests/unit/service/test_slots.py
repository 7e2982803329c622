"""Delays over the service: the same schedule as in one process, for clients that delay stages."""

import grpc
import pytest

import decima
from decima.exceptions import ServiceError
from decima.service import scheduler_pb2 as protocol
from decima.service.simulator_client import RemoteScheduler
from decima.workload import synthetic_poisson
from tests.drivers import Delaying
from tests.services import running, sessions_of
from tests.unit.service.test_session import Client, counts, job, offer, refused, state

STREAM = synthetic_poisson(7, 8.0, seed=3, initial=2)


def sessions():
    """Sessions of a scheduler that delays half of the stages, and of one that delays all."""
    made = sessions_of("fifo")
    made.offering._makers |= {"half": lambda: Delaying("fair"), "all": lambda: Delaying("fifo", 1.0)}
    return made


@pytest.mark.parametrize("mode", ["paper", "released"])
def test_same_schedule(mode):
    with running(sessions()) as service:
        remote = RemoteScheduler(service.target, "half")
        for settings in ({}, {"delay_once": False, "timer_end": "assign"}, {"job_bound": True}):
            here = decima.simulate(STREAM, Delaying("fair"), 12, 3, mode=mode, log=True, **settings)
            there = decima.simulate(STREAM, remote, 12, 3, mode=mode, log=True, **settings)
            assert len(here.log.delays()) > 5
            assert there.log.decision_lists() == here.log.decision_lists()
            assert there.completion_ms.tolist() == here.completion_ms.tolist()
        remote.close()


def delayed(stage=10, withheld=True, end_ms=1000.0):
    return protocol.DelayedStage(stage=stage, withheld=withheld, end_ms=end_ms)


def test_a_stage_is_delayed_once_and_chosen_afterwards():
    client = Client(sessions(), scheduler="all", delays=True)
    reply = client.decide(jobs=[job()], states=[state()], offer=offer(10))
    assert (reply.idle, reply.job, reply.stage, reply.executors) == (False, "j", 10, 0)
    assert reply.delay_ms > 0.0
    withheld = state(schedulable=(), delayed=[delayed()])
    assert client.decide(states=[withheld], offer=offer(10)).idle
    assert client.mirror.state.slot_end_ms[0] == 1000.0
    over = client.decide(states=[state(delayed=[delayed(withheld=False)])], offer=offer(10))
    assert (over.stage, over.executors, over.delay_ms) == (10, 4, 0.0)


def test_a_client_that_does_not_delay_stages_is_told_of_none():
    client = Client(sessions(), scheduler="all")
    message = r"scheduler delaying fifo delays a stage, and this client delays none \(OpenRequest\.delays\)"
    refused(grpc.StatusCode.INTERNAL, message, client.decide, jobs=[job()], states=[state()], offer=offer(10))
    plain = Client(sessions(), scheduler="fifo")
    assert plain.decide(jobs=[job()], states=[state()], offer=offer(10)).delay_ms == 0.0


def test_a_shared_cluster_has_no_delays():
    message = "delays is set, but a driver of a shared cluster delays no stages"
    refused(grpc.StatusCode.INVALID_ARGUMENT, message, Client, delays=True, shared_cluster="c")


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (delayed(), "job 'j', stage 10 is withheld, but runnable or schedulable"),
        (delayed(stage=99), "job 'j', stage 99: there is no such stage"),
        (delayed(stage=11, end_ms=float("nan")), "end_ms is nan; expected a number from -1e.15 to 1e.15"),
    ],
)
def test_reports_of_delays_that_are_wrong(entry, message):
    client = Client(sessions(), delays=True)
    code = grpc.StatusCode.INVALID_ARGUMENT
    refused(code, message, client.decide, jobs=[job()], states=[state(delayed=[entry])])
    many = [delayed(stage=11)] * 3
    text = "job 'j' has 2 stages, but entries: 3 in delayed"
    refused(code, text, client.decide, full=True, jobs=[job()], states=[state(delayed=many)])


def test_stages_that_have_begun_are_not_delayed():
    class Wrong(Delaying):
        def decide(self, observation):
            return decima.schedulers.Decision(observation.frontier[0], 10, 5.0)

    made = sessions()
    made.offering._makers["wrong"] = lambda: Wrong("fifo")
    client = Client(made, scheduler="wrong", delays=True)
    begun = state(attached=1, stages=[counts(10, 1)])
    message = "scheduler delaying fifo delays a stage that is not runnable, has begun or was delayed before"
    refused(grpc.StatusCode.INTERNAL, message, client.decide, jobs=[job()], states=[begun], offer=offer(9))


def test_a_scheduler_that_delays_is_one_sentence_for_an_old_client(monkeypatch):
    """A simulator whose client does not delay stages."""
    make = protocol.OpenRequest
    monkeypatch.setattr(protocol, "OpenRequest", lambda **fields: make(**fields | {"delays": False}))
    refusal = pytest.raises(ServiceError, match="delays a stage, and this client delays none")
    with running(sessions()) as service, refusal:
        decima.simulate(STREAM, RemoteScheduler(service.target, "all"), 12, 3)
