"""Sessions without a network: what is told, what is kept, what is refused."""

import grpc
import numpy as np
import pytest

from decima.connect.service import scheduler_pb2 as protocol
from decima.connect.service.durations import PRIOR_MS, ProfileBook
from decima.connect.service.errors import RefusalError
from decima.connect.service.limits import Limits
from decima.connect.service.sessions import Offering, Sessions
from decima.core.record import PLAIN
from decima.systems.spark.fields import ARRAYS
from decima.systems.spark.policy.architecture import Architecture
from decima.systems.spark.policy.record import policy_record
from decima.systems.spark.schedulers.fields import RULE
from decima.workload.profile import JobProfile, Stage
from tests.services import expire, leave, sessions_of
from tests.unit.systems.spark.policy.policies import make_policy


class Client:
    """Numbers its calls and keeps no state."""

    def __init__(self, sessions=None, **opening):
        self.sessions = sessions_of("fifo") if sessions is None else sessions
        self.session = self.sessions.open(protocol.OpenRequest(**({"version": 1, "executors": 10} | opening))).session
        self.sequence = 0

    def decide(self, **fields):
        self.sequence += 1
        values = {"session": self.session, "sequence": self.sequence, "full": self.sequence == 1, "executors": 10}
        return self.sessions.find(self.session).session.decide(protocol.DecideRequest(**(values | fields)))

    @property
    def mirror(self):
        return self.sessions.find(self.session).session._jobs.mirror

    def nominal_ms(self, job="j"):
        slot = self.mirror.slots[None, job]
        return self.mirror.state.row_nominal_ms[slot.first : slot.first + slot.size].tolist()


def job(name="j", tasks=(4, 2), **fields):
    """A chain with stage ids 10, 11, ..."""
    stages = [
        protocol.Stage(stage=10 + n, num_tasks=count, parents=[9 + n] if n else [], duration_ms=100.0)
        for n, count in enumerate(tasks)
    ]
    return protocol.Job(job=name, **({"stages": stages} | fields))


def state(name="j", attached=0, schedulable=(10,), stages=(), **fields):
    return protocol.JobState(
        job=name, attached=attached, runnable=schedulable, schedulable=schedulable, stages=stages, **fields
    )


def offer(executors, source=""):
    return protocol.Offer(job=source, executors=executors)


def counts(stage, launched=0, finished=0, **fields):
    return protocol.StageState(stage=stage, launched=launched, finished=finished, **fields)


def refused(code, message, call, *arguments, **fields):
    with pytest.raises(RefusalError, match=message) as caught:
        call(*arguments, **fields)
    assert caught.value.code is code


def test_decision_in_the_words_of_the_client():
    client = Client()
    reply = client.decide(jobs=[job()], states=[state()], offer=offer(10))
    assert (reply.job, reply.stage, reply.executors, reply.limit, reply.idle) == ("j", 10, 4, 4, False)
    assert reply.sequence == 1
    assert reply.decide_us > 0.0
    assert client.decide(states=[state(attached=4, schedulable=[], stages=[counts(10, 4)])], offer=offer(6)).idle
    assert client.decide().idle


def test_limit_counts_what_the_job_keeps():
    client = Client()
    fields = {"jobs": [job(tasks=(9,))], "states": [state(attached=5, stages=[counts(10, 5, 3)])]}
    reply = client.decide(**fields, offer=offer(2, "j"))
    assert (reply.limit, reply.executors) == (5, 2)
    released = Client(mode="released").decide(**fields, offer=offer(2, "j"))
    assert (released.limit, released.executors) == (2, 2)


def test_jobs_come_back_to_their_place_by_arrival():
    """A query between two Spark jobs is gone for a moment; FIFO serves it first nevertheless."""
    client = Client()
    jobs = [job("old", arrival_ms=1.0), job("new", arrival_ms=2.0)]
    client.decide(jobs=jobs, states=[state("old"), state("new")])
    client.decide(gone=["old"])
    reply = client.decide(jobs=[job("old", arrival_ms=1.0)], states=[state("old")], offer=offer(1))
    assert reply.job == "old"


def test_stages_are_appended():
    client = Client()
    client.decide(jobs=[job(tasks=(4,))], states=[state(attached=4, stages=[counts(10, 4, 3)], schedulable=[])])
    reply = client.decide(
        jobs=[job(tasks=(4, 2))],
        states=[state(attached=4, schedulable=[11], stages=[counts(10, 4, 4)])],
        offer=offer(4, "j"),
    )
    assert (reply.stage, reply.executors) == (11, 2)
    assert client.mirror.slots[None, "j"].graph.finished == [4, 0]
    changed = job(tasks=(5, 2, 1))
    refused(grpc.StatusCode.INVALID_ARGUMENT, "first 2 stages are not those", client.decide, jobs=[changed])


