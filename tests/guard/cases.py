"""Runs whose results may not move: every stored policy on twenty workloads, every heuristic, two short trainings.

``python -m tests.guard.cases`` writes ``golden.json`` anew. Do that only in a commit of its own that says which results
moved and why.
"""

import hashlib
import json
import tempfile
from pathlib import Path

import llvmlite.binding
import numpy as np

import decima
from decima.systems.spark.policy.run import DecimaRun
from decima.systems.spark.policy.scheduler import load_policy
from decima.systems.spark.schedulers import make_scheduler
from decima.workload import embedded_batch, embedded_poisson, measured_batch, synthetic_batch, synthetic_poisson
from tests.drivers import IN_CORE
from tests.unit.learning.small import NETWORK, STREAM, TASK, quick_recipe

GOLDEN = Path(__file__).with_name("golden.json")
POLICIES = ("embedded-batch", "embedded-stream", "released-batch", "spark-batch", "tpch-batch", "tpch-stream")
MODES = ("paper", "released", "simplified")
#: Whose default is another one now; the results of these presets are those that may not move.
PRESETS = {"weighted_fair": "paper", "capped_srw": "plain"}
#: Need arrays or files from outside.
NOT_ALONE = ("decima", "priority", "remote", "replay")


def workloads():
    """Twenty workloads by name: batches and streams, none of which needs data from outside."""
    found = {f"embedded-batch-{seed}": embedded_batch(10, seed) for seed in range(6)}
    found |= {f"embedded-poisson-{seed}": embedded_poisson(12, 25.0, seed) for seed in range(6)}
    found |= {f"measured-batch-{seed}": measured_batch(6, seed) for seed in range(2)}
    found |= {f"synthetic-batch-{seed}": synthetic_batch(6, seed=seed) for seed in range(3)}
    found |= {f"synthetic-poisson-{seed}": synthetic_poisson(8, 20.0, seed) for seed in range(3)}
    assert len(found) == 20
    return found


def digest(*arrays):
    """First half of the SHA-256 of arrays, as text."""
    parts = b"".join(np.ascontiguousarray(array).tobytes() for array in arrays)
    return hashlib.sha256(parts).hexdigest()[:32]


def outcome(workload, scheduler, seed, **settings):
    """Average JCT in seconds, and digests of decisions and of completions."""
    result = decima.simulate(workload, scheduler, executors=20, seed=seed, log=True, **settings)
    return [result.avg_jct_s, digest(result.log.decisions[:, :8]), digest(result.completion_ms)]


def policy_outcomes(name):
    """Outcomes of a stored policy, greedy and sampled, by workload."""
    return {
        f"{label} {'greedy' if greedy else 'sampled'}": outcome(workload, load_policy(name, greedy=greedy), index)
        for index, (label, workload) in enumerate(workloads().items())
        for greedy in (True, False)
    }


def heuristic_outcomes(mode):
    """Outcomes of every heuristic with its declared parameters, by workload."""
    chosen = list(workloads().items())[::5]
    presets = {name: {"preset": preset} for name, preset in PRESETS.items()}
    return {
        f"{label} {name}": outcome(workload, make_scheduler(name, **presets.get(name, {})), index, mode=mode)
        for index, (label, workload) in enumerate(chosen)
        for name in IN_CORE
        if name not in NOT_ALONE
    }


def trainings():
    """(task, recipe) of short trainings by name."""
    reinforce = {"algorithm": "reinforce", "epochs": 1, "minibatches": 1, "differential": True, "iterations": 3}
    return {
        "batch, imitation and PPO": (TASK, quick_recipe()),
        "stream, REINFORCE": (STREAM, quick_recipe(**reinforce)),
    }


def training_outcome(name):
    """Best validation score in seconds and digest of the weights of a short training."""
    task, recipe = trainings()[name]
    with tempfile.TemporaryDirectory() as folder:
        trained = DecimaRun(task, recipe, NETWORK, 3).trainer(folder, workers=2, tensorboard=False).train()
    return [trained.score, digest(trained.weights)]


def this_processor():
    """Name and features of the processor, which decide how floating-point sums are ordered."""
    features = sorted(name for name, there in llvmlite.binding.get_host_cpu_features().items() if there)
    return f"{llvmlite.binding.get_host_cpu_name()} {hashlib.sha256(' '.join(features).encode()).hexdigest()[:8]}"


def main():
    """Write all outcomes."""
    golden = {
        "processor": this_processor(),
        "policies": {name: policy_outcomes(name) for name in POLICIES},
        "heuristics": {mode: heuristic_outcomes(mode) for mode in MODES},
        "trainings": {name: training_outcome(name) for name in trainings()},
    }
    GOLDEN.write_text(json.dumps(golden, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
