"""The learned scheduler wherever schedulers run: in the core, through ``decide``, in pools, with bad input."""

import numpy as np
import pytest

import decima
from decima.core.errors import ConfigError
from decima.systems.spark.policy.record import collect_record
from decima.systems.spark.policy.scheduler import record_episode
from decima.systems.spark.schedulers import Observation, check_scheduler, make_scheduler
from decima.systems.spark.state import spawn_generators
from decima.workload import synthetic_batch, synthetic_poisson
from tests.unit.systems.spark.policy.policies import BASES, finish_times, make_policy, make_state


@pytest.mark.parametrize("name", BASES)
@pytest.mark.parametrize("greedy", [True, False])
def test_keeps_the_rules_of_schedulers(name, greedy):
    report = check_scheduler(make_policy(name, greedy=greedy))
    assert report.kind == "compiled"


def test_the_state_serves_other_schedulers_in_between():
    workload = synthetic_poisson(10, 20, 0)
    state = make_state(workload, executors=10)
    policies = [make_policy("paper"), make_policy("released"), make_policy("paper", seed=1), make_scheduler("fair")]
    alone = [finish_times(make_state(workload, executors=10), policy) for policy in policies]
    for index in (0, 1, 3, 2, 0, 2, 1, 3):
        np.testing.assert_array_equal(finish_times(state, policies[index]), alone[index])


def test_cluster_larger_than_the_policy_allows():
    with pytest.raises(ConfigError, match="at most 200 executors, the cluster has 201"):
        decima.simulate(synthetic_batch(2), make_policy(), executors=201)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"teacher_share": 1.5}, "teacher_share"),
        ({"teacher_share": float("nan")}, "teacher_share"),
        ({"interarrival_s": -1.0}, "interarrival_s"),
        ({"interarrival_s": float("inf")}, "interarrival_s"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ConfigError, match=message):
        make_policy(**options)


def test_one_object_on_two_states_in_turn():
    """Through ``decide`` on two states, a decision here and a decision there: the records are those of the core."""
    teacher = make_scheduler("capped_srw")
    policy = make_policy(greedy=False, record=True, teacher=teacher, teacher_share=0.5)
    workloads = [synthetic_poisson(8, 10, 0), synthetic_batch(5)]
    wanted = [record_episode(make_state(workload, executors=9), policy, 1) for workload in workloads]
    states = [make_state(workload, executors=9) for workload in workloads]
    for state in states:
        state.start(*spawn_generators(1))
    open_ones = list(states)
    while open_ones:
        for state in list(open_ones):
            if not state.advance():
                open_ones.remove(state)
            elif state.num_frontier == 0:
                state.decide(-1, state.num_source)
            else:
                make_scheduler("weighted_fair").decide(Observation(state))  # binds its own parameters
                decision = policy.decide(Observation(state))
                idle = decision.stage is None
                state.decide(-1 if idle else decision.stage, state.num_source if idle else decision.parallelism_limit)
    for state, record in zip(states, wanted, strict=True):
        found = collect_record(state)
        for name, value in vars(record).items():
            np.testing.assert_array_equal(getattr(found, name), value, err_msg=name)
