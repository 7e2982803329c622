"""What holds for every registered algorithm, those of tomorrow included: nobody is named here."""

from dataclasses import fields, is_dataclass, replace

import numpy as np
import pytest

from decima.core.errors import ConfigError, TrainingError
from decima.learning.algorithms import ALGORITHMS, make_algorithm
from decima.learning.algorithms.dqn import Transitions
from decima.learning.configuration import Progress
from decima.learning.loss import CRITIC, PROBABILITIES, STREAMS, VALUES
from decima.learning.recipe import Recipe
from decima.learning.trainer import Checkpoint
from decima.systems.cloud.policy.architecture import PlacementArchitecture
from decima.systems.cloud.policy.run import PlacementAgent, PlacementRun
from decima.systems.cloud.policy.task import PlacementTask
from decima.systems.heterogeneous.policy.run import NodeAgent
from decima.systems.spark.policy.run import DecimaAgent, DecimaRun
from tests.unit.learning import toys
from tests.unit.learning.small import NETWORK, STREAM, TASK, assert_same_run, interrupted, same_arrays, without_times

pytestmark = pytest.mark.tensorflow

assert toys.Evolution  # registered with its module
NAMES = ALGORITHMS.names()
SMALL = {
    "sequences": 2,
    "rollouts": 2,
    "teacher": "fair",
    "teacher_iterations": 1,
    "teacher_sequences": 3,
    "episode_start_s": 60.0,
    "episode_end_s": 90.0,
    "validate_every": 2,
    "validation_sequences": 2,
    "checkpoint_every": 1,
    "iterations": 4,
    "memory": 25,
    "memory_first": 15,
    "target_every": 2,
    "explore_start": 0.5,
    "trace": 0.5,
    "critic_steps": 2,
    "critic_first": 1,
    "streams": 2,
    "copies": 3,
    "window_s": 30.0,
    "step_s": 10.0,
    "warm_up_s": 30.0,
    "critic_memory": 2,
}
# Values of actions are learned where there is an agent that has them.
VM_TASKS = {
    False: PlacementTask(("generated:n=4",), reward="table3"),
    True: PlacementTask(("generated:pattern=burst,n=5",), reward="table3"),
}
VM_NETWORK = PlacementArchitecture.named("paper", 12, hidden=(4,), masked=True)


def of_spark(streaming, recipe):
    return DecimaRun(STREAM if streaming else TASK, recipe, NETWORK, 1)


def of_streams(streaming, recipe):
    return DecimaRun(STREAM, recipe.replace(teacher=None), NETWORK, 1)


def of_nodes(streaming, recipe):
    from decima.systems.heterogeneous.policy.architecture import NodeArchitecture
    from decima.systems.heterogeneous.policy.run import NodeRun
    from decima.systems.heterogeneous.policy.task import NodeTask

    kind = "lachesis-stream" if streaming else "lachesis-batch"
    task = NodeTask(kind, source="embedded", jobs=(2, 3), executors=(2, 3), ccr=(1.0, 3.0))
    recipe = recipe.replace(teacher="linear_rank")
    return NodeRun(task, recipe, NodeArchitecture(embedding=4, hidden=(4,), score_hidden=(4,)), 1)


def of_vms(streaming, recipe):
    return PlacementRun(VM_TASKS[streaming], recipe, VM_NETWORK, 1)


# A system whose agents have what an algorithm makes better.
SYSTEMS = {PROBABILITIES: of_spark, CRITIC: of_nodes, VALUES: of_vms, STREAMS: of_streams}


def run_of(name, streaming=False):
    known = Recipe.documentation(name)
    values = {key: value for key, value in SMALL.items() if key in known}
    learned = ALGORITHMS.find(name).learns
    if learned in (VALUES, STREAMS):
        recipe = Recipe.of_fields(algorithm=name, **(values | {"teacher": None}))
    else:
        recipe = Recipe.named("fast", algorithm=name, **values)
    return SYSTEMS[learned](streaming, recipe)


def train(name, folder, streaming=False, resume=False, **options):
    return run_of(name, streaming).trainer(folder, tensorboard=False, **({"workers": 2} | options)).train(resume)


# In `make test`, one algorithm for each kind of what is learned.
DAILY = {ALGORITHMS.find(name).learns: name for name in NAMES}.values()
TRAINED = [pytest.param(name, marks=() if name in DAILY else pytest.mark.slow) for name in NAMES]


@pytest.fixture(scope="module", params=TRAINED)
def whole(request, tmp_path_factory):
    """Name, folder and outcome of an uninterrupted run."""
    folder = tmp_path_factory.mktemp(request.param)
    return request.param, folder, train(request.param, folder)


def test_it_learns(whole):
    name, _, trained = whole
    assert trained.iterations == 4
    assert np.isfinite(trained.weights).all()
    assert not np.array_equal(trained.weights, run_of(name).architecture.initial_weights(1))
    assert trained.score > 0.0


def test_the_number_of_workers_changes_nothing(whole, tmp_path):
    name, folder, _ = whole
    train(name, tmp_path, workers=1)
    assert_same_run(Checkpoint.load(folder), Checkpoint.load(tmp_path))


@pytest.mark.slow
def test_on_streams_processes_are_as_good_as_threads(whole, tmp_path):
    """Algorithms of one kind have the same agents, which alone know of processes: one of each kind is tried."""
    name, _, _ = whole
    train(name, tmp_path / "threads", True)
    train(name, tmp_path / "others", True, **({"backend": "processes"} if name in DAILY else {"workers": 1}))
    assert_same_run(Checkpoint.load(tmp_path / "threads"), Checkpoint.load(tmp_path / "others"))


