"""Appendix G: details of one stream on executors of four sizes (Figures 12a, 20, 21)."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas

from decima import plotting
from decima.core.errors import ConfigError
from decima.evaluation.run import simulate
from decima.plotting.words import count
from decima.systems.spark.result import Result
from decima.systems.spark.schedulers import CompiledScheduler
from decima.workload.sources import WorkloadSource
from experiments.captions import Run, Tables, distinct
from experiments.decima.s07_packing import (
    MEMORY,
    POLICIES,
    ROOMS,
    Case,
    cases,
    graphene_forms,
    labels,
    side_by_side,
    trained,
)
from experiments.decima.s07_stream import active_jobs
from experiments.experiment import Context, Experiment, Policies, Profiles, TablesOf

SHOWN_SHARE = 0.97  # of the times whose executors per job fit into Figure 20; a lone job has them all
BINS = 5  # of jobs by work; the paper's smallest 20 % are the first
_NO_TRAINING = {"sequences": 0, "train_jobs": 0}
_NO_PAIRED = {"paired": {"interarrival_s": 0, "streams": 0, "jobs": 0, "executors": 0, "draws": 0}}


def compute(source: WorkloadSource, params: dict, context: Context) -> dict[str, pandas.DataFrame]:
    """Tables ``appendix_g_series``, ``appendix_g_jobs`` (of first jobs and training runs), ``_busy``, ``_profile``.

    Decima is compared with the best form of Graphene*, whose parameters are those of the grid search of ``packing`` at
    the same load. The streams and draws are the first ones that ``packing`` judges on.
    """
    grids = context.tables("packing")["packing_grid"]
    trace = params["trace"]
    one_load = {"interarrival_s": [params["interarrival_s"]], "trace": trace | {"executors": [trace["executors"]]}}
    series, jobs, profiles = [], [], []
    for case in cases(source, params | one_load | _NO_TRAINING | _NO_PAIRED):
        policies = trained({"decima": case.policies["decima"]})
        for name, scheduler, number in [*policies, ("graphene", _graphene(grids, case), 1)]:
            where = {"workload": case.workload, "setting": case.setting, "scheduler": name}
            for seed, workload in enumerate(case.test):
                result = simulate(workload, scheduler, cluster=case.cluster, seed=seed, log=True)
                profiles.append(profile(result).assign(**where, training=number, seed=seed))
                if seed == 0:
                    step_s = workload.arrival_ms.max() / 1000.0 / params["points"]
                    series.append(load_series(result, step_s).assign(**where, training=number))
                if seed == 0 and number == 1:
                    jobs.append(result.jobs[["arrival_s", "jct_s", "work_s"]].assign(**where))
    what = ["workload", "setting", "scheduler", "training", "size", "memory"]
    by_training = pandas.concat(profiles).groupby(what, sort=False)
    means = by_training.mean().drop(columns="seed").assign(streams=by_training.size())
    over_time = pandas.concat(series)
    return {
        "appendix_g_series": over_time[over_time["training"] == 1].drop(columns="training"),
        "appendix_g_busy": busy_times(over_time),
        "appendix_g_jobs": pandas.concat(jobs),
        "appendix_g_profile": means.reset_index(),
    }


def _graphene(grids: pandas.DataFrame, case: Case) -> CompiledScheduler:
    grid = grids[(grids["workload"] == case.workload) & (grids["setting"] == case.setting)]
    if not len(grid):
        raise ConfigError(f"the experiment packing has no grid search for {case.workload}, {case.setting}")
    return graphene_forms(grid)["graphene"]


def load_series(result: Result, step_s: float) -> pandas.DataFrame:
    """Active jobs, and busy executors per job, at regular times of a logged run.

    Args:
        result: The run.
        step_s: Time between two rows.

    Returns:
        time_s; active_jobs; executors_per_job, busy executors over jobs in the system, 0 where there is no job.

    Source: appendix G, Figure 20.
    """
    table = active_jobs(result, step_s)
    times_ms = 1000.0 * table["time_s"].to_numpy()
    started, finished = (
        np.searchsorted(np.sort(times), times_ms, side="right") for times in (result.log.start_ms, result.log.finish_ms)
    )
    active = table["active_jobs"].to_numpy()
    busy = (started - finished).astype(float)
    return table.assign(executors_per_job=np.divide(busy, active, out=np.zeros(len(busy)), where=active > 0))


def busy_times(series: pandas.DataFrame) -> pandas.DataFrame:
    """Means in the fifth of the time in which Graphene* has most jobs, by training."""
    numbers, columns = ["active_jobs", "executors_per_job"], ["scheduler", "training"]
    times = series.pivot_table(index=["workload", "time_s"], columns=columns, values=numbers).fillna(0.0)
    waiting = times["active_jobs"]["graphene"][1]
    busy = times[waiting >= waiting.groupby("workload").transform("quantile", 0.8)].groupby("workload").mean()
    return busy.stack(columns, future_stack=True).reset_index()


def profile(result: Result) -> pandas.DataFrame:
    """Mean use of each class by jobs of each size in a logged run.

    Returns:
        size (0: the smallest fifth by work); memory of the class; executors of the class that ran the job's tasks at
        once, the mean from its first task to its end; executor_s, their time; avg_jct_s; from_work_s and to_work_s, the
        work of the smallest and the largest of these jobs.

    Source: appendix G, Figure 21, whose first column is Figure 12b.
    """
    log, work = result.log, result.jobs["work_s"].to_numpy()
    rank = np.argsort(np.argsort(work, kind="stable"), kind="stable")
    first_ms = np.full(len(work), np.inf)
    np.minimum.at(first_ms, log.job, log.start_ms)
    usage = result.class_usage()
    job = usage["job"].to_numpy()
    usage["size"] = (rank * BINS // len(work))[job]
    usage["memory"] = np.array(MEMORY)[usage["executor_class"]]
    usage["executors"] = usage["executor_s"] / ((result.completion_ms - first_ms) / 1000.0)[job]
    usage["avg_jct_s"], usage["work_s"] = result.jobs["jct_s"].to_numpy()[job], work[job]
    groups = usage.groupby(["size", "memory"])
    means = groups[["executors", "executor_s", "avg_jct_s"]].mean()
    return means.assign(from_work_s=groups["work_s"].min(), to_work_s=groups["work_s"].max()).reset_index()


def _settings(tables: Tables) -> str:
    """Text of captions about both loads and whose policies are shown."""
    gap, executors = tables["appendix_g_jobs"]["setting"].unique()
    policies = " and ".join(trainings[0] for trainings in POLICIES)
    return f"One job every {gap}; trace on {executors}. Policies {policies}; Graphene* tuned at these loads."


def _means(tables: Tables) -> str:
    """Text of captions about over what figures are means."""
    table = tables["appendix_g_profile"]
    number, streams = distinct(table, "training", "training run"), count(table["streams"].max(), "stream")
    return f"{number}, {streams} each. {_settings(tables)}"


def fig20_series(tables: Tables, run: Run) -> plotting.style.Figure:
    """Figure 20: jobs in the system, executors per job and JCT over time."""
    series, jobs = tables["appendix_g_series"], tables["appendix_g_jobs"]
    figure = plotting.style.new_figure(plotting.style.PAGE, 5.6)
    grid = figure.subplots(3, 2, sharex="col")
    for column, letter, label in zip(grid.T, "ab", series["workload"].unique(), strict=True):
        arrived = jobs[jobs["workload"] == label]
        rows = series[(series["workload"] == label) & (series["time_s"] <= arrived["arrival_s"].max())]
        plotting.curves.concurrent_jobs(rows, column[0], legend=False)
        value = {"value": "executors_per_job", "label": "executors per job"}
        plotting.curves.concurrent_jobs(rows, column[1], **value, legend=False)
        column[1].set_ylim(0.0, 1.05 * rows["executors_per_job"].quantile(SHOWN_SHARE))
        plotting.curves.jct_over_time(arrived, column[2], legend=False)
        for panel in column[:2]:
            panel.set_xlabel("")
        column[2].set_xlabel(column[2].get_xlabel().replace("time of arrival", "time"))
        for number, (panel, what) in enumerate(zip(column, (label, "executors", "JCT by arrival"), strict=True), 1):
            panel.set_title(f"({letter}{number}) {what}", loc="left")
    for panel in grid[:, 1]:
        panel.set_ylabel("")
    plotting.style.legend_beside(grid[0, 1])
    caption = (
        "1 stream and 1 draw of the trace, 1 seed each, until the last arrival; peaks of (a2) and (b2) are cut off. "
        + _settings(tables)
    )
    return plotting.style.entitle(figure, "Figure 20: over time", caption, labels(series))


def fig21_profile(tables: Tables, run: Run) -> plotting.style.Figure:
    """Figure 21: simultaneous executors by class and job size, policy over Graphene*; first column 12b."""
    table = tables["appendix_g_profile"]
    what = {"value": "executors", "label": "executors per job, policy / Graphene*"}
    draw, legend = partial(plotting.packing.use_of_classes, **what), {"title": "executor memory"}
    figure = side_by_side(table, draw, "decima", "graphene", legend=legend, sharey=True)
    caption = f"Means of {_means(tables)}"
    return plotting.style.entitle(figure, "Figure 21: executors by class and size of jobs", caption, labels(table))


def fig12a_sizes(tables: Tables, run: Run) -> plotting.style.Figure:
    """Figure 12a: JCT by size of jobs, the policy against Graphene*."""
    table = tables["appendix_g_profile"]
    figure = side_by_side(table, plotting.packing.change_by_size, "decima", "graphene", height=2.8, sharey=True)
    figure.axes[0].set_ylabel("JCT, Decima vs Graphene* (%)")
    caption = f"Decima against Graphene*; points: one of {_means(tables)}"
    return plotting.style.entitle(figure, "Figure 12a: JCT by size of jobs", caption, labels(table))


EXPERIMENT = Experiment(
    "appendix_g",
    "appendix G, Figures 20 and 21",
    compute,
    rooms=ROOMS,
    figures=(fig20_series, fig21_profile, fig12a_sizes),
    inputs=(Profiles(), TablesOf("packing"), Policies((*POLICIES[0], *POLICIES[1]))),
    tiny={
        "executors": 8,
        "interarrival_s": 4.5,
        "streams": 2,
        "jobs": 5,
        "points": 20,
        "trace": {"jobs": "alibaba_like:jobs=60", "fraction": 0.3, "executors": 40, "draws": 2},
    },
)
