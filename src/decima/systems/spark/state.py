"""``ClusterState``: the memory of one run."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from decima.core.checks import LARGEST_MS, check_whole
from decima.core.errors import DeadlockError, InvalidDecisionError, RecordError
from decima.core.heap import heap_length
from decima.core.interrupts import check_stop
from decima.core.random import generator_addresses
from decima.core.record import Record
from decima.systems.spark import engine
from decima.systems.spark.decision import CLASS, DEFAULTS, NUM_COLUMNS, NUM_PARTS, parts_of
from decima.systems.spark.fields import CLUSTER, PRESENT
from decima.systems.spark.rules import delays
from decima.systems.spark.settings import Settings
from decima.systems.spark.tables import WorkloadTables
from decima.workload.jobs import Workload

# Rows of the decision log at first; it grows.
FIRST_DECISIONS = 1024
# Settings whose fields of the state have the same name.
_SAME = ("job_limit", "reoffer", "commit_ahead", "keep_warm", "runnable_only", "job_bound")
_SAME_ELASTIC = (
    *("dynamic", "backlog_timeout_ms", "idle_timeout_ms", "executor_startup_ms", "replacement_delay_ms"),
    *("straggler_share", "straggler_shape", "speculation_quantile", "speculation_multiplier"),
    *("speculation_interval_ms", "speculation_min_runtime_ms"),
)
_INVALID = {
    engine.NOT_IN_FRONTIER: "it is not in the frontier",
    engine.LIMIT_TOO_SMALL: "the limit gives it no executor",
    engine.LIMIT_TOO_LARGE: "the limit exceeds the executors offered",
    engine.IDLE_TWICE: "idling was already chosen in this round",
    engine.CLASS_UNKNOWN: "there is no such class of executors",
    engine.CLASS_NOT_OFFERED: "no executor of that class is offered",
    engine.CLASS_TOO_SMALL: "the stage asks for more than executors of that class have",
    engine.CLASS_OF_DELAY: "a class of executors is chosen only with a stage that gets some",
    delays.DELAY_OUT_OF_RANGE: f"a delay must be a number of ms from 0 to {LARGEST_MS:g}",
    delays.DELAY_NOT_RUNNABLE: "a stage cannot be delayed before its parents have finished",
    delays.DELAY_BEGUN: "a stage cannot be delayed that has a task launched or an executor promised or on its way",
    delays.DELAYED_BEFORE: "it was delayed before, and a stage may be delayed once",
    delays.DELAY_OF_IDLING: "idling has no delay; choose the stage that is to be delayed",
}

#: States that have schedulers attached, by address, for what compiled code calls with it.
ATTACHED: WeakValueDictionary[int, ClusterState] = WeakValueDictionary()


class ClusterState(Record):
    """State of one simulated cluster.

    Every field of :mod:`decima.systems.spark.fields` is an attribute: scalars as Python numbers, arrays as NumPy views
    (no copies); so are those of the records attached to it. ``start`` begins a run, ``advance`` continues it; both may
    be repeated on the same object.

    Attributes:
        tables: The workload.
        settings: The cluster.
        policy: The learned policy that is bound to the state, None if none is.
        failure: What a network in Python raised at the last decision.
        attached: Records of compiled schedulers, by the scalar that holds their address.
    """

    failure: BaseException | None = None

    def __init__(
        self, tables: WorkloadTables, settings: Settings, *, log_tasks: bool = False, log_decisions: bool = False
    ) -> None:
        executors = int(settings.executors)
        classes = tables.extents["class"]
        elastic = settings.elastic
        loses = bool(settings.loss_rate or settings.loss_times_ms)
        keeps = not settings.shuffle_service and (settings.dynamic or loses)
        units = settings.most_executors if elastic else 0
        tasks = tables.num_tasks + (2 * executors if elastic else 0)  # tasks that run again make it grow
        extents = {
            "executor": executors,
            "event node": heap_length(executors),
            "job list": tables.num_jobs,
            "stage list": tables.num_stages,
            "pool": tables.num_jobs + 1,
            "source": tables.num_stages + tables.num_jobs + 1,
            "commit": executors + 8,
            "pool class": (tables.num_jobs + 1) * classes,
            "source class": (tables.num_stages + tables.num_jobs + 1) * classes,
            "stage class": tables.num_stages * classes if classes > 1 else 0,
            "job class": tables.num_jobs * classes if classes > 1 else 0,
            "part": NUM_PARTS,
            "logged task": tasks if log_tasks else 0,
            "loss": len(settings.loss_times_ms),
            "unit": units,
            "elastic executor": executors if elastic else 0,
            "elastic stage": tables.num_stages if keeps or settings.speculation else 0,
            "speculating stage": tables.num_stages if settings.speculation else 0,
            "speculating task": tables.num_tasks if settings.speculation else 0,
            "output": tables.num_tasks if keeps else 0,
            "logged life": 4 * (units + FIRST_DECISIONS) if log_tasks and elastic else 0,
            "logged decision x column": FIRST_DECISIONS * NUM_COLUMNS if log_decisions else 0,
        }
        super().__init__(CLUSTER, tables.extents | extents)
        self.tables = tables
        self.settings = settings
        self.policy: object | None = None
        self.attached: dict[str, Record] = {}
        self._generators: tuple[np.random.Generator, ...] | None = None
        self._bind_tables()
        if settings.loss_times_ms:
            self.loss_ms[:] = sorted(settings.loss_times_ms)
        self.configure(
            num_jobs=tables.num_jobs,
            num_stages=tables.num_stages,
            num_executors=executors,
            num_commits=self.extents["commit"],
            grid_width=tables.grid_width,
            num_arrivals=len(self.arrival_order),
            num_classes=classes,
            num_groups=tables.extents["group"],
            offered_classes=(1 << classes) - 1,
            sampled=settings.durations == "sampled",
            log_tasks=log_tasks,
            log_decisions=log_decisions,
            moving_delay_ms=settings.moving_delay_ms if settings.startup else 0.0,
            time_limit_ms=settings.time_limit_ms if settings.time_limit_applies else np.inf,
            **{name: getattr(settings, name) for name in _SAME},
        )
        if not elastic:
            return
        sustained_ms = settings.sustained_timeout_ms
        self.configure(
            elastic=True,
            unit_size=settings.executor_cores,
            num_units=units,
            min_units=settings.min_executors,
            first_units=settings.first_executors,
            keeps_outputs=keeps,
            num_losses=len(settings.loss_times_ms),
            sustained_timeout_ms=settings.backlog_timeout_ms if sustained_ms is None else sustained_ms,
            loss_rate_ms=settings.loss_rate / 3.6e6,
            speculates=settings.speculation,
            **{name: getattr(settings, name) for name in _SAME_ELASTIC},
        )

    def _bind_tables(self) -> None:
        for name, array in self.tables.arrays.items():
            super().bind(name, array, copy=False)

    def bind(self, name: str, values, *, copy: bool = True) -> None:
        """Refuse: compiled code trusts the tables of a workload.

        Raises:
            RecordError: Always; arrays for schedulers are given to their own record.
        """
        what = "is a table of its workload" if name in self.tables.arrays else "is none that can be given"
        raise RecordError(
            f"array {name} of the cluster state {what}; expected an array of the record of a scheduler "
            "(decima.systems.spark.schedulers.fields.rule_record)"
        )

    def attach(self, slot: str, record: Record) -> None:
        """Attach a record of a compiled scheduler, whose fields become attributes.

        Args:
            slot: Scalar of the state for its address.
            record: The record; what a run changes of it begins anew with every run.
        """
        self.attached[slot] = record
        ATTACHED[self.address] = self
        self.put(**{slot: record.address})

    def _elsewhere(self, name: str) -> Any:
        for record in self.__dict__.get("attached", {}).values():
            if name in record.layout.offsets:
                return getattr(record, name)
        return super()._elsewhere(name)

    def start(
        self,
        rng: np.random.Generator,
        policy_rng: np.random.Generator,
        decide_fn: int = 0,
        paused: np.ndarray | None = None,
    ) -> None:
        """Begin a run at time 0 with every executor free, or continue a paused one.

        Args:
            rng: Random generator of task durations.
            policy_rng: Random generator of a compiled scheduler.
            decide_fn: Address of a compiled scheduler, 0 if decisions come through :meth:`decide`.
            paused: What :meth:`paused` of a state of the same workload and cluster returned; schedulers begin anew.
        """
        for record in (self, *self.attached.values()):
            record.restart()
        if paused is not None:
            self._running[:] = paused
        self._use(rng, policy_rng, *((fault_generator(rng),) if self.elastic else ()))
        self.put(decide_fn=decide_fn, **self._capacities())
        if paused is None:
            engine.reset(self.address)

    def paused(self) -> np.ndarray:
        """All that the run has changed but logs, uint8; :meth:`start` continues from it."""
        memory = self._memory.copy()
        scalars = memory[: len(self._template)].view(self.layout.header_dtype)[0]
        for name in self.layout.code:  # addresses of this process
            scalars[name] = 0
        return memory[self.layout.run_offset :]

    def _capacities(self) -> dict[str, int]:
        return {
            "max_decisions_logged": len(self.decision_rows) // NUM_COLUMNS,
            "max_tasks_logged": len(self.task_lost),
            "max_lives_logged": len(self.life_rows) // 4,
        }

    def _use(self, *generators: np.random.Generator) -> None:
        """Take chance from generators of durations, of the scheduler and, where executors change, of faults."""
        self._generators = generators  # their memory must outlive the run
        for name, rng in zip(("duration", "policy", "fault"), generators, strict=False):
            address, function = generator_addresses(rng)
            self.put(**{f"{name}_rng": address, f"{name}_next": function})

    @property
    def drawn(self) -> bool:
        """Whether the run has taken chance: a generator is not where its seed put it.

        The generator of durations does not count where every task has one duration.
        """
        generators = (self._generators or ())[0 if self.tables.workload.draws else 1 :]
        sources = [rng.bit_generator for rng in generators]
        return any(type(source)(source.seed_seq).state != source.state for source in sources)

    def copy(self) -> ClusterState:
        """An independent copy with the same chance: both then run alike.

        So do states that :mod:`copy` and :mod:`pickle` make, also in other processes.
        """
        return copy.deepcopy(self)

    def __deepcopy__(self, memo: dict) -> ClusterState:
        other = memo[id(self)] = ClusterState(self.tables, self.settings)
        for slot, record in self.attached.items():
            other.attach(slot, Record(record.layout, record.extents))
        if self._generators is not None:
            other._use(*copy.deepcopy(self._generators, memo))
        self.copy_into(other)
        return other

    def __getstate__(self) -> dict[str, Any]:
        names = ("tables", "settings", "policy", "attached", "_generators")
        return super().__getstate__() | {"bound": {}, "own": {name: self.__dict__[name] for name in names}}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        super().__setstate__(kept)
        self.__dict__ |= kept["own"]
        self._bind_tables()
        for slot, record in self.attached.items():
            self.attach(slot, record)
        if self._generators is not None:
            self._use(*self._generators)

    def copy_into(self, other: ClusterState) -> None:
        """Make another state of the same workload and cluster what this one is, generators included.

        Raises:
            RecordError: The other state is of another workload or cluster, or has other records attached.
        """
        if other.attached.keys() != self.attached.keys():
            raise RecordError(
                f"a copy of a state with {', '.join(self.attached) or 'nothing'} attached needs the same; "
                f"the other has {', '.join(other.attached) or 'nothing'}"
            )
        super().copy_into(other)
        other.extents = dict(self.extents)
        for slot, record in self.attached.items():
            record.copy_into(other.attached[slot])
        other.policy = self.policy
        mine, theirs = self._generators, other._generators
        if mine is None:
            return
        if theirs is None or not _alike(mine, theirs):
            other._use(*copy.deepcopy(mine))  # the same generator twice stays one
            return
        for rng, other_rng in zip(mine, theirs, strict=True):
            other_rng.bit_generator.state = rng.bit_generator.state

    def advance(self) -> bool:
        """Run to the next decision of the caller (True) or to the end (False).

        Ctrl-C ends it within a fraction of a second; the run can then be continued by another call.

        Raises:
            WorkerError: This thread was stopped (:mod:`decima.core.interrupts`).
            InvalidDecisionError: A decision cannot be carried out.
            DeadlockError: No event is left and jobs are unfinished.
        """
        while (asks := self.heed(engine.advance(self.address))) is None:
            pass
        return asks

    def heed(self, code: int) -> bool | None:
        """Do what a code of the engine asks for.

        Returns:
            Whether a decision is needed, or the run is over; None: the engine continues.
        """
        if code == engine.PAUSED:
            check_stop()
            return None
        if code == engine.LOG_FULL:
            if self.num_source > 0:
                more = {"logged decision x column": self.decision_rows}
            else:
                more = {"logged task": self.task_lost, "logged life": self.life_rows}
            self.resize(**{name: 2 * len(rows) for name, rows in more.items()})
            self.put(**self._capacities())
            return None
        if code == engine.INVALID:
            raise self.invalid()
        if code == engine.DEADLOCK:
            waiting = np.flatnonzero(self.job_state == 1)
            raise DeadlockError(
                f"no event is left at {self.now_ms / 1000:.1f} s but {len(waiting)} of {self.num_jobs} jobs are "
                f"unfinished (first: job {waiting[0]}): the scheduler parked every executor"
            )
        return code == engine.NEEDS_DECISION

    def decide(self, stage: int, limit: int | None = None, *options: float) -> None:
        """Hand over a decision for the open round; :meth:`advance` carries it out.

        Args:
            stage: Stage id, -1 to idle.
            limit: Parallelism limit of the stage's job (``job_limit``), else executors of this source to use; to idle,
                the number of executors that do, all that are offered when omitted.
            *options: Further parts of a decision in the order of :data:`decima.systems.spark.decision.PARTS`; their
                defaults where omitted.
        """
        limit = self.num_source if limit is None else limit
        parts = (stage, limit, *options)
        self.action[:] = (*parts, *DEFAULTS[len(parts) :])
        self.put(has_action=1)

    @property
    def executor_ms(self) -> float:
        """Time that Spark executors were registered, summed, to the last completion or the limit."""
        end_ms = self.now_ms if self.truncated else float(np.max(self.job_finish_ms))
        if not self.elastic:
            return self.num_executors * end_ms
        present = self.unit_state == PRESENT
        return self.held_ms + float((end_ms - self.unit_since_ms[present]).sum())

    @property
    def logged_decisions(self) -> np.ndarray:
        """Decisions logged so far, float64 [decisions, columns of ``DECISION_COLUMNS``]."""
        return self.decision_rows.reshape(-1, NUM_COLUMNS)[: self.num_decisions_logged]

    def frontier(self) -> np.ndarray:
        """Stage ids that may be chosen now, jobs in order of arrival, stages by index."""
        members = np.flatnonzero(self.stage_in_frontier)
        rank = np.zeros(self.num_jobs, dtype=np.int64)
        active = self.active[: self.num_active]
        rank[active] = np.arange(len(active))
        return members[np.argsort(rank[self.stage_job[members]], kind="stable")]

    def invalid(self) -> BaseException:
        """Error of the decision in ``action``, or of the network in Python behind it."""
        failure, self.failure = self.failure, None
        return failure or InvalidDecisionError(self.describe_invalid())

    def describe_invalid(self) -> str:
        """Why the decision in ``action`` cannot be carried out."""
        stage, limit, delay_ms, executor_class = parts_of(self.action)
        if self.no_answer:
            return (
                f"decision {self.num_decisions} at {self.now_ms / 1000:.3f} s: the policy has no choice: a score of "
                "its network is not a finite number; the weights are too large"
            )
        if stage == -1:
            what = "idling"
        elif 0 <= stage < self.num_stages:
            job = self.stage_job[stage]
            what = f"stage {stage - self.job_first_stage[job]} of job {job}"
        else:
            what = f"stage id {stage}"
        more = f" and delay {delay_ms:g} ms" if delay_ms != 0.0 else ""
        more += f" and executor class {executor_class}" if executor_class != DEFAULTS[CLASS] else ""
        offered = f"{self.num_source}"
        if self.num_classes > 1:
            offered += f", by class {self.class_offers.tolist()}"
        frontier = [(int(self.stage_job[s]), int(s - self.job_first_stage[self.stage_job[s]])) for s in self.frontier()]
        shown = ", ".join(map(str, frontier[:8])) + (", ..." if len(frontier) > 8 else "")
        return (
            f"decision {self.num_decisions} at {self.now_ms / 1000:.3f} s: cannot choose {what} with limit {limit}"
            f"{more}: {_INVALID[self.error]}; executors offered: {offered}; "
            f"(job, stage) that can be chosen: [{shown}]"
        )


def fault_generator(rng: np.random.Generator) -> np.random.Generator:
    """Generator of faults that belongs to a generator of durations, independent of it.

    It depends on the seed only, not on what was drawn.
    """
    seed = rng.bit_generator.seed_seq
    return np.random.default_rng(np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, 1)))


def _alike(mine: tuple, theirs: tuple) -> bool:
    """Whether generators can take over the states of others."""
    kinds = [[type(rng.bit_generator) for rng in group] for group in (mine, theirs)]
    apart = not {id(rng) for rng in mine} & {id(rng) for rng in theirs}
    return apart and kinds[0] == kinds[1] and (mine[0] is mine[1]) == (theirs[0] is theirs[1])


def new_state(
    workload: Workload | WorkloadTables, settings: Settings, *, log_tasks: bool = False, log_decisions: bool = False
) -> ClusterState:
    """Memory for runs of a workload, one after the other.

    Args:
        workload: The jobs, or their tables, which several states may share.
        settings: The cluster; tables must have been made with the same settings.
        log_tasks: Keep every task.
        log_decisions: Keep every decision.
    """
    tables = workload if isinstance(workload, WorkloadTables) else WorkloadTables(workload, settings)
    return ClusterState(tables, settings, log_tasks=log_tasks, log_decisions=log_decisions)


def offers(state: ClusterState, again: bool = False) -> Iterator[None]:
    """Run from decision to decision; the caller answers by :meth:`decima.systems.spark.state.ClusterState.decide`.

    Where executors are offered but no stage can be chosen, they are left idle without asking.

    Args:
        state: The state.
        again: Offer all executors again where every one is parked, as the Gymnasium environment does.

    Yields:
        None, whenever executors are offered and a stage can be chosen.

    Raises:
        InvalidDecisionError: The answer cannot be carried out.
        DeadlockError: Every executor is parked and jobs are unfinished.
    """
    rescued = not again
    while True:
        try:
            if not state.advance():
                return
        except DeadlockError:
            if rescued:
                raise
            rescued = True
            engine.offer_all(state.address)
            continue
        if state.num_frontier == 0:
            state.decide(-1)
        else:
            rescued = not again
            yield


# ---- one seed, several independent random generators --------------------------------------------------------------


def spawn_generators(seed: int) -> tuple[np.random.Generator, np.random.Generator]:
    """Independent generators for task durations and for the scheduler, from one seed.

    Raises:
        ConfigError: The seed is not a whole number of at least 0.
    """
    check_whole("seed", seed, least=0)
    durations, policy = np.random.SeedSequence(int(seed)).spawn(2)
    return np.random.default_rng(durations), np.random.default_rng(policy)
