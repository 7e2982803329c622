"""Copies of a running cluster in which candidates for a plan are tried; their memory is kept from plan to plan."""

from __future__ import annotations

from types import SimpleNamespace
from typing import NamedTuple

import numpy as np

from decima.core.errors import InvalidDecisionError
from decima.core.interrupts import check_stop
from decima.core.record import GIVEN
from decima.systems.spark import engine
from decima.systems.spark.fields import ARRAYS
from decima.systems.spark.lookahead.bases import FACTORS, bind_copy, forget_jobs
from decima.systems.spark.lookahead.chance import SharedChance
from decima.systems.spark.lookahead.projection import lay_out, project, unfinished_ms
from decima.systems.spark.schedulers.fields import rule_record
from decima.systems.spark.schedulers.interface import CompiledScheduler
from decima.systems.spark.state import ClusterState

# Tables that depend on the jobs; all others are those of the cluster that is copied.
_OF_JOBS = (
    "stage_job", "stage_tasks", "stage_row", "job_first_stage", "arrival_order", "job_initial", "job_arrival_ms",
    "job_work_ms", "stage_memory", "stage_cpu", "stage_group",
)  # fmt: skip
_OF_PROFILES = ("row", "row + 1", "edge", "grid cell", "duration list", "duration", "class", "group")


class Future(NamedTuple):
    """Jobs that are assumed to come."""

    like: np.ndarray  # int32 [jobs], jobs of the cluster that they are like
    arrival_ms: np.ndarray  # float64 [jobs], ascending


class Plan(NamedTuple):
    """What the rule is given: its parameters, and the factors of every job in the system."""

    parameters: np.ndarray  # float64 [parameters], in the order of the rule
    factors: np.ndarray  # float64 [factors, jobs], natural logarithms, as in ``FACTORS``


NO_FUTURE = Future(np.zeros(0, np.int32), np.zeros(0))


def _tables(state: ClusterState, jobs: int, stages: int) -> SimpleNamespace:
    """Tables with room for so many jobs and stages, with the profiles of a cluster."""
    extents = {name: state.extents[name] for name in _OF_PROFILES}
    extents |= {"job": jobs, "job + 1": jobs + 1, "stage": stages, "arrival": jobs}
    arrays = {
        name: np.zeros(extents[field.extent], field.dtype) if name in _OF_JOBS else getattr(state, name)
        for name, field in ARRAYS.items()
        if field.storage == GIVEN
    }
    return SimpleNamespace(
        num_jobs=jobs, num_stages=stages, num_tasks=0, grid_width=state.grid_width, extents=extents, arrays=arrays
    )


class _Run:
    """Memory in which candidates run, one after the other.

    Args:
        begin: Where they begin.
        base: The rule that decides, or a policy.
        original: The cluster that is copied.
    """

    def __init__(self, begin: ClusterState, base: CompiledScheduler, original: ClusterState) -> None:
        self._begin, self._base = begin, base
        self._state = state = ClusterState(begin.tables, begin.settings)
        bind_copy(base, state, original)
        rule = rule_record(state)
        self._parameters = np.zeros(len(base.parameters))
        if base.parameters:
            rule.bind("params", self._parameters, copy=False)
        self._factors = [np.zeros(len(state.job_state)) for _ in FACTORS]
        for name, values in zip(FACTORS, self._factors, strict=True):
            rule.bind(name, values, copy=False)
        self._chance = SharedChance(state)
        self._memory = np.zeros(len(state.job_state))

    def cost_ms(self, plan: Plan, seed: int) -> float:
        """See :meth:`Draw.cost_ms`."""
        state = self._state
        self._begin.copy_run_into(state)
        forget_jobs(self._base, state)
        self._parameters[:] = plan.parameters
        for values, factors in zip(self._factors, plan.factors, strict=True):
            values[1 : 1 + len(factors)] = factors
            values[1 + len(factors) :] = 0.0
        self._chance.set(seed)
        while (code := engine.advance(state.address)) == engine.PAUSED:
            check_stop()
        if code == engine.INVALID:
            raise InvalidDecisionError(state.describe_invalid())
        if code == engine.DEADLOCK and state.num_active:
            return float("inf")
        return state.area_ms + (unfinished_ms(state.address, self._memory) if state.num_active else 0.0)


class Draw:
    """One draw of what is not known: a state to begin at, and memory in which candidates run from there.

    Args:
        state: The cluster, for its profiles and settings.
        base: The rule that decides.
        jobs: Most jobs.
        stages: Most stages of them.
        threads: Candidates that may run at the same time.
    """

    def __init__(self, state: ClusterState, base: CompiledScheduler, jobs: int, stages: int, threads: int = 1) -> None:
        self._begin = ClusterState(_tables(state, jobs + 1, stages + 1), state.settings)
        self._chance = SharedChance(self._begin)
        self._runs = [_Run(self._begin, base, state) for _ in range(threads)]
        self._decide = base.decision.address
        self._place = np.zeros(len(state.job_state), np.int32)
        self._kinds = np.zeros(len(state.executor_job), np.int64)
        self._ends_ms = np.zeros(len(state.executor_job))
        self._seed = 0

    def begin(self, state: ClusterState, jobs: np.ndarray, future: Future, until_ms: float, seed: int) -> None:
        """Take over the state that a cluster is in.

        Args:
            state: The cluster, at a decision.
            jobs: Jobs in the system, in order of arrival, int32 [jobs].
            future: Jobs that are assumed to come.
            until_ms: Where runs end, ms of simulated time.
            seed: Chance of this draw, below 2**64.
        """
        begin = self._begin
        begin.restart()
        begin.put(
            decide_fn=self._decide,
            time_limit_ms=until_ms,
            moving_delay_ms=state.moving_delay_ms,
            num_executors=state.num_executors,
        )
        lay_out(state.address, begin.address, jobs, *future)
        self._chance.set(seed)
        project(
            state.address, begin.address, jobs, self._place, self._kinds, self._ends_ms, self._chance.word
        )  # fmt: skip
        self._seed = int(self._chance.word[0])

    def cost_ms(self, plan: Plan, thread: int = 0) -> float:
        """Time in ms that all jobs spend in the system from here on, summed, when a plan is followed.

        A run that is cut counts what is left of its work as if that were divisible at will.

        Args:
            plan: Parameters of the rule and factors of the jobs that were given to :meth:`begin`.
            thread: Index of the memory to run in.

        Returns:
            Infinity where the plan leaves jobs unfinished for ever.

        Raises:
            InvalidDecisionError: The rule chose what cannot be chosen.
        """
        return self._runs[thread].cost_ms(plan, self._seed)
