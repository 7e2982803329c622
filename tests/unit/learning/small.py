"""A task and recipes so small that a training run takes seconds."""

from contextlib import contextmanager
from dataclasses import fields

import numpy as np
import pytest

from decima.learning.recipe import Recipe
from decima.learning.rollout import RolloutJob, Rollouts, rollout_seeds
from decima.learning.trainer import Checkpoint
from decima.systems.spark.policy.architecture import Architecture
from decima.systems.spark.policy.episodes import Episodes
from decima.systems.spark.policy.task import Task

TASK = Task("batch", source="embedded", jobs=4, executors=8)
STREAM = Task("stream", source="embedded", jobs=6, interarrival_s=(15.0, 30.0), executors=8)
NETWORK = Architecture.paper(embedding=4, hidden=(4,), score_hidden=(4,), max_executors=8)


def quick_recipe(**changes):
    """Two sequences, three rollouts each, four iterations, the first of them imitation."""
    values = {
        "sequences": 2,
        "rollouts": 3,
        "iterations": 4,
        "teacher_iterations": 1,
        "teacher_sequences": 4,
        "validate_every": 2,
        "validation_sequences": 2,
        "checkpoint_every": 2,
    }
    return Recipe.named("fast", **(values | changes))


def recorded(task, architecture, seed, count, teacher=None):
    """Records of some episodes of one sequence by initial weights of a seed."""
    backend = Rollouts(Episodes(task), "threads", 1)
    sequence = task.training_sequences(0, 0, 1)[0]
    jobs = [RolloutJob(sequence, each, teacher) for each in rollout_seeds(0, 0, count)]
    records = backend.collect(architecture, architecture.initial_weights(seed), jobs)
    backend.close()
    return records


def assert_same_records(one, other):
    """Require of two lists of records that they are equal, bit for bit."""
    for mine, yours in zip(one, other, strict=True):
        for field in fields(mine):
            np.testing.assert_array_equal(getattr(mine, field.name), getattr(yours, field.name), err_msg=field.name)


def same_arrays(one, other):
    """Whether two dictionaries hold the same arrays, bit for bit."""
    return one.keys() == other.keys() and all(
        one[name].dtype == other[name].dtype and np.array_equal(one[name], other[name], equal_nan=True) for name in one
    )


def without_times(rows):
    """Rows of a curve without what depends on the clock."""
    return [{name: value for name, value in row.items() if name not in ("wall_s", "cpu_s")} for row in rows]


def assert_same_run(one, other):
    """Require of two checkpoints that they differ in times only."""
    assert same_arrays(one.arrays, other.arrays)
    assert without_times(one.curve) == without_times(other.curve)
    counters = [{k: v for k, v in found.counters.items() if not k.endswith("_s")} for found in (one, other)]
    assert counters[0] == counters[1]


@contextmanager
def interrupted(monkeypatch, folder, last, error=KeyboardInterrupt):
    """Interrupt the training in the block as soon as it saves an iteration after the last one."""
    save = Checkpoint.save

    def save_some(self, path):
        if self.counters["iteration"] > last:
            raise error
        save(self, path)

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "save", save_some)
        with pytest.raises(error):
            yield
    assert Checkpoint.load(folder).counters["iteration"] == last


def assert_exact(run, folder, monkeypatch):
    """Require of a training of four iterations that the number of workers and an interruption change nothing."""

    def train(name, workers, resume=False):
        run.trainer(folder / name, workers=workers, tensorboard=False).train(resume)

    train("whole", 2)
    with interrupted(monkeypatch, folder / "parts", 2):
        train("parts", 1)
    train("parts", 1, resume=True)
    assert_same_run(*(Checkpoint.load(folder / name) for name in ("whole", "parts")))
