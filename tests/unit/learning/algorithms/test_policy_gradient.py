import numpy as np
import pytest

from decima.learning.algorithms.policy_gradient import PolicyGradient, PolicyGradientConfig
from decima.learning.configuration import Progress
from decima.learning.loss import SUMS, Gradient
from decima.learning.rollout import Rollouts
from decima.systems.spark.policy.episodes import Episodes
from decima.systems.spark.policy.run import DecimaAgent, recorded_log_prob
from tests.unit.learning.small import NETWORK, STREAM, TASK

pytestmark = pytest.mark.tensorflow


@pytest.fixture(scope="module", params=[TASK, STREAM], ids=["batch", "stream"])
def agent(request):
    made = DecimaAgent(request.param, NETWORK, 2, Rollouts(Episodes(request.param), "threads", 2))
    yield made
    made.close()


def algorithm_of(agent, rollouts, **fields):
    return PolicyGradient(PolicyGradientConfig(rollouts=rollouts, **fields), agent, 0)


def test_rewards_are_the_objective_in_the_recipe_s_unit(agent):
    records = agent.collect(0, 2, 3, None)
    episodes = algorithm_of(agent, 3, reward_scale_s=10.0, differential=False).episodes(records)
    assert [len(group) for group in episodes] == [3, 3]
    for record, episode in zip(records, [one for group in episodes for one in group], strict=True):
        jct_s = (record.completion_ms - record.arrival_ms).sum() / 1000.0
        before_s = record.area_ms[0] / 1000.0
        assert -10.0 * episode.rewards.sum() == pytest.approx(jct_s - before_s)
        assert episode.end_s == record.end_ms / 1000.0


def test_differential_rewards_cancel_in_the_advantage(agent):
    # All rollouts of a sequence end together then, so that a constant rate is no reason to be done sooner or later.
    records = agent.collect(0, 2, 3, None)
    differential = algorithm_of(agent, 3)
    found = differential.advantages(records, None)
    if not agent.streaming:
        assert len(differential.reward_rate.rewards) == 0
        return
    assert len({record.end_ms for record in records}) == 6
    assert differential.reward_rate.rate < 0.0
    plain = algorithm_of(agent, 3, differential=False)
    ends = [max(record.end_ms for record in records[first : first + 3]) / 1000.0 for first in (0, 3)]
    episodes = plain.episodes(records)
    plain.episodes = lambda _: [
        [type(one)(one.time_s, end, one.rewards, one.summary) for one in group]
        for group, end in zip(episodes, ends, strict=True)
    ]
    expected = np.concatenate(plain.advantages(records, None).values)
    np.testing.assert_allclose(np.concatenate(found.values), expected, atol=1e-9)


def test_rollouts_may_have_sequences_of_their_own(agent, monkeypatch):
    plain = algorithm_of(agent, 3, sequences=2, fixed_sequences=False, differential=False, episode_start_s=None)
    asked, collect = [], agent.collect
    monkeypatch.setattr(agent, "collect", lambda *what: asked.append(what) or collect(*what))
    monkeypatch.setattr(plain, "update", lambda *_: {})
    plain.iterate(Progress(0, 0, 0.0))
    assert asked == [(0, 6, 1, None)]

    records = collect(0, 3, 1, None)
    assert len({record.arrival_ms.sum() for record in records}) == (3 if agent.streaming else 1)
    found = plain.advantages(records, None)
    # The first decisions are at time 0, where the baseline is the mean of the three returns.
    first = np.array([returns[0] for returns in found.returns])
    np.testing.assert_allclose([values[0] for values in found.values], first - first.mean())
    fixed = algorithm_of(agent, 3, differential=False)
    np.testing.assert_array_equal(np.concatenate(fixed.advantages(records, None).values), np.concatenate(found.values))
    alone = algorithm_of(agent, 1, differential=False)
    assert not np.concatenate(alone.advantages(records, None).values).any()  # one's own mean is oneself


def test_limits_with_one_effect_are_no_choice(agent):
    record = agent.collect(0, 1, 1, None)[0]
    alone = record.classes == 1
    assert alone.any()
    for effect_classes in (True, False):
        found = recorded_log_prob(record, effect_classes)
        np.testing.assert_array_equal(found[alone], record.log_prob_stage[alone])
        np.testing.assert_array_equal(agent.recorded_log_prob([record, record], effect_classes), [*found, *found])
    assert np.any(recorded_log_prob(record, True) != recorded_log_prob(record, False))


class Counter:
    """A learner that only counts, and moves away from the policy step by step."""

    def __init__(self, kl):
        self.kl, self.steps, self.seen, self.scales = kl, 0, [], []

    def gradient(self, batch, decisions, advantages, log_prob, loss):
        self.seen.append(len(decisions))
        sums = dict.fromkeys(SUMS, 0.0) | {"kl": self.kl * self.steps * len(decisions)}
        return Gradient(np.full(2, len(decisions), np.float32), sums, len(decisions))

    def apply(self, gradient, learning_rate, largest_norm):
        self.steps += 1
        self.scales.append(float(gradient[0]))
        return 1.0


def updated(agent, learner, monkeypatch, **fields):
    """Row of an update by that learner, from two rollouts of two sequences."""
    algorithm = algorithm_of(agent, 2, **fields)
    records = agent.collect(0, 2, 2, None)
    found = algorithm.advantages(records, None)
    with monkeypatch.context() as patch:
        patch.setattr(agent, "learner", learner)
        return algorithm.update(records, agent.useful_decisions(records), None, found.values, Progress(0, 0, 0.0))


def test_every_pass_uses_all_decisions_in_updates_by_their_mean(agent, monkeypatch):
    fields = {"algorithm": "ppo", "loss_reduction": "mean", "epochs": 2, "minibatches": 3}
    learner = Counter(0.01)
    row = updated(agent, learner, monkeypatch, **fields)
    assert row["updates"] == learner.steps == 6
    assert learner.scales == [1.0] * 6
    assert sum(learner.seen[:3]) == sum(learner.seen[3:])


def test_a_part_of_the_minibatches_makes_updates(agent, monkeypatch):
    fields = {"algorithm": "ppo", "loss_reduction": "mean", "epochs": 2, "minibatches": 3}
    every, some = Counter(0.0), Counter(0.0)
    updated(agent, every, monkeypatch, **fields)
    updated(agent, some, monkeypatch, **fields, minibatches_used=2)
    assert some.seen == every.seen[:2] + every.seen[3:5]


def test_reinforce_sums_over_decisions_and_averages_over_rollouts(agent, monkeypatch):
    learner = Counter(0.0)
    row = updated(agent, learner, monkeypatch)
    assert row["updates"] == 1
    assert learner.scales == [learner.seen[0] / 4]
