"""Which stages may be delayed, and for how long.

Apart from :mod:`decima.systems.spark.rules.slots`, so that schedulers are not compiled anew when the core is edited.
"""

from decima.core.jit import njit

# Codes in ``state.error``, which go on from those of the engine.
DELAY_OUT_OF_RANGE, DELAY_NOT_RUNNABLE, DELAY_BEGUN, DELAYED_BEFORE, DELAY_OF_IDLING = 5, 6, 7, 8, 9


def delay_refusal(state, stage):
    """Why a stage of the frontier cannot be delayed: a code, 0 if it can.

    Compiled code has the same function as ``refuse_delay``.

    Args:
        state: A cluster state.
        stage: Stage id.
    """
    if not state.stage_runnable[stage]:
        return DELAY_NOT_RUNNABLE
    if state.stage_next[stage] + state.stage_commit[stage] + state.stage_moving[stage] > 0:
        return DELAY_BEGUN
    if state.stage_slot[stage]:
        return DELAYED_BEFORE
    return 0


refuse_delay = njit(delay_refusal)


def slot_length_ms(state, stage):
    """Length l of a stage for slots: its nominal task duration in ms.

    Differs: the paper's length is the time of the stage on one executor, which is the same where a stage has one task
    and would put slots of minutes before a stage of many.

    Args:
        state: A cluster state.
        stage: Stage id.
    """
    return float(state.row_nominal_ms[state.stage_row[stage]])
