"""What each part of continuing learning is worth: training runs of 100 iterations without one of them.

Run from the checkout: ``python -m benchmarks.continuing_parts``. It takes about three CPU hours, and may be stopped and
given again: finished training runs in ``--folder`` count. Writes ``models/training/continuing.csv``: a row per
policy and heuristic with its average JCT on ten streams of 1,000 jobs, and what the largest tenth of the jobs adds to
it. *Tenths* are of the work of a stream's jobs.

With ``--batches`` it trains on batches instead, with the paper's
features and with executor-entry cost (80 CPU minutes), and writes ``benchmarks/results/continuing_batches.csv``.
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
from decima.evaluation.run import score_matrix
from decima.evaluation.statistics import paired_change
from decima.learning.trainer import FILE_NAME
from decima.systems.spark.policy.task import Task
from decima.systems.spark.schedulers import make_scheduler
from decima.systems.spark.settings import Settings
from decima.workload.sources import get_source

TABLE = Path(__file__).parents[1] / "models" / "training" / "continuing.csv"
RESULTS = Path(__file__).parent / "results"
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
FEATURES = {"the paper's": [], "with executor-entry cost": NETWORK}
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


def train_on_batches(features: str, seed: int, folder: Path) -> Path:
    """Folder with a policy that learned on batches; trained where it is not there."""
    out = folder / f"batches-{features.replace(' ', '-')}-{seed}"
    if not (out / "policy.json").is_file():
        command = [sys.executable, "-m", "decima", "train", "tpch", "--recipe", "continuing", "--seed", str(seed)]
        command += ["--workers", "1", "--out", str(out), *(f"--set={change}" for change in FEATURES[features])]
        subprocess.run([*command, *["--resume"] * (out / FILE_NAME).is_file()], check=True)
    return out


def batch_rows(folder: Path, seeds: range) -> Iterator[dict]:
    """A row per training on batches: changes in percent on 100 fresh batches, paired."""
    batches = [get_source("tpch").batch(20, seed) for seed in range(FIRST_SEED, FIRST_SEED + 100)]
    settings = Settings.of_mode("paper", executors=50)
    references = Task("batch", source="tpch").reference_schedulers()
    known = dict(zip(references, score_matrix(batches, list(references.values()), settings), strict=True))
    for features in FEATURES:
        for seed in seeds:
            out = train_on_batches(features, seed, folder)
            (scores,) = score_matrix(batches, [make_scheduler(str(out / "policy.weights.h5"))], settings)
            curve = pandas.read_csv(out / "curve.csv")
            level = curve[curve["val_ratio_weighted_fair"] <= 1.0]["cpu_s"]  # on par on validation batches
            row = {"features": features, "seed": seed, "iterations": len(curve), "cpu_s": curve["cpu_s"].iloc[-1]}
            row |= {"level_cpu_s": level.min(), "avg_jct_s": scores.mean()}
            for name, values in known.items():
                change, low, high = paired_change(scores, values)
                row |= {f"to_{name}": change, f"to_{name}_low": low, f"to_{name}_high": high}
            yield row


def main() -> None:
    """Train what is missing, and write the table after every row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path("runs/continuing-parts"), help="folder of training runs")
    parser.add_argument("--seeds", type=int, default=3, help="training runs of each part")
    parser.add_argument("--batches", action="store_true", help="train on batches")
    given = parser.parse_args()
    seeds, done = range(1, given.seeds + 1), []
    if given.batches:
        found = pandas.DataFrame(batch_rows(given.folder, seeds))
        found.to_csv(RESULTS / "continuing_batches.csv", index=False, float_format="%.3f")
        return
    for row in tqdm(rows(given.folder, seeds), total=len(HEURISTICS) + given.seeds * 7):
        done.append(row)
        pandas.DataFrame(done).to_csv(TABLE, index=False)


if __name__ == "__main__":
    main()
