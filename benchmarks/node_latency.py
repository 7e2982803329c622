"""Time of single decisions on unequal executors, of networks and rules: in this process, and through a service.

Run from the checkout: ``python -m benchmarks.node_latency``. Writes ``benchmarks/results/node_latency.csv``, and the
distributions with ``plan`` as quantiles to ``node_latency_cdf.csv``.

Batches of TPC-H jobs (of the embedded ones without the data) on 50 executors at CCR 5, whose decisions count while nine
tenths of the jobs have nodes to decide, and a stream with a job every 45 s, all of whose decisions count. ``where`` is
``process``: processor time of one call of compiled code for one node with its executor; ``service``: a call of
``Assign`` over loopback as the client sees it, from the finished request to the parsed answer; ``server``: the part of
it that the scheduler takes. ``most`` is how many nodes a call may decide, 0 for all that can be. The first decision,
which embeds all jobs, is not among those in this process, where only batches are timed.
"""

import subprocess
import sys
import time
from itertools import product
from pathlib import Path

import numpy as np
import pandas
from tqdm.auto import tqdm

from decima.connect.service import scheduler_pb2 as protocol
from decima.connect.service.client import ServiceClient
from decima.connect.service.node_client import schedule_by_service
from decima.systems.heterogeneous import Instance, make_scheduler
from decima.systems.heterogeneous.continuation import decide, go_on
from decima.systems.heterogeneous.tpch import tpch_instance
from decima.workload import tpch_available

SCHEDULERS = ("high_rank_up_deft", "lachesis", "decima_deft")
DECISIONS = {"plan": 1, "event": 0, "idle": 0}  # and the most nodes of a call
CASES = {"batch": (20, 100), "stream": (100,)}  # numbers of jobs by how they arrive
GAP_S = 45.0  # between arrivals of a stream, the paper's
BATCHES = 2
SHARE = {"batch": 0.9, "stream": 0.0}  # of the jobs that have nodes left, for a decision to count
QUANTILES = np.linspace(0.0, 1.0, 51)
RESULTS = Path(__file__).parent / "results"


def draw(arrivals: str, jobs: int, seed: int) -> Instance:
    source = "tpch" if tpch_available() else "embedded"
    gap_s = GAP_S if arrivals == "stream" else None
    return tpch_instance(jobs, seed, edges=5.0, executors=50, interarrival_s=gap_s, source=source)


def in_process(scheduler: str, jobs: int, seed: int) -> list[float]:
    """Times of the decisions of one batch with ``plan``, in seconds."""
    instance = draw("batch", jobs, seed)
    rule = make_scheduler(scheduler, decision="plan").list_rule(instance)
    none = np.zeros(len(instance.cluster))
    left = np.diff(instance.first_node)
    (first,) = decide(rule, [], none, 0.0, 1)
    left[instance.job_of_node[first.node]] -= 1
    record, found, decided = rule.planner.record, [], {first.node}
    while (left > 0).sum() >= SHARE["batch"] * jobs:
        begin = time.thread_time_ns()
        go_on(record.address, 0.0, 1)
        found.append(1e-9 * (time.thread_time_ns() - begin))
        (node,) = {*record.copy_node[: record.copies].tolist()} - decided
        decided.add(node)
        left[instance.job_of_node[node]] -= 1
    return found


class Timed(ServiceClient):
    """Notes the times of calls that decide while enough jobs have nodes left."""

    def watch(self, instance: Instance, share: float) -> None:
        """Begin with a batch or a stream."""
        self.share = share
        self.left = np.diff(instance.first_node)
        self.told = 0
        self.placed: set[tuple[str, int]] = set()
        self.rows: list[tuple[float, float]] = []

    def call(self, name, request, kind):
        begin = time.perf_counter()
        reply = super().call(name, request, kind)
        seconds = time.perf_counter() - begin
        if kind is protocol.Assignments:
            enough = (self.left > 0).sum() >= self.share * len(self.left)
            if self.told and enough and reply.assignments:  # the first call tells the jobs
                self.rows.append((seconds, 1e-6 * reply.decide_us))
            self.told += 1
            for node in {(each.job, each.node) for each in reply.assignments} - self.placed:
                self.placed.add(node)
                self.left[int(node[0])] -= 1
        return reply


def summary(micros: np.ndarray) -> dict:
    return {
        "calls": len(micros),
        "p50_us": np.median(micros),
        "p98_us": np.quantile(micros, 0.98),
        "largest_us": micros.max(),
        "below_1ms": float((micros < 1000.0).mean()),
    }


def main() -> None:
    times = {}  # s by where, scheduler, decision, most nodes, how jobs arrive and how many they are
    for name, jobs in product(SCHEDULERS, CASES["batch"]):
        times["process", name, "plan", 1, "batch", jobs] = [
            each for seed in range(BATCHES) for each in in_process(name, jobs, seed)
        ]
    offered = [f"{name}:decision={decision}" for name in SCHEDULERS for decision in DECISIONS]
    words = [sys.executable, "-m", "decima", "serve", "--port", "0", "--scheduler", "fair"]
    words += [word for text in offered for word in ("--unequal", text)]
    server = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    cases = [(arrivals, jobs) for arrivals, numbers in CASES.items() for jobs in numbers]
    try:
        with Timed(server.stdout.readline().split(" at ")[1].split()[0].rstrip(",;")) as client:
            for text, (arrivals, jobs) in tqdm(list(product(offered, cases))):
                name, _, decision = text.partition(":decision=")
                calls = []
                for seed in range(BATCHES):
                    instance = draw(arrivals, jobs, seed)
                    client.watch(instance, SHARE[arrivals])
                    schedule_by_service(instance, client, text, most=DECISIONS[decision])
                    calls += client.rows
                for where, seconds in zip(("service", "server"), zip(*calls, strict=True), strict=True):
                    times[where, name, decision, DECISIONS[decision], arrivals, jobs] = seconds
    finally:
        server.terminate()
        server.wait(60)
    keys = ["where", "scheduler", "decision", "most", "arrivals", "jobs"]
    micros = {key: 1e6 * np.array(seconds) for key, seconds in times.items()}
    table = pandas.DataFrame([dict(zip(keys, key, strict=True)) | summary(each) for key, each in micros.items()])
    quantiles = pandas.concat(
        pandas.DataFrame({"quantile": QUANTILES, "us": np.quantile(each, QUANTILES)}).assign(
            where=key[0], scheduler=key[1], arrivals=key[4], jobs=key[5]
        )
        for key, each in micros.items()
        if key[2] == "plan"
    )
    RESULTS.mkdir(exist_ok=True)
    table.round(4).to_csv(RESULTS / "node_latency.csv", index=False)
    quantiles.round(4).to_csv(RESULTS / "node_latency_cdf.csv", index=False)
    print(table.round(3).to_string(index=False))


if __name__ == "__main__":
    main()
