"""Scheduler that asks a service: the simulated cluster as a client of the protocol."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from decima.connect.service import scheduler_pb2 as protocol
from decima.connect.service.client import ClientSession, ServiceClient, check_address
from decima.connect.service.reports import UNLIKE
from decima.connect.service.security import read_token
from decima.connect.service.wire import JOB_FIELDS, STAGE_FIELDS, VERSION
from decima.core.errors import ConfigError, ServiceError
from decima.core.grammar import Option
from decima.systems.spark.decision import OPTION_PARTS
from decima.systems.spark.fields import ACTIVE, NONE, WITHHELD
from decima.systems.spark.schedulers.fields import rule_record
from decima.systems.spark.schedulers.interface import Decision, Observation, Scheduler
from decima.systems.spark.schedulers.registry import register
from decima.systems.spark.settings import Settings
from decima.systems.spark.state import ClusterState

OPTIONS = (
    Option("service", "HOST:PORT of the service ('decima serve')", required=True),
    Option("scheduler", "which of its schedulers, parameters joined by + (default: the first it offers)"),
    Option("token_file", "file of the token for the service (default: DECIMA_SERVICE_TOKEN, if set)"),
    Option("tls_ca", "certificate to trust (default: no TLS)"),
    Option("tls_cert", "own certificate, for a service that asks for one (default: none)"),
    Option("tls_key", "key of the own certificate"),
)
_WORD = (1 << 64) - 1
_FLAGS = ("stage_runnable", "stage_in_frontier", "stage_slot")


class StateReporter:
    """Writer of the reports on one run of a simulated cluster.

    Args:
        state: The cluster; its arrays stay where they are.
    """

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._sent: dict[str, np.ndarray] = {}
        self._known: set[int] = set()

    def request(self, full: bool) -> protocol.DecideRequest:
        """Return the next report, without session and number.

        Args:
            full: Report everything, not only what changed.
        """
        state = self._state
        active = state.active[: state.num_active].tolist()
        request = protocol.DecideRequest(full=full, time_ms=state.now_ms, executors=state.num_executors)
        request.offer.executors = state.num_source
        source = state.source_job
        if source != NONE and state.job_state[source] == ACTIVE:
            request.offer.job = str(source)
            if state.commit_ahead and state.source < state.num_stages:
                request.offer.stage = state.source - state.job_first_stage[source]
        if full:
            self._known = set()
        present = set(active)
        request.gone.extend(str(job) for job in sorted(self._known - present))
        new = [job for job in active if job not in self._known]
        for job in new:
            self._add_graph(request.jobs.add(), job)
        stages = self._changed(STAGE_FIELDS.values(), state.num_stages)
        stages[np.isin(state.stage_job, new)] = True
        flags = self._changed(_FLAGS, state.num_stages)
        touched = self._changed(JOB_FIELDS.values(), state.num_jobs)
        touched[state.stage_job[stages | flags]] = True
        touched[new] = True
        for job in active:
            if touched[job]:
                self._add_state(request.states.add(), job, stages)
        self._known = present
        return request

    def _changed(self, names: Iterable[str], length: int) -> np.ndarray:
        """Mask of the array entries that differ from those sent last; remembers the present values."""
        mask = np.zeros(length, dtype=bool)
        for name in names:
            now = getattr(self._state, name)
            if name in self._sent:
                mask |= now != self._sent[name]
            self._sent[name] = now.copy()
        return mask

    def _add_graph(self, message: protocol.Job, job: int) -> None:
        state = self._state
        first, end = (int(bound) for bound in state.job_first_stage[job : job + 2])
        message.job = str(job)
        message.arrival_ms = state.job_arrival_ms[job]
        hints = rule_record(state)
        message.priority = hints.job_rank[job]
        message.cap = hints.job_limit_cap[job]
        for stage in range(first, end):
            row = state.stage_row[stage]
            parents = state.parent[state.parent_offset[row] : state.parent_offset[row + 1]]
            message.stages.add(
                stage=stage - first,
                num_tasks=state.stage_tasks[stage],
                parents=parents.tolist(),
                duration_ms=state.row_nominal_ms[row],
                duration_known=True,
            )

    def _running_since_ms(self, stage: int) -> list[float]:
        """Start times of a stage's running tasks, by executor, without that of the offered executor."""
        state = self._state
        busy = (state.executor_stage == stage) & (state.executor_pool == NONE) & (state.executor_moving == 0)
        if state.num_free > 0 and state.source == stage:
            busy[state.free_executors[0]] = False
        return state.executor_start_ms[busy].tolist()

    def _add_state(self, message: protocol.JobState, job: int, changed: np.ndarray) -> None:
        state = self._state
        first, end = (int(bound) for bound in state.job_first_stage[job : job + 2])
        message.job = str(job)
        for name, field in JOB_FIELDS.items():
            setattr(message, name, getattr(state, field)[job])
        stage = state.runnable_head[job]
        while stage != NONE:
            message.runnable.append(stage - first)
            stage = state.runnable_next[stage]
        message.schedulable.extend(np.flatnonzero(state.stage_in_frontier[first:end]).tolist())
        for index in np.flatnonzero(changed[first:end]).tolist():
            values = {name: getattr(state, field)[first + index] for name, field in STAGE_FIELDS.items()}
            message.stages.add(stage=index, **values, running_since_ms=self._running_since_ms(first + index))
        for index in np.flatnonzero(state.stage_slot[first:end]).tolist():
            withheld = state.stage_slot[first + index] == WITHHELD
            message.delayed.add(stage=index, withheld=withheld, end_ms=state.slot_end_ms[first + index])


