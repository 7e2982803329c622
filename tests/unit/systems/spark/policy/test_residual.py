"""Policies that add to a rule's scores: the rule itself until they have learned, and probabilities by definition."""

import numpy as np
import pytest

from decima.core.errors import ConfigError
from decima.learning.store import StoredPolicy
from decima.systems.spark.policy.architecture import (
    LIMIT_STEP,
    MOST_EXECUTORS_OFF,
    MOST_PLACES,
    STAGE_STEP,
    Architecture,
)
from decima.systems.spark.policy.batch import GraphBatch
from decima.systems.spark.policy.record import collect_record
from decima.systems.spark.policy.run import grown_weights
from decima.systems.spark.policy.scheduler import LearnedScheduler, record_episode
from decima.systems.spark.schedulers import make_scheduler
from decima.systems.spark.settings import Settings
from decima.workload.sources import get_source
from tests.policy_oracle import log_softmax
from tests.unit.systems.spark.policy.policies import (
    answer_of,
    finish_times,
    make_policy,
    random_weights,
    state_of,
    watch,
)

RULE = "capped_srw"
RESIDUAL = Architecture.paper(residual=RULE)
VARIANTS = {
    "paper": RESIDUAL,
    "released": Architecture.released(residual="capped_srw:c0=1.5,c1=1,stage_rule=1"),
    "one output per limit": RESIDUAL.replace(limit="output"),
    "limit of the stage": RESIDUAL.replace(limit="stage"),
    "no limit": RESIDUAL.replace(limit="none"),
    "colder": RESIDUAL.replace(residual_temperature=0.8),
    "no graph embedding": RESIDUAL.replace(graph_embedding=False),
}
SOURCE = get_source("embedded")


def state(seed, streaming, mode="paper", executors=9, **settings):
    workload = SOURCE.stream(8, 6.0, seed) if streaming else SOURCE.batch(7, seed)
    return state_of(workload, Settings.of_mode(mode, executors=executors, **settings), log=True)


def untrained(architecture=RESIDUAL, seed=0, **options):
    return LearnedScheduler(architecture, architecture.initial_weights(seed), **options)


@pytest.mark.parametrize("mode", ["paper", "released"])
@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize(
    "rule",
    [
        RULE,
        "capped_srw:c0=1.3,power=1",
        "capped_srw:release=1,leftover=2",
        "capped_srw:leftover=0",
        "entry_srw:embedded",
        "entry_srw:pay=9",
    ],
)
def test_untrained_it_is_the_rule(rule, streaming, mode):
    for seed in range(2):
        expected = finish_times(state(seed, streaming, mode), make_scheduler(rule), seed)
        found = finish_times(state(seed, streaming, mode), untrained(Architecture.paper(residual=rule)), seed)
        np.testing.assert_array_equal(found, expected)


def test_it_makes_the_decisions_of_the_rule_one_by_one():
    rule, seen = make_scheduler(RULE), []
    policy = untrained()

    def look(observation):
        expected = rule.decide(observation)
        found = policy.decide(observation)
        seen.append(found.stage == expected.stage)
        room = next(stage for stage in observation.frontier if stage.id == expected.stage)
        most = min(observation.num_free_executors, room.room)
        granted = [min(each.parallelism_limit - room.job.allocation, most) for each in (found, expected)]
        assert granted[0] == granted[1]

    watch(state(1, True), policy, look)
    assert len(seen) > 50
    assert all(seen)


def test_weights_are_as_many_and_without_the_option_what_they_were():
    assert RESIDUAL.num_parameters == Architecture.paper().num_parameters == 12_736
    parts, plain = (each.split(each.initial_weights(3)) for each in (RESIDUAL, Architecture.paper()))
    for name, values in parts.items():
        if name in ("q/2/kernel", "w/2/kernel"):
            assert not values.any()
            assert plain[name].any()
        else:
            np.testing.assert_array_equal(values, plain[name])


