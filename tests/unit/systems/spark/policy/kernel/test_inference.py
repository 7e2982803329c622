"""The compiled network and its choices: against the plain definition, and the same however it is run."""

import numpy as np
import pytest

from decima.core.errors import InvalidDecisionError
from decima.systems.spark.policy.architecture import Architecture
from decima.systems.spark.policy.record import CAPACITIES, bind_buffers, collect_record, policy_record
from decima.systems.spark.policy.scheduler import LearnedScheduler, record_episode
from decima.systems.spark.schedulers import Observation, make_scheduler
from decima.systems.spark.state import spawn_generators
from decima.systems.spark.system import run_state
from decima.workload import synthetic_batch
from tests.drivers import Through
from tests.unit.systems.spark.policy.policies import (
    BASES,
    answer_of,
    architectures,
    checked_answer,
    describe,
    finish_times,
    make_policy,
    make_state,
    missing_children,
    random_state,
    watch,
)

ARCHITECTURES = list(architectures())


@pytest.mark.parametrize("architecture", ARCHITECTURES, ids=describe)
def test_probabilities_by_definition(architecture):
    """Those of a policy that takes the best, of one that draws, and of what a teacher chooses."""
    decisions = 0
    for seed in range(16):
        greedy, teacher = seed % 2 == 0, make_scheduler("capped_srw") if seed % 4 == 3 else None
        policy = make_policy(architecture, greedy=greedy, record=True, teacher=teacher)
        state = random_state(seed)
        record = record_episode(state, policy, seed)
        for d in range(len(record)):
            answer, _ = checked_answer(policy, record, d, state)
            decisions += 1
            if greedy and architecture.limit != "none":
                log_class = answer.log_prob_class(record.class_low[d], record.class_high[d])
                tail = record.limit_low[d] + record.classes[d] - 1
                others = [answer.log_prob_limit[limit] for limit in range(record.limit_low[d], tail)]
                others.append(answer.log_prob_class(tail, record.limit_high[d]))
                assert log_class >= max(others) - 1e-5
                assert record.limit[d] == record.class_low[d]
    assert decisions > 100


@pytest.mark.parametrize("name", BASES)
def test_probabilities_where_stages_run_again(name):
    """A stage whose outputs were lost is a node again, while children of it may have finished."""
    policy = make_policy(name, greedy=False, record=True)
    without_child = 0
    cluster = {"executors": 12, "executor_cores": 2, "dynamic": True, "idle_timeout_ms": 2000.0, "loss_rate": 20.0}
    for seed in (1, 2):
        state = make_state(synthetic_batch(10, seed), **cluster, straggler_share=0.2)
        record = record_episode(state, policy, seed)
        for d in range(len(record)):
            checked_answer(policy, record, d, state)
        without_child += missing_children(record, state)
    assert without_child > 0


class CountingGenerator:
    """How many 64-bit numbers a run drew from the policy's generator."""

    def __init__(self, seed):
        self.rng, self.policy_rng = spawn_generators(seed)
        self._start = spawn_generators(seed)[1]

    def drawn(self, at_most=100_000):
        end = self.policy_rng.bit_generator.state["state"]
        for count in range(at_most):
            if self._start.bit_generator.state["state"] == end:
                return count
            self._start.bit_generator.random_raw()
        raise AssertionError("the generator is elsewhere")


@pytest.mark.parametrize("limit", ["input", "output", "stage", "none"])
@pytest.mark.parametrize(("greedy", "per_decision"), [(True, 0), (False, 2)])
def test_draws_per_decision(limit, greedy, per_decision):
    policy = make_policy(Architecture.paper(limit=limit), greedy=greedy, record=True)
    state = make_state(synthetic_batch(5), executors=8)
    counting = CountingGenerator(3)
    policy.bind(state)
    state.start(counting.rng, counting.policy_rng, policy.decision.address)
    state.advance()
    assert counting.drawn() == per_decision * len(collect_record(state))


def test_recording_changes_nothing():
    for seed in range(10):
        policies = (make_policy(greedy=False, record=record) for record in (False, True))
        np.testing.assert_array_equal(*(finish_times(random_state(seed), policy, seed) for policy in policies))


@pytest.mark.parametrize("name", BASES)
def test_choices_follow_the_probabilities(name):
    """4000 draws from one state: every stage and every limit as often as it should be, chi-square over all of them."""
    policy = make_policy(name, greedy=False, record=True)
    state = make_state(synthetic_batch(4), executors=6)
    state.start(*spawn_generators(0))
    assert state.advance()
    policy.bind(state)
    draws = 4000
    bind_buffers(state, 5, dict.fromkeys(CAPACITIES, 64 * draws))
    observation = Observation(state)
    for _ in range(draws):
        policy.decide(observation)
    record = collect_record(state)
    local = record.choice - record.decision_candidates[:-1]
    first = answer_of(policy, record, 0, state)[0]
    pairs = {}
    for candidate in np.unique(local):
        decision = int(np.flatnonzero(local == candidate)[0])
        for limit, log_prob in answer_of(policy, record, decision, state)[0].log_prob_limit.items():
            pairs[int(candidate), limit] = np.exp(first.log_prob_stage[candidate] + log_prob)
    assert sum(pairs.values()) == pytest.approx(1.0, abs=1e-3)
    drawn = np.array([np.sum((local == stage) & (record.limit == limit)) for stage, limit in pairs])
    wanted = draws * np.array(list(pairs.values()))
    common = wanted >= 5
    statistic = np.sum((drawn - wanted)[common] ** 2 / wanted[common])
    freedom = int(common.sum())
    assert freedom > 10
    assert statistic < freedom + 5 * np.sqrt(2 * freedom)


@pytest.mark.parametrize("architecture", ARCHITECTURES, ids=describe)
def test_same_run_inside_the_core_and_through_decide(architecture):
    for seed in range(6):
        policy = make_policy(architecture, greedy=seed % 2 == 0)
        inside, through = (finish_times(random_state(seed), each, seed) for each in (policy, Through(policy)))
        np.testing.assert_array_equal(inside, through)


@pytest.mark.parametrize("name", BASES)
def test_reused_embeddings_equal_computed_ones(name):
    policy = make_policy(name, greedy=False, record=True)
    for seed in range(8):
        state = random_state(seed)
        wanted = record_episode(state, policy, seed)
        watch(state, policy, lambda _, state=state: policy_record(state).put(net_ready=0), seed)
        anew = collect_record(state)
        assert len(anew.instance_first) >= len(wanted.instance_first)
        for field in ("limit", "log_prob_stage", "log_prob_limit", "log_prob_class"):
            np.testing.assert_array_equal(getattr(anew, field), getattr(wanted, field))


@pytest.mark.parametrize("through", [False, True])
@pytest.mark.parametrize("part", ["q/0/kernel", "w/2/kernel"])
def test_scores_that_are_not_finite(part, through):
    architecture = Architecture.paper()
    weights = architecture.initial_weights(0)
    architecture.split(weights)[part][:] = 3e38
    policy = LearnedScheduler(architecture, weights)
    state = make_state(synthetic_batch(3), executors=8)
    with pytest.raises(InvalidDecisionError, match="not a finite number"):
        run_state(state, Through(policy) if through else policy, 0)
    run_state(state, make_policy(), 0)
