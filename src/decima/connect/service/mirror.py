"""Mirror of a client's cluster as a ``ClusterState`` for decisions as on a simulated one."""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace

import numpy as np

from decima.connect.service.errors import invalid
from decima.connect.service.job_memory import JobMemory, Slot
from decima.connect.service.limits import Account
from decima.connect.service.reports import MirrorObservation, reports_of, require_reported
from decima.core.checks import LARGEST_MS
from decima.core.errors import DecimaError
from decima.core.system import form_for
from decima.systems.spark.decision import CLASS, DEFAULTS, DELAY, STAGE, parts_of
from decima.systems.spark.fields import NONE
from decima.systems.spark.policy.features import ARRIVALS_SEEN
from decima.systems.spark.policy.scheduler import LearnedScheduler
from decima.systems.spark.rules.choices import kept_executors
from decima.systems.spark.rules.delays import delay_refusal
from decima.systems.spark.schedulers.interface import (
    CompiledScheduler,
    Scheduler,
    decision_parts,
    run_decision,
)
from decima.systems.spark.settings import Settings
from decima.systems.spark.state import ClusterState


@dataclass(frozen=True)
class Choice:
    """Decision about offered executors."""

    key: Hashable  # key of the chosen job
    parts: tuple[float, ...]  # decision as the scheduler gave it, with the index of the stage inside the job
    executors: int  # offered executors that it uses; 0 if the stage is to be delayed

    @property
    def stage(self) -> int:
        """Local index of the stage."""
        return self.parts[STAGE]


