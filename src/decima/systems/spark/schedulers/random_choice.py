"""Uniformly random stage of the frontier and number of executors.

Source: ours; the floor of every comparison and the driver of many tests.
"""

from decima.core.decision import CompiledDecision
from decima.core.random import draw_below, next_raw
from decima.systems.spark.fields import state_at
from decima.systems.spark.rules.choices import choose, choose_idle
from decima.systems.spark.schedulers.interface import CompiledScheduler
from decima.systems.spark.schedulers.registry import register


@CompiledDecision
def _random_choice(address):
    state = state_at(address)
    if state.num_frontier == 0:
        choose_idle(state)
        return
    skip = draw_below(next_raw(state.policy_next, state.policy_rng), state.num_frontier)
    executors = 1 + draw_below(next_raw(state.policy_next, state.policy_rng), state.num_source)
    for index in range(state.num_active):
        job = state.active[index]
        if skip >= state.job_frontier[job]:
            skip -= state.job_frontier[job]
            continue
        for stage in range(state.job_first_stage[job], state.job_first_stage[job + 1]):
            if state.stage_in_frontier[stage]:
                if skip == 0:
                    choose(state, stage, executors)
                    return
                skip -= 1


@register("random")
def random_choice(**values) -> CompiledScheduler:
    """A random stage of the frontier with a random number of executors."""
    return CompiledScheduler("random", _random_choice, values)
