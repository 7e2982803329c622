"""Round trip of a decision through the Spark plugin, with 20 queries in a real Spark at the same time.

Run from the checkout: ``python -m benchmarks.spark_round_trip [SCHEDULER ...]``. The time is taken inside the plugin,
under the lock of Spark's task scheduler: coding of the messages, gRPC, the service, the decision. Writes
``benchmarks/results/spark_round_trip.csv``; ``idle_cpu`` is the share of the machine's cores that nobody used before
the run began. On a busy machine the numbers are those of the machine.
"""

import json
import os
import socket
import sys
import tempfile
import threading
import time
from pathlib import Path

import pandas
import psutil

from tests.services import process
from tests.spark.real_spark import chain, decisions_of, metrics_of, plugin_driver, start_queries

QUERIES = 20
STAGES = 15
TASKS = 4
TASK_S = 0.04
REHEARSALS = (0, 500)  # calls before the first decision: none, as many as the plugin makes by itself
REST_S = 6.0  # while they are made, and for the driver's JVM to compile what they showed
RESULTS = Path(__file__).parent / "results"


def query(driver, together: threading.Barrier):
    """One chain of short stages, begun when all other queries begin.

    One long query, not many short ones: planning them would keep the driver's cores busy while decisions are timed.
    """
    once = chain(driver, STAGES, TASKS, TASK_S)

    def run() -> int:
        together.wait()
        return once()

    return run


def measure(scheduler: str, rehearsals: int) -> dict:
    """One application whose 20 queries all want the same two executors."""
    idle_cpu = 1 - psutil.cpu_percent(interval=3) / 100
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory() as name, process("--port", port, "--scheduler", scheduler):
        folder = Path(name)
        conf = {"spark.decima.rehearsals": rehearsals}
        with plugin_driver(folder, f"127.0.0.1:{port}", conf=conf) as driver:
            time.sleep(REST_S)
            together = threading.Barrier(QUERIES)
            start_queries(driver, {f"q{i}": query(driver, together) for i in range(QUERIES)}).wait(1800)
        metrics = metrics_of(folder)
        decisions = pandas.DataFrame(decisions_of(folder))
    # The first round trips are those of code that is not compiled yet, in the driver and in the service.
    warm = decisions.iloc[len(decisions) // 4 :]
    full = warm[warm["jobs"] >= QUERIES * 3 // 4]["round_trip_ms"]
    return {
        "scheduler": scheduler,
        "rehearsals": rehearsals,
        "decisions": metrics["decisions"],
        "mean_jobs": metrics["active_jobs"]["mean"],
        "max_jobs": metrics["active_jobs"]["max"],
        "median_ms": metrics["round_trip_ms"]["median"],
        "p99_ms": metrics["round_trip_ms"]["p99"],
        "warm_decisions_15_to_20_jobs": len(full),
        "warm_median_ms": full.median(),
        "warm_p99_ms": full.quantile(0.99),
        "outages": metrics["outages"],
        "idle_cpu": round(idle_cpu, 2),
        "niceness": os.getpriority(os.PRIO_PROCESS, 0),
        "cores": psutil.cpu_count(),
    }


def main() -> None:
    RESULTS.mkdir(exist_ok=True)
    rows = []
    for scheduler in sys.argv[1:] or ("fair", "decima"):
        for rehearsals in REHEARSALS:
            rows.append(measure(scheduler, rehearsals))
            print(json.dumps(rows[-1], indent=2), flush=True)
            pandas.DataFrame(rows).to_csv(RESULTS / "spark_round_trip.csv", index=False)


if __name__ == "__main__":
    main()
