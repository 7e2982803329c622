"""Price of coming on a real Spark: applications on one master, four executors that move between them.

Run from the checkout: ``python -m benchmarks.spark_applications``; it needs Java 17 and takes half an hour. Six drivers
with the plugin share a standalone master. In every round each gets one query, a chain of stages whose tasks sleep, at a
random time; sizes are log-uniform. ``capped_srw`` is tuned in simulation on other rounds, ``entry_srw`` has its
parameters and the best of ``PRICES`` there. Both decide the same rounds through ``decima serve``, in sessions that take
turns. Writes ``benchmarks/results/spark_applications.csv``, a row per round and rule, average JCT in s of the real run
(``real_s``) and of the simulation (``simulated_s``), and prints the changes, paired by round.

An executor that comes is a JVM that starts; ``--move-s`` tells simulation and rule how long that takes. Everything else
that the machine does, starts of drivers and executors among it, takes time from the JVMs.
"""

import argparse
import itertools
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas

from benchmarks.price_of_coming import PRICES, RESULTS, SPARK
from decima import workload
from decima.connect.cluster.standalone import StandaloneCluster
from decima.evaluation.run import score_matrix
from decima.evaluation.statistics import paired_change
from decima.evaluation.tuning import tune
from decima.systems.spark.schedulers import make_scheduler
from decima.systems.spark.schedulers.registry import scheduler_text
from decima.systems.spark.settings import Settings
from tests.services import process
from tests.spark.real_spark import chain, plugin_driver, start_queries, wait_until

EXECUTORS, APPLICATIONS, MEMORY_MB = SPARK["executors"], 6, 700
TRAINING, TRAINING_SEED, SEED = 60, 810_000, 800_000  # rounds to tune on, first seeds
SPAN_S = 15.0  # queries of a round come within this time
TASKS, TASK_S, STAGES = (4, 16), (0.2, 1.0), (2, 4)  # least and most
EXTRA_S, FIRST_S = 0.05, 1.0  # that a task takes beside its sleep; that the first one in a new JVM takes longer


def draw(seed: int) -> list[dict]:
    """Queries of a round, as jobs of a JSON file; stages after the first sleep."""
    rng, jobs = np.random.default_rng(seed), []
    for number in range(APPLICATIONS):
        tasks = round(float(np.exp(rng.uniform(*np.log(TASKS)))))
        sleep_s = float(np.exp(rng.uniform(*np.log(TASK_S))))
        names = [f"s{stage}" for stage in range(rng.integers(STAGES[0], STAGES[1] + 1))]
        stages = [
            {
                "name": name,
                "tasks": tasks,
                "parents": names[place - 1 : place] if place else [],
                "duration_ms": durations_ms(sleep_s if place else 0.0),
            }
            for place, name in enumerate(names)
        ]
        arrival_ms = 1000.0 * rng.uniform(0.0, SPAN_S)
        jobs.append({"name": f"{seed}-{number}", "arrival_ms": arrival_ms, "stages": stages})
    return jobs


def durations_ms(sleep_s: float) -> dict[str, float]:
    """Of the tasks of a stage: the first one in a new JVM, and others."""
    usual = 1000.0 * (sleep_s + EXTRA_S)
    return {"fresh": usual + 1000.0 * FIRST_S, "first": usual, "rest": usual}


def application(folder: Path, service: str, master: str, scratch: str, number: int, move_s: float) -> None:
    """A driver: in every round that its parent writes, one query."""
    cluster = StandaloneCluster(executors=EXECUTORS, memory_mb=MEMORY_MB, shuffle_service=True)
    cluster.url, cluster.folder = master, Path(scratch)
    conf = {
        "spark.decima.shared": "applications",
        "spark.decima.cluster.executors": str(EXECUTORS),
        "spark.decima.cluster.moving.delay": f"{round(1000 * move_s)}ms",
        "spark.decima.child.wait": "5s",
        "spark.dynamicAllocation.enabled": "false",
        "spark.scheduler.minRegisteredResourcesRatio": "0",
    }
    with plugin_driver(folder, service, conf=conf, cluster=cluster) as driver:
        (folder / "up").touch()
        for place in itertools.count():
            path = folder.parent / f"round-{place}.json"
            wait_until(lambda path=path: path.exists() or (folder.parent / "end").exists(), 3600)
            if not path.exists():
                return
            plan = json.loads(path.read_text())
            job = plan["jobs"][number]
            stages = job["stages"]
            sleep_s = stages[1]["duration_ms"]["rest"] / 1000.0 - EXTRA_S
            time.sleep(max(0.0, plan["start_s"] + job["arrival_ms"] / 1000.0 - time.time()))
            begun_s = time.time()
            driver.spark.sparkContext.setLocalProperty("decima.profile", job["name"])
            query = chain(driver, len(stages), stages[0]["tasks"], sleep_s)
            start_queries(driver, {job["name"]: query}).wait(900)
            (folder / f"done-{place}").write_text(str(time.time() - begun_s))


