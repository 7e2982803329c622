"""Teachers outside of the core, and schedulers that cannot teach."""

import pytest

from decima.core.errors import ConfigError
from decima.learning.recipe import Recipe
from decima.systems.spark.policy.run import DecimaRun
from decima.systems.spark.policy.scheduler import LearnedScheduler, record_episode
from decima.systems.spark.schedulers import make_scheduler
from decima.systems.spark.schedulers.interface import run_decision
from decima.systems.spark.state import new_state
from tests.unit.learning.small import NETWORK, STREAM, TASK, assert_same_records

pytestmark = pytest.mark.tensorflow


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


def prepared(task):
    sequence = task.training_sequences(3, 0, 1, 90.0 if task.streaming else None)[0]
    return new_state(task.workload(sequence), task.sequence_settings(sequence))


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("greedy", [True, False])
@pytest.mark.parametrize("task", [TASK, STREAM], ids=["batch", "stream"])
def test_a_teacher_outside_of_the_core_is_recorded_like_one_inside(task, greedy, share):
    state, records = prepared(task), []
    for teacher in (make_scheduler("fair"), Outside(make_scheduler("fair"))):
        options = {"record": True, "teacher": teacher, "teacher_share": share}
        policy = LearnedScheduler(NETWORK, NETWORK.initial_weights(4), greedy, **options)
        records.append(record_episode(state, policy, 7))
    assert_same_records(records[:1], records[1:])
    assert len(records[0]) > 10


@pytest.mark.parametrize(
    ("teacher", "parameters", "message"),
    [
        ("decima:policy=tpch-batch", {}, "learned policy, which would teach itself"),
        ("lookahead:64", {}, "scheduler 'lookahead' is gone: version 0.2.0 is the last one that has it; entry_srw"),
        ("capped", {}, "teacher: unknown scheduler 'capped'; did you mean 'capped_srw'"),
        ("capped_srw", {"c9": 1.0}, "teacher: .*no parameter 'c9'"),
    ],
)
def test_what_cannot_teach_is_refused_in_one_sentence(teacher, parameters, message):
    recipe = Recipe.named("fast", teacher=teacher, teacher_parameters=parameters)
    with pytest.raises(ConfigError, match=message):
        DecimaRun(TASK, recipe, NETWORK, 0)
