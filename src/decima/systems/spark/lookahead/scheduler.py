"""Scheduler ``lookahead``: a rule whose parameters and factors are planned anew whenever a job comes or goes.

No paper has it. Plans are made by simulating from the present state, with task durations drawn anew: neither the true
durations of the run nor jobs that have not arrived play a part.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from decima.core.errors import ConfigError, InvalidDecisionError
from decima.core.grammar import Option
from decima.core.record import Record
from decima.core.system import form_for
from decima.systems.spark.lookahead.background import BackgroundLookahead
from decima.systems.spark.lookahead.bases import BASE, FACTORS, require_factors, rule_parameters
from decima.systems.spark.lookahead.planner import Planner
from decima.systems.spark.lookahead.settings import DRAWS, UNPLANNED, PlanSettings
from decima.systems.spark.policy.scheduler import LearnedScheduler
from decima.systems.spark.schedulers.fields import RULE
from decima.systems.spark.schedulers.interface import Decision, Observation, Scheduler, run_decision
from decima.systems.spark.schedulers.registry import make_scheduler, register, scheduler_text
from decima.systems.spark.state import ClusterState

OPTIONS = (
    Option("budget", "simulated runs per plan, or milliseconds as in 50ms; 0: the rule alone", required=True),
    Option("base", f"rule or residual policy that is improved, its parameters joined by + (default: {BASE})"),
    Option("draws", f"draws of task durations on which candidates are compared (default: {DRAWS})", int),
    Option("horizon_s", "simulated seconds that are looked ahead (default: to the end of the jobs there are)", float),
    Option("arrivals", "jobs to come that are assumed: none, or poisson like those seen (default: none)"),
    Option("every_s", "seconds of the cluster after which a plan is renewed although no job came or went", float),
    Option("threads", "candidates that are run at the same time (default: 1)", int),
)


class Lookahead:
    """A rule with a plan: parameters and factors of jobs, improved whenever a job comes or goes.

    Args:
        base: The rule.
        settings: How plans are made.
        clock: Seconds, for a budget in time; another one for tests.

    Raises:
        ConfigError: The rule has no factors.
    """

    name = "lookahead"

    def __init__(
        self, base: Scheduler, settings: PlanSettings | None = None, *, clock: Callable[[], float] | None = None
    ) -> None:
        self.base = require_factors(base)
        self.settings = settings or PlanSettings()
        self._clock = clock
        shown = _shown(self.settings)
        self.values = {"budget": shown.pop("budget"), "base": scheduler_text(base).replace(",", "+")} | shown
        self._seed = 0
        self._forget()

    def _forget(self) -> None:
        self._state: ClusterState | None = None
        self._planner: Planner | None = None
        self._planned = UNPLANNED

    def __getstate__(self) -> dict:
        return self.__dict__ | {"_state": None, "_planner": None, "_planned": UNPLANNED, "_rule": None}

    @property
    def plans(self) -> int:
        """Plans made in this run."""
        return 0 if self._planner is None else self._planner.plans

    @property
    def runs(self) -> int:
        """Runs of candidates in this run."""
        return 0 if self._planner is None else self._planner.runs

    def reset(self, rng: np.random.Generator) -> None:
        """Forget the last run; plans of the next one draw from a generator that this one gives a seed."""
        if self._planner is not None:
            self._planner.close()
        self._forget()
        self.base.reset(rng)
        if not self.settings.idle:
            self._seed = int(rng.integers(2**63))

    def decide(self, observation: Observation) -> Decision:
        """Make the decision of the rule with the plan in force, after improving that if a job came or went.

        Raises:
            ConfigError: A task takes longer than what is looked ahead.
            InvalidDecisionError: A score of the policy that is planned is not a finite number.
        """
        if self.settings.idle:
            return self.base.decide(observation)
        state = observation.state
        if state is not self._state:
            self._start(state)
        due = self.settings.due(state, self._planned)
        if due is not None:
            self._planned = due
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

    def in_background(self, streaming: bool) -> BackgroundLookahead:
        """The same for a cluster that is only observed and does not wait: plans are made in another thread.

        Args:
            streaming: Whether jobs arrive over time.

        Raises:
            ConfigError: It is a policy that is planned.
        """
        if isinstance(form_for(self.base, streaming), LearnedScheduler):
            raise ConfigError(
                f"scheduler {self.name} plans for a rule where decisions may not wait, and base is the policy "
                f"{self.base.name}; expected a rule such as {BASE}"
            )
        return BackgroundLookahead(form_for(self.base, streaming), self.settings)

    def _start(self, state: ClusterState) -> None:
        """Begin a run with the rule as it is."""
        self._state = state
        streaming = bool(np.any(state.job_arrival_ms > 0.0))
        form = form_for(self.base, streaming)
        self._planner = self.settings.planner(form, self._seed)
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


def _shown(settings: PlanSettings) -> dict[str, object]:
    """The budget, and options of a text that differ from their defaults."""
    plain = PlanSettings()
    others = {option.name: getattr(settings, option.name) for option in OPTIONS[2:]}
    budget = settings.candidates if settings.ms is None else f"{settings.ms:g}ms"
    return {"budget": budget} | {name: value for name, value in others.items() if value != getattr(plain, name)}


@register(Lookahead.name, options=OPTIONS)
def lookahead(budget: int | str | None = None, base: str | Scheduler = BASE, **others) -> Lookahead:
    """A rule whose parameters and factors of jobs are planned by simulation whenever a job comes or goes."""
    if budget is None:
        raise ConfigError(
            "scheduler lookahead plans by simulation; expected how much of it: lookahead:64, lookahead:50ms"
        )
    known = [option.name for option in OPTIONS]
    unknown = [name for name in others if name not in known]
    if unknown:
        raise ConfigError(f"scheduler lookahead has no parameter {unknown[0]!r}; it has: {', '.join(known)}")
    rule = make_scheduler(base.replace("+", ",")) if isinstance(base, str) else base
    return Lookahead(rule, PlanSettings.of_budget(budget, **others))
