"""Steps per second of the Gymnasium environment against the compiled core with a rule, in one run.

Run from the checkout: ``python -m benchmarks.environment_steps``. A stream of 200 jobs, 50 executors, valid actions
drawn at random; the time of drawing them is not counted.
"""

import json
import os
import sys
import time

import gymnasium
import numpy as np

import decima
from decima.systems.spark.schedulers import make_scheduler
from decima.systems.spark.settings import Settings
from decima.systems.spark.state import new_state
from decima.systems.spark.system import run_state
from decima.workload import synthetic_poisson

JOBS, GAP_S, EXECUTORS = 200, 25.0, 50


def drawn(masks: tuple, rng: np.random.Generator) -> np.ndarray:
    """Valid actions, int64 [N, 2]."""
    return np.stack([np.argmax(rng.random(mask.shape) * mask, axis=-1) for mask in masks], axis=-1)


def steps_per_s(env, steps: int, clock) -> float:
    """Steps per second of a clock; of all clusters together."""
    rng, spent, count = np.random.default_rng(0), 0.0, getattr(env, "num_envs", 1)
    single = not hasattr(env, "num_envs")
    _, info = env.reset(seed=0)
    for step in range(-steps // 10, steps):
        actions = drawn(info["action_mask"], rng)
        begin = clock()
        _, _, terminated, truncated, info = env.step(actions)
        if single and (terminated or truncated):
            _, info = env.reset()
        spent += (clock() - begin) * (step >= 0)
    return steps * count / spent


def main() -> None:
    workload, settings = synthetic_poisson(JOBS, GAP_S, 0), Settings.paper(executors=EXECUTORS)
    state, rule = new_state(workload, settings), make_scheduler("random")
    run_state(state, rule, 0)
    begin = time.process_time()
    run_state(state, rule, 1)
    results = {"core, rule random, decisions/s": state.num_decisions / (time.process_time() - begin)}
    gymnasium.register_envs(decima.gym)
    given = {"workload": workload, "executors": EXECUTORS}
    for copy in (True, False):
        name = "copies" if copy else "views"
        env = gymnasium.make("decima/SparkCluster-v0", copy=copy, **given).unwrapped
        results[f"single, {name}"] = steps_per_s(env, 4000, time.process_time)
        for threads in (1, os.cpu_count()):
            vector = {"num_envs": 64, "vectorization_mode": "vector_entry_point", "threads": threads}
            envs = gymnasium.make_vec("decima/SparkCluster-v0", copy=copy, **vector, **given)
            # On one thread CPU time, which other work on the machine does not change.
            clock = time.process_time if threads == 1 else time.perf_counter
            results[f"64 clusters, {name}, {threads} threads"] = steps_per_s(envs, 150, clock)
            envs.close()
    for name, rate in results.items():
        print(f"{name:40} {rate:12,.0f} /s", file=sys.stderr)
    print(json.dumps(results))


if __name__ == "__main__":
    main()
