"""Continuing learning on streams and batches: windows, advantages at equal times, the critic per job."""

from dataclasses import replace

import numpy as np
import pytest

from decima.core.errors import ConfigError, TrainingError
from decima.learning.agent import Samples, StretchJob
from decima.learning.configuration import Progress
from decima.learning.critic import JobCritic, JobPerceptron, Runs
from decima.learning.recipe import Recipe
from decima.systems.spark.policy.episodes import JOB_INPUTS
from decima.systems.spark.policy.run import DecimaRun
from decima.systems.spark.settings import Settings
from tests.unit.learning.small import NETWORK, STREAM, TASK

SMALL = {
    "streams": 2, "copies": 2, "window_s": 20.0, "step_s": 5.0, "warm_up_s": 40.0, "critic_memory": 1, "iterations": 3,
    "validation_sequences": 1, "load_start": 0.5, "load_iterations": 2,
}  # fmt: skip


def run_of(task=STREAM, network=NETWORK, **changes):
    return DecimaRun(task, Recipe.named("continuing", "stream", **(SMALL | changes)), network, 1)


@pytest.fixture
def algorithm(tmp_path):
    phases = run_of().trainer(tmp_path, tensorboard=False, workers=1).algorithm
    yield phases.phases[-1].algorithm
    phases.close()


# ---- stretches of streams --------------------------------------------------------------------------------------------


def test_a_stream_goes_on_where_it_was_stopped(algorithm):
    agent = algorithm.agent
    for number in range(3):
        sequence = agent.stream(number, 1.0)
        plain, looked_at = agent.stretches(
            [StretchJob(sequence, 5, 60.0, keep=True), StretchJob(sequence, 5, 60.0, step_s=10.0, keep=True)]
        )
        tails = agent.stretches([StretchJob(sequence, seed, begin=plain.pause, step_s=10.0) for seed in (6, 6, 7)])
        assert looked_at.pause.jobs == plain.pause.jobs == np.diff(tails[0].samples.first)[0]
        last = looked_at.samples.first[-2:]
        done = np.isfinite(plain.finish_s)
        for tail in tails:
            np.testing.assert_array_equal(
                tail.samples.inputs[: plain.pause.jobs], looked_at.samples.inputs[slice(*last)]
            )
            assert tail.samples.area_s[0] == pytest.approx(looked_at.samples.area_s[-1])
            np.testing.assert_array_equal(tail.finish_s[done], plain.finish_s[done])
            assert (tail.finish_s[~done] >= 60.0).all()
        np.testing.assert_array_equal(tails[0].finish_s, tails[1].finish_s)
        assert (tails[0].finish_s != tails[2].finish_s).any()


def test_what_a_critic_sees_of_jobs(algorithm):
    (found,) = algorithm.agent.stretches([StretchJob(algorithm.agent.stream(3, 1.0), 1, step_s=10.0)])
    samples = found.samples
    assert samples.inputs.shape == (samples.first[-1], len(JOB_INPUTS))
    assert np.isfinite(samples.inputs).all()
    columns = dict(zip(JOB_INPUTS, samples.inputs.T, strict=True))
    work = 30.0 * columns["work"]
    np.testing.assert_allclose(columns["some_work"], work / (work + 1.2), rtol=1e-5)
    np.testing.assert_allclose(columns["root_work"], np.sqrt(work) / 4.25, rtol=1e-5)
    for first, end in zip(samples.first[:-1], samples.first[1:], strict=True):
        mine = work[first:end]
        np.testing.assert_allclose(80.0 * columns["all_work"][first:end], mine.sum(), rtol=1e-4)
        ahead = np.minimum(mine[:, None], mine).sum(axis=1) - 0.5 * mine
        np.testing.assert_allclose(50.0 * columns["ahead"][first:end], ahead, rtol=1e-4)
    assert 0.0 <= columns["held"].min() <= columns["held"].max() < 1.0
    assert columns["executors"].max() <= 2.5 + 1e-6  # all executors over 0.4 of them


