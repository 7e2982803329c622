"""Training with TensorFlow's gradients: the same run within rounding; and compiled training without TensorFlow."""

import subprocess
import sys

import numpy as np
import pytest

from decima.learning.cards import card
from decima.learning.recipe import Recipe
from decima.systems.spark.policy.batch import GraphBatch
from decima.systems.spark.policy.run import DecimaRun
from decima.systems.spark.policy.scheduler import LearnedScheduler, load_policy, record_episode
from decima.workload import synthetic_batch
from tests.unit.learning.small import NETWORK, TASK, assert_exact, quick_recipe
from tests.unit.systems.spark.policy.policies import make_state

pytestmark = pytest.mark.tensorflow


def trained(folder, gradient, iterations):
    # One update per pass and full batches: what differs in the last digits is not multiplied by many steps.
    recipe = quick_recipe(gradient=gradient, iterations=iterations, validate_every=1, minibatches=1, epochs=1)
    run = DecimaRun(TASK, recipe, NETWORK, 1)
    return run, run.trainer(folder / gradient, workers=1, tensorboard=False).train()


@pytest.mark.parametrize("iterations", [3, pytest.param(20, marks=pytest.mark.slow)])
def test_both_gradients_give_the_same_curve(iterations, tmp_path):
    (ours_run, ours), (theirs_run, theirs) = (
        trained(tmp_path, name, iterations) for name in ("compiled", "tensorflow")
    )
    assert len(ours.curve) == iterations
    for mine, yours in zip(ours.curve, theirs.curve, strict=True):
        assert mine.keys() == yours.keys()
        for name in mine.keys() - {"wall_s", "cpu_s"}:
            alike = pytest.approx(yours[name], rel=1e-3, abs=1e-4, nan_ok=True) if name != "phase" else yours[name]
            assert mine[name] == alike, name
    np.testing.assert_allclose(ours.weights, theirs.weights, atol=1e-3)
    assert not np.array_equal(ours.weights, theirs.weights)
    versions = [card(run, done)["versions"] for run, done in ((ours_run, ours), (theirs_run, theirs))]
    assert ["tensorflow" in each for each in versions] == [False, True]


def test_resumed_with_tensorflow_is_uninterrupted_bit_for_bit(tmp_path, monkeypatch):
    assert_exact(DecimaRun(TASK, quick_recipe(gradient="tensorflow"), NETWORK, 1), tmp_path, monkeypatch)


def test_runs_from_before_there_was_a_choice_resume():
    assert "gradient" not in Recipe().without_limits()
    assert Recipe().replace(gradient="tensorflow").without_limits()["gradient"] == "tensorflow"


@pytest.mark.parametrize("name", ["embedded-batch", "released-batch"])
def test_the_network_of_a_stored_policy_agrees_with_its_compiled_form(name):
    policy = load_policy(name)
    state = make_state(synthetic_batch(6, 0), executors=12)
    record = record_episode(state, LearnedScheduler(policy.architecture, policy.weights, False, record=True), 0)
    network = policy.network()
    out = network(GraphBatch([record], state.child_offset, state.child).tensors())
    np.testing.assert_allclose(out["log_prob_stage"], record.log_prob_stage, atol=1e-4)
    chosen = record.classes > 1
    np.testing.assert_allclose(out["log_prob_limit"].numpy()[chosen], record.log_prob_limit[chosen], atol=1e-4)
    assert network.count_params() == policy.architecture.num_parameters
    network.set_flat(np.zeros_like(policy.weights))
    assert policy.weights.any()


def test_compiled_training_never_imports_tensorflow(tmp_path):
    code = f"""
import sys
import decima
small = {{"teacher_iterations": 1, "validation_sequences": 2, "sequences": 1, "rollouts": 2, "teacher_sequences": 2}}
jobs, out = "synthetic:n=3,sizes=xs", {str(tmp_path)!r}
result = decima.train(jobs, executors=4, iterations=2, set={{"recipe": small}}, out=out)
assert result.card["versions"].keys() == {{"decima-sched"}}
print(*({{"tensorflow", "keras", "spektral"}} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "\n"
    assert any((tmp_path / "events").iterdir())  # TensorBoard's events need none
