"""The scheduler ``lookahead`` where nobody may wait: plans are made in another thread while the rule decides."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from decima.systems.spark.lookahead.bases import FACTORS
from decima.systems.spark.lookahead.copies import Plan
from decima.systems.spark.lookahead.observed import ObservedCluster, Snapshot
from decima.systems.spark.lookahead.settings import UNPLANNED, PlanSettings
from decima.systems.spark.schedulers.fields import rule_record
from decima.systems.spark.schedulers.interface import CompiledScheduler, Decision, Observation, run_decision

if TYPE_CHECKING:
    from decima.systems.spark.state import ClusterState


@cache
def _thread() -> ThreadPoolExecutor:
    """The thread in which all plans of this process are made, one after the other."""
    return ThreadPoolExecutor(1, thread_name_prefix="decima-plan")


class _Desk:
    """Where plans for one memory of a cluster are made.

    Args:
        base: The rule.
        settings: How plans are made.
        seed: Source of chance.
    """

    def __init__(self, base: CompiledScheduler, settings: PlanSettings, seed: int) -> None:
        self._planner, self._budget = settings.planner(base, seed), settings.budget
        self._cluster: ObservedCluster | None = None

    def plan(self, snapshot: Snapshot) -> tuple[np.ndarray, Plan]:
        """Jobs, and the plan for them."""
        if self._cluster is None:
            self._cluster = ObservedCluster(snapshot)
        return self._planner.replan(self._cluster.see(snapshot), self._budget)


class BackgroundLookahead:
    """A rule with a plan on a cluster that is only observed; until a plan is there, the one in force holds.

    The factors of jobs are kept in the arrays of the observed state, whose owner moves them along with its jobs.

    Args:
        base: The rule, in its form for the jobs.
        settings: How plans are made.

    Attributes:
        plans: Plans that came into force.
    """

    name = "lookahead"

    def __init__(self, base: CompiledScheduler, settings: PlanSettings) -> None:
        self.base, self.settings = base, settings
        self.plans = 0
        self._parameters = np.array([base.values[item.name] for item in base.parameters])
        self._state: ClusterState | None = None
        self._coming: Future[tuple[np.ndarray, Plan]] | None = None
        self._planned = UNPLANNED
        self._rng = np.random.default_rng(0)

    def reset(self, rng: np.random.Generator) -> None:
        """Plans draw from this generator."""
        self._rng = rng

    def decide(self, observation: Observation) -> Decision:
        """Make the decision of the rule with the plan in force, and see to it that one is made when it is time.

        Raises:
            ConfigError: A task takes longer than what is looked ahead.
        """
        state = observation.state
        if state is not self._state:
            self._move_to(state)
        if self._coming is not None and self._coming.done():
            self._take(*self._coming.result())
        due = self.settings.due(state, self._planned)
        if self._coming is None and due is not None and state.num_active > 1 and not self.settings.idle:
            self._planned = due
            self._coming = _thread().submit(self._desk.plan, Snapshot(state))
        return run_decision(self.base.decision, state)

    def wait(self) -> None:
        """Wait for a plan under way; the next decision follows it."""
        if self._coming is not None:
            self._coming.exception()

    def _move_to(self, state: ClusterState) -> None:
        """Go on in other memory, where jobs have other numbers: a plan under way is for the old ones."""
        self.base.bind(state)
        rule_record(state).params[:] = self._parameters
        self._state, self._coming, self._planned = state, None, UNPLANNED
        self._desk = _Desk(self.base, self.settings, int(self._rng.integers(2**63)))

    def _take(self, jobs: np.ndarray, plan: Plan) -> None:
        """Let a plan come into force for the jobs that are still there."""
        self._coming = None
        self.plans += 1
        state, rule = self._state, rule_record(self._state)
        self._parameters = plan.parameters
        rule.params[:] = plan.parameters
        still = np.isin(jobs, state.active[: state.num_active])
        for name, factors in zip(FACTORS, plan.factors, strict=True):
            getattr(rule, name)[jobs[still]] = factors[still]
