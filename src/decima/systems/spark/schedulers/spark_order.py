"""Spark's order of stages: FIFO, and FAIR with pools, weights and minimum shares.

Source: ``TaskSchedulerImpl``, ``Pool``, ``FIFOSchedulingAlgorithm`` and ``FairSchedulingAlgorithm`` of Apache Spark.
Differs: Spark offers each free core to the first stage in order, task by task, and a core belongs to no job. Here an
executor stays at its stage until that has no task left and pays for coming to another job, so that shares hold where
executors are offered and return as stages drain. Executors offered together are counted one by one; Spark orders once
for all cores that it offers together. A pool holds the executors of its jobs, those on their way included. Equal stages
of a FAIR pool come by job and index, in Spark by the text of their number. A child can run when its last parent ends;
Spark submits it some milliseconds later and by then has given the core to another job. Without ``reoffer`` executors
wait for a stage that cannot run yet, because nothing would offer them again.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from decima.core.decision import CompiledDecision
from decima.core.errors import ConfigError
from decima.core.grammar import Option, read_value
from decima.core.jit import njit
from decima.systems.spark.fields import NONE, state_at
from decima.systems.spark.rules.choices import choose, choose_idle, job_allocation
from decima.systems.spark.rules.frontier import stage_room
from decima.systems.spark.schedulers.fields import bind_parameters, rule_of
from decima.systems.spark.schedulers.interface import NAMES, CompiledScheduler
from decima.systems.spark.schedulers.registry import register

if TYPE_CHECKING:
    from decima.systems.spark.state import ClusterState

ONE, EACH, DEFAULT = "one", "each", "default"
ORDERS = ("fifo", "fair")
FORM = "PATTERN/WEIGHT/MIN_SHARE/ORDER"


class Pool(NamedTuple):
    """A pool of Spark's FAIR scheduler, and the jobs in it."""

    pattern: str  # of names of jobs, as of files, or ``#3``, ``#0-4``: jobs by number
    weight: int = 1  # at least 1
    min_share: int = 0  # executors that it gets before pools that have theirs
    order: str = "fifo"  # of its stages: by job and index, or the one with fewest executors first

    def has(self, number: int, name: str) -> bool:
        """Whether a job belongs to it, by its number in the workload and its name."""
        if not self.pattern.startswith("#"):
            return fnmatchcase(name, self.pattern)
        first, _, last = self.pattern[1:].partition("-")
        return int(first) <= number <= int(last or first)


def read_pools(text: str) -> tuple[Pool, ...]:
    """Read pools such as ``q1?*/3/4+#0-4/1/0/fair``; a job is in the first that fits.

    Raises:
        ConfigError: A pool is not of that form.
    """
    pools = []
    for part in text.split("+"):
        pattern, *rest = part.split("/")
        where = f"pools: {part!r}"
        if not pattern or len(rest) > 3 or (pattern.startswith("#") and not re.fullmatch(r"#\d+(-\d+)?", pattern)):
            raise ConfigError(f"{where} is not a pool; expected {FORM}, such as q1*/3/4/fair or #0-4/3")
        weight, least = (read_value(value, int, where) for value in (rest[:2] + ["1", "0"][len(rest) :]))
        pools.append(Pool(pattern, weight, least, *rest[2:]))
        if weight < 1 or least < 0 or pools[-1].order not in ORDERS:
            raise ConfigError(f"{where}: expected a weight of at least 1, a minimum share of at least 0, fifo or fair")
    return tuple(pools)


@njit
def _first_stage(state, waiting):
    """First stage in order with room; with ``waiting`` it need not be able to run."""
    rule = rule_of(state)
    best = best_pool = NONE
    best_share = best_held = 0.0
    for index in range(state.num_active):
        job = state.active[index]
        pool = rule.job_pool[job]
        held, least = rule.pool_held[pool], rule.pool_min_share[pool]
        # Pools below their minimum share, by the part of it that they have, come before all others.
        share = held / least if held < least else 1.0 + held / rule.pool_weight[pool]
        for stage in range(state.job_first_stage[job], state.job_first_stage[job + 1]):
            more = rule.stage_given[stage]
            if not state.stage_in_frontier[stage] or not (waiting or state.stage_runnable[stage]):
                continue
            if stage_room(state, stage) <= more:
                continue
            held = 0.0
            if rule.pool_fair[pool]:
                held = state.stage_executors[stage] + state.stage_moving[stage] + state.stage_commit[stage] + more
            first = best == NONE or share < best_share
            if not first and pool == best_pool:
                first = held < best_held
            elif not first and share == best_share:
                first = rule.pool_rank[pool] < rule.pool_rank[best_pool]
            if first:
                best, best_pool, best_share, best_held = stage, pool, share, held
    return best


