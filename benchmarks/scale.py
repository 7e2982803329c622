"""Time of a run against its number of events: cluster and stream grow together at constant load.

Run from the checkout: ``python -m benchmarks.scale``. Writes ``benchmarks/results/scale.csv`` and ``scale.png``.
"""

import time
from pathlib import Path

import pandas
from matplotlib.figure import Figure
from tqdm.auto import tqdm

from decima.systems.spark.schedulers import make_scheduler
from decima.systems.spark.settings import Settings
from decima.systems.spark.state import ClusterState
from decima.systems.spark.system import run_state
from decima.systems.spark.tables import WorkloadTables
from decima.workload import synthetic_poisson

SIZES = ((500, 750), (1000, 1500), (2000, 3000), (5000, 7500), (10_000, 15_000), (20_000, 30_000))
LOAD_GAP_S = 1260.0  # mean interarrival time in seconds times executors; about 63 % load
RESULTS = Path(__file__).parent / "results"


def measure(jobs: int, executors: int, mode: str) -> dict:
    """One run with the fair heuristic."""
    workload = synthetic_poisson(jobs, LOAD_GAP_S / executors, 0)
    settings = Settings.of_mode(mode, executors=executors)
    state = ClusterState(WorkloadTables(workload, settings), settings)
    scheduler = make_scheduler("fair")
    start = time.perf_counter()
    run_state(state, scheduler, 0)
    seconds = time.perf_counter() - start
    events = state.task_events + state.job_events + state.executor_events
    return {
        "mode": mode,
        "jobs": jobs,
        "executors": executors,
        "events": events,
        "decisions": state.num_decisions,
        "seconds": seconds,
        "events_per_s": events / seconds,
    }


def main() -> None:
    for mode in ("released", "paper"):
        measure(10, 50, mode)  # compile
    rows = [measure(*size, mode) for size in tqdm(SIZES) for mode in ("released", "paper")]
    table = pandas.DataFrame(rows)
    RESULTS.mkdir(exist_ok=True)
    table.to_csv(RESULTS / "scale.csv", index=False)
    figure = Figure(figsize=(5, 3.5), layout="constrained")
    axes = figure.subplots()
    for mode, part in table.groupby("mode"):
        axes.loglog(part["events"] / 1e6, part["seconds"], marker="o", label=f"mode {mode}")
    first = table.iloc[0]
    linear = table["events"] * first["seconds"] / first["events"]
    axes.loglog(table["events"] / 1e6, linear, color="0.6", linestyle="--", label="linear in events")
    axes.set(
        xlabel="events [million]",
        ylabel="time of the run [s]",
        title="Fair heuristic, 500 jobs on 750 executors to\n20,000 jobs on 30,000 executors (one thread)",
    )
    axes.legend()
    figure.savefig(RESULTS / "scale.png", dpi=150)
    print(table.to_string(index=False))


if __name__ == "__main__":
    main()
