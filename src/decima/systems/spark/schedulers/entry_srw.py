"""Capped SRW with an executor-entry cost; no paper has it.

An executor that enters a job costs c: the moving delay and a slow first task. With W of executor time to do, the
(n+1)th executor shortens the job by W / n - W / (n + 1) = W / (n (n + 1)). Meanwhile others wait: each of m jobs loses
c / E, on E executors. So the executor comes while W / (n (n + 1)) is at least ``pay`` c m / E, which is up to about
sqrt(W E / (``pay`` m c)) executors. What a job has, it keeps. All else is :mod:`.capped_srw`, order and shares too;
with ``pay`` 0, or where executors move without delay, nothing else is left.
"""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING

from decima.core.decision import CompiledDecision, Parameter, places
from decima.core.errors import ConfigError
from decima.core.jit import njit
from decima.systems.spark.fields import state_at
from decima.systems.spark.rules.choices import entry_cost_ms, job_allocation, work_at_level_ms
from decima.systems.spark.schedulers import capped_srw
from decima.systems.spark.schedulers.fields import rule_of
from decima.systems.spark.schedulers.interface import DURATIONS, CompiledScheduler
from decima.systems.spark.schedulers.registry import BATCH, STREAM, Preset, register
from decima.systems.spark.schedulers.sharing import UNLIMITED, pick_stage, share_executors

if TYPE_CHECKING:
    # Rules of heuristics must not be compiled anew whenever the simulator is edited.
    from decima.systems.spark.state import ClusterState

NAME = "entry_srw"
ALL, NOT_SMALLER = 1, 2
MEASURED = 0.0

PARAMETERS = (
    *capped_srw.PARAMETERS,
    Parameter("pay", 2.0, 0.0, 1000.0, "weight of the executor-entry cost; 0 disables it", tunable=True),
    Parameter("waiting", ALL, ALL, NOT_SMALLER, "m: 1: all jobs in the system; 2: those of no less nominal work"),
    Parameter("level", 5, 0, 100, "executors on which W is counted, slow first tasks included; 0: nominal durations"),
    Parameter("entry_s", MEASURED, 0.0, 1e6, "c in s; 0: the moving delay and the mean first task of the stage"),
)
P = places(PARAMETERS)


def _capped(preset: str) -> dict[str, float]:
    return next(each.values for each in capped_srw.PRESETS if each.name == preset)


PRESETS = (
    Preset(BATCH, "capped_srw:batch; default where all jobs are there at the start", _capped(BATCH) | {"pay": 1.0}),
    Preset(STREAM, "capped_srw:stream; default where jobs arrive over time", _capped(STREAM) | {"pay": 1.0}),
    Preset(
        "busy",
        "tuned on TPC-H jobs, mean interarrival time 14 s",
        {"c0": 1.6367, "c1": 1.2775, "power": 0.3239, "release": 1.0078, "pay": 2.0},
    ),
    Preset(
        "embedded",
        "tuned on embedded jobs, mean interarrival time 25 s",
        {"c0": 0.87608, "c1": 0.86358, "power": 0.097295, "release": 1.2291, "pay": 4.2318},
    ),
)


@njit
def _price_entries(state):
    """Fill in how many executors the active jobs may attract."""
    rule = rule_of(state)
    params = rule.params
    level = int(params[P.level])
    for index in range(state.num_active):
        job = state.active[index]
        rule.job_most[job] = UNLIMITED
        if job == state.source_job or state.job_frontier[job] == 0:
            continue
        work = work_at_level_ms(state, job, level) if level > 0 else rule.job_work[job]
        waiting = state.num_active
        if params[P.waiting] == NOT_SMALLER:
            for position in range(state.num_active):
                if rule.job_work[state.active[position]] < rule.job_work[job]:
                    waiting -= 1
        worth = work * state.num_executors / (params[P.pay] * waiting)
        if worth < UNLIMITED:
            entry_ms = 1000.0 * params[P.entry_s]
            if entry_ms == MEASURED:
                stage = pick_stage(state, job, int(params[P.stage_rule]))
                entry_ms = entry_cost_ms(state, stage, job_allocation(state, job) + 1)
            rule.job_most[job] = 0.5 + sqrt(0.25 + worth / max(entry_ms, 1e-9))


@CompiledDecision.reading(PARAMETERS)
def _entry_srw(address):
    state = state_at(address)
    params = rule_of(state).params
    capped_srw.order_by_remaining_work(state)
    limited = params[P.pay] > 0.0 and state.moving_delay_ms > 0.0
    if limited:
        _price_entries(state)
    share_executors(state, params[P.release], int(params[P.stage_rule]), int(params[P.leftover]), limited)


class EntryScheduler(CompiledScheduler):
    """The rule, which refuses an executor-entry cost where executors move without delay."""

    @property
    def reads(self) -> frozenset[str]:
        """As in any compiled scheduler; durations only where neither W nor c is stated."""
        stated = self.values["level"] == 0 and self.values["entry_s"] > MEASURED
        return super().reads - {DURATIONS} if stated or self.values["pay"] == 0.0 else super().reads

    def bind(self, state: ClusterState) -> None:
        """Hand the parameters to a state before its run starts.

        Raises:
            ConfigError: As in any compiled scheduler, or a cost is given where nothing is paid.
        """
        if self.values["entry_s"] > 0.0 and state.moving_delay_ms == 0.0:
            raise ConfigError(
                f"scheduler {NAME}: entry_s is {self.values['entry_s']:g} s, but executors move without delay; "
                "expected 0, or a cluster with a moving delay"
            )
        super().bind(state)


@register(NAME, presets=PRESETS)
def entry_srw(**values) -> EntryScheduler:
    """Capped SRW in which executors come only where they are worth it."""
    return EntryScheduler(NAME, _entry_srw, values)
