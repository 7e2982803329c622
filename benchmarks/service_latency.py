"""Time of a decision through the service, as a client sees it: simulated clusters ask a server process over loopback.

Run from the checkout: ``python -m benchmarks.service_latency``. Writes ``benchmarks/results/service_latency.csv``.

Columns: ``round_trip_*_ms`` from the finished request to the parsed reply, ``report_*_ms`` with the time the simulator
takes to write its report, ``server_*_ms`` inside the scheduler. A batch counts while nine tenths of its jobs are there.
"""

import os
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pandas
from tqdm.auto import tqdm

from decima.connect.service import scheduler_pb2 as protocol
from decima.connect.service.simulator_client import RemoteScheduler
from decima.evaluation.run import simulate
from decima.workload import synthetic_batch, tpch_available, tpch_batch

SCHEDULERS = ("fair", "decima")
JOBS = (1, 10, 20, 100)
CLIENTS = (1, 4)
DECISIONS = 400  # at least, of each client
RESULTS = Path(__file__).parent / "results"


class Timed(RemoteScheduler):
    """Notes the times of decisions while enough jobs are active."""

    def __init__(self, service, scheduler, least):
        super().__init__(service, scheduler)
        self.least = least
        self.rows = []
        call = self._client.call

        def timed(name, request, kind):
            begin = time.perf_counter()
            reply = call(name, request, kind)
            self.call_s = time.perf_counter() - begin
            if kind is protocol.Decision:
                self.server_us = reply.decide_us
            return reply

        self._client.call = timed

    def decide(self, observation):
        begin = time.perf_counter()
        decision = super().decide(observation)
        seconds = time.perf_counter() - begin
        if observation.state.num_active >= self.least:
            self.rows.append((1e3 * self.call_s, 1e3 * seconds, 1e-3 * self.server_us))
        return decision


def measure(service: str, scheduler: str, jobs: int, client: int) -> list[tuple]:
    """Times in ms of one client: call, report and call, scheduler."""
    draw = tpch_batch if tpch_available() else synthetic_batch
    remote = Timed(service, scheduler, 0.9 * jobs)
    seed = 1000 * client
    simulate(draw(min(jobs, 5), seed), remote, 50, seed)
    remote.rows.clear()  # the first run warms both ends up
    while len(remote.rows) < DECISIONS:
        seed += 1
        simulate(draw(jobs, seed), remote, 50, seed)
    remote.close()
    return remote.rows


def main() -> None:
    words = [sys.executable, "-m", "decima", "serve", "--port", "0", "--scheduler", SCHEDULERS[0]]
    words += [word for name in SCHEDULERS[1:] for word in ("--also", name)]
    server = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    rows = []
    try:
        service = server.stdout.readline().split(" at ")[1].strip()
        cases = [(name, jobs, clients) for clients in CLIENTS for name in SCHEDULERS for jobs in JOBS]
        for name, jobs, clients in tqdm(cases):
            with ProcessPoolExecutor(clients) as pool:
                parts = [pool.submit(measure, service, name, jobs, number) for number in range(clients)]
                times = np.array([row for part in parts for row in part.result()])
            row = {"scheduler": name, "jobs": jobs, "clients": clients, "decisions": len(times)}
            for column, values in zip(("round_trip", "report", "server"), times.T, strict=True):
                row |= {f"{column}_p{share}_ms": np.percentile(values, share) for share in (50, 99)}
            rows.append(row | {"load": os.getloadavg()[0]})
    finally:
        server.terminate()
        server.wait(60)
    table = pandas.DataFrame(rows)
    RESULTS.mkdir(exist_ok=True)
    table.round(4).to_csv(RESULTS / "service_latency.csv", index=False)
    print(table.round(3).to_string(index=False))


if __name__ == "__main__":
    main()