def limit_scores(record, d, allowed, temperature):
    """What the rule adds to the scores of limits, by definition."""
    tail = allowed[record.classes[d] - 1]
    wanted = record.limit_wanted[d]
    off = [min(abs(min(limit, tail) - wanted), MOST_EXECUTORS_OFF) for limit in allowed]
    alike = np.log(allowed[-1] - tail + 1)
    return [-LIMIT_STEP / temperature * far - alike * (limit >= tail) for far, limit in zip(off, allowed, strict=True)]


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("greedy", [True, False])
def test_probabilities_by_definition_in_compiled_code_and_in_tensorflow(name, greedy):
    network = pytest.importorskip("decima.systems.spark.policy.network")
    policy = make_policy(VARIANTS[name], greedy=greedy, record=True)
    here = state(2, True)
    record = record_episode(here, policy, 5)
    batch = GraphBatch([record], here.child_offset, here.child)
    model = network.DecimaNetwork(policy.architecture, batch.num_levels, policy.weights)
    found = {key: value.numpy() for key, value in model(batch.tensors()).items()}
    np.testing.assert_allclose(found["log_prob_stage"], record.log_prob_stage, atol=1e-5)
    matters = record.classes > 1
    np.testing.assert_allclose(found["log_prob_limit"][matters], record.log_prob_limit[matters], atol=1e-5)
    np.testing.assert_allclose(found["log_prob_class"][matters], record.log_prob_class[matters], atol=1e-5)
    departures, temperature = 0, policy.architecture.residual_temperature
    for d in range(len(record)):
        span = slice(*record.decision_candidates[d : d + 2])
        prior = record.candidate_prior[span, 0]
        assert prior.max() == 0.0
        places = -prior * temperature / STAGE_STEP
        np.testing.assert_allclose(places, np.round(places), atol=1e-5)
        assert places.max() <= MOST_PLACES
        answer, choice, allowed = answer_of(policy, record, d, here, residual="none", residual_temperature=1.0)
        departures += prior[choice] < 0.0
        expected = log_softmax(answer.log_prob_stage + prior)[choice]
        assert record.log_prob_stage[d] == pytest.approx(expected, abs=1e-5)
        if matters[d]:
            assert 1 <= record.limit_wanted[d] - record.limit_low[d] + 1 <= record.classes[d]
            scores = np.array([answer.log_prob_limit[limit] for limit in allowed]) + limit_scores(
                record, d, allowed, temperature
            )
            expected = log_softmax(scores)[allowed.index(record.limit[d])]
            assert record.log_prob_limit[d] == pytest.approx(expected, abs=1e-5)
    assert greedy or departures > 0
    assert (matters.sum() > 20) == (name != "no limit")


def test_a_teacher_has_its_own_parameters():
    """The rule in the policy and the rule that teaches share a record; neither sees the other's parameters."""
    teacher = make_scheduler("capped_srw:c0=0.5,c1=0,power=0,leftover=0")
    for share in (0.0, 1.0):
        policy = untrained(greedy=True, record=True, teacher=teacher, teacher_share=share)
        here = state(3, False)
        expected = finish_times(state(3, False), teacher if share else make_scheduler(RULE), 3)
        np.testing.assert_array_equal(finish_times(here, policy, 3), expected)
        record = collect_record(here)
        assert (record.candidate_prior[record.choice, 0] < 0.0).any()
    weaker = make_scheduler("fifo")
    found = finish_times(state(3, False), untrained(teacher=weaker, teacher_share=0.0), 3)
    np.testing.assert_array_equal(found, finish_times(state(3, False), make_scheduler(RULE), 3))


def test_a_policy_with_other_scores_does_not_grow_into_one(tmp_path):
    plain = Architecture.paper()
    with pytest.raises(ConfigError, match="it has residual=none, the new network residual=capped_srw"):
        grown_weights(StoredPolicy("plain", plain, random_weights(plain), {}, tmp_path), RESIDUAL, 0)
