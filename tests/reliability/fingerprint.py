"""What this process computes, as digests; a program, so that processes, environments and checkouts can be compared.

``python -m tests.reliability.fingerprint all|core FOLDER THREADS``: ``core`` is one heuristic through the command line;
``all`` adds random runs of everything that decides, a comparison in threads, and the files of each.
"""

import contextlib
import hashlib
import io
import json
import sys
from pathlib import Path

import decima
from decima.commands.shared import compilation
from decima.workload import save, synthetic_batch, synthetic_poisson
from tests.drivers import Idler
from tests.unit.commands.calls import succeed


def digest(content):
    return hashlib.sha256(content).hexdigest()[:16]


def core(folder, threads):
    """Files of one run of the command line."""
    save(synthetic_poisson(8, 20.0, seed=3), folder / "jobs.json")
    outputs = ("--out", folder / "run.json", "--log", folder / "run.csv")
    said = succeed("simulate", "--jobs", folder / "jobs.json", "--executors", 7, "--seed", 5, *outputs)
    yield "summary", said.replace(str(folder), "").encode()
    yield from ((path.name, path.read_bytes()) for path in sorted(folder.iterdir()))


def all_kinds(folder, threads):
    """What ``core`` gives, random runs, a comparison."""
    from tests.reliability.guarded import guarded_run, subjects

    yield from core(folder, threads)
    for seed in range(2 * len(subjects())):
        yield f"run {seed}", " ".join(guarded_run(seed)).encode()
    jobs = synthetic_batch(6, seed=2)
    names = ["fifo", "fair", "weighted_fair:alpha=-0.7", "random", Idler(0.0)]
    compared = decima.compare(names, jobs, executors=5, seeds=range(6), workers=threads)
    yield "comparison", compared.scores.to_csv().encode()
    yield "table", str(compared).encode()
    names = ["--jobs", folder / "jobs.json", "--executors", 5, "--seeds", 4, "--workers", threads]
    with contextlib.redirect_stdout(io.StringIO()) as shown:
        succeed("compare", "fair", "capped_srw", *names, "--out", folder / "table.csv")
    yield "table.csv", (folder / "table.csv").read_bytes()
    yield "shown", shown.getvalue().encode()


if __name__ == "__main__":
    what, folder, threads = sys.argv[1:]
    parts = {"core": core, "all": all_kinds}[what](Path(folder), int(threads))
    compilation.ANNOUNCED_S = 1e9  # a cold cache says nothing
    package = str(Path(decima.__file__).parent)
    sys.stdout.write(json.dumps({"package": package} | {name: digest(content) for name, content in parts}))
