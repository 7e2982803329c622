"""Networks of one's own: subclasses of the Keras model train, resume, are stored and compared; the page shows one."""

import dataclasses
import re
from pathlib import Path

import numpy as np
import pytest

import decima
from decima.core.errors import ConfigError, InvalidDecisionError, PolicyError
from decima.learning.store import read_policy
from decima.learning.trainer import Checkpoint
from decima.systems.spark.policy.architecture import Architecture
from decima.systems.spark.policy.scheduler import LearnedScheduler, record_episode
from decima.workload import synthetic_batch
from tests.unit.commands.calls import run
from tests.unit.learning.small import NETWORK, assert_same_run
from tests.unit.systems.spark.policy.policies import make_state

pytestmark = pytest.mark.tensorflow
PAGE = Path(__file__).parents[3] / "docs" / "another-network.md"
JOBS, EXECUTORS = "synthetic:n=2,sizes=xs", 4
OTHERS = '''
import keras
import tensorflow as tf
from decima.systems.spark.policy.network import DecimaNetwork


class Same(DecimaNetwork):
    """Decima's network."""


class Constant(Same):
    def stage_scores(self, batch, embeddings):
        return tf.zeros_like(super().stage_scores(batch, embeddings))


class Narrow(Same):
    def embed_stages(self, batch):
        return super().embed_stages(batch)[:, 1:]


class TwoColumns(Same):
    def stage_scores(self, batch, embeddings):
        return tf.stack(2 * [super().stage_scores(batch, embeddings)], axis=1)


class NoTensor(Same):
    def stage_scores(self, batch, embeddings):
        return None


class NotANumber(Same):
    def limit_scores(self, batch, embeddings):
        return super().limit_scores(batch, embeddings) * float("nan")


class NotTwoJobs(Same):
    def stage_scores(self, batch, embeddings):
        scores = super().stage_scores(batch, embeddings)
        with tf.control_dependencies([tf.debugging.assert_less(tf.shape(scores)[0], 4, message="too many")]):
            return tf.identity(scores)


class Fails(Same):
    def embed(self, batch):
        raise ValueError("two\\nlines")


class Calls(Same):
    def call(self, batch):
        return super().call(batch)


class Half(Same):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.scale = self.add_weight(shape=(1,), dtype="float16")


class NoNetwork:
    pass


def no_class(**changes):
    return 3
'''


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the file of the page and one of other networks."""
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    folder = tmp_path_factory.mktemp("networks")
    (folder / "attention.py").write_text(code, encoding="utf-8")
    (folder / "others.py").write_text(OTHERS, encoding="utf-8")
    return folder


@pytest.fixture
def here(folder, monkeypatch):
    monkeypatch.chdir(folder)
    return folder


def own(name, architecture=NETWORK, **changes):
    return architecture.replace(network=f"others.py:{name}", **changes)


def train(out, *options, network="attention.py:AttentionNetwork"):
    small = ("sequences=1", "rollouts=2", "validation_sequences=1", "teacher_iterations=1", "teacher_sequences=1")
    changes = [*(f"recipe.{each}" for each in small), "architecture.embedding=4", "architecture.hidden=4"]
    words = [word for change in changes for word in ("--set", change)]
    return run("train", JOBS, "--executors", EXECUTORS, "--architecture", network, "--out", out, *words, *options)


@pytest.fixture(scope="module")
def trained(folder):
    """Folder of a training of two iterations."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        answer = train("whole", "--iterations", 2)
    assert answer.exit_code == 0, answer.stderr
    return folder / "whole"


@pytest.mark.parametrize(
    "architecture",
    [
        NETWORK,
        NETWORK.replace(limit="output", graph_embedding=False),
        NETWORK.replace(delays=2),
        Architecture.classes(executor_classes=0, limit_grid=5, embedding=4),
    ],
    ids=["paper", "limit-output", "delays", "limit-grid"],
)
def test_a_subclass_that_changes_nothing_decides_alike(here, architecture):
    weights = architecture.initial_weights(3)
    np.testing.assert_array_equal(own("Same", architecture).initial_weights(3), weights)
    records = []
    for each in (architecture, own("Same", architecture)):
        state = make_state(synthetic_batch(3, 0), executors=8)
        records.append(record_episode(state, LearnedScheduler(each, weights, False, record=True), 0))
    for field in dataclasses.fields(records[0]):
        mine, yours = (getattr(record, field.name) for record in records)
        if field.name.startswith("log_prob"):
            np.testing.assert_allclose(mine, yours, atol=1e-4, err_msg=field.name)
        else:
            np.testing.assert_array_equal(mine, yours, err_msg=field.name)


