"""Session of one client: takes its reports, keeps the mirror, asks the scheduler."""

from __future__ import annotations

import math
import time
from collections.abc import Hashable, Sequence

import grpc
import numpy as np

from decima.connect.service import scheduler_pb2 as protocol
from decima.connect.service.counters import put_states
from decima.connect.service.durations import Measured, ProfileBook
from decima.connect.service.errors import RefusalError, invalid, out_of_step
from decima.connect.service.graphs import JobGraph, read_graph
from decima.connect.service.job_memory import size_of
from decima.connect.service.limits import Limits
from decima.connect.service.mirror import Choice, Mirror
from decima.connect.service.reports import UNLIKE
from decima.connect.service.wire import VERSION, checked_number
from decima.core.checks import LARGEST_MS
from decima.core.errors import ConfigError, DecimaError
from decima.systems.spark.decision import OPTION_PARTS
from decima.systems.spark.settings import Settings
from decima.systems.spark.state import spawn_generators


def check_client(request: protocol.OpenRequest, limits: Limits) -> None:
    """Check who opens a session.

    Raises:
        RefusalError: It speaks another version, a text is too long, or the number of executors is out of range.
    """
    if request.version != VERSION:
        raise invalid(f"protocol version is {request.version}; this service speaks {VERSION}")
    for name in ("client", "mode", "scheduler", "shared_cluster"):
        if len(getattr(request, name)) > limits.text:
            raise invalid(f"{name} is longer than {limits.text} characters")
    if not 1 <= request.executors <= limits.executors:
        raise invalid(f"executors is {request.executors}; expected 1 to {limits.executors}")


def cluster_settings(request: protocol.OpenRequest) -> Settings:
    """Settings of the cluster that a client describes.

    Raises:
        RefusalError: A number is out of range.
    """
    checked_number("session", "interarrival_ms", request.interarrival_ms)
    for name in request.unlike:
        if name not in UNLIKE:
            raise invalid(f"unlike holds {name!r:.60}; expected some of {', '.join(UNLIKE)}")
    if request.delays and request.shared_cluster:
        raise invalid("delays is set, but a driver of a shared cluster delays no stages")
    if request.running and request.shared_cluster:
        raise invalid("running is set, but a driver of a shared cluster reports no running tasks")
    try:
        return Settings.of_mode(
            request.mode or "paper", executors=request.executors, moving_delay_ms=request.moving_delay_ms
        )
    except ConfigError as error:
        raise invalid(str(error)) from error


def chance(request: protocol.OpenRequest) -> np.random.Generator:
    """Generator of a session's scheduler: the client's generator continued, or one from its seed."""
    if not request.HasField("generator"):
        return spawn_generators(request.seed)[1]
    words = request.generator
    bits = np.random.PCG64()
    known = bits.state
    known["state"] = {
        "state": (words.state_high << 64) | words.state_low,
        "inc": (words.increment_high << 64) | words.increment_low,
    }
    bits.state = known
    return np.random.Generator(bits)


class JobTable:
    """Jobs of a mirror as one client reports them or, with different prefixes, several."""

    def __init__(self, mirror: Mirror, book: ProfileBook, limits: Limits) -> None:
        self.mirror = mirror
        self._book = book
        self._limits = limits
        self._measured = Measured()

    def _put_jobs(self, prefix: Hashable, messages: Sequence[protocol.Job]) -> list[tuple]:
        """Add jobs, or stages to jobs, and return their keys."""
        mirror, graphs = self.mirror, {}
        if not messages:
            return []
        for message in messages:
            key = (prefix, message.job)
            if key in graphs:
                raise invalid("a job is given twice")
            graphs[key] = read_graph(message, self._book, self._limits, self._measured)
        larger = {}
        for key, graph in graphs.items():
            slot = mirror.slots.get(key)
            if slot is not None:
                graph.continues(slot.graph)
            if slot is None or len(graph.dag) > slot.size:
                larger[key] = graph
        self._require_room(larger)
        mirror.reserve(larger.values())
        for key, graph in larger.items():
            mirror.put_job(key, graph)
        return list(graphs)

    def _require_room(self, graphs: dict[tuple, JobGraph]) -> None:
        """Check that replacing or adding these graphs of jobs exceeds no limit."""
        there = self.mirror.size
        more = size_of(graphs.values())
        less = size_of([self.mirror.slots[key].graph for key in graphs if key in self.mirror.slots])
        for name in ("jobs", "stages", "edges"):
            total = getattr(there, name) + getattr(more, name) - getattr(less, name)
            self._limits.check(name, total, f"the report makes it {total} {name}")
        self.mirror.account.hold("total_stages", there.stages + more.stages - less.stages)

    def put_report(self, prefix: Hashable, request: protocol.DecideRequest) -> list[tuple]:
        """Take a report: jobs that are gone, new jobs and stages, states.

        Of a full report, the jobs are all there are, and nothing is known of their states but what it says; jobs that
        were there before keep their place and what the scheduler noted of them.

        Returns:
            Keys of the jobs whose graphs it holds, in its order.

        Raises:
            RefusalError: A graph is wrong, there are too many of them, a number is out of range, or a job or stage is
                unknown.
        """
        for name in ("jobs", "states", "gone"):
            count = len(getattr(request, name))
            self._limits.check("jobs", count, f"a report has {count} {name}")
        slots = self.mirror.slots
        gone = request.gone
        if request.full:
            names = {message.job for message in request.jobs}
            gone = [key[1] for key in slots if key[0] == prefix and key[1] not in names]
        for key in [(prefix, name) for name in gone]:
            if key in slots:
                self.mirror.drop_job(key)
        self.mirror.account.hold("total_stages", self.mirror.num_stages)
        if request.full:
            for key in [(prefix, message.job) for message in request.jobs]:
                if key in slots:
                    self.mirror.start_counts(slots[key])
        keys = self._put_jobs(prefix, request.jobs)
        put_states(self.mirror, prefix, request.states, self._limits)
        return keys

    def check_offer(self, prefix: Hashable, offer: protocol.Offer, executors: int) -> tuple | None:
        """Check an offer and return the key of its executors' source job, or None.

        Raises:
            RefusalError: More are offered than there are, or than the job holds.
        """
        if offer.executors > executors:
            raise invalid(f"{offer.executors} executors are offered of {executors}")
        key = (prefix, offer.job)
        source = self.mirror.slots.get(key) if offer.job else None
        if source is None:
            return None
        kept = self.mirror.allocation(source, source, offer.executors)
        if kept < 0:
            raise invalid(f"job {offer.job!r:.60} holds {kept} executors apart from those offered; expected at least 0")
        return key


