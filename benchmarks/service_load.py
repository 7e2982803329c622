"""The service under load: many clients at a steady rate.

Run from the checkout, on a machine that does nothing else: ``python -m benchmarks.service_load`` (``--seconds 2`` to
try it). Writes ``benchmarks/results/service_load.csv``.

One process serves, another one is all clients. Every client is a simulated cluster of 50 executors with a number of
active jobs, whose reports were recorded and whose decisions are known. An answer that is not the known one is wrong;
one that does not arrive is lost. When its recording ends, a client begins anew with a report of everything.

Columns:

- ``method``: ``Decisions``, one stream per client, or ``Decide``, a call each.
- ``calls_per_s``: as asked for (0: each client asks again at once) and as answered.
- ``p50_ms``, ``p99_ms``, ``max_ms``: from the moment a call was due to its parsed reply. A client that is kept waiting
  counts the calls that wait behind it.
- ``decide_p50_ms``: inside the scheduler; ``server_cpu_ms``, ``client_cpu_ms``: processor time per call.
- ``server_mb``: resident memory at the end.
- ``idle_cpu``: share of the machine's cores that nobody used just before; ``load``: average of the minute before.
"""

import argparse
import asyncio
import multiprocessing
import os
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import grpc
import numpy as np
import pandas
import psutil
from tqdm.auto import tqdm

import decima
from decima.connect.service import scheduler_pb2 as protocol
from decima.connect.service.simulator_client import StateReporter
from decima.connect.service.wire import NAME, VERSION
from decima.systems.spark.schedulers import Decision, make_scheduler
from decima.workload.arrivals import explicit
from decima.workload.synthetic import default_profiles

EXECUTORS = 50
# Seconds between arrivals by number of jobs in the beginning; 3 to 17 (mean 10) and 88 to 175 (115) are then there.
GAP_S = {10: 10.0, 100: 6.0}
ARRIVALS = 300
RECORDED = 2_000  # reports of a recording
RATE = 1_000.0  # decisions per second of all clients
POLICY = "decima:tpch-batch"  # by its name: the service is not told how jobs arrive
# (scheduler, clients, active jobs of each, decisions per second, method that they call)
STREAM, CALL = "Decisions", "Decide"
CASES = [
    *(("fair", clients, jobs, RATE, STREAM) for jobs in (10, 100) for clients in (4, 16)),
    ("fair", 4, 10, RATE, CALL),
    ("fair", 16, 100, 0.0, STREAM),
    *((POLICY, clients, jobs, RATE, STREAM) for jobs in (10, 100) for clients in (4, 16)),
    (POLICY, 16, 100, 0.0, STREAM),
    (POLICY, 16, 10, RATE, CALL),
    (POLICY, 16, 10, 0.0, CALL),
]
RESULTS = Path(__file__).parent / "results"


class Recording:
    """A scheduler that notes what a service would be given, and what it should answer."""

    def __init__(self, scheduler: str) -> None:
        self.name = scheduler
        self.calls: list[tuple[bytes, tuple[int, int] | None]] = []
        self._inner = make_scheduler(scheduler)
        self._reporter: StateReporter | None = None

    def reset(self, rng: np.random.Generator) -> None:
        self._inner.reset(rng)

    def decide(self, observation) -> Decision:
        decision, state = self._inner.decide(observation), observation.state
        if len(self.calls) < RECORDED:
            self._reporter = self._reporter or StateReporter(state)
            request = self._reporter.request(not self.calls)
            job = None if decision.stage is None else int(state.stage_job[decision.stage])
            answer = None if job is None else (job, int(decision.stage - state.job_first_stage[job]))
            self.calls.append((request.SerializeToString(), answer))
        return decision


def record(scheduler: str, jobs: int) -> list[tuple[bytes, tuple[int, int] | None]]:
    """Reports of a cluster with about this number of active jobs, and chosen stages (job, stage; None to idle)."""
    arrivals = [0.0] * jobs + [GAP_S[jobs] * (number + 1) for number in range(ARRIVALS)]
    profiles = default_profiles()
    drawn = np.random.default_rng(0).integers(len(profiles), size=len(arrivals))
    workload = explicit([profiles[number] for number in drawn], arrivals, label="load")
    recording = Recording(scheduler)
    decima.simulate(workload, recording, EXECUTORS, 0)
    return recording.calls


