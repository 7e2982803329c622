"""Driver time: a stage begins only some time after its parents have finished.

Between the end of a stage's parents and the launch of its first task the driver of Spark plans, optimizes and makes
tasks. That time takes no executor. It is a deliberate slot (:mod:`decima.systems.spark.rules.slots`) that ends so long
after the stage became runnable, under any compiled scheduler.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from decima.core.checks import LARGEST_MS
from decima.core.decision import CompiledDecision, call_decide
from decima.core.errors import ConfigError
from decima.core.jit import njit
from decima.systems.spark.decision import DELAY
from decima.systems.spark.fields import state_at
from decima.systems.spark.rules.choices import choose
from decima.systems.spark.rules.delays import refuse_delay
from decima.systems.spark.schedulers.fields import rule_of, rule_record
from decima.systems.spark.schedulers.interface import CompiledScheduler
from decima.systems.spark.state import ClusterState


@njit
def runnable_since_ms(state, stage):
    """When the last parent of a stage finished, or its job arrived, in ms."""
    job = state.stage_job[stage]
    since_ms = state.job_arrival_ms[job]
    row = state.stage_row[stage]
    first = state.job_first_stage[job]
    for index in range(state.parent_offset[row], state.parent_offset[row + 1]):
        since_ms = max(since_ms, state.stage_finish_ms[first + state.parent[index]])
    return since_ms


@CompiledDecision.reading((), ("stage_driver_ms",))
def _after_driver(address):
    state = state_at(address)
    rule = rule_of(state)
    for stage in range(state.num_stages):
        delay_ms = rule.stage_driver_ms[stage]
        if delay_ms > 0.0 and state.stage_in_frontier[stage] and refuse_delay(state, stage) == 0:
            left_ms = runnable_since_ms(state, stage) + delay_ms - state.now_ms
            if left_ms > 0.0:
                choose(state, stage, 1)
                state.action[DELAY] = left_ms
                return
    call_decide(rule.inner_decide, state)


class AfterDriver(CompiledScheduler):
    """Compiled scheduler whose stages wait for the driver first.

    The cluster must offer runnable stages only (``runnable_only`` of the settings), so that no executor is promised to
    a stage before the driver is done with it.

    Args:
        inner: The scheduler that decides about all other stages.
        driver_ms: Float64 [stages of the workload], driver time in ms after the last parent, at least 0.

    Raises:
        ConfigError: The scheduler is not compiled, or a time is out of range.
    """

    def __init__(self, inner: CompiledScheduler, driver_ms: Sequence[float]) -> None:
        if not isinstance(inner, CompiledScheduler):
            raise ConfigError(f"scheduler {inner.name} is not compiled; driver time is for compiled schedulers")
        super().__init__(inner.name, _after_driver)
        self.inner = inner
        self.driver_ms = np.asarray(driver_ms, dtype=np.float64)
        if not ((self.driver_ms >= 0.0) & (self.driver_ms <= LARGEST_MS)).all():  # NaN fails both
            raise ConfigError(f"driver times must be numbers of ms from 0 to {LARGEST_MS:g}")

    def bind(self, state: ClusterState) -> None:
        """Hand the times to a state, and the rule inside, before its run starts.

        Raises:
            ConfigError: The cluster offers stages before their parents have finished.
            RecordError: There is not one time per stage of the workload.
        """
        if not state.runnable_only:
            raise ConfigError("driver time needs a cluster that offers runnable stages only; set runnable_only")
        record = rule_record(state)
        record.bind("stage_driver_ms", self.driver_ms)
        self.inner.bind(state)
        record.configure(inner_decide=self.inner.decision.address)
        self._bound = state