class Killed(BaseException):
    pass


def test_resumed_is_uninterrupted_bit_for_bit(whole, tmp_path, monkeypatch):
    """The run is killed in its first iteration, after the first phase, and once more before the end."""
    name, folder, _ = whole
    for last in (0, 1, 3):
        with interrupted(monkeypatch, tmp_path, last, Killed):
            train(name, tmp_path, resume=last > 0)
    train(name, tmp_path, resume=True)
    assert_same_run(Checkpoint.load(folder), Checkpoint.load(tmp_path))


@pytest.mark.parametrize("name", ["reinforce", "ppo", "imitation", "actor_critic", "continuing"])
def test_episodes_without_a_choice_are_refused_at_first_and_later_teach_nothing(name, tmp_path, monkeypatch):
    algorithm = run_of(name).trainer(tmp_path, tensorboard=False).algorithm
    for agent in (DecimaAgent, NodeAgent):
        monkeypatch.setattr(agent, "useful_decisions", lambda self, records: [np.zeros(0, np.int64) for _ in records])
    algorithm.begin()
    with pytest.raises(TrainingError, match="episodes leaves a choice; expected jobs with several stages"):
        algorithm.iterate(Progress(0, 0, 0.0))
    before = algorithm.weights
    algorithm.iterate(Progress(1, 1, 0.25))
    assert np.array_equal(algorithm.weights, before)
    algorithm.close()


@pytest.mark.parametrize(
    ("name", "reward"), [("reinforce", 1e300), ("ppo", -np.inf), ("actor_critic", np.nan), ("dqn", 1e300)]
)
def test_rewards_beyond_float32_are_refused(name, reward, tmp_path, monkeypatch):
    algorithm = run_of(name).trainer(tmp_path, tensorboard=False).algorithm
    for agent in (DecimaAgent, NodeAgent):
        own = agent.episodes
        monkeypatch.setattr(
            agent,
            "episodes",
            lambda *args, own=own: [replace(each, rewards=each.rewards + reward) for each in own(*args)],
        )
    explore = PlacementAgent.explore

    def explored(self, *args):
        found, ended = explore(self, *args)
        return Transitions(found.arrays | {"reward": found.arrays["reward"] + reward}), ended

    monkeypatch.setattr(PlacementAgent, "explore", explored)
    algorithm.begin()
    if name != "dqn":
        algorithm.iterate(Progress(0, 0, 0.0))  # imitation, which asks for no rewards
    with pytest.raises(TrainingError, match=r"a reward is (-?inf|nan|1e\+300); expected numbers from -3.4e\+38 to"):
        algorithm.iterate(Progress(1, 1, 0.25))
    algorithm.close()


def test_states_stay_as_they_are_and_are_all_there_is(whole, tmp_path):
    name, _, _ = whole
    first, second = (run_of(name).trainer(tmp_path / part, tensorboard=False).algorithm for part in ("one", "two"))
    first.begin()
    first.iterate(Progress(0, 0, 0.0))
    state = first.state()
    kept = {key: values.copy() for key, values in state.arrays.items()}
    row = first.iterate(Progress(1, 1, 0.25))
    assert same_arrays(state.arrays, kept)
    second.restore(state)
    assert without_times([second.iterate(Progress(1, 1, 0.25))]) == without_times([row])
    assert np.array_equal(second.weights, first.weights)
    assert same_arrays(second.state().arrays, first.state().arrays)
    assert second.state().counters == first.state().counters
    for algorithm in (first, second):
        algorithm.close()


def test_rows_have_declared_columns_only(whole, tmp_path):
    name, _, trained = whole
    trainer = run_of(name).trainer(tmp_path, tensorboard=False)
    declared = set(trainer.columns)
    assert trainer.algorithm.headline in trainer.algorithm.columns
    assert {column for row in trained.curve for column in row} <= declared
    assert trainer.algorithm.headline in trained.curve[0]
    trainer.algorithm.close()


def test_weights_are_a_copy(whole, tmp_path):
    algorithm = run_of(whole[0]).trainer(tmp_path, tensorboard=False).algorithm
    algorithm.weights[:] = np.nan
    assert np.isfinite(algorithm.weights).all()
    algorithm.close()


@pytest.mark.parametrize("name", NAMES)
def test_every_field_is_documented_and_frozen(name):
    configuration = ALGORITHMS.find(name).configuration
    assert is_dataclass(configuration)
    assert configuration.__dataclass_params__.frozen
    for item in fields(configuration):
        assert item.metadata["doc"].endswith("."), item.name
    recipe = run_of(name).recipe
    assert Recipe.of_fields(**recipe.as_dict()) == recipe
    assert set(recipe.as_dict()) == set(Recipe.documentation(name))


def test_an_agent_without_values_is_refused():
    class Agent:
        learns = (PROBABILITIES,)

    values = [name for name in NAMES if ALGORITHMS.find(name).learns != PROBABILITIES]
    assert values
    for name in values:
        with pytest.raises(ConfigError, match=f"algorithm {name} needs an agent with {ALGORITHMS.find(name).learns}"):
            make_algorithm(name, ALGORITHMS.find(name).configuration(), Agent(), 0)