def run(rule: str, seeds: list[int], profiles: Path, move_s: float) -> list[float]:
    """Average JCT of rounds in s, on a master and with drivers of their own."""
    means = []
    with (
        tempfile.TemporaryDirectory() as name,
        process("--port", 0, "--scheduler", rule, "--profiles", profiles) as service,
        StandaloneCluster(executors=EXECUTORS, memory_mb=MEMORY_MB, shuffle_service=True) as cluster,
    ):
        folders = [Path(name, f"application-{number}") for number in range(APPLICATIONS)]
        drivers = []
        for number, folder in enumerate(folders):
            folder.mkdir()
            words = [str(folder), service.target, cluster.url, str(cluster.folder), str(number), str(move_s)]
            command = [sys.executable, "-m", "benchmarks.spark_applications", "--application", *words]
            drivers.append(subprocess.Popen(command))
        wait_until(lambda: all((folder / "up").exists() for folder in folders), 600)
        for place, seed in enumerate([TRAINING_SEED, *seeds]):  # the first round compiles and is not counted
            plan = {"start_s": time.time() + 1.0, "jobs": draw(seed)}
            path = Path(name, f"round-{place}.json")
            path.with_suffix(".part").write_text(json.dumps(plan))
            path.with_suffix(".part").rename(path)
            done = [folder / f"done-{place}" for folder in folders]
            wait_until(lambda done=done: all(path.exists() and path.read_text() for path in done), 1800)
            means.append(float(np.mean([float(path.read_text()) for path in done])))
            print(f"{rule}: round {seed}, {means[-1]:.1f} s", flush=True)
        Path(name, "end").touch()
        for driver in drivers:
            driver.wait(120)
    return means[1:]


def rules(move_s: float, folder: Path) -> tuple[dict[str, str], Settings]:
    """``capped_srw`` and ``entry_srw``, tuned in simulation, and the simulated cluster."""
    settings = Settings.of_mode("paper", **SPARK | {"moving_delay_ms": 1000.0 * move_s})
    seeds = [TRAINING_SEED + index for index in range(TRAINING)]
    rounds = [simulated(seed, folder) for seed in seeds]
    capped = tune("capped_srw", rounds, settings, train_seeds=seeds, budget=120, workers=1).parameters
    known = {"level": 0, "entry_s": move_s + FIRST_S}
    priced = [make_scheduler("entry_srw", **capped, **known, pay=pay) for pay in PRICES]
    best = priced[int(score_matrix(rounds, priced, settings, seeds=seeds, workers=1).mean(axis=1).argmin())]
    named = {"capped_srw": make_scheduler("capped_srw", **capped), "entry_srw": best}
    return {name: scheduler_text(rule) for name, rule in named.items()}, settings


def simulated(seed: int, folder: Path) -> workload.Workload:
    """A round as a workload."""
    path = folder / f"{seed}.json"
    path.write_text(json.dumps(draw(seed)))
    return workload.load(path)


def main() -> None:
    """Run all rounds under both rules and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--move-s", type=float, default=5.0, help="seconds that a JVM takes to start")
    parser.add_argument("--sessions", type=int, default=2, help="of each rule")
    parser.add_argument("--rounds", type=int, default=4, help="per session")
    parser.add_argument("--application", nargs=6, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.application:
        folder, service, master, scratch, number, move_s = options.application
        application(Path(folder), service, master, scratch, int(number), float(move_s))
        return
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        chosen, settings = rules(options.move_s, folder)
        print(*chosen.values(), sep="\n", flush=True)
        for session in range(options.sessions):
            seeds = [SEED + options.rounds * session + index for index in range(options.rounds)]
            profiles = folder / f"session-{session}.json"
            profiles.write_text(json.dumps([job for seed in (TRAINING_SEED, *seeds) for job in draw(seed)]))
            rounds = [simulated(seed, folder) for seed in seeds]
            for name in list(chosen)[:: 1 if session % 2 else -1]:
                rule = make_scheduler(chosen[name])
                (expected,) = score_matrix(rounds, [rule], settings, seeds=seeds, workers=1)
                real = run(chosen[name], seeds, profiles, options.move_s)
                found = {"scheduler": name, "session": session, "seed": seeds, "real_s": real, "simulated_s": expected}
                rows.append(pandas.DataFrame(found))
                table = pandas.concat(rows)
                table.to_csv(RESULTS / "spark_applications.csv", index=False, float_format="%.3f")
    for column in ("real_s", "simulated_s"):
        by_rule = table.pivot(index="seed", columns="scheduler", values=column)
        change, low, high = paired_change(by_rule["entry_srw"].to_numpy(), by_rule["capped_srw"].to_numpy())
        print(f"{column}: {by_rule.mean().round(2).to_dict()}, {change:+.1f} % [{low:+.1f}, {high:+.1f}]")


if __name__ == "__main__":
    main()
