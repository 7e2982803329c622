"""Scheduler ``lookahead``: a rule that is planned anew whenever a job comes or goes.

No paper has it. Plans are made by simulating from the present state, with task durations drawn anew: neither the true
durations of the run nor jobs that have not arrived play a part.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from decima.core.checks import check_whole, is_number
from decima.core.errors import ConfigError, InvalidDecisionError
from decima.core.grammar import Option, read_value
from decima.core.record import Record
from decima.core.system import form_for
from decima.systems.spark.lookahead.copies import BASE, FACTORS, require_factors, rule_parameters
from decima.systems.spark.lookahead.planner import ARRIVALS, NONE, Planner
from decima.systems.spark.lookahead.search import ROUND, Budget, RunBudget, TimeBudget
from decima.systems.spark.policy.scheduler import LearnedScheduler
from decima.systems.spark.schedulers.fields import RULE
from decima.systems.spark.schedulers.interface import DURATIONS, Decision, Observation, Scheduler, run_decision
from decima.systems.spark.schedulers.registry import make_scheduler, register, scheduler_text
from decima.systems.spark.state import ClusterState

RUNS = 64  # per plan; most of what plans gain (docs/planning.md), and the same result on every machine
OPTIONS = (
    Option("budget", f"simulated runs per plan, or milliseconds as in 50ms; 0: the rule alone (default: {RUNS})"),
    Option("base", f"rule or residual policy that is improved, its parameters joined by + (default: {BASE})"),
    Option("arrivals", "jobs to come that are assumed: none, or poisson like those seen (default: none)"),
)


@dataclass(frozen=True)
class PlanSettings:
    """Budget of a plan, by runs or by time, and the arrivals it assumes."""

    candidates: int = 0  # simulated runs of candidates per plan; 0: no plans
    ms: float | None = None  # milliseconds per plan, in the place of ``candidates``
    arrivals: str = NONE  # one of :data:`decima.systems.spark.lookahead.planner.ARRIVALS`

    def __post_init__(self) -> None:
        check_whole("budget", self.candidates, least=0)
        if self.ms is None and 0 < self.candidates < ROUND:
            raise ConfigError(
                f"budget is {self.candidates} runs; expected 0, or at least {ROUND}: the rule, the plan in force, and "
                "some candidates"
            )
        if self.ms is not None and not (is_number(self.ms) and 0.0 < self.ms < math.inf):
            raise ConfigError(f"budget is {self.ms!r} ms; expected milliseconds above 0, or 0 for no plans")
        if self.arrivals not in ARRIVALS:
            raise ConfigError(f"arrivals is {self.arrivals!r}; expected one of {', '.join(ARRIVALS)}")

    @classmethod
    def of_budget(cls, budget: int | str, **others) -> PlanSettings:
        """Settings with a budget in runs, or, as in ``"50ms"``, in milliseconds.

        Raises:
            ConfigError: It is neither, or a number is out of range.
        """
        text = str(budget).strip()
        if text.endswith("ms"):
            return cls(ms=read_value(text.removesuffix("ms"), float, "budget in milliseconds"), **others)
        return cls(candidates=read_value(text, int, "budget"), **others)

    @property
    def idle(self) -> bool:
        """Whether there is never a plan."""
        return self.ms is None and self.candidates == 0

    def budget(self, clock: Callable[[], float] | None = None) -> Budget:
        """A budget that begins now; ``clock`` (seconds) is for tests."""
        if self.ms is None:
            return RunBudget(self.candidates)
        return TimeBudget(self.ms, **({} if clock is None else {"clock": clock}))


class Lookahead:
    """A rule whose parameters and factors of jobs follow a plan.

    Args:
        base: The rule.
        settings: How plans are made.
        clock: Seconds, for a budget in time; another one for tests.

    Raises:
        ConfigError: The rule has no factors.
    """

    name = "lookahead"
    reads = frozenset({DURATIONS})  # with which it simulates

    def __init__(
        self, base: Scheduler, settings: PlanSettings | None = None, *, clock: Callable[[], float] | None = None
    ) -> None:
        self.base = require_factors(base)
        self.settings = settings or PlanSettings()
        self._clock = clock
        budget = self.settings.candidates if self.settings.ms is None else f"{self.settings.ms:g}ms"
        self.values = {"budget": budget, "base": scheduler_text(base).replace(",", "+")}
        if self.settings.arrivals != NONE:
            self.values["arrivals"] = self.settings.arrivals
        self._seed = 0
        self._forget()

    def _forget(self) -> None:
        self._state: ClusterState | None = None
        self._planner: Planner | None = None
        self._planned = b""  # jobs that the plan in force is for

    def __getstate__(self) -> dict:
        return self.__dict__ | {"_state": None, "_planner": None, "_planned": b"", "_rule": None}

    @property
    def plans(self) -> int:
        """Number of plans in this run."""
        return 0 if self._planner is None else self._planner.plans

    @property
    def runs(self) -> int:
        """Runs of candidates in this run."""
        return 0 if self._planner is None else self._planner.runs

    def reset(self, rng: np.random.Generator) -> None:
        """Forget the last run; plans draw from a generator seeded by this one."""
        self._forget()
        self.base.reset(rng)
        if not self.settings.idle:
            self._seed = int(rng.integers(2**63))

    def decide(self, observation: Observation) -> Decision:
        """Decide by the rule and its plan; replan after a job came or went.

        Raises:
            InvalidDecisionError: A score of the policy that is planned is not a finite number.
        """
        if self.settings.idle:
            return self.base.decide(observation)
        state = observation.state
        if state is not self._state:
            self._start(state)
        jobs = state.active[: state.num_active].tobytes()
        if jobs != self._planned:
            self._planned = jobs
            self._plan(state)
        # The record of rules that the state has is left alone: whoever runs it next finds it without a plan.
        before = state.rule_record
        state.put(rule_record=self._rule.address)
        try:
            decision = run_decision(self.base.decision, state)
        finally:
            state.put(rule_record=before)
        if state.no_answer:
            raise InvalidDecisionError(state.describe_invalid())
        return decision

    def _start(self, state: ClusterState) -> None:
        """Begin a run with the rule as it is."""
        state.settings.require_fixed("scheduler lookahead")
        self._state = state
        streaming = bool(np.any(state.job_arrival_ms > 0.0))
        form = form_for(self.base, streaming)
        self._planner = Planner(form, arrivals=self.settings.arrivals, classes=state.num_classes, seed=self._seed)
        extents = {name: state.extents[name] for name in ("job", "stage")}
        if isinstance(form, LearnedScheduler):
            form.bind(state)
        self._parameters = rule_parameters(form, streaming)
        self._rule = Record(RULE, extents | {"parameter": len(self._parameters)})
        self._factors = [np.zeros(extents["job"]) for _ in FACTORS]
        self._rule.bind("params", self._parameters, copy=False)
        for name, values in zip(FACTORS, self._factors, strict=True):
            self._rule.bind(name, values, copy=False)

    def _plan(self, state: ClusterState) -> None:
        if state.num_active < 2:
            return
        jobs, plan = self._planner.replan(state, lambda: self.settings.budget(self._clock))
        self._parameters[: len(plan.parameters)] = plan.parameters  # none of a policy
        for values, factors in zip(self._factors, plan.factors, strict=True):
            values[jobs] = factors


@register(Lookahead.name, options=OPTIONS)
def lookahead(budget: int | str = RUNS, base: str | Scheduler = BASE, **others) -> Lookahead:
    """A rule that is planned by simulation whenever a job comes or goes."""
    known = [option.name for option in OPTIONS]
    unknown = [name for name in others if name not in known]
    if unknown:
        raise ConfigError(f"scheduler lookahead has no parameter {unknown[0]!r}; it has: {', '.join(known)}")
    rule = make_scheduler(base.replace("+", ",")) if isinstance(base, str) else base
    return Lookahead(rule, PlanSettings.of_budget(budget, **others))