class RemoteScheduler:
    """Scheduler that asks a service for every decision.

    Its session ends with the run: when the state of the simulated cluster, or this object, is not used any more.

    It gives the same schedule as the service's scheduler in this process. Where the server was restarted during a run,
    that holds for deterministic schedulers without memory.

    Args:
        service: ``host:port``.
        scheduler: Name of one of the service's schedulers; its default when omitted.
        token: Token to show with every call.
        tls_ca: PEM file with the certificate to trust; no TLS when omitted.
        identity: PEM files with the client's own certificate and its key, for a service that asks for one.
        fallback: Scheduler that decides while the service is away; when omitted, the run waits and then fails.
        patience_s: How long to wait for a service that does not answer.
        deadline_s: How long one call may take.
    """

    name = "remote"

    def __init__(
        self,
        service: str,
        scheduler: str = "",
        *,
        token: str | None = None,
        tls_ca: Path | None = None,
        identity: tuple[Path, Path] | None = None,
        fallback: Scheduler | None = None,
        patience_s: float = 10.0,
        deadline_s: float = 5.0,
    ) -> None:
        check_address(service)
        self.values = {"service": service, "scheduler": scheduler}
        self.fallbacks = 0
        self._client = ServiceClient(service, token=token, tls_ca=tls_ca, identity=identity, deadline_s=deadline_s)
        self._scheduler = scheduler
        self._fallback = fallback
        self._patience_s = patience_s
        self._state: weakref.ref[ClusterState] | None = None
        self._ending: weakref.finalize | None = None
        self._session: ClientSession | None = None

    def reset(self, rng: np.random.Generator) -> None:
        """Begin a session with the next decision; the service draws from where the generator is."""
        self.close()
        self._generator = _words(rng)
        if self._fallback is not None:
            self._fallback.reset(rng)

    def __enter__(self) -> RemoteScheduler:
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def close(self) -> None:
        """End the session."""
        if self._ending is not None:
            self._ending()
        self._ending = self._session = self._state = None

    def __del__(self) -> None:
        if getattr(self, "_ending", None) is not None:
            self._ending()

    def decide(self, observation: Observation) -> Decision:
        """Ask the service for a decision.

        Raises:
            ServiceError: The service is away or refuses, and there is no fallback.
        """
        state = observation.state
        if self._state is None or self._state() is not state:
            self._begin(state)
        try:
            return self._decision(state, self._session.decide(self._reporter.request))
        except ServiceError:
            if self._fallback is None:
                raise
            self.fallbacks += 1
            return self._fallback.decide(observation)

    def _begin(self, state: ClusterState) -> None:
        settings = state.settings
        settings.require_fixed("a service")
        mode = "paper" if settings.job_limit else "released"
        usual = Settings.of_mode(mode)
        later = len(state.arrival_order)
        request = protocol.OpenRequest(
            version=VERSION,
            client="simulator",
            executors=state.num_executors,
            moving_delay_ms=state.moving_delay_ms,
            mode=mode,
            scheduler=self._scheduler,
            generator=self._generator,
            interarrival_ms=float(state.job_arrival_ms.max()) / later if later else 0.0,
            delays=True,
            running=True,
            unlike=[name for name in UNLIKE if getattr(settings, name) != getattr(usual, name)],
        )
        self.close()
        self._state = weakref.ref(state)
        self._reporter = StateReporter(weakref.proxy(state))
        self._session = ClientSession(self._client, request, self._patience_s)
        self._ending = weakref.finalize(state, self._session.close)

    def _decision(self, state: ClusterState, reply: protocol.Decision) -> Decision:
        if reply.idle:
            return Decision.idle()
        job = int(reply.job) if reply.job.isdecimal() else -1
        if not 0 <= job < state.num_jobs:
            raise ServiceError(f"the service chose job {reply.job!r:.60}, which does not exist")
        first, end = (int(bound) for bound in state.job_first_stage[job : job + 2])
        stage = first + reply.stage
        if not first <= stage < end or not state.stage_in_frontier[stage]:
            raise ServiceError(f"the service chose stage {reply.stage} of job {job}, which cannot be chosen")
        return Decision(stage, **{part.attribute: getattr(reply, part.name) for part in OPTION_PARTS})


@register("remote", options=OPTIONS)
def remote(
    service: str | None = None,
    scheduler: str = "",
    token_file: str | None = None,
    tls_ca: str | None = None,
    tls_cert: str | None = None,
    tls_key: str | None = None,
    **unknown,
) -> RemoteScheduler:
    """A service that is asked for every decision."""
    if service is None or unknown:
        known = ", ".join(option.name for option in OPTIONS)
        raise ConfigError(f"scheduler 'remote' asks a service; expected remote:HOST:PORT, with options out of {known}")
    if (tls_cert is None) != (tls_key is None) or (tls_cert is not None and tls_ca is None):
        raise ConfigError("an own certificate needs tls_ca, tls_cert and tls_key")
    return RemoteScheduler(
        service,
        scheduler.replace("+", ","),
        token=read_token(None if token_file is None else Path(token_file)),
        tls_ca=None if tls_ca is None else Path(tls_ca),
        identity=None if tls_cert is None else (Path(tls_cert), Path(tls_key)),
    )


def _words(rng: np.random.Generator) -> protocol.Pcg64:
    """State of a generator as a message of the protocol."""
    known = rng.bit_generator.state
    if known["bit_generator"] != "PCG64":
        raise ConfigError(f"the service continues generators of kind PCG64, got {known['bit_generator']}")
    state, increment = known["state"]["state"], known["state"]["inc"]
    return protocol.Pcg64(
        state_high=state >> 64, state_low=state & _WORD, increment_high=increment >> 64, increment_low=increment & _WORD
    )
