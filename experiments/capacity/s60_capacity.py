"""From event logs to a number of executors, and how far to trust it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial

import pandas
from matplotlib.ticker import LogLocator

from decima import plotting
from decima.connect.eventlog.application import Application
from decima.connect.eventlog.prediction import error_of, predict_runs, sizes_of
from decima.connect.eventlog.recordings import read_recordings
from decima.core.errors import ConfigError
from decima.plotting.words import count
from decima.systems.spark.capacity import (
    PARTS,
    Plan,
    Recording,
    choose_point,
    floors_of,
    knee_of,
    read_target,
    run_recording,
    summarize,
    sweep,
    time_parts,
)
from decima.systems.spark.schedulers import make_scheduler
from decima.workload.jobs import Workload
from decima.workload.sources import WorkloadSource
from experiments.captions import SPARK_WORKLOAD, Run, Tables, presets
from experiments.experiment import Context, Experiment, FilesIn
from experiments.params import checkout
from experiments.rooms import SPARK_ROOMS
from measure.logs import read_alone, read_mixes

# Rows by scheduler, none of them tuned.
SCHEDULERS = {
    "fifo": "fifo",
    "fair": "fair",
    "weighted_fair_default": "weighted_fair:paper",
    "capped_srw": "capped_srw:plain",
}
HOSTS = {"one": "all executors on one host", "many": "more executors, more hosts"}
# Whose time is split into parts.
EXPLAINED = "fair"
_ALONE = "#warm-"  # in the ids of queries that ran alone on executors that were there


def compute(source: WorkloadSource, params: dict, context: Context) -> dict[str, pandas.DataFrame]:
    """Tables ``curve``, ``recorded``, ``choices``, ``parts``, ``predicted`` and ``trust``.

    They are about recorded queries on Spark, whatever the workload of the run. A batch of queries that were submitted
    at once is simulated on clusters of many sizes. ``predicted`` has logs of queries that ran alone, summed over the
    queries of a scale, predicted from the logs of each size; where that is their own, from the other repetition.
    ``trust`` has the errors of that, of single queries and of the sums.
    """
    root = checkout()
    predicted = _predicted(read_alone(root / params["alone"]))
    trust = _trust(predicted)
    predicted = predicted.assign(scale=predicted["name"].str.partition("-")[2])
    logs = ["source", "slots", "scale", "app_id"]
    predicted = predicted.groupby(logs, as_index=False).agg(
        queries=("name", "nunique"), predicted_s=("predicted_s", "sum"), recorded_s=("recorded_s", "sum")
    )
    batch: dict[str, list[Recording]] = {}
    for hosts in HOSTS:
        recordings = read_recordings(_batches(root / params["batch"]), unit="query", hosts=hosts)
        batch[hosts] = [_first(recordings.recordings[0], _size(recordings.recordings[0]))]
    whole = recordings.recordings[0]
    size = len(batch["many"][0].workload)
    recorded = pandas.DataFrame(
        {"executors": whole.slots, "batch": index, "query": job.profile.name, "jct_s": whole.recorded_ms[at] / 1000.0}
        for index in range(len(whole.workload) // size)
        for at, job in enumerate(whole.workload.jobs[index * size : (index + 1) * size], index * size)
    )
    plan = Plan(params["sizes"], draws=params["draws"])
    schedulers = {row: make_scheduler(text) for row, text in SCHEDULERS.items()}
    curves, choices, parts = [], [], []
    other = trust[(trust["source"] == whole.slots) & (trust["slots"] != whole.slots)]
    for hosts, recordings in batch.items():
        swept = sweep(
            recordings,
            schedulers,
            plan,
            price=lambda executors: params["price"] * executors,
            threads=context.threads,
            progress=context.bar(HOSTS[hosts]),
        )
        points = summarize(swept).assign(hosts=hosts, draws=params["draws"])
        curves.append(points.assign(error_percent=other["query_percent"].mean()))
        choices += _choices(points, recordings, params["target"], hosts)
        for executors in params["shown"]:
            for seed in range(params["draws"]):
                run = run_recording(recordings[0], schedulers[EXPLAINED], executors, seed=seed)
                sums = time_parts(recordings[0], run)[[f"{part}_s" for part in PARTS if part != "unexplained"]].sum()
                parts.append({"hosts": hosts, "executors": executors, "seed": seed} | sums.to_dict())
    frames = {
        "curve": pandas.concat(curves),
        "recorded": recorded,
        "choices": pandas.DataFrame(choices),
        "parts": pandas.DataFrame(parts),
        "predicted": predicted,
        "trust": trust,
    }
    return {name: table.round(5) for name, table in frames.items()}


def _batches(folder) -> list[Application]:
    """Logs of batches without the queries that ran alone before them."""
    logs = []
    for log in read_mixes(folder):
        ids = log.queries["query"]
        logs.append(log.only(ids[~ids.str.startswith("warm-up")]))
    return logs


def _size(recording: Recording) -> int:
    """Queries of a batch, each of which it has once."""
    return len({job.profile.name for job in recording.workload.jobs})


def _first(recording: Recording, jobs: int) -> Recording:
    """The recording of its first jobs alone."""
    stages = int(recording.workload.first_stage[jobs])
    return Recording(
        recording.name,
        Workload(recording.workload.jobs[:jobs], recording.workload.label),
        recording.driver_ms[:stages],
        recording.recorded_ms[:jobs],
        recording.slots,
        recording.contention[:stages],
    )


def _choices(points: pandas.DataFrame, recordings: list[Recording], target: str, hosts: str) -> list[dict]:
    """Knee of every scheduler, and its smallest cluster that meets the target."""
    floors, wanted = floors_of(recordings), read_target(target)
    rows = []
    for scheduler, group in points.groupby("scheduler", sort=False):
        chosen = {"knee": knee_of(group, "mean_s")}
        with suppress(ConfigError):  # no size meets it
            chosen[target] = choose_point(group, "mean_s", wanted)
        shown = ["executors", "mean_s", "p95_s", "executor_hours", "cost", "utilization"]
        for why, point in chosen.items():
            row = {"hosts": hosts, "scheduler": scheduler, "choice": why} | point[shown].to_dict()
            rows.append(row | {"floor_mean_s": floors["mean_s"], "floor_p95_s": floors["p95_s"]})
    return rows


def _predicted(logs: Sequence[Application]) -> pandas.DataFrame:
    """Every query that ran alone, predicted from the logs of each size."""
    of_size = sizes_of([log.only(log.queries["query"][log.queries["query"].str.contains(_ALONE)]) for log in logs])
    tables = []
    for source, logs_of in of_size.items():
        for slots, targets in of_size.items():
            if slots != source:
                tables.append(predict_runs(logs_of, targets).assign(source=source))
                continue
            for target in targets:
                others = [log for log in logs_of if log is not target]
                tables += [predict_runs(others, [target]).assign(source=source)] if others else []
    return pandas.concat(tables, ignore_index=True)


def _trust(predicted: pandas.DataFrame) -> pandas.DataFrame:
    """Mean size of the errors in percent, by size of the logs and predicted size."""
    rows = []
    for (source, slots), runs in predicted.groupby(["source", "slots"]):
        error = error_of(runs)
        row = {"source": source, "slots": slots, "queries": len(runs)}
        for name, (mean, low, high) in (("query", error.query), ("total", error.total)):
            row |= {f"{name}_percent": mean, f"{name}_low": low, f"{name}_high": high}
        rows.append(row)
    return pandas.DataFrame(rows)


def _panels(tables: Tables, measure: str, draw) -> plotting.style.Figure:
    """Draw a panel per assumption about hosts, with one legend and logarithmic axes."""
    labels = [plotting.style.scheduler_style(name).label for name in tables["curve"]["scheduler"]]
    points = tables["curve"].assign(label=labels)
    figure = plotting.style.new_figure(plotting.style.PAGE, 2.8)
    grid = figure.subplots(1, len(HOSTS), sharey=True)
    for axes, (hosts, title) in zip(grid, HOSTS.items(), strict=True):
        draw(points[points["hosts"] == hosts], axes, measure=measure, legend=False)
        axes.set_title(title, loc="left")
    for axes in grid:
        axes.set_ylim(0.8 * points[measure].min(), 1.2 * points[measure].max())
        axes.set(xscale="log", yscale="log")
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        plotting.style.plain_numbers(axes.xaxis, axes.yaxis)
    plotting.style.legend_beside(grid[-1])
    return figure


def _drawn(tables: Tables) -> str:
    """Text of captions about what was simulated how often."""
    queries = tables["recorded"]["query"].nunique()
    seeds = count(int(tables["curve"]["draws"].iloc[0]), "seed")
    return f"{count(queries, 'query')} submitted at once, {seeds} per point"


def capacity_curve(tables: Tables, run: Run) -> plotting.style.Figure:
    """Mean JCT over executors under both assumptions about hosts."""
    recorded = tables["recorded"].groupby(["executors", "batch"])["jct_s"].mean().reset_index()
    crosses = list(recorded[["executors", "jct_s"]].itertuples(index=False, name=None))

    draw = partial(plotting.capacity.time_curve, recorded=crosses)
    caption = (
        f"{_drawn(tables)}; dark bands: 95 % confidence interval of the mean; light bands: mean error of predictions "
        f"for other sizes; crosses: {count(len(crosses), 'recorded batch')} under FIFO."
        f"{presets(tables['curve']['scheduler'])}"
    )
    return plotting.style.entitle(_panels(tables, "mean_s", draw), "JCT over executors", caption, SPARK_WORKLOAD)


def capacity_cost(tables: Tables, run: Run) -> plotting.style.Figure:
    """95th percentile of the JCT over what the batch costs."""
    price = run.params["capacity"]["price"]
    caption = f"{_drawn(tables)}; numbers: executors, at USD {price:g} per hour.{presets(tables['curve']['scheduler'])}"
    figure = _panels(tables, "p95_s", plotting.capacity.cost_curve)
    for axes in figure.axes:
        axes.set_xlabel("cost ($)")
    return plotting.style.entitle(figure, "JCT over cost", caption, SPARK_WORKLOAD)


def capacity_limits(tables: Tables, run: Run) -> plotting.style.Figure:
    """Parts of the JCT over executors."""
    rows = tables["parts"][tables["parts"]["hosts"] == "many"]
    shown = {count(executors, "executor"): table for executors, table in rows.groupby("executors")}
    axes = plotting.capacity.part_bars(shown)
    style = plotting.style.scheduler_style(EXPLAINED)
    seeds = count(rows["seed"].nunique(), "seed")
    caption = f"JCT of all queries along the stages that ended last, {style.label}, {seeds}; {HOSTS['many']}."
    return plotting.style.entitle(axes.figure, "What limits larger clusters", caption, SPARK_WORKLOAD)


def capacity_trust(tables: Tables, run: Run) -> plotting.style.Figure:
    """Predicted and recorded times by size, and the error of single queries."""
    predicted = tables["predicted"]
    largest = predicted.loc[predicted["recorded_s"].idxmax(), "scale"]
    sums = predicted[predicted["scale"] == largest]
    figure = plotting.style.new_figure(plotting.style.PAGE, 2.8)
    left, right = figure.subplots(1, 2)
    plotting.capacity.predicted_sums(sums, left)
    plotting.capacity.error_matrix(tables["trust"], right)
    logs = count(predicted["app_id"].nunique(), "log")
    caption = (
        f"{count(int(sums['queries'].max()), 'query')} alone, {logs}, mean over 5 seeds of each. Left: sum of the "
        f"queries at scale {largest}, crosses: recorded. Right: mean size of the error of a query; diagonal: from the "
        "other repetition."
    )
    return plotting.style.entitle(figure, "Predicted and recorded times", caption, SPARK_WORKLOAD)


EXPERIMENT = Experiment(
    "capacity",
    "how many executors",
    compute,
    rooms=(*SPARK_ROOMS, "connect/eventlog", "measure/logs.py", "measure/records.py", "systems/spark/capacity.py"),
    figures=(capacity_curve, capacity_cost, capacity_limits, capacity_trust),
    inputs=(FilesIn("capacity", ("folders",), ("runs.csv", "card.json", "events", "runs")),),
    tiny={
        "folders": ["data/alone", "data/mix"],
        "alone": "data/alone",
        "batch": "data/mix",
        "sizes": [1, 2, 4],
        "shown": [1, 4],
        "draws": 2,
        "target": "p95<1000s",
        "price": 0.05,
    },
)