@pytest.mark.parametrize("begin_s", [None, 40.0])
def test_what_a_critic_sees_changes_no_schedule(algorithm, begin_s):
    agent, widths = algorithm.agent, algorithm.agent.job_widths
    sequence = agent.stream(3, 1.0)
    begin = None
    if begin_s is not None:
        begin = agent.stretches([StretchJob(sequence, 1, begin_s, keep=True)])[0].pause
    jobs = [StretchJob(sequence, 2, begin=begin, step_s=10.0, width=each, record=True) for each in widths.values()]
    runs = agent.stretches(jobs)
    whole = runs[-1]
    assert [run.samples.inputs.shape[1] for run in runs] == list(widths.values()) == [9, 12, 12 + NETWORK.embedding]
    for run in runs:
        width = run.samples.inputs.shape[1]
        np.testing.assert_array_equal(run.samples.inputs, whole.samples.inputs[:, :width])
        np.testing.assert_array_equal(run.finish_s, whole.finish_s)
        for name in ("time_ms", "choice", "log_prob_stage", "log_prob_limit"):
            np.testing.assert_array_equal(getattr(run.record, name), getattr(runs[0].record, name), err_msg=name)
    embeddings = whole.samples.inputs[:, 12:]
    assert np.abs(embeddings).max() < 1.0
    assert len(np.unique(embeddings, axis=0)) > 10


def test_a_crowded_stream_is_no_longer_looked_at(algorithm):
    agent = algorithm.agent
    jobs = [StretchJob(agent.stream(0, 50.0), 1, step_s=1.0, crowd=crowd) for crowd in (2, 100)]
    few, all_ = agent.stretches(jobs)
    assert np.diff(few.samples.first).max() <= 2 < np.diff(all_.samples.first).max()
    np.testing.assert_array_equal(few.finish_s, all_.finish_s)


# ---- the critic ------------------------------------------------------------------------------------------------------


def test_the_gradient_of_a_perceptron():
    net, rng = JobPerceptron(5, [0], 1.0), np.random.default_rng(1)
    inputs, slopes = rng.normal(size=(7, 5)).astype(np.float32), rng.normal(size=7)
    found, weights = net.gradient(inputs, slopes), net.weights
    for index in rng.choice(len(weights), 25, replace=False):
        sides = []
        for sign in (1.0, -1.0):
            moved = weights.copy()
            moved[index] += sign * 1e-2
            net.restore(net.state() | {"weights": moved})
            sides.append(float(slopes @ net.values(inputs)))
        assert found[index] == pytest.approx((sides[0] - sides[1]) / 2e-2, abs=2e-3)
    nobody = inputs.copy()
    nobody[:, 0] = 0.0
    assert not net.values(nobody).any()


def made_samples(counts, rng):
    first = np.concatenate([[0], np.cumsum(counts)])
    inputs = rng.uniform(0.1, 1.0, (first[-1], 3)).astype(np.float32)
    area_s = np.concatenate([[0.0], np.cumsum(10.0 * np.array(counts[:-1]))])
    return Samples(first, np.arange(first[-1], dtype=np.int32), inputs, area_s)


def test_values_and_surprises_by_hand():
    critic, samples = JobCritic(3, 0, 100.0, 10.0), made_samples([2, 0, 1], np.random.default_rng(0))
    of_jobs = critic.remaining.values(samples.inputs)
    values = critic.values(samples)
    np.testing.assert_allclose(values, [-(of_jobs[0] + of_jobs[1]), 0.0, -of_jobs[2]])
    keep = np.exp(-0.1)
    cost = 2.0 * (1.0 - keep) / 0.1  # two jobs for 10 s, in units of 10 job-seconds
    np.testing.assert_allclose(
        critic.surprises(samples, 10.0), [-cost + keep * values[1] - values[0], keep * values[2] - values[1]]
    )


def test_the_critic_learns_remaining_times_and_says_so():
    rng = np.random.default_rng(0)
    samples = tuple(made_samples([1, 2, 3, 2, 1] * 8, rng) for _ in range(2))
    targets = tuple(2.0 * each.inputs[:, 0] * each.inputs[:, 1] for each in samples)
    critic, runs = JobCritic(3, 0, 100.0, 10.0), Runs(samples, targets)
    before = critic.explained(runs)
    for _ in range(150):
        critic.fit([runs], 3e-3, 1, 10.0, 50.0, rng)
    assert before < 0.5 < 0.95 < critic.explained(runs)
    assert Runs.from_arrays(runs.arrays()).arrays().keys() == runs.arrays().keys()
    with pytest.raises(TrainingError, match="diverged; try a smaller critic_lr"):
        critic.fit([Runs(samples, tuple(each * np.nan for each in targets))], 1e-3, 1, 10.0, 50.0, rng)


