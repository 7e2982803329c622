"""Assignment of executors to several applications of one cluster manager by one scheduler.

Source: §6.1, Figure 8: Decima's agent in the cluster's master moves executors between applications. Differs: the master
stays as it is. Every application's driver learns how many executors to ask it for (`Command.target`); a move is one
target lowered and another raised.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable

from decima.connect.service import scheduler_pb2 as protocol
from decima.connect.service.durations import ProfileBook
from decima.connect.service.job_memory import Slot
from decima.connect.service.limits import Limits
from decima.connect.service.mirror import Choice, Mirror
from decima.connect.service.session import CallOrder, JobTable, check_report, put_choice, timed_choice
from decima.systems.spark.decision import DEFAULTS
from decima.systems.spark.settings import Settings


class SharedCluster:
    """Executors of one cluster and the drivers that share them.

    The targets of all drivers together never exceed the executors of the cluster; what they leave belongs to nobody.
    """

    def __init__(self, mirror: Mirror, settings: Settings, book: ProfileBook, limits: Limits) -> None:
        self.mirror, self.settings, self.limits = mirror, settings, limits
        mirror.set_executors(settings.executors)
        self.jobs = JobTable(mirror, book, limits)
        self.drivers: dict[str, Driver] = {}

    @property
    def unallocated(self) -> int:
        """Number of executors that belong to no driver."""
        return self.settings.executors - sum(driver.target for driver in self.drivers.values())

    def allocate(self, now_ms: float) -> None:
        """Assign executors that belong to no driver; let drivers offer the executors they left idle."""
        while (free := self.unallocated) > 0:
            choice, _ = timed_choice(self.mirror, now_ms, None, free)
            if choice is None:
                break
            self.drivers[choice.key[0]].grow(choice)
        if self.mirror.num_frontier > 0:
            for driver in self.drivers.values():
                driver.ask()

    def leave(self, driver: Driver) -> None:
        """Remove a driver and its jobs, and give its executors to others."""
        del self.drivers[driver.key]
        for key in [key for key in self.mirror.slots if key[0] == driver.key]:
            self.mirror.drop_job(key)
        self.mirror.account.hold("total_stages", self.mirror.num_stages)
        self.allocate(self.mirror.state.now_ms)


class Driver:
    """Session of one driver of a shared cluster.

    Args:
        key: Id of its session.
        client: Name of the driver, for logs.
        cluster: The cluster it belongs to.
        on_empty: Called when it was the last driver to leave.
    """

    def __init__(self, key: str, client: str, cluster: SharedCluster, on_empty: Callable[[], None]) -> None:
        self.key = key
        self.client = client
        self.target = 0
        self.watched = False
        self._cluster = cluster
        self._on_empty = on_empty
        self._calls = CallOrder()
        self._promised: Counter[tuple[tuple, int]] = Counter()  # (job, stage id): executors on their way
        self._assigned: Choice | None = None  # what the last reply gave, not reported yet
        self._idle = False  # executors it offered were left idle
        self._ask = False
        self._known = False  # it has reported
        self._number = 1
        self._changed = asyncio.Event()
        cluster.drivers[key] = self

    @property
    def num_jobs(self) -> int:
        """Number of its jobs in the system."""
        # A copy: metrics are asked for in another thread.
        return sum(key[0] == self.key for key in list(self._cluster.mirror.slots))

    @property
    def num_executors(self) -> int:
        """Number of executors that it should have."""
        return self.target

    def overview(self, most: int) -> list[dict]:
        """A limited number of its jobs, for people."""
        return self._cluster.mirror.overview(self.key, most)

    # ---- commands ---------------------------------------------------------------------------------------------------

    def command(self) -> protocol.Command:
        """Return the newest command."""
        return protocol.Command(number=self._number, target=self.target, ask=self._ask)

    def grow(self, choice: Choice) -> None:
        """Raise the target by the executors chosen for a stage of one of its jobs."""
        self.target += choice.executors
        which = choice.key, self._cluster.mirror.slots[choice.key].graph.stage_ids[choice.stage]
        self._promised[which] += choice.executors
        self._put_promise(which, choice.executors)
        self._tell()

    def ask(self) -> None:
        """Ask the driver to offer again the executors that were left idle."""
        if self._idle and not self._ask:
            self._ask = True
            self._tell()

    def _shrink(self, executors: int) -> None:
        self.target = max(0, self.target - executors)
        self._tell()

    def _tell(self) -> None:
        self._number += 1
        self._changed.set()

    async def watch(self) -> AsyncIterator[protocol.Command]:
        """Yield commands as they change; a slow reader misses all but the newest."""
        while True:
            self._changed.clear()
            yield self.command()
            await self._changed.wait()

    # ---- reports ----------------------------------------------------------------------------------------------------

    def decide(self, request: protocol.DecideRequest) -> protocol.Decision:
        """Take a report and decide about the executors that it offers.

        Raises:
            RefusalError: The message is wrong, or is not what comes next.
        """
        cluster, jobs = self._cluster, self._cluster.jobs
        check_report(request, cluster.limits)
        self._calls.begin(request)
        if not self._known:
            # After a restart of the service its executors are there already.
            self._known = True
            self.target = min(request.executors, cluster.unallocated)
        self._put_promises(-1, self._promised)
        self._forget_assigned()
        wrong = None
        try:
            before = self._choosable()
            jobs.put_report(self.key, request)
            # Whether there may be something new to decide for executors elsewhere.
            news = request.full or bool(request.gone) or bool(self._choosable() - before)
        except Exception as error:  # raised below
            wrong = error
            for slot in [slot for key, slot in cluster.mirror.slots.items() if key[0] == self.key]:
                cluster.mirror.start_counts(slot)  # half written: nothing of it can be chosen
        self._promised = Counter({which: n for which, n in self._promised.items() if self._slot(which) is not None})
        self._put_promises(1, self._promised)
        if wrong is not None:
            raise wrong
        source = jobs.check_offer(self.key, request.offer, request.executors)
        reply = protocol.Decision(sequence=request.sequence, idle=True)
        if request.offer.executors:
            self._ask = self._idle = False
            news |= self._decide(request, source, reply)
        if news:
            cluster.allocate(request.time_ms)
        self._calls.done()
        reply.command.CopyFrom(self.command())
        return reply

    def _choosable(self) -> set[tuple[tuple, int]]:
        """Keys of the stages that the driver calls schedulable."""
        slots = self._cluster.mirror.slots
        return {(key, stage) for key, slot in slots.items() if key[0] == self.key for stage in slot.graph.schedulable}

    def _slot(self, which: tuple[tuple, int]) -> Slot | None:
        """Find the slot of a promised stage's job; None if the stage is gone."""
        slot = self._cluster.mirror.slots.get(which[0])
        return slot if slot is not None and which[1] in slot.graph.index else None

    def _put_promises(self, sign: int, promised: dict[tuple[tuple, int], int]) -> None:
        """Add executors on their way to what the driver reports, or take them away again."""
        for which, executors in promised.items():
            self._put_promise(which, sign * executors)

    def _put_promise(self, which: tuple[tuple, int], executors: int) -> None:
        slot = self._slot(which)
        if slot is not None:
            self._cluster.mirror.add_moving(slot, slot.graph.index[which[1]], executors)

    # ---- decisions --------------------------------------------------------------------------------------------------

    def _decide(self, request: protocol.DecideRequest, source: tuple | None, reply: protocol.Decision) -> bool:
        """Decide about this driver's offered executors, for its stages or those of others.

        Returns:
            True if it gave executors back to nobody.
        """
        mirror, offered = self._cluster.mirror, request.offer.executors
        if source is None and (choice := self._kept_promise(offered)) is not None:
            self._assign(reply, choice)
            return False
        choice, reply.decide_us = timed_choice(mirror, request.time_ms, source, offered)
        if choice is None:
            if self.num_jobs == 0:
                self._shrink(offered)
                return True
            self._idle = True
        elif choice.key[0] == self.key:
            self._assign(reply, choice)
        else:
            self._shrink(choice.executors)
            mirror.release(source, choice.executors)
            self._cluster.drivers[choice.key[0]].grow(choice)
            self._ask = choice.executors < offered
        return False

    def _assign(self, reply: protocol.Decision, choice: Choice) -> None:
        """Assign executors to a stage; its tasks are reserved until the driver reports them."""
        mirror = self._cluster.mirror
        put_choice(reply, mirror, choice)
        self._assigned = choice
        mirror.add_moving(mirror.slots[choice.key], choice.stage, choice.executors, count_for_job=False)

    def _forget_assigned(self) -> None:
        choice, self._assigned = self._assigned, None
        if choice is not None:
            mirror = self._cluster.mirror
            mirror.add_moving(mirror.slots[choice.key], choice.stage, -choice.executors, count_for_job=False)

    def _kept_promise(self, offered: int) -> Choice | None:
        """Choose the stage that new executors were promised to, or drop a promise without use."""
        mirror = self._cluster.mirror
        for which in list(self._promised):
            executors = min(offered, self._promised[which])
            slot = self._slot(which)
            stage = slot.graph.index[which[1]]
            under_way = self._promised.pop(which)
            self._put_promise(which, -under_way)
            useful = min(executors, mirror.room(slot, stage)) if stage in slot.graph.schedulable else 0
            if useful > 0:
                if useful < under_way:
                    self._promised[which] = under_way - useful
                    self._put_promise(which, under_way - useful)
                limit = mirror.allocation(slot, None, 0) + useful if mirror.state.job_limit else useful
                return Choice(which[0], (stage, limit, *DEFAULTS[2:]), useful)
        return None

    def leave(self) -> None:
        """Leave the cluster."""
        self._cluster.leave(self)
        if not self._cluster.drivers:
            self._cluster.mirror.account.close()
            self._on_empty()
