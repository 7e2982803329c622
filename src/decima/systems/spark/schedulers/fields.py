"""Record of compiled heuristics: parameters, hints from outside, keys and shares."""

from __future__ import annotations

from typing import TYPE_CHECKING

from decima.core.jit import njit
from decima.core.record import BOUND, CODE, F64, I64, LOCAL, FieldGroup, Record, RecordType, fields
from decima.systems.spark.decision import DELAY, STAGE
from decima.systems.spark.fields import NONE
from decima.systems.spark.rules.delays import refuse_delay

if TYPE_CHECKING:
    from decima.systems.spark.state import ClusterState

RULE = RecordType(
    "the record of heuristics",
    FieldGroup.of(
        "parameters",
        fields(F64, "parameter", BOUND, params="parameters of the rule, in their order"),
        fields(I64, None, CODE, inner_decide="the compiled rule that a rule around it calls, 0: none"),
    ),
    FieldGroup.of(
        "hints from outside, 0 unless given",
        fields(
            F64,
            "job",
            BOUND,
            job_rank="jobs are served in ascending order of it",
            job_limit_cap="most executors the job may hold, 0: no cap",
            job_order_factor="natural logarithm of a factor on the remaining work that orders the job",
            job_share_factor="natural logarithm of a factor on the weight of the job's share",
        ),
        fields(
            F64,
            "stage",
            BOUND,
            stage_rank="stages are served in ascending order of it",
            stage_delay_ms="time in ms for which the stage is withheld when it would get its first executor, 0: none",
            stage_driver_ms="time in ms that the driver takes after the stage's last parent, 0: none",
        ),
        fields(I64, "job", BOUND, job_pool="number of its pool, below that of jobs"),
        fields(
            F64,
            "job",
            BOUND,
            pool_rank="[pool] equal pools are served in ascending order of it",
            pool_weight="[pool] at least 1",
            pool_min_share="[pool] executors that it gets before pools that have theirs",
            pool_fair="[pool] 1: of its stages the one with fewest executors is first, 0: by job and index",
        ),
    ),
    FieldGroup.of(
        "what a rule computes",
        fields(
            F64,
            "job",
            job_key="jobs are served in ascending order of it",
            job_share="executors the job should hold",
            job_work="remaining nominal work in ms, of capped shortest remaining work",
            job_power="a power of that work",
            job_most="executors up to which others may come to the job, where coming has a price",
            pool_held="[pool] executors of its jobs, without those on offer",
        ),
        fields(F64, None, refers=LOCAL, power="the exponent"),
        fields(F64, "stage", stage_given="offered executors that the stage gets in this decision"),
    ),
)
_SLOT = "rule_record"
_rule_at = RULE.at


@njit
def rule_of(state):
    """Record of the heuristic that decides about a cluster state."""
    return _rule_at(state.rule_record)


def rule_record(state: ClusterState) -> Record:
    """Record of heuristics that is attached to a state, on first use."""
    if _SLOT not in state.attached:
        extents = {name: state.extents[name] for name in ("job", "stage")}
        state.attach(_SLOT, Record(RULE, extents | {"parameter": 0}))
    return state.attached[_SLOT]


def bind_parameters(state: ClusterState, values: list[float]) -> Record:
    """Give a state the parameters of a heuristic; returns its record."""
    record = rule_record(state)
    record.extents["parameter"] = len(values)
    record.bind("params", values)
    return record


# ---- delays from an array, one per stage ----------------------------------------------------------------------------


@njit
def delay_by_array(state):
    """Delay the chosen stage if an array says so and it never was."""
    stage = int(state.action[STAGE])
    if stage == NONE:
        return
    delay_ms = rule_of(state).stage_delay_ms[stage]
    if delay_ms != 0.0 and state.stage_slot[stage] == 0 and refuse_delay(state, stage) == 0:
        state.action[DELAY] = delay_ms
