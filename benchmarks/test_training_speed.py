"""Training iterations per second and peak memory, each run in a process of its own."""

import json
import statistics
import subprocess
import sys
import time

import numpy as np
import pytest

from decima.learning.automatic import KerasLearner
from decima.learning.loss import Loss
from decima.learning.rollout import RolloutJob, Rollouts, rollout_seeds
from decima.systems.spark.policy.architecture import Architecture
from decima.systems.spark.policy.batch import GraphBatch
from decima.systems.spark.policy.episodes import Episodes
from decima.systems.spark.policy.network import DecimaNetwork
from decima.systems.spark.policy.run import DecimaLearner, useful_decisions
from decima.systems.spark.policy.task import Task, children_of
from decima.workload import tpch_available

RUN = """
import json, os, resource, sys
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
from decima.systems.spark.policy.architecture import Architecture
from decima.learning.recipe import Recipe
from decima.systems.spark.policy.run import DecimaRun
from decima.systems.spark.policy.task import Task
kind, source, iterations, folder = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
limits = {"iterations": iterations, "validate_every": 1000, "validation_sequences": 1, "checkpoint_every": 1000}
recipe = Recipe.named("paper", episode_start_s=None, episode_end_s=None, **limits)
run = DecimaRun(Task(kind, source=source), recipe, Architecture.paper(), 0)
curve = run.trainer(folder, tensorboard=False).train().curve
first, last = curve[0], curve[-2]  # the first one traces, the last one validates
done = len(curve) - 2
print(json.dumps({
    "iterations_per_s": done / (last["wall_s"] - first["wall_s"]),
    "cpu_s_per_iteration": (last["cpu_s"] - first["cpu_s"]) / done,
    "decisions_per_iteration": sum(row["decisions"] for row in curve[1:-1]) / done,
    "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
}))
"""


@pytest.mark.parametrize(("kind", "iterations"), [("batch", 22), ("stream", 5)])
def test_iterations_of_algorithm_1(benchmark, tmp_path, kind, iterations):
    """16 rollouts of one sequence, one gradient.

    The targets on four idle cores are 1.5 batches of 20 jobs per second. For streams of 200 jobs they are 0.1 per
    second in 8 GB.
    """
    source = "tpch" if tpch_available() else "embedded"

    def run():
        command = [sys.executable, "-c", RUN, kind, source, str(iterations), str(tmp_path / "run")]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        return json.loads(done.stdout.splitlines()[-1])

    benchmark.extra_info.update(benchmark.pedantic(run, rounds=1, iterations=1))


@pytest.mark.parametrize("kind", ["batch", "stream"])
def test_gradient_against_automatic_differentiation(benchmark, kind):
    """CPU time of one gradient of recorded episodes in compiled code, as a share of TensorFlow's; one thread each."""
    task = Task(kind, source="tpch" if tpch_available() else "embedded", jobs=20 if kind == "batch" else 100)
    architecture, loss = Architecture.paper(), Loss(ratio=True, entropy_weight=0.02)
    weights = architecture.initial_weights(1)
    backend = Rollouts(Episodes(task), "threads", 1)
    sequence = task.training_sequences(0, 0, 1)[0]
    records = backend.collect(architecture, weights, [RolloutJob(sequence, seed) for seed in rollout_seeds(0, 0, 4)])
    backend.close()
    *children, levels = children_of(task)
    batch, decisions = GraphBatch(records, *children), np.concatenate(useful_decisions(records))
    numbers = np.random.default_rng(0).normal(size=(2, len(decisions)))
    learners = DecimaLearner(architecture, weights), KerasLearner(DecimaNetwork(architecture, levels), weights)

    def cpu_s(learner):
        begun = time.process_time()
        learner.gradient(batch, decisions, *numbers, loss)
        return time.process_time() - begun

    for learner in learners:
        cpu_s(learner)
    pairs = benchmark.pedantic(lambda: [[cpu_s(each) for each in learners] for _ in range(5)], rounds=1, iterations=1)
    benchmark.extra_info["share"] = statistics.median(ours / theirs for ours, theirs in pairs)
    benchmark.extra_info["ms_per_1000_decisions"] = 1e6 * min(ours for ours, _ in pairs) / len(decisions)
