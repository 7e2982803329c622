"""Damaged messages and calls in any order: every answer is a reply or a status, nothing stalls, nothing is kept.

``DECIMA_FUZZ_INPUTS`` says how many, ``DECIMA_FIRST_SEED`` with which seed they begin; an error names its seed.
"""

import asyncio
import contextlib
import functools
import time

import grpc
import pytest

from decima.connect.service import scheduler_pb2 as protocol
from decima.connect.service.server import Address, Service
from decima.connect.service.sessions import Offering, Sessions
from decima.connect.service.wire import NAME
from decima.systems.heterogeneous import make_scheduler as make_node_scheduler
from decima.systems.spark.schedulers import make_scheduler
from tests.knobs import FIRST_SEED, FUZZ_INPUTS
from tests.reliability.protocol_noise import Noise, recorded, recorded_nodes
from tests.services import running
from tests.unit.connect.service.test_server import full_request, require_works

SCHEDULERS = ("fair", "decima", "random", "capped_srw")
NODE_SCHEDULERS = ("high_rank_up_deft:slots=insertion", "heft", "sjf_deft", "lachesis:decision=event")
# What a client that does wrong is told; INTERNAL would be a mistake of the service.
STATUSES = {
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.FAILED_PRECONDITION,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.NOT_FOUND,
}
# Processor time of one message of some kilobytes; the slowest seen took a hundredth.
LONGEST_S = 2.0
IN_PROCESS, OVER_THE_WIRE = max(200, FUZZ_INPUTS // 4), max(60, FUZZ_INPUTS // 20)


@pytest.fixture(scope="module")
def offering():
    makers = {name: functools.partial(make_scheduler, name) for name in SCHEDULERS}
    return Offering(makers, {name: make_node_scheduler(name) for name in NODE_SCHEDULERS})


@pytest.fixture(scope="module")
def reports():
    return recorded(FIRST_SEED)


@contextlib.contextmanager
def told(seed):
    """Errors name the seed that repeats them."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"repeat with DECIMA_FIRST_SEED={seed} DECIMA_FUZZ_INPUTS=1")
        raise


def require_known(code, error):
    """A status says what the client did wrong, in a sentence or two."""
    assert code in STATUSES, error
    assert len(str(error)) < 1_500


class StatusError(Exception):
    def __init__(self, code, text):
        super().__init__(f"{code.name}: {text}")
        self.code = code


class Context:
    """What a handler sees of a call."""

    def invocation_metadata(self):
        return ()

    def peer(self):  # read where an earlier test has left the log on
        return "ipv4:127.0.0.1:50051"

    async def abort(self, code, text):
        raise StatusError(code, text)


class InProcess:
    """The handlers of a service, without a network."""

    def __init__(self, offering):
        self.service = Service(Sessions(offering), Address())
        service = self.service
        answers = {"Open": service._open, "Decide": service._decide, "Assign": service._assign, "Close": service._close}
        self.methods = {name: functools.partial(service._answer, name, answer) for name, answer in answers.items()}

    async def call(self, method, data):
        """Bytes of the reply, None for a status."""
        begin = time.process_time()
        try:
            if method == "Watch":
                async for reply in self.service._watch(data, Context()):
                    return reply
            return await self.methods[method](data, Context())
        except StatusError as error:
            require_known(error.code, error)
            return None
        finally:
            assert time.process_time() - begin < LONGEST_S


async def make_calls(call, noise):
    """One or two sessions and calls in them; returns the number of messages."""
    keys = []
    for _ in range(int(noise.rng.integers(1, 3))):
        reply = await call("Open", noise.opening())
        if reply is not None:
            keys.append(protocol.OpenReply.FromString(reply).session)
    if not keys:
        return 2
    number = len(keys)
    for method, data in noise.calls(keys):
        reply = await call(method, data)
        number += 1
        if reply is not None and method == "Decide":
            decision = protocol.Decision.FromString(reply)
            request = protocol.DecideRequest.FromString(data)
            assert decision.idle or 1 <= decision.executors <= request.offer.executors
    # Whatever was done to it, a session goes on with a report of everything.
    request = full_request() if noise.method == "Decide" else protocol.AssignRequest(jobs=noise.reports[0].jobs)
    request.session, request.sequence, request.full = keys[0], 2**63, True
    data = request.SerializeToString()
    reply = await call(noise.method, data)
    kind = protocol.Decision if noise.method == "Decide" else protocol.Assignments
    assert reply is None or kind.FromString(reply).sequence == 2**63
    for key in keys:
        assert await call("Close", protocol.CloseRequest(session=key).SerializeToString()) == b""
    return number


@pytest.mark.parametrize("method", ["Decide", "Assign"])
def test_in_process(offering, method):
    reports = recorded(FIRST_SEED) if method == "Decide" else recorded_nodes(FIRST_SEED, "sjf_deft")

    async def run():
        done, seed = 0, FIRST_SEED
        while done < IN_PROCESS:
            inside = InProcess(offering)
            with told(seed):
                done += await make_calls(inside.call, Noise(seed, reports, method))
                assert inside.service.sessions._clusters == {}
                assert not any(inside.service.sessions.budget.taken.values())
                assert inside.service._pending_bytes == 0
            inside.service._pace.close()
            seed += 1

    asyncio.run(run())


def test_over_the_wire(offering, reports):
    async def run(target):
        async with grpc.aio.insecure_channel(target) as channel:

            async def call(method, data):
                try:
                    if method == "Watch":
                        stream = channel.unary_stream(f"/{NAME}/Watch")(data, timeout=600)
                        reply = await stream.read()
                        stream.cancel()
                        return None if reply is grpc.aio.EOF else reply
                    if method == "Decide" and len(data) % 2:
                        stream = channel.stream_stream(f"/{NAME}/Decisions")(iter([data]), timeout=600)
                        return await stream.read()
                    return await channel.unary_unary(f"/{NAME}/{method}")(data, timeout=600)
                except grpc.aio.AioRpcError as error:
                    require_known(error.code(), error)
                    return None

            done, seed = 0, FIRST_SEED
            while done < OVER_THE_WIRE:
                with told(seed):
                    done += await make_calls(call, Noise(seed, reports))
                seed += 1

    with running(Sessions(offering)) as service:
        asyncio.run(run(service.target))
        require_works(service.target)