def test_counters_may_fall_and_finished_stages_run_again():
    """Lost shuffle files: the first stage is not finished any more, the second one is."""
    client = Client(sessions_of("decima"))
    done = [counts(10, 4, 4), counts(11, 2, 2)]
    client.decide(jobs=[job(tasks=(4, 2, 3))], states=[state(schedulable=[12], stages=done)])
    again = state(schedulable=[10], stages=[counts(10, 2, 1)])
    reply = client.decide(states=[again], offer=offer(3))
    assert (reply.stage, reply.executors) == (10, 2)
    slot = client.mirror.slots[None, "j"]
    counted = client.mirror.state.stage_finished_tasks[slot.first : slot.first + 3]
    assert counted.tolist() == [1, 1, 0]
    unfinished = client.mirror.state.stage_unfinished_parents[slot.first : slot.first + 3]
    assert unfinished.tolist() == [0, 1, 1]


def test_more_executors_than_at_the_beginning():
    client = Client(sessions_of("decima"), executors=1)
    reply = client.decide(jobs=[job(tasks=(90,))], states=[state()], executors=60, offer=offer(60))
    assert reply.executors >= 1
    refused(grpc.StatusCode.INVALID_ARGUMENT, "made for at most 200 executors", client.decide, executors=201)


def unknown_duration(name="j", tasks=(4, 2), **fields):
    message = job(name, tasks, **fields)
    for stage in message.stages:
        stage.duration_ms = 0.0
    return message


def test_durations_are_estimated_from_finished_tasks():
    client = Client()
    client.decide(jobs=[unknown_duration()], states=[state()])
    assert client.nominal_ms() == [PRIOR_MS, PRIOR_MS]
    client.decide(states=[state(stages=[counts(10, 3, 2, measured_tasks=2, measured_ms=500.0)])])
    assert client.nominal_ms() == [250.0, 250.0]
    client.decide(jobs=[unknown_duration("k")], states=[state("k")])
    assert client.nominal_ms("k") == [250.0, 250.0]
    both = [counts(10, 3, 3, measured_tasks=3, measured_ms=600.0), counts(11, 1, 1, measured_tasks=1, measured_ms=80.0)]
    client.decide(states=[state(stages=both)])
    assert client.nominal_ms() == [200.0, 80.0]
    state_of = client.mirror.state
    assert state_of.job_work_ms[client.mirror.slots[None, "j"].job] == 4 * 200.0 + 2 * 80.0


def test_a_told_duration_of_zero_is_known():
    client = Client()
    known = unknown_duration()
    known.stages[0].duration_known = True
    client.decide(jobs=[known], states=[state()])
    assert client.nominal_ms() == [0.0, PRIOR_MS]


def profiled(name, *stages):
    """A profile from (tasks, parents, duration)."""
    nothing = (np.zeros(0),)
    made = [
        Stage(f"s{n}", tasks, parents, (1,), nothing, nothing, (np.array([ms]),))
        for n, (tasks, parents, ms) in enumerate(stages)
    ]
    return JobProfile(name, tuple(made), "test")


BOOK = ProfileBook([profiled("q05", (4, (), 10.0), (7, (), 20.0), (4, (), 30.0), (2, (0, 1), 40.0), (1, (2, 3), 50.0))])


def test_durations_come_from_the_profile():
    client = Client(sessions_of("fifo", book=BOOK))
    scans = [protocol.Stage(stage=n, num_tasks=tasks) for n, tasks in ((3, 7), (5, 4))]
    client.decide(jobs=[protocol.Job(job="j", profile="q05", stages=scans)])
    assert client.nominal_ms() == [20.0, 10.0]
    join = protocol.Stage(stage=6, num_tasks=2, parents=[5, 3])
    client.decide(jobs=[protocol.Job(job="j", profile="q05", stages=[*scans, join])])
    assert client.nominal_ms() == [20.0, 10.0, 40.0]
    # The work of the whole query counts from the beginning.
    assert client.mirror.state.job_work_ms[client.mirror.slots[None, "j"].job] == 40.0 + 140.0 + 120.0 + 80.0 + 50.0


