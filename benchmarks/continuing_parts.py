"""What each part of continuing learning is worth: trainings of 100 iterations without one of them.

Run from the checkout: ``python -m benchmarks.continuing_parts``. It takes about three CPU hours, and may be stopped and
given again: finished trainings in ``--folder`` count. Writes ``models/training/continuing.csv``: a row per
policy and heuristic with its average JCT on ten streams of 1,000 jobs, and what the largest tenth of the jobs adds to
it. *Tenths* are of the work of a stream's jobs.
"""

import argparse
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas
from tqdm.auto import tqdm

import decima
from decima.learning.checkpoint import FILE_NAME
from decima.workload.sources import get_source

TABLE = Path(__file__).parents[1] / "models" / "training" / "continuing.csv"
STORED, WHOLE = "tpch-stream-entry-continuing", "continuing learning"
TRAINING = ["--params", STORED, "--workers", "1"]
ENTRY = "entry_cost+entry_room+level_work+slope"
NETWORK = [f"architecture.more_features={ENTRY}", "architecture.limit=output", "architecture.max_executors=50"]
#: Part -> what training without it changes. Episodes that end are those of the recipe `fast`: streams of 100 jobs, in
#: as many iterations as take the same CPU time.
PARTS = {
    WHOLE: [],
    "critic sees work alone": ["recipe.critic_sees=work"],
    "critic reads embeddings": ["recipe.critic_sees=embedding"],
    "critic without correction": ["recipe.critic_correction=false"],
    "no mean over copies": ["recipe.equal_times=false"],
    "episodes that end": ["recipe.teacher=none", "recipe.entropy_start=0.02", "recipe.entropy_iterations=75", *NETWORK],
}
HEURISTICS = {
    "weighted fair": "weighted_fair:alpha=0.1,order=1,stage_rule=0,sticky=0",
    "capped SRW": "capped_srw:stream",
}
FIRST_SEED, STREAMS, JOBS, GAP_S = 910_000, 10, 1000, 14.0


def train(part: str, seed: int, folder: Path) -> Path:
    """Folder with the policy of a part; trained where it is not there."""
    out = folder / f"{part.replace(' ', '-')}-{seed}"
    if not (out / "policy.json").is_file():
        ends = part == "episodes that end"
        jobs = ["tpch:arrivals=poisson,n=100,interarrival_s=14", "--workers", "1"]
        command = [sys.executable, "-m", "decima", "train", *(jobs if ends else TRAINING), "--seed", str(seed)]
        command += ["--iterations", "130" if ends else "100", "--out", str(out)]
        command += [option for change in PARTS[part] for option in ("--set", change)]
        command += ["--resume"] * (out / FILE_NAME).is_file()
        subprocess.run(command, check=True)
    return out


def score(scheduler: str) -> dict[str, float]:
    """Average JCT on the streams, and the part of it that the largest tenth of the jobs has, in seconds."""
    means, largest = [], []
    for seed in range(FIRST_SEED, FIRST_SEED + STREAMS):
        stream = get_source("tpch").stream(JOBS, GAP_S, seed)
        jobs = decima.simulate(stream, scheduler, executors=50, seed=seed).jobs
        big = np.argsort(jobs["work_s"].to_numpy(), kind="stable")[-len(jobs) // 10 :]
        means.append(jobs["jct_s"].mean())
        largest.append(jobs["jct_s"].to_numpy()[big].sum() / len(jobs))
    return {"avg_jct_s": round(float(np.mean(means)), 3), "largest_s": round(float(np.mean(largest)), 3)}


def rows(folder: Path, seeds: range) -> Iterator[dict]:
    """A row per heuristic, stored policy and training."""
    for name, scheduler in HEURISTICS.items():
        yield {"part": name, "iterations": 0} | score(scheduler)
    for seed in seeds:
        stored = STORED if seed == 1 else f"{STORED}-{seed}"
        cpu_s = pandas.read_csv(TABLE.with_name(f"{STORED}-seed{seed}.csv"))["cpu_s"].iloc[-1]
        about = {"part": WHOLE, "iterations": 400, "seed": seed, "cpu_s": round(cpu_s, 1)}
        yield about | score(f"decima:policy={stored}")
    for seed in seeds:
        for part in PARTS:
            out = train(part, seed, folder)
            curve = pandas.read_csv(out / "curve.csv")
            about = {"part": part, "iterations": len(curve), "seed": seed, "cpu_s": round(curve["cpu_s"].iloc[-1], 1)}
            yield about | score(str(out / "policy.weights.h5"))


def main() -> None:
    """Train what is missing, and write the table after every row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path("runs/continuing-parts"), help="folder of the trainings")
    parser.add_argument("--seeds", type=int, default=3, help="trainings of each part")
    given = parser.parse_args()
    done: list[dict] = []
    for row in tqdm(rows(given.folder, range(1, given.seeds + 1)), total=len(HEURISTICS) + given.seeds * 7):
        done.append(row)
        pandas.DataFrame(done).to_csv(TABLE, index=False)


if __name__ == "__main__":
    main()
