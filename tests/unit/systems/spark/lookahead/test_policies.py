"""Plans for residual policies: factors act on the rule that the network adds to."""

import numpy as np
import pytest

import decima
from decima.core.errors import ConfigError
from decima.systems.spark.lookahead.copies import Draw, Plan
from decima.systems.spark.lookahead.projection import NO_FUTURE
from decima.systems.spark.lookahead.scheduler import Lookahead, PlanSettings
from decima.systems.spark.loop import new_state, offers, spawn_generators
from decima.systems.spark.policy.architecture import Architecture
from decima.systems.spark.policy.scheduler import LearnedScheduler
from decima.systems.spark.schedulers import make_scheduler
from decima.systems.spark.settings import Settings
from decima.workload import synthetic_batch, synthetic_poisson
from tests.unit.systems.spark.lookahead.test_other_clusters import go_on, jobs_there, spent_ms

RESIDUAL = Architecture.released(residual="capped_srw:c0=1.5,c1=1")
JOBS = {"batch": synthetic_batch(5, seed=3), "stream": synthetic_poisson(6, 3.0, seed=3)}


def policy_of(architecture=RESIDUAL):
    weights = np.random.default_rng(0).normal(0.0, 0.3, architecture.num_parameters)
    return LearnedScheduler(architecture, weights.astype(np.float32))


@pytest.mark.parametrize("jobs", JOBS)
def test_a_copy_goes_on_as_the_run_does(jobs):
    state, policy = new_state(JOBS[jobs], Settings(executors=12, durations="mean")), policy_of()
    policy.bind(state)
    state.start(*spawn_generators(0))
    found, begun = [], []
    for number, _ in enumerate(offers(state)):
        if number % 9 == 0 and state.next_arrival == state.num_arrivals:
            there = jobs_there(state)
            draw = Draw(state, policy, len(there), len(state.stage_job))
            for _ in range(2):  # nothing is left over from a run before
                draw.begin(state, there, NO_FUTURE, 0)
                found.append(draw.cost_ms(Plan(np.zeros(0), np.zeros((2, len(there))))))
                begun.append(spent_ms(state))
            other = draw.cost_ms(Plan(np.zeros(0), np.random.default_rng(1).normal(0.0, 2.0, (2, len(there)))))
            assert other != found[-1] or len(there) < 2
        go_on(state, policy)
    assert len(found) > 4
    assert found == pytest.approx(state.area_ms - np.array(begun), rel=1e-10)


@pytest.mark.parametrize("jobs", JOBS)
def test_no_candidates_are_the_policy_and_some_are_not(jobs):
    plain = decima.simulate(JOBS[jobs], policy_of(), 12, 4, log=True)
    idle = decima.simulate(JOBS[jobs], Lookahead(policy_of()), 12, 4, log=True)
    assert np.array_equal(plain.log.decisions, idle.log.decisions)
    planned = Lookahead(policy_of(), PlanSettings.of_budget(64))
    first, again = (decima.simulate(JOBS[jobs], planned, 12, 4, log=True) for _ in range(2))
    assert planned.plans > 2
    assert first.num_unfinished == 0
    assert np.array_equal(first.log.decisions, again.log.decisions)


def test_policies_without_a_rule_are_refused():
    plain = Architecture.released()
    with pytest.raises(ConfigError, match="the policy decima has no factors that could be planned"):
        Lookahead(policy_of(plain))
    with pytest.raises(ConfigError, match="no factors that could be planned"):
        make_scheduler("lookahead:64,base=decima")
