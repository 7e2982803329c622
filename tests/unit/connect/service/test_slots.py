"""Delays over the service: the same schedule as in one process, for clients that delay stages."""

import grpc
import pytest

import decima
from decima.connect.service import scheduler_pb2 as protocol
from decima.connect.service.simulator_client import RemoteScheduler
from decima.core.errors import ServiceError
from decima.systems.spark.decision import PART_COLUMNS, STAGE
from decima.systems.spark.policy.architecture import Architecture
from decima.systems.spark.policy.scheduler import LearnedScheduler, load_policy
from decima.workload import synthetic_poisson
from decima.workload.sources import parse_jobs
from tests.drivers import Delaying
from tests.services import running, sessions_of
from tests.unit.connect.service.test_same_schedule import require_same
from tests.unit.connect.service.test_session import Client, counts, job, offer, refused, state
from tests.unit.systems.spark.policy.kernel.test_delays import eager_weights

STREAM = synthetic_poisson(7, 8.0, seed=3, initial=2)


def sessions():
    """Sessions of a scheduler that delays half of the stages, and of one that delays all."""
    made = sessions_of("fifo")
    made.offering._makers |= {"half": lambda: Delaying("fair"), "all": lambda: Delaying("fifo", 1.0)}
    return made


@pytest.mark.parametrize("mode", ["paper", "released"])
def test_same_schedule(mode):
    with running(sessions()) as service, RemoteScheduler(service.target, "half") as remote:
        for settings in ({}, {"job_bound": True}):
            here = require_same(remote, STREAM, Delaying("fair"), 12, 3, mode=mode, **settings)
            assert len(here.log.delays()) > 5


def hold_policies():
    """Policies that wait for the next event: a stored one, and one with random weights on jobs of many stages."""
    yield load_policy("idle-rare-long-2"), parse_jobs("rare_long:n=120").workload(0), "simplified", 2
    features = ("running_age", "remaining", "since_smaller")
    for changes, seed in (({}, 2), ({"embedding": 8, "limit": "none"}, 6)):
        architecture = Architecture.paper(delays=1, idle="hold", more_features=features, **changes)
        weights = eager_weights(architecture, seed, 0.05)
        for mode in ("paper", "released"):
            yield LearnedScheduler(architecture, weights), synthetic_poisson(9, 8.0, seed=3, initial=2), mode, 6


@pytest.mark.parametrize("case", range(5))
def test_a_policy_that_holds_gives_the_same_schedule(case):
    policy, jobs, mode, executors = list(hold_policies())[case]
    made = sessions_of("fifo")
    made.offering._makers["hold"] = lambda: policy
    with running(made) as service, RemoteScheduler(service.target, "hold") as remote:
        here = require_same(remote, jobs, policy, executors, 3, mode=mode)
    assert (here.log.decisions[:, PART_COLUMNS[STAGE]] < 0).sum() > 5  # it does hold


def test_a_policy_that_waits_is_refused_where_nothing_is_said_of_what_runs():
    made = sessions_of("fifo")
    made.offering._makers |= {
        "hold": lambda: load_policy("idle-rare-long-2"),
        "ages": lambda: load_policy("idle-clocked-10"),
        "rule": lambda: decima.make_scheduler("idle_rule", base=1.0),
        "entry": lambda: decima.make_scheduler("entry_srw", pay=1.0),
    }
    code = grpc.StatusCode.INVALID_ARGUMENT
    message = r"reads running tasks, past arrivals and every event, which this client does not .*OpenRequest.running\)"
    refused(code, message, Client, made, scheduler="hold", delays=True)
    refused(code, message, Client, made, scheduler="ages", delays=True)
    refused(code, "idle_rule reads .*busy_ms.*, which no client reports", Client, made, scheduler="rule", running=True)
    message = "reads mean durations of tasks by executors, which no client reports"
    refused(code, message, Client, made, scheduler="entry", running=True)
    refused(code, "running is set, but a driver", Client, made, running=True, shared_cluster="c")


def test_what_runs_is_known_until_it_is_reported_otherwise():
    client = Client(sessions(), running=True)
    begun = counts(10, launched=3, finished=1, running_since_ms=[5.0, 7.0])
    moving = counts(11, moving=1)
    client.decide(jobs=[job()], states=[state(attached=2, moving=1, stages=[begun, moving])], offer=offer(3))
    known = client.mirror.state
    assert known.heap_size == 3  # two tasks and a move
    assert (known.executor_stage[:2] == 0).all()
    assert known.executor_start_ms[:2].tolist() == [5.0, 7.0]
    assert known.executor_destination[2] == 1
    client.decide(states=[state(attached=2, moving=1)], offer=offer(3))
    assert known.heap_size == 3
    longer = job(tasks=(4, 2, 1))  # the job is written anew, with one more stage
    client.decide(jobs=[longer], states=[state(attached=2, moving=1)], offer=offer(3))
    assert client.mirror.state.heap_size == 3
    known = client.mirror.state
    client.decide(states=[state(attached=0, stages=[counts(10, 3, 3), counts(11)])], offer=offer(3))
    assert known.heap_size == 0


@pytest.mark.parametrize(
    ("begins", "at", "message"),
    [
        ([float("nan")], None, "stage 10: running_since_ms is nan; expected a number"),
        ([1.0] * 11, None, "11 tasks run and 0 executors are on their way; expected at most 10 together"),
        ([1.0], 99, "job 'j', stage 99 of the offer: there is no such stage"),
    ],
)
def test_reports_of_what_runs_that_are_wrong(begins, at, message):
    client = Client(sessions(), running=True)
    begun = state(attached=2, stages=[counts(10, launched=2, running_since_ms=begins)])
    offered = protocol.Offer(job="j", executors=1, stage=at)
    refused(grpc.StatusCode.INVALID_ARGUMENT, message, client.decide, jobs=[job()], states=[begun], offer=offered)


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
            return decima.systems.spark.schedulers.Decision(observation.frontier[0], 10, 5.0)

    made = sessions()
    made.offering._makers["wrong"] = lambda: Wrong("fifo")
    client = Client(made, scheduler="wrong", delays=True)
    begun = state(attached=1, stages=[counts(10, 1)])
    message = "scheduler delaying fifo delays a stage that is not runnable, has begun or was delayed before"
    refused(grpc.StatusCode.INTERNAL, message, client.decide, jobs=[job()], states=[begun], offer=offer(9))


def test_a_scheduler_that_delays_is_one_sentence_for_an_old_client(monkeypatch):
    """A simulator whose client does not delay stages."""
    make = protocol.OpenRequest

    def old(**fields):
        return make(**fields | {"delays": False})

    old.FromString = make.FromString  # the service is in this process
    monkeypatch.setattr(protocol, "OpenRequest", old)
    refusal = pytest.raises(ServiceError, match="delays a stage, and this client delays none")
    with running(sessions()) as service, refusal:
        decima.simulate(STREAM, RemoteScheduler(service.target, "all"), 12, 3)
