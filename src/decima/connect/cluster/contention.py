"""Load of the machine while a query ran: how much other work competed with Spark.

Two measures, both from `/proc`: how long the threads of Spark were ready to run and did not get a core (their wait
share), and how much of the cores went to processes that are not Spark's (the foreign share). Executors and driver
compete with each other as well, so that an idle machine also has a wait share. Without `/proc` waiting is
counted as 0.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

PROC = Path("/proc")


@dataclass(frozen=True)
class Sample:
    """Counters of threads and cores at one moment."""

    time_s: float  # clock of the sample, in seconds
    threads: dict[tuple[int, int], tuple[int, int]]  # CPU time and time on a run queue in ns, by process and thread
    busy_s: float  # time all cores together were not idle, in core seconds


@dataclass(frozen=True)
class Load:
    """Load of the machine between two samples."""

    run_s: float  # CPU time of the watched processes in seconds
    wait_s: float  # time their threads were ready to run without a core
    foreign_share: float  # share of all core time that other processes (and the host) took
    load_average: float  # mean number of processes that are running or ready, over the last minute
    # Share of time in which some process waited for a core, over the last 10 s; None if the system does not say.
    pressure: float | None

    @property
    def wait_share(self) -> float:
        """Share of waiting in the time of waiting and running together."""
        total = self.run_s + self.wait_s
        return self.wait_s / total if total > 0 else 0.0

    def row(self) -> dict[str, float | None]:
        """Values by name, rounded to four places, for a table."""
        values = {name: None if value is None else round(value, 4) for name, value in asdict(self).items()}
        return values | {"wait_share": round(self.wait_share, 4)}


def sample(pids: Iterable[int], time_s: float) -> Sample:
    """Read the counters of the machine and of those processes that still exist."""
    threads = {}
    for pid in pids:
        try:
            names = os.listdir(PROC / str(pid) / "task")
        except OSError:
            continue
        for name in names:
            try:
                run, wait, *_ = (PROC / str(pid) / "task" / name / "schedstat").read_text().split()
            except OSError:
                continue  # the thread has ended
            threads[pid, int(name)] = int(run), int(wait)
    times = psutil.cpu_times()
    idle = times.idle + getattr(times, "iowait", 0.0)
    # Time in guests is counted in user time already.
    busy = sum(times) - idle - getattr(times, "guest", 0.0) - getattr(times, "guest_nice", 0.0)
    return Sample(time_s, threads, busy)


def between(before: Sample, after: Sample, cores: int | None = None) -> Load:
    """Load between two samples of the same processes; threads started meanwhile count from their start."""
    run = wait = 0
    for key, (run_ns, wait_ns) in after.threads.items():
        run_before, wait_before = before.threads.get(key, (0, 0))
        run += run_ns - run_before
        wait += wait_ns - wait_before
    run_s = run / 1e9
    capacity = (after.time_s - before.time_s) * (os.cpu_count() if cores is None else cores)
    foreign = max(0.0, after.busy_s - before.busy_s - run_s)
    return Load(run_s, wait / 1e9, foreign / capacity if capacity > 0 else 0.0, os.getloadavg()[0], _pressure())


def family(pid: int) -> list[int]:
    """Ids of a process and all its descendants."""
    try:
        process = psutil.Process(pid)
        return [pid, *(child.pid for child in process.children(recursive=True))]
    except psutil.NoSuchProcess:
        return []


def _pressure() -> float | None:
    try:
        some, *_ = (PROC / "pressure" / "cpu").read_text().splitlines()
    except (OSError, ValueError):  # there is no such file, or it is empty
        return None
    return float(dict(part.split("=") for part in some.split()[1:])["avg10"]) / 100.0
