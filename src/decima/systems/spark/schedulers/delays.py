"""Delays that are given from outside, one per stage."""

from numba import njit

from decima.systems.spark.decision import DELAY, STAGE
from decima.systems.spark.fields import NONE
from decima.systems.spark.rules.delays import refuse_delay
from decima.systems.spark.schedulers.fields import rule_of


@njit
def delay_as_given(state):
    """Turn the decision in ``action`` into one to delay its stage, if it has a time given and was never delayed."""
    stage = int(state.action[STAGE])
    if stage == NONE:
        return
    delay_ms = rule_of(state).stage_delay_ms[stage]
    if delay_ms != 0.0 and state.stage_slot[stage] == 0 and refuse_delay(state, stage) == 0:
        state.action[DELAY] = delay_ms
