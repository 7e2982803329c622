"""Teachers outside of the core, episodes that branch, and what greedy episodes are for."""

from dataclasses import fields, replace

import numpy as np
import pytest

from decima.core.errors import ConfigError
from decima.learning.recipe import Recipe
from decima.learning.rollout import Branch, Episodes, RolloutJob, Teacher
from decima.systems.spark.loop import new_state
from decima.systems.spark.policy.agent import DecimaAgent
from decima.systems.spark.policy.scheduler import LearnedScheduler, record_episode
from decima.systems.spark.schedulers import make_scheduler
from decima.systems.spark.schedulers.interface import run_decision
from tests.unit.learning.small import NETWORK, STREAM, TASK

RESIDUAL = NETWORK.replace(residual="capped_srw")


class Outside:
    """A compiled rule that decides through ``decide``, as a scheduler in plain Python does."""

    name = "outside"

    def __init__(self, rule):
        self._rule = rule

    def reset(self, rng):
        pass

    def decide(self, observation):
        self._rule.bind(observation.state)
        return run_decision(self._rule.decision, observation.state)


def prepared(task, number=0):
    sequence = task.training_sequences(3, number, 1, 90.0 if task.streaming else None)[0]
    return sequence, new_state(task.workload(sequence), task.sequence_settings(sequence))


def assert_same(one, other):
    for field in fields(one):
        np.testing.assert_array_equal(getattr(one, field.name), getattr(other, field.name), err_msg=field.name)


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("greedy", [True, False])
@pytest.mark.parametrize("task", [TASK, STREAM], ids=["batch", "stream"])
def test_a_teacher_outside_of_the_core_is_recorded_like_one_inside(task, greedy, share):
    _, state = prepared(task)
    rule = make_scheduler("fair")
    records = [
        record_episode(
            state,
            LearnedScheduler(
                NETWORK, NETWORK.initial_weights(4), greedy, record=True, teacher=teacher, teacher_share=share
            ),
            7,
        )
        for teacher in (rule, Outside(make_scheduler("fair")))
    ]
    assert_same(*records)
    assert len(records[0]) > 10


def test_the_plan_of_a_teacher_does_not_reach_the_rule_of_the_policy():
    """Untrained and greedy, a residual policy keeps to its rule whatever plans the teacher makes beside it."""
    _, state = prepared(replace(TASK, jobs=12))
    alone = record_episode(state, LearnedScheduler(RESIDUAL, RESIDUAL.initial_weights(0), record=True), 5)
    teacher = make_scheduler("lookahead:100")
    beside = LearnedScheduler(RESIDUAL, RESIDUAL.initial_weights(0), record=True, teacher=teacher, teacher_share=0.0)
    taught = record_episode(state, beside, 5)
    assert teacher.plans > 0
    np.testing.assert_array_equal(taught.completion_ms, alone.completion_ms)
    assert len(taught) == len(alone)
    assert (taught.choice != alone.choice).any()


def test_episodes_are_alike_up_to_their_branch_and_part_there():
    sequence, state = prepared(TASK)
    weights = NETWORK.initial_weights(1)
    episodes = Episodes(TASK)
    at = 0.5
    first = int(at * state.tables.num_stages)
    jobs = [RolloutJob(sequence, 9, branch=Branch(at, seed)) for seed in (1, 1, 2)]
    one, same, other = (episodes((NETWORK, weights, job)) for job in jobs)
    assert_same(one, same)
    np.testing.assert_array_equal(one.time_ms[: first + 1], other.time_ms[: first + 1])
    np.testing.assert_array_equal(one.choice[:first], other.choice[:first])
    assert one.end_ms != other.end_ms
    # Before the branch the draws are those of an episode without one.
    plain = episodes((NETWORK, weights, RolloutJob(sequence, 9)))
    np.testing.assert_array_equal(one.choice[:first], plain.choice[:first])
    np.testing.assert_array_equal(one.limit[:first], plain.limit[:first])


def test_an_episode_that_ends_before_its_branch_is_the_plain_one():
    _, state = prepared(TASK)
    policy = LearnedScheduler(NETWORK, NETWORK.initial_weights(1), greedy=False, record=True)
    assert_same(record_episode(state, policy, 9), record_episode(state, policy, 9, (10**6, 1)))


def test_an_agent_spreads_greedy_episodes_and_shares_chance_where_rollouts_branch():
    seen = []

    class Watching:
        def collect(self, architecture, weights, jobs):
            seen.append((weights, jobs))
            return []

        def close(self):
            pass

    agent = DecimaAgent(TASK, NETWORK, 0, Watching())
    agent.collect(0, 4, 1, None, Teacher("fair"), greedy=0.5)
    agent.collect(0, 2, 3, None, branching=True, weights=np.zeros(3, np.float32))
    (_, greedy), (weights, branched) = seen
    assert [job.greedy for job in greedy] == [False, True, False, True]
    assert not weights.any()
    assert len({job.seed for job in branched}) == 2
    assert [job.branch.at for job in branched[:3]] == 3 * [branched[0].branch.at]
    assert len({job.branch.seed for job in branched}) == 6
    agent.close()


def test_last_layers_are_those_of_the_heads_and_move_nothing_else():
    places = RESIDUAL.last_layers()
    weights = RESIDUAL.initial_weights(0)
    assert not weights[places].any()
    marked = np.zeros_like(weights)
    marked[places] = 1.0
    assert {name for name, part in RESIDUAL.split(marked).items() if part.any()} == {"q/1/kernel", "w/1/kernel"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"algorithm": "expert_iteration", "expert": "decima"}, "learned policy, which would teach itself"),
        ({"algorithm": "expert_iteration", "expert": "lookahead:3"}, "expected 0, or at least"),
        ({"algorithm": "expert_iteration", "expert": "nobody"}, "nobody"),
        ({"algorithm": "expert_iteration", "expert": 3}, "name of a scheduler"),
        ({"teacher": "decima:policy=tpch-batch"}, "learned policy, which would teach itself"),
        ({"branching": True, "fixed_sequences": False}, "branching needs fixed_sequences"),
        ({"rollouts_end": 0}, "rollouts_end must be a whole number"),
        ({"algorithm": "evolution_strategy", "pairs": 0}, "pairs must be a whole number"),
        ({"algorithm": "evolution_strategy", "spread": 0.0}, "spread must be a number above 0"),
    ],
)
def test_what_cannot_teach_or_branch_is_refused_in_one_sentence(changes, message):
    with pytest.raises(ConfigError, match=message):
        Recipe.named("fast", **changes)


def test_the_number_of_rollouts_grows_over_the_budget():
    config = Recipe.named("fast", rollouts=4, rollouts_end=64).learning
    assert [config.rollouts_at(share) for share in (0.0, 0.5, 1.0)] == [4, 16, 64]
    assert replace(config, rollouts_end=None).rollouts_at(1.0) == 4


@pytest.mark.parametrize("changes", [{"branching": True}, {"rollouts_end": 5}])
def test_policy_gradients_learn_from_branches_and_from_growing_groups(changes, tmp_path):
    from decima.learning.run import TrainingRun
    from tests.unit.learning.small import quick_recipe

    run = TrainingRun(TASK, quick_recipe(teacher_iterations=0, **changes), NETWORK, 0)
    curve = run.trainer(tmp_path, tensorboard=False, workers=1).train().curve
    assert len(curve) == 4
    assert all(row["updates"] > 0 and row["gradient_norm"] > 0.0 for row in curve)
