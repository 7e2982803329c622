"""Capped shortest remaining work with deliberate idle slots by a linear rule.

``capped_srw`` chooses a stage. If that may still be delayed, a weighted sum of seven numbers x decides. With ``hold`` 0
it is withheld for r / g of its length l, r being the sum times g, rounded and cut to 0..g. With ``hold`` 1 all offered
executors stay idle until the next scheduling event if the sum is above 1/2, unless no task runs, or executors that
still work are among those offered: then nothing might end the waiting but an arrival, which may never come.

The numbers: x0 = 1; over all executors, the mean of the remaining time of their task over l, at most 1 (x1) and the
part of them that run a task, move to one or were given one in this round (x2); the earliest end of a task, in parts of
l, at most 1 (x3); the other stages of the frontier per executor, at most 1 (x4); the logarithm of l over the mean
duration of the tasks so far (x5); the time since a job of less work arrived, in parts of l, at most 10, 0 if none has
(x6). What remains of a task is its nominal duration less the time that it has run; with ``ages`` 0 it is the nominal
duration. With ``first`` 1 the rule is asked before the first task of a job only (job-level insertion).

Source: the slots are those of Duan and Wu, r l / g with r = 0..g; they learn r by a network. The rule and ``hold`` are
ours: what a small rule gains bounds from below what a policy can learn. :mod:`.idle_value` has the
optimum for small cases.
"""

from math import log

from decima.core.decision import CompiledDecision, Parameter, names_read, places
from decima.core.jit import njit
from decima.systems.spark.decision import DELAY, STAGE
from decima.systems.spark.fields import NONE, state_at
from decima.systems.spark.rules.choices import choose_idle, destination_of, offers_working
from decima.systems.spark.rules.delays import refuse_delay, slot_length_ms
from decima.systems.spark.schedulers import capped_srw
from decima.systems.spark.schedulers.fields import rule_of
from decima.systems.spark.schedulers.interface import CompiledScheduler, fields_in
from decima.systems.spark.schedulers.registry import register

_WEIGHTS = (
    ("base", "weight of 1"),
    ("remaining", "weight of the mean remaining time of running tasks in parts of l"),
    ("busy", "weight of the part of the executors that run a task"),
    ("soon", "weight of the earliest end of a running task in parts of l"),
    ("waiting", "weight of the other stages of the frontier per executor"),
    ("length", "weight of the logarithm of l over the mean duration of tasks so far"),
    ("since", "weight of the time since a smaller job arrived in parts of l"),
)
#: Names of the weights; with all of them 0 the rule is capped SRW.
WEIGHTS = tuple(name for name, _ in _WEIGHTS)
PARAMETERS = (
    *capped_srw.PARAMETERS,
    Parameter("hold", 0, 0, 1, "0: a slot with a timer before the stage; 1: wait for the next scheduling event"),
    Parameter("first", 0, 0, 1, "1: slots only before the first task of a job; 0: before any stage"),
    Parameter("ages", 1, 0, 1, "1: the time that running tasks have run is known; 0: only their nominal duration"),
    Parameter("steps", 10, 1, 1000, "g, the parts that a slot is measured in"),
    *(Parameter(name, 0.0, -5.0, 5.0, doc, tunable=True) for name, doc in _WEIGHTS),
)
P = places(PARAMETERS)

_length_ms = njit(slot_length_ms)


@njit
def smaller_arrival_ms(state, job):
    """Last arrival of a job of less work after the start; now without."""
    for position in range(state.next_arrival - 1, -1, -1):
        other = state.arrival_order[position]
        if state.job_work_ms[other] < state.job_work_ms[job]:
            return state.job_arrival_ms[other]
    return state.now_ms


@njit
def idle_score(state, stage):
    """Weighted sum of the numbers x for a stage, and its tasks at work."""
    params = rule_of(state).params
    length_ms = max(_length_ms(state, stage), 1e-9)
    total = 0.0
    earliest = 1.0
    running = 0
    launched = state.task_events
    ended = state.free_executors[0] if state.num_free > 0 else NONE
    for executor in range(state.num_executors):
        runs = not state.executor_moving[executor]
        other = state.executor_stage[executor] if runs else destination_of(state, executor)
        if other == NONE or executor == ended:
            continue
        remaining_ms = state.row_nominal_ms[state.stage_row[other]]
        if runs and params[P.ages] != 0.0:
            remaining_ms = max(0.0, remaining_ms - (state.now_ms - state.executor_start_ms[executor]))
        part = min(1.0, remaining_ms / length_ms)
        total += part
        earliest = min(earliest, part)
        running += 1
        launched += runs
    for position in range(state.num_selected):
        other = state.selected[position]
        part = min(1.0, state.row_nominal_ms[state.stage_row[other]] / length_ms)
        total += state.stage_commit[other] * part
        earliest = min(earliest, part)
        running += state.stage_commit[other]
    executors = float(state.num_executors)
    score = params[P.base]
    score += params[P.remaining] * min(1.0, total / executors) + params[P.busy] * min(1.0, running / executors)
    if running > 0:
        score += params[P.soon] * earliest
    score += params[P.waiting] * min(1.0, (state.num_frontier - 1) / executors)
    if state.busy_ms > 0.0:
        score += params[P.length] * log(length_ms * launched / state.busy_ms)
    since_ms = state.now_ms - smaller_arrival_ms(state, state.stage_job[stage])
    score += params[P.since] * min(10.0, since_ms / length_ms)
    return score, running


@njit
def _has_begun(state, job):
    for stage in range(state.job_first_stage[job], state.job_first_stage[job + 1]):
        if state.stage_next[stage] > 0:
            return True
    return False


@CompiledDecision.reading(PARAMETERS)
def _idle_rule(address):
    state = state_at(address)
    capped_srw.share_by_remaining_work(state)
    stage = int(state.action[STAGE])
    if stage == NONE or refuse_delay(state, stage) != 0:
        return
    params = rule_of(state).params
    if params[P.first] != 0.0 and _has_begun(state, state.stage_job[stage]):
        return
    score, running = idle_score(state, stage)
    if params[P.hold] != 0.0:
        if score > 0.5 and running > 0 and not offers_working(state):
            choose_idle(state)
        return
    steps = params[P.steps]
    number = min(max(round(score * steps), 0.0), steps)
    if number > 0.0:
        state.action[DELAY] = number / steps * _length_ms(state, stage)


class IdleRule(CompiledScheduler):
    """The rule; with all weights 0 it reads what capped SRW reads."""

    @property
    def reads(self) -> frozenset[str]:
        """What it may read of the state."""
        weighted = any(self.values[name] for name in WEIGHTS)
        return super().reads if weighted else fields_in(names_read(capped_srw.share_by_remaining_work))


@register("idle_rule", presets=capped_srw.PRESETS)
def idle_rule(**values) -> IdleRule:
    """Capped SRW that leaves executors idle where a linear rule says so."""
    return IdleRule("idle_rule", _idle_rule, values)