def test_the_network_of_the_page_resumes_exactly(here, trained):
    assert train("parts", "--iterations", 1).exit_code == 0
    answer = run("train", "--resume", "--out", "parts", "--iterations", 2, "--workers", 1)
    assert answer.exit_code == 0, answer.stderr
    assert_same_run(*(Checkpoint.load(here / name) for name in ("whole", "parts")))


def test_the_network_of_the_page_is_stored_and_compared(here, trained):
    stored = read_policy(trained / "policy")
    assert stored.card["architecture"]["network"] == "attention.py:AttentionNetwork"
    assert stored.card["recipe"]["gradient"] == "tensorflow"
    first = stored.architecture.initial_weights(0)
    own_part = slice(stored.architecture.replace(network="").num_parameters, None)
    assert (stored.weights[own_part] != first[own_part]).any()  # the layer learns
    policy = decima.load_policy(trained / "policy")
    network = policy.network()
    assert type(network).__name__ == "AttentionNetwork"
    flat = np.concatenate([variable.numpy().ravel() for variable in network.trainable_variables])
    np.testing.assert_array_equal(flat, policy.weights)
    one, other = (decima.simulate(JOBS, policy, EXECUTORS, seed=1) for _ in range(2))
    np.testing.assert_array_equal(one.completion_ms, other.completion_ms)
    for text in ("whole", "whole/policy.weights.h5", "decima:whole/policy,greedy=true"):
        answer = run("compare", "fair", text, "--jobs", JOBS, "--executors", EXECUTORS, "--seeds", 1)
        assert answer.exit_code == 0, answer.stderr


def test_a_policy_without_its_file_is_refused_in_one_sentence(tmp_path, monkeypatch, trained):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(PolicyError, match=r"there is no file attention.py"):
        read_policy(trained / "policy")
    answer = run("compare", "fair", trained, "--jobs", JOBS, "--executors", EXECUTORS, "--seeds", 1)
    assert answer.exit_code == 2
    assert answer.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("NoNetwork", "expected a subclass of decima.systems.spark.policy.network.DecimaNetwork"),
        ("Unknown", "others.py has no 'Unknown'"),
        ("no_class", "is made as 3; expected Architecture"),
        ("Narrow", "gives float32 [3, 3] as embed_stages; expected float32 [3, 4]"),
        ("TwoColumns", "gives float32 [3, 2] as stage_scores; expected float32 [3]"),
        ("NoTensor", "gives None as stage_scores; expected float32 [3]"),
        ("NotANumber", "gives NaN or infinite numbers as limit_scores"),
        ("Fails", "fails on a small batch with ValueError: two lines"),
        ("Calls", "overrides call; expected embed, stage_scores or limit_scores"),
        ("Half", "of type float16; expected float32"),
    ],
)
def test_what_is_no_network_is_refused_in_one_sentence(here, name, words):
    answer = train("refused", "--iterations", 1, network=f"others.py:{name}")
    assert answer.exit_code == 2
    assert words in answer.stderr
    assert answer.stderr.count("\n") == 1


def test_a_compiled_gradient_is_refused(here):
    answer = train("refused", "--iterations", 1, "--set", "recipe.gradient=compiled", network="others.py:Same")
    assert answer.exit_code == 2
    assert "others.py:Same needs recipe.gradient=tensorflow" in answer.stderr


def test_what_fails_in_a_decision_is_one_sentence_and_an_interruption_stays_one(here, monkeypatch):
    from decima.systems.spark.policy import python_scores

    policy = LearnedScheduler(own("NotTwoJobs"), NETWORK.initial_weights(0))
    with pytest.raises(InvalidDecisionError, match=r"others.py:NotTwoJobs fails in a decision with .*too many"):
        decima.simulate(synthetic_batch(3, 0), policy, EXECUTORS)
    state = make_state(synthetic_batch(3, 0), executors=8)
    policy = LearnedScheduler(own("Same"), NETWORK.initial_weights(0), record=True)
    with monkeypatch.context() as patch:
        patch.setattr(python_scores, "_tensors", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            record_episode(state, policy, 0)
    assert len(record_episode(state, policy, 0))


def test_equal_scores_choose_the_first_candidate(here):
    """A network may ignore all weights; decisions are by its scores alone."""
    policy = LearnedScheduler(own("Constant"), NETWORK.initial_weights(0), record=True)
    record = record_episode(make_state(synthetic_batch(3, 0), executors=8), policy, 0)
    np.testing.assert_array_equal(record.choice, record.decision_candidates[:-1])


def test_an_option_that_leaves_the_network_out_is_refused(here):
    with pytest.raises(ConfigError, match=r"others.py:Narrow overrides the embedding, which graph_embedding=false"):
        own("Narrow", graph_embedding=False).initial_weights(0)
