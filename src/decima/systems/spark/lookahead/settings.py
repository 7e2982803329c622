"""How plans are made: what may be tried for one, and what is assumed."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from decima.core.checks import check_whole, is_number
from decima.core.errors import ConfigError
from decima.core.grammar import read_value
from decima.systems.spark.lookahead.future import ARRIVALS, NONE
from decima.systems.spark.lookahead.planner import Planner
from decima.systems.spark.lookahead.search import ROUND, Budget, RunBudget, TimeBudget
from decima.systems.spark.schedulers.interface import CompiledScheduler

if TYPE_CHECKING:
    from decima.systems.spark.state import ClusterState

#: Key of no plan, see :meth:`PlanSettings.due`.
UNPLANNED = (b"", 0.0)
DRAWS = 16


@dataclass(frozen=True)
class PlanSettings:
    """How plans are made; a plan is budgeted by runs or by time."""

    candidates: int = 0  # simulated runs of candidates per plan; 0: no plans
    ms: float | None = None  # milliseconds per plan, in the place of ``candidates``
    draws: int = DRAWS  # draws of what is not known
    horizon_s: float = math.inf  # simulated seconds that are looked ahead
    arrivals: str = NONE  # one of :data:`decima.systems.spark.lookahead.future.ARRIVALS`
    threads: int = 1  # candidates at the same time
    every_s: float = math.inf  # seconds after which there is another plan although no job came or went

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
        if not (is_number(self.every_s) and self.every_s > 0.0):
            raise ConfigError(f"every_s is {self.every_s!r}; expected seconds above 0")
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

    def due(self, state: ClusterState, planned: tuple[bytes, float]) -> tuple[bytes, float] | None:
        """Key of a plan that is to be made now; None if that in force is to be kept.

        Args:
            state: The cluster.
            planned: Key of the plan in force: what jobs it is for, and when it was made, ms.
        """
        there, when_ms = planned
        now = state.active[: state.num_active].tobytes(), state.now_ms
        return now if now[0] != there or now[1] - when_ms >= 1000.0 * self.every_s else None

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