def test_advantages_at_equal_times_sum_to_nothing_over_copies(algorithm, monkeypatch):
    found = []
    own = type(algorithm)._advantages
    monkeypatch.setattr(
        type(algorithm), "_advantages", lambda self, windows: found.append(own(self, windows)) or found[-1]
    )
    algorithm.begin()
    rows = [algorithm.iterate(Progress(number, number, number / 3)) for number in range(3)]
    for values in found:
        assert values.shape == (4, 4)
        np.testing.assert_allclose(values.reshape(2, 2, 4).sum(axis=1), 0.0, atol=1e-9)
        assert np.abs(values).max() > 0.0
    assert [row["pace"] for row in rows] == pytest.approx([0.5, 0.5**0.5, 1.0])
    assert all(stream.pause.time_s <= 100.0 for stream in algorithm.streams)


def test_batches_follow_one_another(tmp_path):
    changes = {"warm_up_s": 0.0, "window_s": 60.0, "step_s": 4.0, "iterations": 8}
    phases = run_of(TASK, **changes).trainer(tmp_path, tensorboard=False, workers=1).algorithm
    algorithm = phases.phases[-1].algorithm
    seen = []
    run = algorithm._run
    algorithm._run = lambda *now: seen.append([each.number for each in algorithm.streams]) or run(*now)
    algorithm.begin()
    rows = [algorithm.iterate(Progress(number, number, number / 8)) for number in range(8)]
    phases.close()
    assert seen[0] == [0, 1]
    assert min(seen[-1]) > 1  # both batches were done, and others came
    assert len({tuple(each) for each in seen}) < 8  # but none is given up before
    assert all(0.0 < row["jobs_in_system"] <= 4.0 for row in rows)
    for runs in algorithm.memory:  # complete runs are looked at until no job is left
        for samples, targets in zip(runs.samples, runs.targets, strict=True):
            assert np.diff(samples.first)[0] == 4
            assert (targets > 0.0).all()
    assert min(np.diff(each.first)[-1] for each in algorithm.memory[-1].samples) == 0


@pytest.mark.parametrize(
    ("task", "changes"),
    [
        (STREAM, {"warm_up_s": 4000.0}),  # longer than a stream
        (TASK, {"warm_up_s": 0.0, "crowd": 1}),  # fewer than a batch has
    ],
)
def test_short_streams_and_large_batches_have_windows(task, changes, tmp_path):
    phases = run_of(task, **changes).trainer(tmp_path, tensorboard=False, workers=1).algorithm
    algorithm = phases.phases[-1].algorithm
    algorithm.begin()
    rows = [algorithm.iterate(Progress(number, number, number / 2)) for number in range(2)]
    phases.close()
    assert all(row["decisions"] and row["jobs_in_system"] > 0.0 for row in rows)
    assert all(len(samples.first) > 2 for runs in algorithm.memory for samples in runs.samples)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"window_s": 60.0}, "window_s is 60, and the last job of a stream arrives after about 90 s"),
        ({"network": replace(NETWORK, graph_embedding=False), "critic_sees": "embedding"}, "needs a network with"),
        ({"copies": 1}, "copies must be a whole number of at least 2"),
        ({"step_s": 30.0}, r"step_s must be at most window_s \(20\)"),
        ({"teacher": "fair", "teacher_iterations": 1}, "continuing has no imitation; set teacher=none"),
        ({"task": replace(STREAM, objective="makespan")}, "needs an agent with streams whose jobs' times are summed"),
        (
            {"task": type(STREAM).on(Settings(executors=8, loss_rate=1.0), kind="stream", source="embedded", jobs=6)},
            "needs an agent with streams whose jobs' times are summed",
        ),
    ],
)
def test_what_cannot_go_on_is_refused(changes, sentence, tmp_path):
    with pytest.raises(ConfigError, match=sentence):
        run_of(**changes).trainer(tmp_path, tensorboard=False)
