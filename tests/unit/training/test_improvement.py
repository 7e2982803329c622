import numpy as np
import pytest

from decima.training.improvement import episodes_of, improve, recipe_advantages, recorded_log_prob
from decima.training.recipe import Recipe
from decima.training.returns import RegressionMemory, RewardRate
from decima.training.rollout import RolloutJob, ThreadBackend
from decima.training.task import rollout_seeds
from tests.unit.training.small import NETWORK, STREAM, TASK


def rollouts(task, count, length_s=None):
    backend = ThreadBackend(task, 2)
    sequences = task.training_sequences(2, 0, 2, length_s)
    seeds = rollout_seeds(2, 0, 2 * count)
    work = [RolloutJob(sequences[k // count], seed) for k, seed in enumerate(seeds)]
    records = backend.collect(NETWORK, NETWORK.initial_weights(0), work)
    backend.close()
    return records


def test_rewards_are_the_objective_in_the_recipe_s_unit():
    records = rollouts(TASK, 3)
    recipe = Recipe(rollouts=3, reward_scale_s=10.0)
    episodes = episodes_of(records, TASK, recipe, RewardRate.empty())
    assert [len(group) for group in episodes] == [3, 3]
    for record, episode in zip(records, [one for group in episodes for one in group], strict=True):
        jct_s = (record.completion_ms - record.arrival_ms).sum() / 1000.0
        before_s = record.area_ms[0] / 1000.0
        assert -10.0 * episode.rewards.sum() == pytest.approx(jct_s - before_s)
        assert episode.end_s == record.end_ms / 1000.0


def test_differential_rewards_cancel_in_the_advantage():
    # All rollouts of a sequence end together then, so that a constant rate is no reason to be done sooner or later.
    records = rollouts(STREAM, 3)
    assert len({record.end_ms for record in records}) == 6
    rate, recipe = RewardRate.empty(), Recipe(rollouts=3)
    found = {}
    for differential in (True, False):
        changed = recipe.replace(differential=differential)
        episodes = episodes_of(records, STREAM, changed, rate)
        if not differential:
            plain = episodes
            ends = [max(episode.end_s for episode in group) for group in plain]
            episodes = [
                [type(one)(one.time_s, end, one.rewards, one.summary) for one in group]
                for group, end in zip(plain, ends, strict=True)
            ]
        found[differential] = np.concatenate(
            recipe_advantages(episodes, changed, RegressionMemory.empty(8), None).values
        )
    assert rate.rate < 0.0
    np.testing.assert_allclose(found[True], found[False], atol=1e-9)


def test_batches_have_no_differential_rewards():
    records, rate = rollouts(TASK, 2), RewardRate.empty()
    episodes_of(records, TASK, Recipe(rollouts=2), rate)
    assert len(rate.rewards) == 0


def test_limits_with_one_effect_are_no_choice():
    record = rollouts(TASK, 1)[0]
    alone = record.classes == 1
    assert alone.any()
    for effect_classes in (True, False):
        found = recorded_log_prob(record, effect_classes)
        np.testing.assert_array_equal(found[alone], record.log_prob_stage[alone])
    assert np.any(recorded_log_prob(record, True) != recorded_log_prob(record, False))


class Counter:
    """A learner that only counts, and moves away from the policy step by step."""

    def __init__(self, kl):
        self.kl, self.steps, self.seen, self.scales = kl, 0, [], []

    def gradient(self, batch, decisions, advantages, log_prob, loss):
        from decima.training.gradient import SUMS, Gradient

        self.seen.append(len(decisions))
        sums = dict.fromkeys(SUMS, 0.0) | {"kl": self.kl * self.steps * len(decisions)}
        return Gradient(np.full(2, len(decisions), np.float32), sums, len(decisions))

    def apply(self, gradient, learning_rate, largest_norm):
        self.steps += 1
        self.scales.append(float(gradient[0]))
        return 1.0


@pytest.mark.parametrize(("kl_stop", "updates"), [(None, 6), (0.025, 3)])
def test_updates_end_when_the_policy_has_moved_too_far(kl_stop, updates):
    records = rollouts(TASK, 2)
    recipe = Recipe.named("fast", rollouts=2, epochs=2, minibatches=3, kl_stop=kl_stop)
    found = recipe_advantages(
        episodes_of(records, TASK, recipe, RewardRate.empty()), recipe, RegressionMemory.empty(8), None
    )
    learner = Counter(0.01)
    row = improve(learner, None, records, found, recipe, np.random.default_rng(0), 1e-3, 0.0)
    assert row["updates"] == learner.steps == updates
    assert learner.scales == [1.0] * updates  # the mean over decisions
    if kl_stop is None:
        assert sum(learner.seen[:3]) == sum(learner.seen[3:])


def test_reinforce_sums_over_decisions_and_averages_over_rollouts():
    records = rollouts(TASK, 2)
    recipe = Recipe(rollouts=2)
    episodes = episodes_of(records, TASK, recipe, RewardRate.empty())
    found = recipe_advantages(episodes, recipe, RegressionMemory.empty(8), None)
    learner = Counter(0.0)
    row = improve(learner, None, records, found, recipe, np.random.default_rng(0), 1e-3, 0.0)
    assert row["updates"] == 1
    assert learner.scales == [learner.seen[0] / 4]
