"""Clusters that grow, shrink and fail, for rules and policies of a fixed one."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pandas

from decima import plotting
from decima.evaluation.pool import RunPool
from decima.evaluation.statistics import paired_change
from decima.systems.spark.optimum.bounds import lower_bound
from decima.systems.spark.policy.scheduler import load_policy
from decima.systems.spark.result import EXECUTOR_HOURS
from decima.systems.spark.schedulers import Scheduler, make_scheduler
from decima.systems.spark.settings import Settings
from decima.workload.jobs import Workload
from decima.workload.sources import WorkloadSource
from experiments.captions import INTERVAL, Run, Tables, distinct
from experiments.comparisons import learned_policy, policy_row
from experiments.decima.s07_tuning import tuned_schedulers
from experiments.experiment import Context, Experiment, PoliciesIn, Profiles, StoredPolicy, TablesOf
from experiments.rooms import POLICY_ROOMS

# Streams that nothing was tuned, trained or validated on.
FIRST_SEED = 610_000
CORES = 5  # task slots of a Spark executor
FIXED = "fixed"
# By the idle timeout, of which 60 s are Spark's default.
_DYNAMIC = {"dynamic": True, "executor_cores": CORES, "min_executors": 1}
_SHORT = _DYNAMIC | {"idle_timeout_ms": 5000.0}
GROWING = {
    "dynamic, 60 s": _DYNAMIC,
    "dynamic, 5 s": _SHORT,
    "dynamic, 5 s, shuffle service": _SHORT | {"shuffle_service": True},
}
_LOSSES = {"loss_rate": 2.0, "executor_cores": CORES}  # an executor lives half an hour
_STRAGGLERS = {"straggler_share": 0.05, "straggler_shape": 2.5}
CLUSTERS = {
    FIXED: {},
    **GROWING,
    "losses": _LOSSES,
    "stragglers": _STRAGGLERS,
    "stragglers, speculation": _STRAGGLERS | {"speculation": True},
    "dynamic, losses, stragglers": _DYNAMIC | _LOSSES | _STRAGGLERS,
}
SHOWN = ("fair", "decima")  # whose hours are drawn: a rule without parameters, and what learned from random weights
# Measures of a run, as columns are called, and what changes of them are called.
MEASURES = {"avg_jct_s": "average JCT", "p95_jct_s": "p95 of JCT", "executor_hours": "executor hours"}


def compute(source: WorkloadSource, params: dict, context: Context) -> dict[str, pandas.DataFrame]:
    """Tables ``elastic``, ``elastic_changes``, ``sizes`` and ``room``.

    ``elastic`` has every scheduler on every cluster and stream. ``executor_hours`` are hours of task slots. For
    clusters with dynamic allocation alone, ``equal_hours`` is a fixed cluster with at least the executor hours that the
    same scheduler took. ``elastic_changes`` are against the fixed cluster of all executors, and against that of equal
    hours, paired by stream. ``sizes`` are fixed clusters of several sizes. ``room`` has the lower bound of the average
    JCT on the fixed cluster, which holds for every draw of durations, and so on every cluster here.
    """
    seeds = list(range(FIRST_SEED, FIRST_SEED + params["streams"]))
    streams = source.streams(seeds, params["jobs"], params["interarrival_s"])
    arrivals = f"stream-{params['interarrival_s']}s"
    schedulers: dict[str, Scheduler] = {name: make_scheduler(name) for name in ("fifo", "fair")}
    schedulers |= tuned_schedulers(context, arrivals)
    schedulers |= {policy_row(context.policies["stream"]): learned_policy(context, "stream")}
    schedulers |= {name: load_policy(policy) for name, policy in params["policies"].items()}

    def runs(chosen: Mapping[str, Scheduler], settings: Settings, label: str, **columns) -> pandas.DataFrame:
        metrics = ("avg_jct", "p95_jct", "makespan", "executor_hours")
        with RunPool(streams, settings, seeds=seeds, workers=context.threads, keep=False) as pool:
            scores = pool.measure(list(chosen.values()), metrics, progress=context.bar(label))
        rows = []
        for row, name in enumerate(chosen):
            for index, seed in enumerate(seeds):
                each = {column: scores[column][row, index] for column in ("avg_jct_s", "p95_jct_s", "makespan_s")}
                each["executor_hours"] = settings.executor_cores * scores[EXECUTOR_HOURS.column][row, index]
                rows.append(columns | {"scheduler": name, "seed": seed} | each)
        return pandas.DataFrame(rows)

    tables = [runs(schedulers, context.settings(**more), name, cluster=name) for name, more in CLUSTERS.items()]
    for table in tables.copy():
        cluster = table["cluster"].iloc[0]
        if cluster not in GROWING:
            continue
        for name, rows in table.groupby("scheduler", sort=False):
            slots = math.ceil(3600.0 * rows["executor_hours"].mean() / rows["makespan_s"].mean())
            settings = context.settings().replace(executors=min(slots, context.executors))
            tables.append(runs({name: schedulers[name]}, settings, name, cluster=_equal(cluster)))
    elastic = pandas.concat(tables, ignore_index=True)
    sizes = [
        runs(schedulers, context.settings().replace(executors=number), f"{number} executors", executors=number)
        for number in params["sizes"]
    ]
    frames = {
        "elastic": elastic,
        "elastic_changes": _changes(elastic),
        "sizes": pandas.concat(sizes, ignore_index=True),
        "room": pandas.DataFrame(
            {"seed": seed, "lower_bound_s": _bound_s(stream, context.settings())}
            for seed, stream in zip(seeds, streams, strict=True)
        ),
    }
    return {name: table.round(3) for name, table in frames.items()}


def _equal(cluster: str) -> str:
    return f"fixed, hours of {cluster}"


def _bound_s(stream: Workload, settings: Settings) -> float:
    return lower_bound(stream, settings, price_rounds=0).avg_jct_s


def _changes(elastic: pandas.DataFrame) -> pandas.DataFrame:
    """Changes in percent against the same scheduler on a fixed cluster, paired."""
    rows = []
    for scheduler, runs in elastic.groupby("scheduler", sort=False):
        of_cluster = {cluster: table.set_index("seed") for cluster, table in runs.groupby("cluster", sort=False)}
        for cluster in CLUSTERS:
            for against in (FIXED, _equal(cluster)):
                if against == cluster or against not in of_cluster:
                    continue
                for measure in MEASURES:
                    ours, theirs = (of_cluster[name][measure].to_numpy() for name in (cluster, against))
                    which = "equal hours" if against != FIXED else "all executors"
                    rows.append((which, cluster, scheduler, measure, len(ours), *paired_change(ours, theirs)))
    columns = ["against", "cluster", "scheduler", "measure", "seeds", "change_percent", "low", "high"]
    return pandas.DataFrame(rows, columns=columns)


def elastic_changes(tables: Tables, run: Run) -> plotting.style.Figure:
    """Changes of JCT and executor hours against the fixed cluster of all executors."""
    changes = tables["elastic_changes"]
    changes = changes[changes["against"] == "all executors"]
    figure = plotting.style.new_figure(plotting.style.PAGE, 5.8)
    grid = figure.subplots(1, len(MEASURES), sharey=True)
    for axes, (measure, label) in zip(grid, MEASURES.items(), strict=True):
        plotting.bars.change_points(changes[changes["measure"] == measure], "cluster", axes, legend=axes is grid[-1])
        axes.set_xlabel("change (%)")
        axes.set_title(label, loc="left")
    caption = (
        f"Each scheduler against itself on the fixed cluster, paired, {distinct(tables['room'], 'seed', 'stream')}; "
        f"bars: {INTERVAL}; up to {run.cluster}, {CORES} of which come and go together. {_policies(run, changes)}"
    )
    return plotting.style.entitle(figure, "Clusters that grow, shrink and fail", caption, run.workload)


def elastic_hours(tables: Tables, run: Run) -> plotting.style.Figure:
    """Average JCT over executor hours: fixed clusters of several sizes, and dynamic allocation."""
    sizes, elastic = (tables[name][tables[name]["scheduler"].isin(SHOWN)] for name in ("sizes", "elastic"))
    fixed = sizes.groupby(["scheduler", "executors"], sort=False)[list(MEASURES)].mean().reset_index()
    labels = [plotting.style.scheduler_style(name).label for name in fixed["scheduler"]]
    dynamic = elastic[elastic["cluster"].isin(GROWING)].groupby(["cluster", "scheduler"], sort=False)
    dynamic = dynamic[list(MEASURES)].mean().reset_index()
    columns = {"avg_jct_s": "mean_s"}
    axes = plotting.capacity.cost_curve(
        fixed.assign(load=1.0, cost=math.nan, label=labels).rename(columns=columns),
        measure="mean_s",
        others=dynamic.rename(columns=columns),
        floor_s=tables["room"]["lower_bound_s"].mean(),
    )
    axes.set_ylim(0.0, 2.0 * float(dynamic["avg_jct_s"].max()))
    caption = (
        "Lines: fixed clusters, numbers: executors; marks: dynamic allocation by its idle timeout; mean over "
        f"{distinct(tables['room'], 'seed', 'stream')}. Policy {run.policies['stream']}."
    )
    return plotting.style.entitle(axes.figure, "JCT over executor hours", caption, run.workload)


def _policies(run: Run, changes: pandas.DataFrame) -> str:
    words = f"Policy {run.policies['stream']}"
    if "decima_dynamic" in set(changes["scheduler"]):
        words += ", and tpch-stream-dynamic, which learned on the cluster dynamic, 5 s"
    return f"{words}."


EXPERIMENT = Experiment(
    "elastic",
    "clusters that grow, shrink and fail",
    compute,
    rooms=(*POLICY_ROOMS, "systems/spark/optimum"),
    figures=(elastic_changes, elastic_hours),
    inputs=(
        Profiles(),
        TablesOf("tuning"),
        StoredPolicy("stream"),
        PoliciesIn("elastic", ("policies",)),
    ),
    tiny={"interarrival_s": 14, "streams": 2, "jobs": 6, "sizes": [5, 10], "policies": {"decima_dynamic": "tiny"}},
)
