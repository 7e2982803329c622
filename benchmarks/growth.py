"""How time and memory grow with jobs, executors, stages, nodes and environments.

Run from the checkout: ``python -m benchmarks.growth``, or for some alone ``python -m benchmarks.growth nodes``.
Every size has a process of its own, whose peak memory is measured. CPU time of one thread, the least of some runs.
Writes ``benchmarks/results/growth.csv``; its exponents compare a size with the one before.
"""

import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from math import log
from pathlib import Path

import numpy as np
import pandas
from tqdm.auto import tqdm

RESULTS = Path(__file__).parent / "results"
LOAD_GAP_S = 1260.0  # mean interarrival time in seconds times executors; about 63 % load


def _cluster(workload, executors: int, scheduler: str = "fair", **settings) -> Callable[[], tuple[int, str]]:
    from decima.systems.spark.schedulers import make_scheduler
    from decima.systems.spark.settings import Settings
    from decima.systems.spark.state import new_state
    from decima.systems.spark.system import run_state

    state = new_state(workload, Settings.of_mode("paper", **(settings or {"executors": executors})))

    def run() -> tuple[int, str]:
        run_state(state, make_scheduler(scheduler), 0)
        return state.task_events + state.job_events + state.executor_events, "event"

    return run


def jobs(size: int):
    """A stream on 50 executors."""
    from decima.workload import synthetic_poisson

    return _cluster(synthetic_poisson(size, LOAD_GAP_S / 50, 0), 50)


def executors(size: int):
    """A stream of N jobs on N executors."""
    from decima.workload import synthetic_poisson

    return _cluster(synthetic_poisson(size, LOAD_GAP_S / size, 0), size)


def stages(size: int):
    """One job on 50 executors: 10 tasks per stage, two parents among those before."""
    from decima.workload.jobs import Job, Workload
    from decima.workload.profile import JobProfile, Stage

    rng, wave = np.random.default_rng(0), (np.array([1000.0]),)
    parents = [
        tuple(sorted({int(each) for each in rng.integers(max(0, k - 20), k, 2)})) if k else () for k in range(size)
    ]
    made = tuple(Stage(str(k), 10, parents[k], (5,), wave, wave, wave) for k in range(size))
    return _cluster(Workload([Job(JobProfile("stages", made, "growth"), 0.0)], "growth"), 50)


def trace(size: int):
    """Parts of the hour of the Alibaba trace, in four classes of executors."""
    from decima.workload.sources import parse_jobs
    from experiments.decima.s07_packing import classes

    return _cluster(parse_jobs(f"alibaba:fraction={size / 30_000}").workload(0), size, classes=classes(size))


def _plan(name: str, size: int):
    from decima.systems.heterogeneous import Instance, make_scheduler
    from decima.systems.heterogeneous.generators import random_dag

    instance, scheduler = random_dag(size, 10, 1), make_scheduler(name)
    scheduler.schedule(random_dag(10, 10, 1))
    return lambda: (len(scheduler.schedule(Instance(instance.jobs, instance.cluster)).instance), "node")


def nodes(size: int):
    """Nodes of a random DAG, planned by HEFT on 10 executors."""
    return _plan("heft", size)


def nodes_learned(size: int):
    """The same by Lachesis, which embeds all nodes that are left for each."""
    return _plan("lachesis", size)


def environments(size: int):
    """Environments of a stream of 200 jobs in one vector, 100 random valid steps."""
    import gymnasium

    import decima
    from benchmarks.environment_steps import drawn
    from decima.workload import synthetic_poisson

    gymnasium.register_envs(decima.gym)
    given = {"vectorization_mode": "vector_entry_point", "threads": 1, "copy": False, "executors": 50}
    workload = synthetic_poisson(200, 25.0, 0)
    envs = gymnasium.make_vec("decima/SparkCluster-v0", num_envs=size, workload=workload, **given)

    def run() -> tuple[int, str]:
        _, info = envs.reset(seed=0)
        for _ in range(100):
            _, _, _, _, info = envs.step(drawn(info["action_mask"], np.random.default_rng(0)))
        return 100 * size, "step"

    return run


KINDS = {
    jobs: (200, 2000, 20_000),
    executors: (30, 300, 3000, 30_000),
    stages: (10, 100, 1000),
    trace: (300, 3000, 30_000),
    nodes: (40, 400, 4000, 40_000),
    nodes_learned: (40, 400, 4000),
    environments: (1, 10, 100),
}


def measure(kind: Callable, size: int) -> dict:
    """A row of the table, from this process."""
    run, times = kind(size), []
    run()  # compile
    while len(times) < 3 or (sum(times) < 0.2 and len(times) < 100):
        begin = time.process_time()
        count, unit = run()
        times.append(time.process_time() - begin)
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0
    row = {"grows": kind.__name__, "size": size, "unit": unit, "units": count, "cpu_s": min(times)}
    return row | {"ns_per_unit": 1e9 * min(times) / count, "peak_mb": round(peak_mb)}


def exponents(rows: list[dict]) -> pandas.DataFrame:
    """The rows with the exponent of time between neighbouring sizes of a kind; none at the first."""
    for before, row in zip([{}, *rows], rows, strict=False):
        same = before.get("grows") == row["grows"]
        ratio = log(row["cpu_s"] / before["cpu_s"]) / log(row["size"] / before["size"]) if same else None
        row["exponent"] = None if ratio is None else round(ratio, 2)
    return pandas.DataFrame(rows).round({"cpu_s": 5, "ns_per_unit": 1})


def main(names: list[str], out: Path = RESULTS / "growth.csv") -> None:
    chosen = [kind for kind in KINDS if not names or kind.__name__ in names]
    rows = []
    for kind, size in tqdm([(each, size) for each in chosen for size in KINDS[each]]):
        call = [sys.executable, "-m", "benchmarks.growth", "--one", kind.__name__, str(size)]
        rows.append(json.loads(subprocess.run(call, check=True, stdout=subprocess.PIPE, text=True).stdout))
    table = exponents(rows)
    table.to_csv(out, index=False)
    print(table.to_string(index=False))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(measure({kind.__name__: kind for kind in KINDS}[sys.argv[2]], int(sys.argv[3]))))
    else:
        main(sys.argv[1:])