def test_profile_of_another_scale_is_matched_without_task_counts():
    client = Client(sessions_of("fifo", book=BOOK))
    stages = [protocol.Stage(stage=n, num_tasks=40 + n) for n in range(2)]
    stages.append(protocol.Stage(stage=7, num_tasks=3, parents=[0, 1]))
    stages.append(protocol.Stage(stage=8, num_tasks=3, parents=[0, 1, 7]))
    client.decide(jobs=[protocol.Job(job="j", profile="q05", stages=stages)])
    assert client.nominal_ms()[:3] == [10.0, 20.0, 40.0]
    assert client.nominal_ms()[3] == PRIOR_MS
    client.decide(jobs=[protocol.Job(job="k", profile="q99", stages=stages)])
    assert client.nominal_ms("k") == [PRIOR_MS] * 4


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"jobs": [job("")]}, "expected 1 to 500 characters"),
        ({"jobs": [job("x" * 501)]}, "expected 1 to 500 characters"),
        ({"jobs": [protocol.Job(job="j")]}, "has no stages"),
        ({"jobs": [job(tasks=(0,))]}, "num_tasks is 0; expected 1 to 10000000"),
        ({"jobs": [job(tasks=(10_000_001,))]}, "num_tasks is 10000001"),
        ({"jobs": [job(stages=[protocol.Stage(stage=1, num_tasks=1, parents=[2])])]}, "there is no parent 2"),
        ({"jobs": [job(stages=[protocol.Stage(stage=1, num_tasks=1, parents=[1])])]}, "its own parent"),
        ({"jobs": [job(stages=[protocol.Stage(stage=1, num_tasks=1)] * 2)]}, "stage id is given twice"),
        ({"jobs": [job(arrival_ms=np.nan)]}, "arrival_ms is nan"),
        ({"jobs": [job(priority=float("inf"))]}, "priority is inf"),
        ({"jobs": [job(), job()], "full": True}, "job is given twice"),
        ({"jobs": [job()], "states": [state(schedulable=[12])]}, "stage 12: there is no such stage"),
        ({"jobs": [job()], "states": [state(attached=10_001)]}, "attached is 10001; expected 0 to 10000"),
        ({"jobs": [job()], "states": [state(stages=[counts(10, 5)])]}, "launched is 5 and finished 0 of 4"),
        ({"jobs": [job()], "states": [state(stages=[counts(10, 1, 2)])]}, "finished <= launched <= tasks"),
        ({"jobs": [job()], "states": [state(stages=[counts(10, moving=10_001)])]}, "more than 10000 executors"),
        ({"jobs": [job()], "states": [state(stages=[counts(10, 4)])]}, "all its tasks are launched"),
        ({"jobs": [job()], "states": [state(stages=[counts(10, 1, 1, measured_tasks=2)])]}, "2 tasks were measured"),
        (
            {"jobs": [job()], "states": [state(stages=[counts(10, 1, 1, measured_tasks=1, measured_ms=np.nan)])]},
            "measured_ms is nan",
        ),
        ({"jobs": [job()], "states": [protocol.JobState(job="j", runnable=[10, 10])]}, "twice among the runnable"),
        ({"time_ms": np.nan}, "time_ms is nan"),
        ({"executors": 10_001}, "executors is 10001"),
        ({"offer": offer(11)}, "11 executors are offered of 10"),
        ({"jobs": [job()], "states": [state(attached=2)], "offer": offer(3, "j")}, "holds -1 executors"),
        ({"jobs": [job()], "states": [state(outgoing=1)]}, "holds -1 executors"),
    ],
)
def test_wrong_messages(fields, message):
    client = Client()
    refused(grpc.StatusCode.INVALID_ARGUMENT, message, client.decide, **fields)
    refused(grpc.StatusCode.FAILED_PRECONDITION, "is not known; send everything", client.decide)
    assert client.decide(full=True, jobs=[job("new")], states=[state("new")], offer=offer(1)).job == "new"


@pytest.mark.parametrize(
    ("limits", "fields"),
    [
        ({"jobs": 1}, {"jobs": [job("a"), job("b")]}),
        ({"stages": 3}, {"jobs": [job("a"), job("b")]}),
        ({"job_stages": 1}, {"jobs": [job("a")]}),
        ({"job_edges": 1}, {"jobs": [job("a", (1, 1, 1))]}),
    ],
)
def test_limits(limits, fields):
    client = Client(sessions_of("fifo", limits=Limits(**limits)))
    refused(grpc.StatusCode.RESOURCE_EXHAUSTED, "the service takes", client.decide, **fields)


@pytest.mark.parametrize(
    ("opening", "message"),
    [
        ({"version": 2}, "protocol version is 2; this service speaks 1"),
        ({"executors": 0}, "executors is 0; expected 1 to 10000"),
        ({"executors": 10_001}, "executors is 10001"),
        ({"mode": "best"}, "mode must be one of paper, released, simplified, got 'best'"),
        ({"moving_delay_ms": np.nan}, "moving_delay_ms must be a number from 0"),
        ({"interarrival_ms": -1.0}, "interarrival_ms is -1.0"),
        ({"client": "x" * 501}, "client is longer than 500"),
        ({"scheduler": "decima"}, "scheduler 'decima' is not offered here; offered: fifo"),
    ],
)
def test_wrong_openings(opening, message):
    refused(grpc.StatusCode.INVALID_ARGUMENT, message, Client, **opening)


