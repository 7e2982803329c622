import csv
import json
from dataclasses import replace

import numpy as np
import pytest

from decima.core.errors import CheckpointError, ConfigError, TrainingError
from decima.core.files import sole_use
from decima.learning import trainer as trainers
from decima.learning.algorithms.policy_gradient import PolicyGradient
from decima.learning.configuration import Budget
from decima.learning.gradient import Learner
from decima.learning.logs import CURVE_NAME, EVENTS_NAME
from decima.learning.recipe import Recipe
from decima.learning.trainer import COMMAND, FILE_NAME, Checkpoint, Score, Trainer, ratio
from decima.systems.cloud.policy.architecture import PlacementArchitecture
from decima.systems.cloud.policy.run import PlacementRun
from decima.systems.cloud.policy.task import PlacementTask
from decima.systems.heterogeneous.policy.architecture import NodeArchitecture
from decima.systems.heterogeneous.policy.run import NodeRun
from decima.systems.heterogeneous.policy.task import NodeTask
from decima.systems.spark.policy.run import DecimaAgent, DecimaRun
from decima.systems.spark.policy.task import Task
from tests.unit.learning.small import NETWORK, TASK, assert_same_run, quick_recipe, without_times
from tests.unit.learning.toys import Climber, Height

pytestmark = pytest.mark.tensorflow