class Mirror(JobMemory):
    """Jobs of one cluster and the scheduler that decides about them.

    Args:
        scheduler: What decides.
        settings: The cluster.
        rng: The scheduler's random generator.
        hint_ms: Mean interarrival time given to a learned policy; above 0, jobs arrive over time.
        account: What it takes of the service's budget; closed with the mirror.
        delays: Whether the client delays stages.
        running: Whether the client reports what runs.
        unlike: Settings of the client's cluster that are not those given.

    Attributes:
        knows_running: Whether the client reports what runs.

    Raises:
        ConfigError: The scheduler does not work on such a cluster, or needs to know what no client or this one reports.
        RefusalError: The budget is exhausted.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        settings: Settings,
        rng: np.random.Generator,
        hint_ms: float,
        account: Account,
        *,
        delays: bool = False,
        running: bool = False,
        unlike: Iterable[str] = (),
    ) -> None:
        self._scheduler = scheduler = form_for(scheduler, hint_ms > 0.0)
        self._reports = reports_of(running, hint_ms) - set(unlike)
        require_reported(scheduler, self._reports)
        self._rng = rng
        self._hint_ms = hint_ms
        self._delays = delays
        self.knows_running = running
        if not isinstance(scheduler, CompiledScheduler):
            scheduler.reset(rng)
        super().__init__(settings, account, ARRIVALS_SEEN + 1 if running else 0)

    def _start(self, state: ClusterState) -> None:
        state.start(self._rng, self._rng)
        if isinstance(self._scheduler, CompiledScheduler):
            gap = (self._hint_ms,) if isinstance(self._scheduler, LearnedScheduler) else ()
            self._scheduler.bind(state, *gap)
        self._observation = MirrorObservation(state, self._scheduler, self._reports)

    def add_moving(self, slot: Slot, index: int, executors: int, *, count_for_job: bool = True) -> None:
        """Count more executors (or fewer, below 0) as on their way to a stage.

        Args:
            slot: Place of the job.
            index: Index of the stage inside the job.
            executors: Their number.
            count_for_job: Count them for the job too; False where the job holds them already.
        """
        self.state.stage_moving[slot.first + index] += executors
        if count_for_job:
            self.state.job_moving[slot.job] += executors
        self.put_room(slot, index)
        self.put_frontier(slot)

    def release(self, source: Hashable | None, executors: int) -> None:
        """Take executors from a job before its client reports that they left it."""
        if source is not None:
            slot = self.slots[source]
            self.views.job_attached[slot.job] -= min(executors, self.allocation(slot, None, 0))

    @property
    def num_frontier(self) -> int:
        """Number of stages that may be chosen."""
        return sum(int(self.state.job_frontier[slot.job]) for slot in self.slots.values())

    def overview(self, prefix: Hashable, most: int) -> list[dict]:
        """Jobs of one client, for people: what they hold and what waits.

        Another thread may ask; numbers are then those of about now.

        Args:
            prefix: First part of their keys.
            most: Jobs that are given at most.
        """
        shown = []
        for key, slot in [item for item in list(self.slots.items()) if item[0][0] == prefix][:most]:
            views, at = self.views, slot.job
            finished = sum(map(operator.ge, list(slot.graph.finished), slot.graph.dag.tasks.tolist()))
            # Asked for in another thread, while jobs may move to other memory.
            with contextlib.suppress(IndexError):
                held = {"executors": views.job_attached[at], "coming": views.job_moving[at] + views.job_commit[at]}
                waiting = [slot.graph.stage_ids[index] for index in list(slot.graph.schedulable)]
                shown.append({"job": key[1], "stages": slot.size, "finished": finished, **held, "waiting": waiting[:8]})
        return shown

    # ---- decisions --------------------------------------------------------------------------------------------------

    def set_executors(self, executors: int) -> None:
        """Set the number of executors of the cluster.

        Raises:
            ConfigError: The scheduler does not work on that number.
            RefusalError: The budget is exhausted.
        """
        if executors > self._capacity.executors:
            self._build(replace(self._capacity, executors=executors))
        self.state.put(num_executors=executors)
        self.state.class_executors[:] = executors

    def allocation(self, slot: Slot, source: Slot | None, offered: int) -> int:
        """Number of executors that a job holds or will get, apart from those it offers."""
        return kept_executors(self.views, slot.job) - (offered if slot is source else 0)

    def put_running(self, source: Hashable | None, stage: int | None) -> None:
        """Write executors at work or on their way, and the offer's stage, into the state.

        Args:
            source: Key of the job that the offered executors were in last, None if there is none.
            stage: Index inside that job of the stage that they are on, None if all are free.

        Raises:
            RefusalError: More executors are busy than there are.
        """
        state = self.state
        stages: list[int] = []
        begins: list[float] = []
        coming: list[int] = []
        moving: dict[int, list[int]] = {}  # stages that executors are on their way to, by job
        for goal in np.flatnonzero(state.stage_moving[: self._next_stage]).tolist():
            moving.setdefault(self.views.stage_job[goal], []).extend([goal] * self.views.stage_moving[goal])
        for slot in self.slots.values():
            for index, since in sorted(slot.graph.running_since_ms.items()):
                stages += [slot.first + index] * len(since)
                begins += since
            coming += moving.get(slot.job, ())
        at_work, busy = len(stages), len(stages) + len(coming)
        if busy > state.num_executors:
            raise invalid(
                f"{at_work} tasks run and {len(coming)} executors are on their way; expected at most "
                f"{state.num_executors} together, the executors of the cluster"
            )
        state.executor_stage[:] = NONE
        state.executor_stage[:at_work] = stages
        state.executor_start_ms[:at_work] = begins
        state.executor_destination[at_work:busy] = coming
        # All others idle in some pool.
        state.executor_pool[:] = 0
        state.executor_pool[:busy] = NONE
        state.executor_moving[:] = 0
        state.executor_moving[at_work:busy] = 1
        offered = state.num_stages if source is None or stage is None else self.slots[source].first + stage
        state.put(heap_size=busy, num_free=0, source=offered)

    def decide(self, now_ms: float, source: Hashable | None, offered: int) -> Choice | None:
        """Decide about offered executors; None to leave them idle.

        Args:
            now_ms: Time of the client in ms.
            source: Key of the job that the executors were in last, None if there is none.
            offered: Number of offered executors, at least 1.

        Raises:
            DecimaError: The scheduler has no answer, or none that can be carried out.
        """
        state = self.state
        jobs = self.active_jobs()
        frontier = int(state.job_frontier[jobs].sum())
        from_slot = None if source is None else self.slots.get(source)
        state.put(
            num_active=len(jobs),
            num_frontier=frontier,
            num_jobs_unsaturated=int(np.count_nonzero(state.job_unsaturated[jobs])),
            source_job=NONE if from_slot is None else from_slot.job,
            num_source=offered,
            now_ms=now_ms,
        )
        state.class_offers[:] = offered
        if frontier == 0:
            return None
        parts = self._ask()
        return None if parts[STAGE] < 0 else self._checked(parts, from_slot, offered)

    def _ask(self) -> tuple[float, ...]:
        """Ask the scheduler for a decision; a negative stage id means to idle."""
        if not isinstance(self._scheduler, CompiledScheduler):
            return decision_parts(self._scheduler.decide(self._observation))
        run_decision(self._scheduler.decision, self.state)
        if self.state.no_answer:
            raise DecimaError("a score of the policy's network is not a finite number")
        return parts_of(self.state.action)

    def _checked(self, parts: tuple[float, ...], source: Slot | None, offered: int) -> Choice:
        """Check a decision and find how many executors the simulator would move by it."""
        state = self.state
        if parts[CLASS] > 0:
            raise DecimaError(f"scheduler {self._scheduler.name} chose a class of executors, and there is only one")
        # The only class is the one that best fit chooses, so clients need not know of classes.
        parts = (*parts[:CLASS], DEFAULTS[CLASS], *parts[CLASS + 1 :])
        stage, limit, *further = parts
        if not 0 <= stage < self._next_stage or not state.stage_in_frontier[stage]:
            raise DecimaError(f"scheduler {self._scheduler.name} chose a stage that cannot be chosen")
        job = int(state.stage_job[stage])
        key = self._keys[job]
        slot = self.slots[key]
        if parts[DELAY] != 0.0:
            self._check_delay(stage, parts[DELAY])
            return Choice(key, (stage - slot.first, limit, *further), 0)
        used = limit
        if state.job_limit:
            used = min(limit - self.allocation(slot, source, offered), offered)
        used = min(used, self.room(slot, stage - slot.first))
        if not 1 <= used <= offered:
            raise DecimaError(f"scheduler {self._scheduler.name} chose limit {limit}, which gives {used} of {offered}")
        return Choice(key, (stage - slot.first, limit, *further), used)

    def _check_delay(self, stage: int, delay_ms: float) -> None:
        """Check that the client delays stages, and that the simulator would delay this one."""
        name = self._scheduler.name
        if not self._delays:
            raise DecimaError(f"scheduler {name} delays a stage, and this client delays none (OpenRequest.delays)")
        if not 0.0 < delay_ms <= LARGEST_MS:
            raise DecimaError(f"scheduler {name} chose a delay of {delay_ms} ms; expected a number to {LARGEST_MS:g}")
        if delay_refusal(self.state, stage):
            raise DecimaError(f"scheduler {name} delays a stage that is not runnable, has begun or was delayed before")