def test_a_policy_that_is_told_the_gap_needs_one():
    policy = make_policy(Architecture.paper(interarrival_hint=True), interarrival_s=None)
    sessions = Sessions(Offering({"told": lambda: policy}))
    message = "reads the mean interarrival time, which this client does not report .OpenRequest.interarrival_ms"
    refused(grpc.StatusCode.INVALID_ARGUMENT, message, Client, sessions)
    client = Client(sessions, interarrival_ms=9000.0)
    assert client.decide(jobs=[job()], states=[state()], offer=offer(1)).job == "j"
    assert client.mirror.state.policy is policy
    assert policy_record(client.mirror.state).net_hint_ms == 9000.0


def test_calls_out_of_order():
    client = Client()
    refused(grpc.StatusCode.FAILED_PRECONDITION, "not known", client.decide, full=False)
    client.decide(full=True, jobs=[job()], states=[state()])
    refused(grpc.StatusCode.FAILED_PRECONDITION, "call 2 came after call 2", client.decide, sequence=2)
    refused(grpc.StatusCode.FAILED_PRECONDITION, "call 9 came where 3 was expected", client.decide, sequence=9)
    unknown = {"sequence": 3, "states": [state("x")]}
    refused(grpc.StatusCode.FAILED_PRECONDITION, "its graph is not known", client.decide, **unknown)
    client.sequence = 11
    assert client.decide(full=True, jobs=[job()], states=[state()], offer=offer(1)).job == "j"


def test_everything_anew_forgets_the_rest():
    client = Client()
    client.decide(jobs=[job("a"), job("b")], states=[state("a"), state("b", stages=[counts(10, 3)])])
    reply = client.decide(full=True, jobs=[job("b"), job("c")], states=[state("b")], offer=offer(9))
    assert (reply.job, reply.executors) == ("b", 4)
    assert [key[1] for key in client.mirror.slots] == ["b", "c"]


def test_sessions_are_limited_and_expire():
    sessions = sessions_of("fifo", limits=Limits(sessions=2, lease_s=100.0))
    first, _second = Client(sessions), Client(sessions)
    refused(grpc.StatusCode.RESOURCE_EXHAUSTED, "2 sessions are open", Client, sessions)
    first.decide(offer=offer(1))
    assert expire(sessions) == 0
    sessions._open[first.session].used -= 101.0
    assert expire(sessions) == 1
    refused(grpc.StatusCode.NOT_FOUND, "unknown session", first.decide)
    Client(sessions)
    assert len(sessions) == 2


@pytest.mark.parametrize("name", ["weighted_fair", "net"])
def test_jobs_that_come_and_go_move_together_in_the_same_memory(name):
    """Decisions and arrays are those of a session that never saw the jobs that are gone."""
    sessions = sessions_of("weighted_fair")
    sessions.offering._makers["net"] = lambda: make_policy(Architecture.paper())
    rng = np.random.default_rng(1)
    client, there, memories = Client(sessions, scheduler=name), {}, []
    for number in range(120):
        gone = [old for old in there if rng.random() < 0.15]
        for old in gone:
            del there[old]
        new = f"j{number}"
        tasks = rng.integers(2, 9, rng.integers(1, 6)).tolist()
        launched = int(rng.integers(0, tasks[0]))
        there[new] = (
            job(new, tasks, arrival_ms=float(number), priority=float(number % 3)),
            state(new, attached=launched, stages=[counts(10, launched)]),
        )
        news = {"jobs": [there[new][0]], "states": [there[new][1]], "gone": gone, "offer": offer(3)}
        answer = client.decide(**news)
        fresh = Client(sessions, scheduler=name)
        jobs, states = zip(*there.values(), strict=True)
        expected = fresh.decide(jobs=jobs, states=states, offer=offer(3))
        assert (answer.job, answer.stage, answer.limit) == (expected.job, expected.stage, expected.limit), number
        if not memories or client.mirror.state is not memories[-1]:
            memories.append(client.mirror.state)
        for key, slot in client.mirror.slots.items():
            other = fresh.mirror.slots[key]
            for field in (*ARRAYS.values(), *RULE.arrays.values()):
                if field.extent in ("stage", "row", "job") and field.refers in (None, PLAIN):
                    rows = [(s.job, 1) if field.extent == "job" else (s.first, s.size) for s in (slot, other)]
                    mine, theirs = (
                        getattr(mirror.state, field.name)[at : at + size]
                        for mirror, (at, size) in zip((client.mirror, fresh.mirror), rows, strict=True)
                    )
                    if field.name not in ("stage_job", "stage_row"):
                        assert np.array_equal(mine, theirs, equal_nan=mine.dtype.kind == "f"), (field.name, number)
        leave(sessions, fresh.session)
    assert len(memories) < 6
