"""Steps per second of the Gymnasium environment against the compiled core with a rule, in one run.

Run from the checkout: ``python -m benchmarks.environment_steps``. A stream of 200 jobs, 50 executors, valid actions
drawn at random. They are drawn in a first run and taken again in five others, of which the fastest counts.
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

JOBS, GAP_S, EXECUTORS, REPEATS = 200, 25.0, 50, 5


def drawn(masks: tuple, rng: np.random.Generator) -> np.ndarray:
    """Valid actions, int64 [N, 2]."""
    return np.stack([np.argmax(rng.random(mask.shape) * mask, axis=-1) for mask in masks], axis=-1)


def steps_per_s(env, steps: int, clock) -> float:
    """Steps per second of a clock; of all clusters together, the best of several times."""
    rng, single, actions, best = np.random.default_rng(0), not hasattr(env, "num_envs"), [], 0.0
    for repeat in range(1 + REPEATS):
        _, info = env.reset(seed=0)
        begin = clock()
        for step in range(steps):
            if not repeat:
                actions.append(drawn(info["action_mask"], rng))
            _, _, terminated, truncated, info = env.step(actions[step])
            if single and (terminated or truncated):
                _, info = env.reset()
        best = max(best, steps * getattr(env, "num_envs", 1) / (clock() - begin)) if repeat else 0.0
    return best


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
        results[f"single, {name}"] = steps_per_s(env, 8000, time.process_time)
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
