"""Tetris: the best aligned stage and executor class, by dot product of request and executor.

Source: appendix F, second heuristic: the pair with the largest dot product, then as much parallelism as the stage can
use; the formula is :func:`.alignment`. Differs: only pairs that fit count; runnable stages go
before those that could only be given executors ahead of time; among equals the job that came first, and in it the first
stage.
"""


from decima.core.decision import CompiledDecision, Parameter, places
from decima.core.jit import njit
from decima.systems.spark.fields import ACTIVE, NONE, state_at
from decima.systems.spark.rules.choices import choose_class, choose_idle
from decima.systems.spark.rules.classes import fits_class
from decima.systems.spark.rules.frontier import stage_room
from decima.systems.spark.schedulers.fields import rule_of
from decima.systems.spark.schedulers.interface import CompiledScheduler
from decima.systems.spark.schedulers.registry import register

STAY = Parameter(
    "sticky", 0, 0, 1, "1: executors stay with their job while it can use them; 0: they follow the packing"
)
PARAMETERS = (STAY,)
P = places(PARAMETERS)


@njit
def _best_pair(state, job, stage, executor_class, score):
    """Better of a pair and a job's best pair, scored; unrunnable stages score below 0."""
    for each in range(state.job_first_stage[job], state.job_first_stage[job + 1]):
        if not state.stage_in_frontier[each]:
            continue
        behind = 0.0 if state.stage_runnable[each] else 1e9
        for size in range(state.num_classes):
            if state.class_offers[size] == 0 or not fits_class(state, each, size):
                continue
            product = (
                state.stage_memory[each] * state.class_memory[size] + state.stage_cpu[each] * state.class_cpu[size]
            )
            if stage == NONE or product - behind > score:
                stage, executor_class, score = each, size, product - behind
    return stage, executor_class, score


@CompiledDecision.reading(PARAMETERS)
def _tetris(address):
    state = state_at(address)
    stage, executor_class, score = NONE, NONE, 0.0
    job = state.source_job
    if rule_of(state).params[P.sticky] > 0.0 and job != NONE and state.job_state[job] == ACTIVE:
        stage, executor_class, score = _best_pair(state, job, stage, executor_class, score)
    if stage == NONE:
        for index in range(state.num_active):
            if state.job_frontier[state.active[index]] > 0:
                stage, executor_class, score = _best_pair(state, state.active[index], stage, executor_class, score)
    if stage == NONE:
        choose_idle(state)
        return
    choose_class(state, stage, min(stage_room(state, stage), state.class_offers[executor_class]), executor_class)


@register("tetris")
def tetris(**values) -> CompiledScheduler:
    """Stage and class with the largest dot product of request and executor, maximally parallel."""
    return CompiledScheduler("tetris", _tetris, values)