class CallOrder:
    """Order of a session's calls, which shows calls that were lost, repeated or came late."""

    def __init__(self) -> None:
        self._last = 0
        self._stale = True  # nothing is known yet, or a call failed half-way

    def begin(self, request: protocol.DecideRequest) -> None:
        """Check that a call is the next one.

        Raises:
            RefusalError: It does not follow the last one.
        """
        expected = self._last + 1
        if request.sequence < expected:
            raise out_of_step(f"call {request.sequence} came after call {self._last}")
        if not request.full and self._stale:
            raise out_of_step("the state of this session is not known")
        if not request.full and request.sequence != expected:
            raise out_of_step(f"call {request.sequence} came where {expected} was expected")
        self._last = request.sequence
        self._stale = True

    def done(self) -> None:
        """Note that the call was carried out."""
        self._stale = False


class Session:
    """Session of a client with a private cluster."""

    watched = False

    def __init__(self, client: str, mirror: Mirror, book: ProfileBook, limits: Limits) -> None:
        self.client = client
        self._limits, self._account = limits, mirror.account
        self._calls = CallOrder()
        self._jobs = JobTable(mirror, book, limits)

    def leave(self) -> None:
        """End the session."""
        self._account.close()

    @property
    def num_jobs(self) -> int:
        """Number of jobs in the system."""
        return len(self._jobs.mirror.slots)

    @property
    def num_executors(self) -> int:
        """Number of executors of the cluster."""
        return self._jobs.mirror.state.num_executors

    def overview(self, most: int) -> list[dict]:
        """A limited number of the jobs, for people."""
        return self._jobs.mirror.overview(None, most)

    def decide(self, request: protocol.DecideRequest) -> protocol.Decision:
        """Take a report and decide about the executors that it offers.

        Raises:
            RefusalError: The message is wrong, or is not what comes next.
        """
        check_report(request, self._limits)
        self._calls.begin(request)
        jobs, mirror = self._jobs, self._jobs.mirror
        keys = jobs.put_report(None, request)
        if request.full:
            mirror.sort_jobs(keys)
        try:
            mirror.set_executors(request.executors)
        except ConfigError as error:
            raise invalid(str(error)) from error
        offered = request.offer.executors
        reply = protocol.Decision(sequence=request.sequence, idle=True)
        source = jobs.check_offer(None, request.offer, request.executors)
        if offered:
            if mirror.knows_running:
                mirror.put_running(source, self._offered_stage(source, request.offer))
            choice, reply.decide_us = timed_choice(mirror, request.time_ms, source, offered)
            if choice is not None:
                put_choice(reply, mirror, choice)
        self._calls.done()
        return reply

    def _offered_stage(self, source: tuple | None, offer: protocol.Offer) -> int | None:
        """Index inside its job of the offered executors' stage, None if they are free."""
        if source is None or not offer.HasField("stage"):
            return None
        index = self._jobs.mirror.slots[source].graph.index.get(offer.stage)
        if index is None:
            raise invalid(f"job {offer.job!r:.60}, stage {offer.stage} of the offer: there is no such stage")
        return index


def check_report(request: protocol.DecideRequest, limits: Limits) -> None:
    """Check the numbers of a report that concern no job.

    Raises:
        RefusalError: One is out of range.
    """
    if not math.isfinite(request.time_ms) or abs(request.time_ms) > LARGEST_MS:
        raise invalid(f"time_ms is {request.time_ms!r}; expected a finite number")
    if request.executors > limits.executors:
        raise invalid(f"executors is {request.executors}; expected at most {limits.executors}")


def timed_choice(mirror: Mirror, now_ms: float, source: tuple | None, offered: int) -> tuple[Choice | None, float]:
    """Decide about offered executors; returns the choice and the time it took in microseconds.

    Raises:
        RefusalError: The scheduler failed.
    """
    begin = time.perf_counter()
    try:
        return mirror.decide(now_ms, source, offered), 1e6 * (time.perf_counter() - begin)
    except DecimaError as error:
        raise RefusalError(grpc.StatusCode.INTERNAL, f"the scheduler failed: {error}") from error


def put_choice(reply: protocol.Decision, mirror: Mirror, choice: Choice) -> None:
    """Write a choice into the reply, in the client's names."""
    reply.idle = False
    reply.job = choice.key[1]
    reply.stage = mirror.slots[choice.key].graph.stage_ids[choice.stage]
    for part, value in zip(OPTION_PARTS, choice.parts[1:], strict=True):
        setattr(reply, part.name, value)
    reply.executors = choice.executors
