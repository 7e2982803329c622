"""Schedulers that read one field of the state: toys to find out whether a service decides as a simulation does."""

from decima.core.decision import CompiledDecision
from decima.core.jit import njit
from decima.core.record import ADDRESS, CODE
from decima.systems.spark.fields import CLUSTER, NONE, state_at
from decima.systems.spark.schedulers import sharing
from decima.systems.spark.schedulers.fields import rule_of

FIELDS = {field.name: field for field in CLUSTER.fields}


class Reads:
    """Chooses the stage of the frontier of which one field of the state says most."""

    def __init__(self, field):
        self.name = f"reads_{field}"
        self.field = FIELDS[field]

    def reset(self, rng):
        pass

    def decide(self, observation):
        state, stages = observation.state, observation.frontier
        values = getattr(state, self.field.name)
        stage = max(stages, key=lambda each: self.key(state, values, each))
        return observation.grant(stage, min(stage.room, observation.num_free_executors, 3))

    def key(self, state, values, stage):
        """A number that does not depend on how jobs and stages are numbered."""
        name, extent = self.field.name, self.field.extent
        job, at, row = stage.job.id, stage.id, int(state.stage_row[stage.id])
        first = int(state.job_first_stage[job])
        if self.field.storage in (ADDRESS, CODE) or name in ("stage_row", "action"):
            return 0
        if name in ("child", "parent"):
            offset = getattr(state, f"{name}_offset")
            return sum(values[offset[row] : offset[row + 1]].tolist())
        if name.startswith("runnable_") and extent is not None:
            there = extent == "job" or state.stage_runnable[at]
            value = values[job if extent == "job" else at] if there else NONE
            return value if value == NONE else value - first
        if name == "active":
            return values[: state.num_active].tolist().index(job)
        if name in ("stage_job", "source_job"):
            return (values if extent is None else values[at]) == job
        if extent is None:
            return (int(values) * (at - first + 1)) % 7
        if extent in ("job + 1", "row + 1"):
            index = job if extent[0] == "j" else row
            return int(values[index + 1]) - int(values[index])
        if extent in ("stage", "job", "row"):
            return values[{"stage": at, "job": job, "row": row}[extent]]
        return int(values.sum()) % 5 * (at - first) if len(values) else 0


def _fewest(state, values):
    """Jobs in ascending order of a number, one executor each at first."""
    rule = rule_of(state)
    for index in range(state.num_active):
        job = state.active[index]
        rule.job_key[job] = values[job]
        rule.job_share[job] = 1.0
    sharing.share_executors(state, 0.0, 0, 1)


_fewest_of = njit(_fewest)


@CompiledDecision
def by_unfinished(address):
    state = state_at(address)
    _fewest_of(state, state.job_unfinished)


@CompiledDecision
def by_unexhausted(address):
    state = state_at(address)
    _fewest_of(state, state.job_unexhausted)


@njit
def _waits_for(state, job):
    total = 0.0
    for stage in range(state.job_first_stage[job], state.job_first_stage[job + 1]):
        total += state.stage_unsaturated_parents[stage]
    return total


@CompiledDecision
def by_unsaturated_parents(address):
    state = state_at(address)
    rule = rule_of(state)
    for index in range(state.num_active):
        job = state.active[index]
        rule.job_key[job] = _waits_for(state, job)
        rule.job_share[job] = 2.0
    sharing.share_executors(state, 0.0, 0, 1)


_CALLS = "job_calls"


@njit
def _calls(state):
    return getattr(state, _CALLS)


@CompiledDecision
def by_calls(address):
    state = state_at(address)
    _fewest_of(state, _calls(state))


@CompiledDecision
def by_selected(address):
    state = state_at(address)
    if state.stage_selected[0] == 0:
        _fewest_of(state, state.job_unfinished)
