"""Whatever clients send, a session answers or refuses, and goes on."""

import grpc
from hypothesis import given, settings
from hypothesis import strategies as st

from decima.connect.service import scheduler_pb2 as protocol
from decima.connect.service.errors import RefusalError
from tests.services import leave, sessions_of

SCHEDULERS = ("fair", "capped_srw", "weighted_fair", "random", "released_fifo", "decima", "decima:greedy=0")
# Mistakes of the client; anything else would be one of the service.
MISTAKES = {
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.FAILED_PRECONDITION,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.NOT_FOUND,
}
OFFERED = sessions_of(*SCHEDULERS).offering

small = st.integers(0, 4)
number = small | st.sampled_from([7, 200, 10_000, 2**31 - 1, 2**31, 2**32 - 1])
real = st.sampled_from([0.0, 1.0, 1500.0, -1.0]) | st.floats()
job_id = st.sampled_from(["a", "b", "c", ""])
stage_id = st.integers(0, 4) | st.sampled_from([-1, -(2**63), 2**63 - 1])


def mostly(plain, wild):
    """Values that fit together nine times of ten."""
    return st.integers(0, 9).flatmap(lambda n: wild if n == 0 else plain)


@st.composite
def jobs(draw, ids):
    count = draw(st.integers(1, 5))
    tame = draw(st.integers(0, 9)) > 0
    job = protocol.Job(job=draw(ids), arrival_ms=draw(mostly(st.just(5.0), real)), cap=draw(mostly(st.just(0.0), real)))
    for stage in range(count):
        parents = draw(st.lists(st.integers(0, max(0, stage - 1)) if tame else stage_id, max_size=3, unique=tame))
        job.stages.add(
            stage=stage if tame else draw(stage_id),
            num_tasks=draw(mostly(st.integers(1, 5), number)),
            parents=parents if stage or not tame else [],
            duration_ms=draw(mostly(st.sampled_from([0.0, 10.0, 900.0]), real)),
        )
    return job


@st.composite
def states(draw, ids):
    tame = draw(st.integers(0, 9)) > 0
    value = st.integers(0, 3) if tame else number
    stage = st.integers(0, 2) if tame else stage_id
    state = protocol.JobState(job=draw(ids), attached=draw(value))
    state.moving, state.committed, state.outgoing = (0, 0, 0) if tame else draw(st.tuples(number, number, number))
    state.runnable.extend(draw(st.lists(stage, max_size=3, unique=tame)))
    state.schedulable.extend(draw(st.lists(stage, max_size=3)))
    for which in draw(st.lists(stage, max_size=4)):
        launched = draw(value)
        finished = min(launched, draw(value)) if tame else draw(value)
        state.stages.add(
            stage=which, launched=launched, finished=finished, executors=draw(value),
            measured_tasks=draw(st.integers(0, finished)) if tame else draw(number),
            measured_ms=draw(mostly(st.just(100.0), real)),
        )  # fmt: skip
    return state


@st.composite
def requests(draw):
    ids = mostly(st.sampled_from(["a", "b"]), job_id)
    request = protocol.DecideRequest(
        full=draw(st.booleans()), time_ms=draw(mostly(st.just(1.0), real)), executors=draw(mostly(st.just(6), number))
    )
    request.jobs.extend(draw(st.lists(jobs(ids), max_size=3)))
    request.states.extend(draw(st.lists(states(ids), max_size=3)))
    request.gone.extend(draw(st.lists(ids, max_size=1)))
    request.offer.executors = draw(mostly(st.integers(0, 4), number))
    request.offer.job = draw(mostly(st.just(""), job_id))
    return request


def fresh():
    """Sessions that share compiled schedulers."""
    sessions = sessions_of("fifo")
    sessions.offering = OFFERED
    return sessions


def answer(session, request, sequence):
    """The decision, None if the request is refused as the client's mistake."""
    request.sequence = sequence
    try:
        return session.decide(protocol.DecideRequest.FromString(request.SerializeToString()))
    except RefusalError as error:
        if error.code not in MISTAKES:
            raise
        return None


def valid_request():
    request = protocol.DecideRequest(full=True, executors=6, offer=protocol.Offer(executors=2))
    request.jobs.add(job="z", stages=[protocol.Stage(stage=4, num_tasks=3)])
    request.states.add(job="z", runnable=[4], schedulable=[4])
    return request


@settings(max_examples=50)
@given(st.sampled_from(SCHEDULERS), st.sampled_from(["", "released"]), st.lists(requests(), min_size=1, max_size=6))
def test_a_session_survives_anything(scheduler, mode, calls):
    sessions = fresh()
    key = sessions.open(protocol.OpenRequest(version=1, executors=6, scheduler=scheduler, mode=mode)).session
    session = sessions.find(key).session
    for sequence, request in enumerate(calls, start=1):
        reply = answer(session, request, sequence)
        if reply is not None and not reply.idle:
            assert 1 <= reply.executors <= request.offer.executors
            assert reply.job in {job.job for job in request.jobs} | {"a", "b", "c"}
    reply = answer(session, valid_request(), len(calls) + 1)
    assert (reply.job, reply.stage) == ("z", 4)
    assert sessions.budget.taken["total_stages"] == 1
    leave(sessions, key)
    assert not any(sessions.budget.taken.values())


@settings(max_examples=30)
@given(st.sampled_from(SCHEDULERS), st.lists(st.tuples(st.integers(0, 2), requests()), min_size=1, max_size=8))
def test_a_shared_cluster_survives_anything(scheduler, calls):
    sessions = fresh()
    opening = protocol.OpenRequest(version=1, executors=6, scheduler=scheduler, shared_cluster="c")
    drivers = [sessions.find(sessions.open(opening).session).session for _ in range(3)]
    for sequence, (who, request) in enumerate(calls, start=1):
        request.full |= sequence % 2
        reply = answer(drivers[who], request, sequence)
        assert sum(driver.target for driver in drivers) <= 6
        assert reply is None or reply.command.target == drivers[who].target
    for driver in drivers:
        assert answer(driver, valid_request(), len(calls) + 1) is not None
    for driver in drivers:
        driver.leave()
    assert sessions._clusters == {}
    assert not any(sessions.budget.taken.values())


@settings(max_examples=100)
@given(st.builds(
    protocol.OpenRequest, version=mostly(st.just(1), number), executors=mostly(small, number),
    client=st.text(max_size=9), mode=st.sampled_from(["", "paper", "released", "x"]),
    moving_delay_ms=real, interarrival_ms=real, scheduler=st.sampled_from(["", *SCHEDULERS, "x"]),
    seed=st.integers(0, 2**64 - 1),
    generator=st.none() | st.builds(protocol.Pcg64, state_high=st.integers(0, 2**64 - 1), increment_low=number),
    shared_cluster=st.sampled_from(["", "c", "d"]),
))  # fmt: skip
def test_openings(request):
    sessions = fresh()
    try:
        reply = sessions.open(request)
    except RefusalError as error:
        if error.code not in MISTAKES or len(sessions):
            raise
        return
    assert answer(sessions.find(reply.session).session, valid_request(), 1) is not None or request.executors < 6
