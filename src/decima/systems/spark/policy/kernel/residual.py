"""Scores of a residual policy's base rule: candidates by order, limits by amounts.

A candidate that the rule chooses has 0; another one loses a step for itself and one for every job that the rule serves
before its own, up to a number of places. An effect of a limit, so many executors used, loses a step for every executor
that it is off what the rule gives; limits with one effect share the chance of one. Steps are divided by the
temperature of the architecture. Greedily, a network whose scores are
all alike decides like the rule. Where the rule leaves executors idle, the policy does, too, and records no decision.

The rule gives its own choice what it decided, and any other stage what is missing to the share of its job.
"""

from math import log

import numpy as np

from decima.core.decision import call_decide
from decima.core.jit import njit
from decima.systems.spark.decision import LIMIT, STAGE
from decima.systems.spark.policy.architecture import LIMIT_STEP, MOST_EXECUTORS_OFF, MOST_PLACES, STAGE_STEP
from decima.systems.spark.policy.fields import policy_of
from decima.systems.spark.rules.choices import job_allocation
from decima.systems.spark.schedulers.fields import rule_of
from decima.systems.spark.schedulers.sharing import UNLIMITED


@njit
def _ask_rule(state):
    """Let the rule decide with its parameters; notes what it chose."""
    policy = policy_of(state)
    rule = rule_of(state)
    for k in range(policy.net_num_rule_params):
        policy.net_kept_params[k] = rule.params[k]
        rule.params[k] = policy.net_rule_params[k]
    call_decide(policy.net_rule, state)
    for k in range(policy.net_num_rule_params):
        rule.params[k] = policy.net_kept_params[k]
    stage = int(state.action[STAGE])
    policy.net_rule_stage = stage
    policy.net_rule_used = int(state.action[LIMIT])
    if state.job_limit and stage >= 0:
        policy.net_rule_used -= job_allocation(state, state.stage_job[stage])


@njit
def _position_of(state, job):
    """Number of jobs with candidates that the rule serves before a job; ties by arrival."""
    rule = rule_of(state)
    position = 0
    before = True
    for index in range(state.num_active):
        other = state.active[index]
        if other == job:
            before = False
        elif state.job_frontier[other] > 0:
            smaller = rule.job_key[other] < rule.job_key[job]
            if smaller or (before and rule.job_key[other] == rule.job_key[job]):
                position += 1
    return position


@njit
def add_stage_scores(state, count):
    """Ask the rule, and add its scores to those of the ``count`` candidates in ``net_score``."""
    policy = policy_of(state)
    _ask_rule(state)
    last = -1
    position = 0
    for index in range(count):
        stage = policy.net_candidates[index]
        job = state.stage_job[stage]
        if job != last:
            last = job
            position = 1 + _position_of(state, job)
        steps = 0 if stage == policy.net_rule_stage else min(position, MOST_PLACES)
        policy.net_prior[index] = np.float32(-STAGE_STEP * steps / policy.net_temperature)
        policy.net_score[index] += policy.net_prior[index]


@njit
def wanted_executors(state, stage, most):
    """Executors on offer that the rule, already asked, gives a stage, 1 to ``most``."""
    policy = policy_of(state)
    if stage == policy.net_rule_stage:
        used = policy.net_rule_used
    else:
        job = state.stage_job[stage]
        used = int(min(rule_of(state).job_share[job], UNLIMITED)) - job_allocation(state, job)
    return max(1, min(used, most))


@njit
def add_limit_scores(state, stage, limits, effects):
    """Add the rule's scores to those of the limits of a stage in ``net_score``.

    Args:
        state: A cluster state with a policy.
        stage: The stage.
        limits: Number of limits.
        effects: How many of them differ in effect, all from the last of these on being alike.
    """
    policy = policy_of(state)
    wanted = wanted_executors(state, stage, effects)
    alike = log(float(limits - effects + 1))
    for index in range(limits):
        off = min(abs(min(index + 1, effects) - wanted), MOST_EXECUTORS_OFF)
        loss = LIMIT_STEP * off / policy.net_temperature
        policy.net_score[index] -= np.float32(loss + (alike if index + 1 >= effects else 0.0))