def make(folder, recipe=None, task=TASK, seed=1, **options):
    options = {"workers": 2, "tensorboard": False} | options
    return DecimaRun(task, recipe or quick_recipe(), NETWORK, seed).trainer(folder, **options)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Folder and outcome of an uninterrupted run."""
    folder = tmp_path_factory.mktemp("whole")
    return folder, make(folder).train()


def test_a_run_leaves_curve_checkpoint_and_best_weights(whole):
    folder, trained = whole
    with open(folder / CURVE_NAME, encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["phase"] for row in rows] == ["imitation", "ppo", "ppo", "ppo"]
    assert [row["iteration"] for row in rows] == ["0", "1", "2", "3"]
    assert list(rows[0])[:4] == ["iteration", "wall_s", "cpu_s", "phase"]
    assert {"cross_entropy", "teacher_share", "kl", "val_greedy", "val_ratio_capped_srw"} < set(rows[0])
    validated = [row for row in rows if row["val_greedy"]]
    assert [row["iteration"] for row in validated] == ["0", "1", "3"]
    scores = [float(row[name]) for row in validated for name in ("val_greedy", "val_sampled")]
    assert trained.score == min(scores)
    assert trained.mode == ("greedy" if min(scores) in scores[::2] else "sampled")
    assert list(trained.references) == ["weighted_fair", "capped_srw"]
    assert np.isfinite(trained.weights).all()
    assert not np.array_equal(trained.weights, NETWORK.initial_weights(1))
    assert {path.name for path in folder.iterdir()} == {CURVE_NAME, FILE_NAME}


class Killed(BaseException):
    pass


@pytest.mark.parametrize("moment", ["between checkpoint and curve", "inside an iteration"])
def test_resumed_is_uninterrupted_bit_for_bit(whole, tmp_path, monkeypatch, moment):
    """Killed before a checkpoint: `test_every_algorithm.py`."""
    with monkeypatch.context() as patch:
        trainer = make(tmp_path)
        if moment == "between checkpoint and curve":
            add = trainers.TrainingLog.add

            def add_two(self, row, *others):
                if row["iteration"] == 2:
                    raise Killed
                add(self, row, *others)

            patch.setattr(trainers.TrainingLog, "add", add_two)
        else:
            apply, steps = Learner.apply, []

            def apply_some(self, *arguments):
                steps.append(1)
                if len(steps) == 20:  # in the middle of the updates of iteration 2
                    raise Killed
                return apply(self, *arguments)

            patch.setattr(Learner, "apply", apply_some)
        with pytest.raises(Killed):
            trainer.train()
    stored = Checkpoint.load(tmp_path)
    assert stored.counters["iteration"] < 4
    make(tmp_path).train(resume=True)
    assert_same_run(Checkpoint.load(whole[0]), Checkpoint.load(tmp_path))
    with open(tmp_path / CURVE_NAME, encoding="utf-8") as file:
        resumed = without_times(csv.DictReader(file))
    with open(whole[0] / CURVE_NAME, encoding="utf-8") as file:
        assert resumed == without_times(csv.DictReader(file))


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (KeyboardInterrupt(), None),
        (TrainingError("a worker died"), "iteration 3: a worker died; the last good checkpoint is"),
    ],
    ids=["Ctrl-C", "dead worker"],
)
def test_the_last_whole_iteration_is_saved(whole, tmp_path, monkeypatch, error, message):
    collect = DecimaAgent.collect

    def fails(self, iteration, *others):
        if iteration == 3:
            raise error
        return collect(self, iteration, *others)

    with monkeypatch.context() as patch:
        patch.setattr(DecimaAgent, "collect", fails)
        with pytest.raises(type(error), match=message):
            make(tmp_path, quick_recipe(checkpoint_every=100)).train()
    assert Checkpoint.load(tmp_path).counters["iteration"] == 3
    trained = make(tmp_path, quick_recipe(checkpoint_every=100)).train(resume=True)
    assert np.array_equal(trained.weights, whole[1].weights)


def test_a_run_is_not_resumed_on_other_data(whole, monkeypatch):
    monkeypatch.setattr(Task, "data_version", "embedded sha256:0123")
    with pytest.raises(
        CheckpointError, match=r"its data is another one \('embedded sha256:\w+' there, 'embedded sha256:0123"
    ):
        make(whole[0]).train(resume=True)


@pytest.mark.parametrize(
    "run",
    [
        PlacementRun(PlacementTask(("generated:n=4",)), Recipe(), PlacementArchitecture(), 0),
        NodeRun(NodeTask(source="embedded"), Recipe(), NodeArchitecture(), 0),
    ],
    ids=["cloud", "heterogeneous"],
)
def test_the_version_of_the_data_belongs_to_every_identity(run, monkeypatch):
    before = run.identity()
    assert before["data"] == run.task.data_version
    monkeypatch.setattr(type(run.task), "data_version", "other jobs")
    assert run.identity() == before | {"data": "other jobs"}


def test_a_checkpoint_with_a_field_of_an_earlier_version_is_resumed_if_it_has_the_only_value_left(whole, tmp_path):
    stored = Checkpoint.load(whole[0])
    stored.about["architecture"] |= {"residual": "none", "residual_temperature": 1.0}
    stored.about["recipe"] |= {"teacher_rollouts": 1}
    stored.save(tmp_path)
    assert np.array_equal(make(tmp_path).train(resume=True).weights, whole[1].weights)
    stored.about["architecture"]["residual"] = "capped_srw"
    stored.save(tmp_path)
    with pytest.raises(CheckpointError, match=r"its architecture is another one .residual is 'capped_srw' there"):
        make(tmp_path).train(resume=True)


def test_a_folder_with_a_run_is_not_overwritten(whole, tmp_path):
    before = (whole[0] / FILE_NAME).read_bytes()
    with pytest.raises(CheckpointError, match="already holds a training run: resume it, or choose another folder"):
        make(whole[0]).train()
    assert (whole[0] / FILE_NAME).read_bytes() == before
    with pytest.raises(CheckpointError, match="cannot resume: there is no"):
        make(tmp_path).train(resume=True)
    with pytest.raises(CheckpointError, match=r"its recipe is another one .lr_start is [0-9.]+ there, 0.5 here"):
        make(whole[0], quick_recipe(lr_start=0.5)).train(resume=True)
    with pytest.raises(CheckpointError, match=r"its seed is another one .1 there, 2 here"):
        make(whole[0], seed=2).train(resume=True)
    with pytest.raises(CheckpointError, match=r"its task is another one .executors is 8 there, 7 here"):
        make(whole[0], task=Task("batch", source="embedded", jobs=4, executors=7)).train(resume=True)


@pytest.mark.parametrize(
    "change",
    [
        lambda stored: stored.arrays.update({"algorithm.weights": stored.arrays["algorithm.weights"][:-1]}),
        lambda stored: stored.arrays.pop("algorithm.adam_mean"),
        lambda stored: stored.arrays.pop("best"),
        lambda stored: stored.counters.pop("algorithm"),
        lambda stored: stored.counters.pop("best_score"),
        lambda stored: stored.counters.update(iteration=-5),
        lambda stored: stored.curve.pop(),
    ],
    ids=["weights", "adam", "best", "algorithm", "counter", "iteration", "curve"],
)
def test_a_checkpoint_with_other_parts_is_not_resumed(whole, tmp_path, change):
    stored = Checkpoint.load(whole[0])
    change(stored)
    stored.save(tmp_path)
    with pytest.raises(CheckpointError, match=f"cannot resume {tmp_path}: (its|the) checkpoint"):
        make(tmp_path).train(resume=True)


def test_two_runs_do_not_share_a_folder(tmp_path):
    with sole_use(tmp_path), pytest.raises(CheckpointError, match=f"another process trains in {tmp_path}"):
        climb(tmp_path).train()
    assert list(tmp_path.iterdir()) == []
    climb(tmp_path, iterations=2).train()
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match=r"cannot write .*/file/run: Not a directory"):
        climb(tmp_path / "file" / "run").train()


def test_a_gradient_that_is_not_finite_ends_the_run(tmp_path, monkeypatch):
    advantages = PolicyGradient.advantages

    def spoil(self, *arguments):
        result = advantages(self, *arguments)
        result.values[0][:] = np.nan
        return result

    monkeypatch.setattr(PolicyGradient, "advantages", spoil)
    with pytest.raises(TrainingError, match=r"iteration 1: the \w+ of \d+ decisions is not finite; the last good"):
        make(tmp_path, quick_recipe(checkpoint_every=1)).train()
    stored = Checkpoint.load(tmp_path)
    assert stored.counters["iteration"] == 1
    assert np.isfinite(stored.arrays["algorithm.weights"]).all()


def test_tensorboard_events_are_written(tmp_path):
    recipe = quick_recipe(iterations=1, teacher_iterations=0, sequences=1, rollouts=2)
    make(tmp_path, recipe, tensorboard=True).train()
    assert any((tmp_path / EVENTS_NAME).iterdir())


def test_wall_time_ends_a_run(tmp_path):
    recipe = quick_recipe(iterations=None, teacher_iterations=0, wall_seconds=0.01)
    trained = make(tmp_path, recipe).train()
    assert trained.iterations == 1
    assert trained.curve[-1]["val_greedy"] > 0.0


def test_arguments_are_checked(tmp_path):
    with pytest.raises(ConfigError, match="nothing ends the training"):
        make(tmp_path, quick_recipe(iterations=None))
    with pytest.raises(ConfigError, match="the task has 50 executors, the architecture allows 8"):
        make(tmp_path, task=Task(source="embedded"))
    with pytest.raises(ConfigError, match="backend must be"):
        make(tmp_path, backend="cloud")


def climb(folder, iterations=4, **changes):
    budget = Budget(iterations=iterations, **({"validate_every": 1, "checkpoint_every": 1} | changes))
    return Trainer(Climber(), Height(), budget, folder, identity={"who": "climber"}, tensorboard=False)


def test_an_algorithm_without_agent_and_a_score_of_which_more_is_better(tmp_path):
    trainer = climb(tmp_path)
    trained = trainer.train()
    assert (trained.score, trained.mode, trained.iteration, trained.iterations) == (3.0, "standing", 2, 4)
    assert trained.weights == np.float32(3.0)
    assert trained.references == {"sea": 0.0}
    assert [row["height"] for row in trained.curve] == [1.0, 3.0, 2.0, 0.0]
    assert trainer.algorithm.closed
    assert (tmp_path / CURVE_NAME).read_text().startswith("iteration,wall_s,cpu_s,step,height\n")


def test_a_large_memory_is_neither_copied_nor_kept_from_the_checkpoint(tmp_path):
    trainer = climb(tmp_path)
    memory = np.zeros(1_000_000)
    state = trainer.algorithm.state
    trainer.algorithm.state = lambda: replace(state(), arrays=state().arrays | {"replay": memory})
    assert trainer._checkpoint().arrays["algorithm.replay"] is memory
    trainer.train()
    assert Checkpoint.load(tmp_path).arrays["algorithm.replay"].shape == memory.shape


def test_two_columns_of_one_name_are_refused(tmp_path):
    algorithm = Climber()
    algorithm.columns = ("height",)
    with pytest.raises(ConfigError, match="two parts of the training have a column 'height'"):
        Trainer(algorithm, Height(), Budget(iterations=1), tmp_path, identity={})


def test_a_column_that_was_not_declared_is_refused(tmp_path):
    trainer = climb(tmp_path)
    trainer.columns = ("iteration", "wall_s", "cpu_s", "height")
    with pytest.raises(TrainingError, match="iteration 0: the algorithm gave a value for 'step'"):
        trainer.train()


@pytest.mark.parametrize("score", [float("nan"), float("inf"), -float("inf")])
def test_a_score_that_is_not_finite_ends_the_run_at_the_first_validation(tmp_path, monkeypatch, score):
    trainer = climb(tmp_path, validate_every=2)
    monkeypatch.setattr(Height, "measure", lambda self, weights: Score(score, "standing", {}))
    with pytest.raises(TrainingError, match=f"iteration 2: the score at validation is {score}; expected a finite"):
        trainer.train()
    stored = Checkpoint.load(tmp_path)
    assert stored.counters["iteration"] == 1
    assert stored.arrays["algorithm.value"] == np.float32(1.0)  # of the last good iteration


def test_the_call_is_stored_with_the_first_checkpoint(tmp_path, monkeypatch):
    budget = Budget(iterations=1)
    trainer = Trainer(Climber(), Height(), budget, tmp_path, identity={}, tensorboard=False, command=["--seed", "3"])

    def killed(self):
        raise Killed

    monkeypatch.setattr(Climber, "begin", killed)
    with pytest.raises(Killed):
        trainer.train()
    assert json.loads((tmp_path / COMMAND).read_text()) == ["--seed", "3"]
    assert Checkpoint.load(tmp_path).counters["iteration"] == 0


def test_a_ratio_to_nothing_is_none():
    assert ratio(3.0, 2.0) == 1.5
    assert np.isnan(ratio(0.0, 0.0))


class Flat(Height):
    """A validation that finds all weights equal."""

    lower_is_better = True

    def measure(self, weights):
        return Score(1.0, "lying", {"height": 1.0})


def test_of_equal_weights_the_last_are_kept(tmp_path):
    budget = Budget(iterations=3, validate_every=1)
    trained = Trainer(Climber(), Flat(), budget, tmp_path, identity={}, tensorboard=False).train()
    assert trained.iteration == 3
    assert trained.weights.tolist() == [2.0]