class Client:
    """One session that asks again and again."""

    def __init__(self, channel: grpc.aio.Channel, scheduler: str, calls: list, method: str = STREAM) -> None:
        self._channel = channel
        self._scheduler = scheduler
        self._calls = calls
        self._next = 0
        self._decide = channel.unary_unary(f"/{NAME}/{CALL}") if method == CALL else self._ask_stream
        self._stream: grpc.aio.StreamStreamCall | None = None
        self.times_ms: list[float] = []
        self.decide_us: list[float] = []
        self.lost = self.wrong = 0

    async def open(self) -> None:
        request = protocol.OpenRequest(version=VERSION, executors=EXECUTORS, scheduler=self._scheduler, client="load")
        opened = await self._channel.unary_unary(f"/{NAME}/Open")(request.SerializeToString(), timeout=60)
        self._session = protocol.OpenReply.FromString(opened).session

    async def _ask_stream(self, data: bytes, timeout: float) -> bytes:
        if self._stream is None or self._stream.done():
            self._stream = self._channel.stream_stream(f"/{NAME}/{STREAM}")()
        async with asyncio.timeout(timeout):
            await self._stream.write(data)
            return await self._stream.read()

    def hang_up(self) -> None:
        if self._stream is not None:
            self._stream.cancel()

    async def close(self) -> None:
        self.hang_up()
        request = protocol.CloseRequest(session=self._session)
        await self._channel.unary_unary(f"/{NAME}/Close")(request.SerializeToString(), timeout=60)

    async def ask(self, due: float) -> None:
        data, expected = self._calls[self._next % len(self._calls)]
        self._next += 1
        # Fields of a message may follow each other in any order.
        data += protocol.DecideRequest(session=self._session, sequence=self._next).SerializeToString()
        try:
            reply = protocol.Decision.FromString(await self._decide(data, timeout=60))
        except (grpc.aio.AioRpcError, TimeoutError, asyncio.InvalidStateError):
            self.lost += 1
            self._next = -(-self._next // len(self._calls)) * len(self._calls)  # the next report of everything
            return
        self.times_ms.append(1e3 * (time.perf_counter() - due))
        self.decide_us.append(reply.decide_us)
        answer = None if reply.idle else (int(reply.job), reply.stage)
        self.wrong += reply.sequence != self._next or answer != expected

    async def run(self, begin: float, gap_s: float, end: float) -> None:
        """Ask every ``gap_s`` seconds, or again at once if that is 0."""
        due = begin
        while due < end:
            if gap_s:
                await asyncio.sleep(max(0.0, due - time.perf_counter()))
            else:
                due = time.perf_counter()
            await self.ask(due)
            due += gap_s


def load(service: str, scheduler: str, clients: int, calls: list, rate: float, method: str, seconds: float) -> dict:
    """Ask from several clients at once; for a process of its own."""

    async def run() -> tuple[list[Client], float, float]:
        # A connection of its own for each, as clients in different processes have.
        channels = [grpc.aio.insecure_channel(service, [("grpc.use_local_subchannel_pool", 1)]) for _ in range(clients)]
        all_clients = [Client(channel, scheduler, calls, method) for channel in channels]
        for client in all_clients:
            await client.open()
            await client.ask(time.perf_counter())
            client.times_ms.clear()
            client.decide_us.clear()
        gap_s = clients / rate if rate else 0.0
        begin, begin_cpu = time.perf_counter() + 0.2, time.process_time()
        await asyncio.gather(
            *(
                client.run(begin + number * gap_s / clients, gap_s, begin + seconds)
                for number, client in enumerate(all_clients)
            )
        )
        passed_s, cpu_s = time.perf_counter() - begin, time.process_time() - begin_cpu
        for client, channel in zip(all_clients, channels, strict=True):
            await client.close()
            await channel.close()
        return all_clients, passed_s, cpu_s

    done, passed_s, cpu_s = asyncio.run(run())
    times = np.concatenate([client.times_ms for client in done])
    return {
        "answered_per_s": len(times) / passed_s,
        "calls": len(times),
        "lost": sum(client.lost for client in done),
        "wrong": sum(client.wrong for client in done),
        "p50_ms": np.percentile(times, 50),
        "p99_ms": np.percentile(times, 99),
        "max_ms": times.max(),
        "decide_p50_ms": 1e-3 * np.median(np.concatenate([client.decide_us for client in done])),
        "client_cpu_ms": 1e3 * cpu_s / len(times),
    }


class Server:
    """``decima serve`` in a process of its own."""

    def __init__(self, *options: object) -> None:
        words = [sys.executable, "-m", "decima", "serve", "--port", "0", "--scheduler", "fair", "--also", POLICY]
        self._started = subprocess.Popen([*words, *map(str, options)], stdout=subprocess.PIPE, text=True)
        self.address = self._started.stdout.readline().split(" at ")[1].strip()
        self._process = psutil.Process(self._started.pid)

    @property
    def cpu_s(self) -> float:
        return sum(self._process.cpu_times()[:2])

    @property
    def mb(self) -> float:
        return self._process.memory_info().rss / 1e6

    def close(self) -> None:
        self._started.terminate()
        self._started.wait(60)


def measure(case: tuple, calls: list, seconds: float) -> dict:
    """One row of the table."""
    scheduler, clients, jobs, rate, method = case
    others_load = os.getloadavg()[0]
    server = Server()
    try:
        idle_cpu = 1 - psutil.cpu_percent(interval=1) / 100
        # A new interpreter: threads of gRPC do not survive a fork.
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
            asked = load, server.address, scheduler, clients, calls, rate, method
            pool.submit(*asked, 1.0).result()  # both ends warm up
            before = server.cpu_s
            numbers = pool.submit(*asked, seconds).result()
        row = {
            "method": method,
            "scheduler": scheduler,
            "clients": clients,
            "jobs": jobs,
        }
        row["calls_per_s"] = rate
        row |= numbers | {"server_cpu_ms": 1e3 * (server.cpu_s - before) / numbers["calls"]}
        row |= {"server_mb": server.mb, "idle_cpu": idle_cpu, "load": others_load}
        return row
    finally:
        server.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0, help="of every case")
    arguments = parser.parse_args()
    recordings, rows = {}, []
    for case in tqdm(CASES):
        scheduler, _, jobs, *_ = case
        if (scheduler, jobs) not in recordings:
            recordings[scheduler, jobs] = record(scheduler, jobs)
        rows.append(measure(case, recordings[scheduler, jobs], arguments.seconds))
        # After every case: what was measured before an interruption is kept.
        table = pandas.DataFrame(rows).round(3)
        table.to_csv(RESULTS / "service_load.csv", index=False)
    print(table.to_string(index=False))


if __name__ == "__main__":
    main()