@CompiledDecision.reading((), ("job_pool", "pool_rank", "pool_weight", "pool_min_share", "pool_fair"))
def _spark_order(address):
    state = state_at(address)
    rule = rule_of(state)
    for index in range(state.num_active):
        job = state.active[index]
        rule.pool_held[rule.job_pool[job]] = 0.0
        for stage in range(state.job_first_stage[job], state.job_first_stage[job + 1]):
            rule.stage_given[stage] = 0.0
    for index in range(state.num_active):
        job = state.active[index]
        rule.pool_held[rule.job_pool[job]] += job_allocation(state, job)
    first = _first_stage(state, False)
    waiting = first == NONE and not state.reoffer
    if waiting:
        first = _first_stage(state, True)
    if first == NONE:
        choose_idle(state)
        return
    stage = first
    for _ in range(state.num_source):
        rule.stage_given[stage] += 1.0
        rule.pool_held[rule.job_pool[state.stage_job[stage]]] += 1.0
        stage = _first_stage(state, waiting)
        if stage == NONE:
            break
    choose(state, first, int(rule.stage_given[first]))


class SparkOrder(CompiledScheduler):
    """Stages in the order of Spark's scheduler.

    Args:
        name: Name in the registry.
        pools: ``one`` for all jobs, ``each``: one per job, or pools as :func:`read_pools` reads them.

    Raises:
        ConfigError: A pool is not of that form.
    """

    def __init__(self, name: str, pools: str, **values) -> None:
        super().__init__(name, _spark_order, values)
        self.pools = () if pools in (ONE, EACH) else read_pools(str(pools))
        self.each = pools == EACH
        if self.pools:
            self.values = {"pools": pools}  # the one value that is no number

    @property
    def reads(self) -> frozenset[str]:
        """As in any compiled scheduler, and names where there are pools."""
        return super().reads | ({NAMES} if self.pools else set())

    def bind(self, state: ClusterState) -> None:
        """Hand the pools to a state before its run starts."""
        record = bind_parameters(state, [])
        of_job = np.arange(state.num_jobs) if self.each else np.zeros(state.num_jobs, dtype=np.int64)
        pools = [Pool(DEFAULT)] * max(1, state.num_jobs)
        ranks = np.zeros(state.num_jobs)
        if self.pools:
            of_each = [
                next((pool for pool in self.pools if pool.has(number, job.profile.name)), Pool(DEFAULT))
                for number, job in enumerate(state.tables.workload.jobs)
            ]
            named = sorted(set(of_each))
            of_job = np.array([named.index(pool) for pool in of_each])
            pools, ranks = named + pools[len(named) :], np.arange(len(pools), dtype=np.float64)
        pools = pools[: state.num_jobs]
        record.bind("job_pool", of_job)
        record.bind("pool_rank", ranks)
        for name in ("weight", "min_share"):
            record.bind(f"pool_{name}", np.array([getattr(pool, name) for pool in pools], dtype=np.float64))
        record.bind("pool_fair", np.array([float(pool.order == "fair") for pool in pools]))
        self._bound = state


@register("spark_fifo")
def spark_fifo(**values) -> SparkOrder:
    """Spark's FIFO: free executors go to the first stage of the first job."""
    return SparkOrder("spark_fifo", ONE, **values)


POOLS = Option("pools", f"{FORM}+...; {ONE}: all jobs in one, {EACH}: a pool for each", default=EACH)


@register("spark_fair", options=(POOLS,))
def spark_fair(pools: str = EACH, **values) -> SparkOrder:
    """Spark's FAIR: pools with weights and minimum shares, stages of a pool FIFO or FAIR."""
    return SparkOrder("spark_fair", pools, **values)
