"""Other simulators and planners next to this one, on the same kind of work, in CPU time of one thread.

Run from the checkout: ``python -m benchmarks.peers``. Every peer gets a virtual environment of its own in the folder of
caches, and is left out with one sentence where it cannot be fetched or installed. A folder with its source does instead
of a download: ``--source decima-sim=FOLDER``. Writes ``benchmarks/results/peers.csv``, where rows of other peers stay.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas

import decima
from benchmarks.peer_programs import DECIMA_SIM, HEAD, PLACEMENT, SAGA, SCHED_SIM, TAIL
from benchmarks.placement_episodes import random_episodes
from decima.systems.cloud import PlacementSettings
from decima.systems.cloud.sources import Generator
from decima.systems.cloud.state import give_chance, new_state
from decima.systems.heterogeneous import Cluster, Instance, make_scheduler
from decima.systems.heterogeneous.generators import random_dag
from decima.workload.sources import parse_jobs
from decima.workload.tpch.raw import fetch_tpch

RESULTS = Path(__file__).parent / "results"
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "decima" / "peers"
NODES, REPEATS = (50, 100, 200, 500), 5
COLUMNS = ("peer", "work", "unit", "peer_us", "decima_us", "ratio")


def least_us(run: Callable[[], int | None]) -> float:
    """Least CPU time of some runs, per unit where the run counts units."""
    times = []
    for _ in range(REPEATS):
        begin = time.process_time()
        count = run() or 1
        times.append(1e6 * (time.process_time() - begin) / count)
    return min(times)


def dags() -> list[Instance]:
    """Random DAGs on 10 executors, never planned before."""
    drawn = [random_dag(nodes, 10, 1) for nodes in NODES]
    return [Instance(each.jobs, Cluster(np.linspace(1.0, 2.0, 10), 1.0)) for each in drawn]


def plans() -> dict[str, float]:
    """Microseconds per plan of HEFT and CPOP."""
    found = {}
    for name in ("heft", "cpop"):
        scheduler = make_scheduler(name)
        scheduler.schedule(dags()[0])
        for instances in zip(*(dags() for _ in range(REPEATS)), strict=True):
            left, work = list(instances), f"{name}, {len(instances[0])} nodes"
            found[work] = least_us(lambda s=scheduler, i=left: len(s.schedule(i.pop()).node) and 1)
    return found


def streams() -> dict[str, float]:
    """Microseconds per task of a stream under ``fair``."""
    workload = parse_jobs("tpch:n=200,interarrival_s=25").workload(0)
    tasks = sum(stage.num_tasks for job in workload.jobs for stage in job.profile.stages)
    settings = {"mode": "released", "executors": 50}
    decima.simulate(workload, "fair", **settings)
    return {"200 TPC-H jobs, fair": least_us(lambda: decima.simulate(workload, "fair", **settings) and tasks)}


def placements() -> dict[str, float]:
    """Microseconds per step of random valid placements."""
    state, rng = new_state(Generator("normal").draw(0), PlacementSettings()), np.random.default_rng(0)
    give_chance(state, rng)
    random_episodes(state.address, 1)
    return {"random valid placements": least_us(lambda: rng and random_episodes(state.address, 400))}


# ---- what a peer does, in its own environment ----------------------------------------------------------------------


@dataclass(frozen=True)
class Peer:
    """A peer: what is installed, where its source is, the program it runs, and what is measured here."""

    packages: tuple[str, ...]
    program: str
    here: Callable[[], dict[str, float]]
    unit: str
    source: str = ""  # Git repository; empty: the packages are all
    folder: str = "."  # of its modules
    arguments: tuple[str, ...] = ()
    data: str = ""  # where it looks for the TPC-H files, which are those of this project

    def given(self, source: Path | None) -> str:
        """What the program reads."""
        jobs = [each.jobs[0] for each in dags()]
        shown = [{"work": j.work.tolist(), "edges": j.edges.tolist(), "data": j.data.tolist()} for j in jobs]
        paths = [str(source.resolve() / self.folder)] if source else []
        return json.dumps({"paths": paths, "arguments": self.arguments, "dags": shown})


GITHUB = "https://github.com/"
STREAM_ARGUMENTS = ("--exec_cap", "50", "--num_init_dags", "1", "--num_stream_dags", "200")
PEERS = {
    "saga": Peer(("anrg-saga",), SAGA, plans, "plan"),
    "decima-sim": Peer(
        ("numpy", "networkx", "matplotlib"),
        DECIMA_SIM,
        streams,
        "task",
        f"{GITHUB}hongzimao/decima-sim",
        arguments=STREAM_ARGUMENTS,
    ),
    "spark-sched-sim": Peer(
        ("numpy", "networkx", "gymnasium<1"),
        SCHED_SIM,
        streams,
        "task",
        f"{GITHUB}ArchieGertsman/spark-sched-sim",
        data="data/tpch",
    ),
    "RM_DeepRL": Peer(("numpy",), PLACEMENT, placements, "step", f"{GITHUB}tawfiqul-islam/RM_DeepRL", "src"),
}


def measure(name: str, source: Path | None = None, cache: Path = CACHE) -> list[dict]:
    """Rows of a peer.

    Args:
        name: A key of :data:`PEERS`.
        source: Folder with its source; downloaded when omitted.
        cache: Folder of virtual environments and downloads.

    Raises:
        subprocess.CalledProcessError: It cannot be fetched, installed or run.
    """
    peer, folder = PEERS[name], cache / name
    call = {"check": True, "capture_output": True, "text": True}
    if source is None and peer.source:
        source = folder / "source"
        if not source.is_dir():
            subprocess.run(["git", "clone", "--depth=1", peer.source, str(source)], **call)
    python = folder / "venv" / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], **call)
    if not (folder / "installed").exists():
        subprocess.run([str(python), "-m", "pip", "install", "-q", *peer.packages], **call)
        (folder / "installed").touch()
    if peer.data and not (link := source / peer.data).exists():
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(fetch_tpch().resolve())
    program, given = HEAD + peer.program + TAIL, peer.given(source)
    done = subprocess.run([str(python), "-c", program], input=given, cwd=source, **call)
    theirs, ours = json.loads(done.stdout.splitlines()[-1]), peer.here()
    rows = [(name, work, peer.unit, us, ours[work], us / ours[work]) for work, us in theirs.items()]
    return [dict(zip(COLUMNS, row, strict=True)) for row in rows]


def main(arguments: list[str] | None = None, out: Path = RESULTS / "peers.csv", cache: Path = CACHE) -> None:
    """Measure the peers that are named, all when none is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("peers", nargs="*", help=f"of {', '.join(PEERS)}; all when none is named")
    parser.add_argument(
        "--source", action="append", default=[], metavar="PEER=FOLDER", help="folder instead of a download"
    )
    options = parser.parse_args(arguments)
    sources = {name: Path(folder) for name, _, folder in (each.partition("=") for each in options.source)}
    for name in (*options.peers, *sources):
        if name not in PEERS:
            parser.error(f"no peer is called {name}; expected one of {', '.join(PEERS)}")
    kept = pandas.read_csv(out).to_dict("records") if out.exists() else []
    for name in options.peers or PEERS:
        try:
            measured = measure(name, sources.get(name), cache)
            kept = [each for each in kept if each["peer"] != name] + measured
        except (subprocess.CalledProcessError, OSError) as error:
            reason = (getattr(error, "stderr", "") or str(error)).strip().splitlines()[-1]
            print(f"{name} is left out: {reason}", file=sys.stderr)
    table = pandas.DataFrame(kept, columns=COLUMNS).round({"peer_us": 3, "decima_us": 3, "ratio": 1})
    out.parent.mkdir(parents=True, exist_ok=True)
    table.to_csv(out, index=False)
    print(table.to_string(index=False))


if __name__ == "__main__":
    main()
