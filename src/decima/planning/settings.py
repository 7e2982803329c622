"""How plans are made: what may be tried for one, and what is assumed."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from decima.checks import check_whole, is_number
from decima.exceptions import ConfigError
from decima.grammar import read_value
from decima.planning.future import ARRIVALS, NONE
from decima.planning.planner import Planner
from decima.planning.search import ROUND, Budget, RunBudget, TimeBudget
from decima.schedulers.interface import CompiledScheduler

DRAWS = 16


@dataclass(frozen=True)
class PlanSettings:
    """How plans are made; a plan is budgeted by runs or by time."""

    candidates: int = 0  # simulated runs of candidates per plan; 0: no plans
    ms: float | None = None  # milliseconds per plan, in the place of ``candidates``
    draws: int = DRAWS  # draws of what is not known
    horizon_s: float = math.inf  # simulated seconds that are looked ahead
    arrivals: str = NONE  # one of :data:`decima.planning.future.ARRIVALS`
    threads: int = 1  # candidates at the same time

    def __post_init__(self) -> None:
        check_whole("draws", self.draws, least=1)
        check_whole("threads", self.threads, least=1)
        check_whole("budget", self.candidates, least=0)
        if self.ms is None and 0 < self.candidates < ROUND:
            raise ConfigError(
                f"budget is {self.candidates} runs; expected 0, or at least {ROUND}: the rule, the plan in force, and "
                "some candidates"
            )
        if self.ms is not None and not (is_number(self.ms) and 0.0 < self.ms < math.inf):
            raise ConfigError(f"budget is {self.ms!r} ms; expected milliseconds above 0, or 0 for no plans")
        if not (is_number(self.horizon_s) and self.horizon_s > 0.0):
            raise ConfigError(f"horizon_s is {self.horizon_s!r}; expected seconds above 0")
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
        """Whether no plan is ever made."""
        return self.ms is None and self.candidates == 0

    def budget(self, clock: Callable[[], float] | None = None) -> Budget:
        """A budget that begins now; ``clock`` (seconds) is for tests."""
        if self.ms is None:
            return RunBudget(self.candidates)
        return TimeBudget(self.ms, **({} if clock is None else {"clock": clock}))

    def planner(self, base: CompiledScheduler, seed: int) -> Planner:
        """A planner for one run of a rule."""
        return Planner(
            base,
            draws=self.draws,
            horizon_ms=1000.0 * self.horizon_s,
            arrivals=self.arrivals,
            threads=self.threads,
            seed=seed,
        )
