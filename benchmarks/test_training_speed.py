"""Training iterations per second and peak memory, each run in a process of its own."""

import json
import subprocess
import sys

import pytest

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

    The aims on four idle cores: batches of 20 jobs 1.5 per second; streams of 200 jobs 0.1 per second in 8 GB.
    """
    source = "tpch" if tpch_available() else "embedded"

    def run():
        command = [sys.executable, "-c", RUN, kind, source, str(iterations), str(tmp_path / "run")]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        return json.loads(done.stdout.splitlines()[-1])

    benchmark.extra_info.update(benchmark.pedantic(run, rounds=1, iterations=1))
