"""§7.2, continuous arrivals: Poisson streams of jobs (Figures 9b and 10)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas

from decima import plotting
from decima.evaluation.run import simulate
from decima.systems.spark.alpha import alpha_sweep
from decima.systems.spark.policy.scheduler import load_policy
from decima.systems.spark.result import Result
from decima.systems.spark.schedulers import make_scheduler
from decima.workload.sources import WorkloadSource
from experiments.captions import INTERVAL, Run, Tables, against_labels, distinct, learned_words
from experiments.comparisons import BASELINES, learned_schedulers, paired_changes, score_table
from experiments.decima.s07_tuning import SHOWN, alpha_figure, tuned_schedulers, weighted_fair_by_arrival
from experiments.experiment import Context, Experiment, PoliciesIn, Profiles, StoredPolicy, TablesOf
from experiments.rooms import POLICY_ROOMS

if TYPE_CHECKING:
    from decima.plotting.style import Figure

# Whose policies are compared: Decima's, one that saw more, one that imitated a rule first.
LEARNED = ("stream", "entry_stream", "warm_stream")
UNTUNED = ("fifo", "sjf_cp", "fair", "naive_weighted_fair")
# Rows of Figure 9b: the paper's two, and the heuristic that users have.
_FIG09B = ("fair", "weighted_fair", "decima")
# Whose tasks are looked at one by one (Figure 10d and e).
EXECUTED = ("weighted_fair", "decima")


def compute(source: WorkloadSource, params: dict, context: Context) -> dict[str, pandas.DataFrame]:
    """Tables ``stream``, ``stream_changes``, ``alpha_stream``; of the first stream ``stream_jobs``, ``stream_series``.

    ``stream_executed`` holds the executor time that jobs of the first stream took, for the schedulers in ``EXECUTED``,
    ``stream_trainings`` what Figure 10 shows of all training runs.
    """
    seeds = list(range(params["streams"]))
    scores, changes, curves, jobs, series, executed, trainings = [], [], [], [], [], [], []
    for gap_s in params["interarrival_s"]:
        arrivals = f"stream-{gap_s}s"
        learned = learned_schedulers(context, *LEARNED)
        workloads = source.streams(seeds, params["jobs"], gap_s)
        schedulers = {name: make_scheduler(name) for name in UNTUNED} | tuned_schedulers(context, arrivals)
        schedulers |= {"weighted_fair_arrival": weighted_fair_by_arrival(context, arrivals)}
        schedulers |= learned
        gap = {"interarrival_s": gap_s}
        table = score_table(schedulers, workloads, seeds, context.settings(), context, f"streams, {gap_s} s", **gap)
        scores.append(table)
        changes.append(paired_changes(table, ["capped_srw", *learned], BASELINES).assign(**gap))
        few = params["alpha_streams"]
        sweep = alpha_sweep(
            workloads[:few],
            context.settings(),
            variants=SHOWN,
            seeds=seeds[:few],
            workers=context.threads,
            progress=context.bar("alpha"),
        )
        curves.append(sweep.table.assign(**gap))
        logged = {}
        for name, scheduler in schedulers.items():
            result = simulate(workloads[0], scheduler, context.executors, seeds[0], log=name in EXECUTED)
            columns = {"scheduler": name, "seed": seeds[0]} | gap
            jobs.append(result.jobs.assign(job=np.arange(len(workloads[0])), **columns))
            series.append(active_jobs(result, params["series_step_s"]).assign(**columns))
            if name in EXECUTED:
                executed.append(executed_work(result).assign(**columns))
                logged[context.policies["stream"] if name == "decima" else name] = result
        runs = {
            name: logged.get(name) or simulate(workloads[0], load_policy(name), context.executors, seeds[0], log=True)
            for name in ("weighted_fair", *params["trainings"])
        }
        trainings.append(in_numbers(runs, params["series_step_s"]).assign(**gap))
    return {
        "stream": pandas.concat(scores),
        "stream_changes": pandas.concat(changes),
        "alpha_stream": pandas.concat(curves),
        "stream_jobs": pandas.concat(jobs),
        "stream_series": pandas.concat(series),
        "stream_executed": pandas.concat(executed),
        "stream_trainings": pandas.concat(trainings),
    }


def executed_work(result: Result) -> pandas.DataFrame:
    """Table of what each job of a logged run took.

    Returns:
        job; executed_s, the duration of all its tasks, in executor seconds; executors, how many of them ran its tasks
        on average between the start of its first task and its completion.
    """
    log = result.log
    number = len(result.workload)
    executed_s = np.bincount(log.job, weights=log.finish_ms - log.start_ms, minlength=number) / 1000.0
    first_ms = np.full(number, np.inf)
    np.minimum.at(first_ms, log.job, log.start_ms)
    running_s = (result.completion_ms - first_ms) / 1000.0
    executors = np.divide(executed_s, running_s, out=np.zeros(number), where=running_s > 0.0)
    return pandas.DataFrame({"job": np.arange(number), "executed_s": executed_s, "executors": executors})


def in_numbers(runs: dict[str, Result], step_s: float) -> pandas.DataFrame:
    """Figure 10 in numbers, a row per scheduler and logged run of one stream.

    Returns:
        busy_jobs, other_jobs: in the system in the tenth of the time in which ``weighted_fair`` has most, and else;
        small_jct_s, small_executors of the smallest fifth of the jobs by work; executed_h, executor hours of all tasks.
    """
    active = pandas.DataFrame({name: active_jobs(run, step_s)["active_jobs"] for name, run in runs.items()})
    busy = active["weighted_fair"] >= active["weighted_fair"].quantile(0.9)
    rows = []
    for name, run in runs.items():
        jobs = executed_work(run).assign(**run.jobs[["work_s", "jct_s"]])
        small = jobs[jobs["work_s"] <= jobs["work_s"].quantile(0.2)]
        means = [active.loc[busy, name].mean(), active.loc[~busy, name].mean()]
        means += [small["jct_s"].mean(), small["executors"].mean(), jobs["executed_s"].sum() / 3600.0]
        rows.append((name, *means))
    columns = ["scheduler", "busy_jobs", "other_jobs", "small_jct_s", "small_executors", "executed_h"]
    return pandas.DataFrame(rows, columns=columns)


def active_jobs(result: Result, step_s: float) -> pandas.DataFrame:
    """Jobs in the system at regular times: time_s, active_jobs."""
    times = np.arange(0.0, result.end_ms / 1000.0 + step_s, step_s)
    arrived = np.searchsorted(np.sort(result.workload.arrival_ms / 1000.0), times, side="right")
    finished = np.searchsorted(np.sort(result.completion_ms / 1000.0), times, side="right")
    return pandas.DataFrame({"time_s": times, "active_jobs": arrived - finished})


def fig09b_stream(tables: Tables, run: Run) -> Figure:
    """Figure 9b: JCT of the jobs of one stream, per mean interarrival time."""
    jobs = tables["stream_jobs"]
    jobs = jobs[jobs["scheduler"].isin(_FIG09B)]
    gaps = sorted(jobs["interarrival_s"].unique(), reverse=True)
    figure = plotting.style.new_figure(plotting.style.PAGE, 3.5)
    for axes, gap in zip(figure.subplots(1, len(gaps), sharey=True, squeeze=False)[0], gaps, strict=True):
        rows = jobs[jobs["interarrival_s"] == gap]
        plotting.curves.cdf(rows, axes, value="jct_s", log=True, legend="below")
        axes.set_title(f"({'abcdefg'[gaps.index(gap)]}) a job every {gap:g} s", loc="left")
        axes.set_ylabel("CDF" if gap == gaps[0] else "")
    caption = (
        f"{_one_stream(jobs, run)} Numbers: mean JCT of the stream. {_policies(jobs, run, 'stream')}. The next figure "
        "has all schedulers over several streams."
    )
    return plotting.style.entitle(figure, "Figure 9b: continuous arrivals", caption, run.workload)


def fig09b_mean(tables: Tables, run: Run) -> Figure:
    """The means behind Figure 9b over all streams."""
    table = tables["stream"]
    groups = table.assign(gap=[f"a job every {gap:g} s" for gap in table["interarrival_s"]])
    figure = plotting.style.new_figure(plotting.style.PAGE, 3.4)
    plotting.bars.paired_panels(groups, figure, group="gap", against="weighted_fair")
    caption = (
        f"Paired by stream, {distinct(table, 'seed', 'stream')} per panel; bars: {INTERVAL}; {run.cluster}. A number "
        f"at the edge is a point beyond the axis. {_policies(table, run)}."
    )
    return plotting.style.entitle(figure, "Figure 9b over several streams", caption, run.workload)


def stream_changes(tables: Tables, run: Run) -> Figure:
    """Decima and capped SRW against other heuristics on streams, paired."""
    changes = tables["stream_changes"]
    gaps = sorted(changes["interarrival_s"].unique())
    figure = plotting.style.new_figure(plotting.style.PAGE, 2.8)
    grid = figure.subplots(1, len(gaps), sharey=True, squeeze=False)[0]
    for axes, gap in zip(grid, gaps, strict=True):
        rows = against_labels(changes[changes["interarrival_s"] == gap])
        plotting.bars.change_points(rows, "against", axes, legend=False)
        axes.set_xlabel("change (%)")
        axes.set_title(f"every {gap:g} s", loc="left")
    # Not every panel has every policy.
    marks = {label: mark for axes in grid for mark, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    plotting.style.legend_beside(grid[-1], handles=marks.values(), labels=marks.keys())
    caption = (
        f"Change of average JCT, paired by seed; bars: {INTERVAL}; {int(changes['seeds'].iloc[0])} streams per load. "
        f"Titles: mean interarrival time; {run.cluster}. {_policies(tables['stream'], run)}."
    )
    return plotting.style.entitle(figure, "Decima against the heuristics, continuous arrivals", caption, run.workload)


def fig10_stream(tables: Tables, run: Run) -> Figure:
    """Figure 10, all panels, for the busiest stream."""
    executed = tables["stream_executed"]
    gap = executed["interarrival_s"].min()
    names = list(executed["scheduler"].unique())
    shown = [tables[name] for name in ("stream_series", "stream_jobs", "stream_executed")]
    series, jobs, executed = (each[(each["interarrival_s"] == gap) & each["scheduler"].isin(names)] for each in shown)
    jobs = jobs.merge(executed[["scheduler", "job", "executed_s", "executors"]], on=["scheduler", "job"])
    figure = plotting.style.new_figure(plotting.style.PAGE, 6.6)
    grid = figure.subplot_mosaic([["a", "a", "a"], ["b", "b", "b"], ["c", "d", "e"]], height_ratios=(1, 1, 1.35))
    plotting.curves.concurrent_jobs(series, grid["a"], legend=False)
    plotting.curves.jct_over_time(jobs, grid["b"], legend=False)
    plotting.curves.against_work(jobs, grid["c"], value="jct_s", label="JCT (s)", legend=False)
    plotting.curves.against_work(jobs, grid["d"], value="executors", label="executors", log=False, legend=False)
    plotting.curves.executed_against(jobs, grid["e"], across="weighted_fair", up="decima")
    grid["a"].legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=len(names), borderaxespad=0.2)
    titles = {"a": "jobs in the system", "b": "JCT by time of arrival", "c": "JCT by size", "d": "executors by size",
              "e": "executed work"}  # fmt: skip
    for panel, title in titles.items():
        grid[panel].set_title(f"({panel}) {title}", loc="left")
    caption = (
        f"One job every {gap:g} s; {_one_stream(jobs, run)} Points: jobs; lines in (c) and (d): median per tenth of "
        f"the jobs; (d): executor time of its tasks over the time from its first task to its end. "
        f"{_policies(tables['stream'], run, 'stream')}."
    )
    return plotting.style.entitle(figure, "Figure 10: a stream in detail", caption, run.workload)


def _policies(scores: pandas.DataFrame, run: Run, *uses: str) -> str:
    return learned_words(run, scores["scheduler"], *(uses or LEARNED)).capitalize()


def _one_stream(jobs: pandas.DataFrame, run: Run) -> str:
    return f"1 stream of {distinct(jobs, 'job', 'job')}, 1 seed, {run.cluster}."


def alpha_stream(tables: Tables, run: Run) -> Figure:
    """Average JCT over alpha, streams under the heaviest load."""
    table = tables["alpha_stream"]
    gap = table["interarrival_s"].min()
    return alpha_figure(table[table["interarrival_s"] == gap], f"one job every {gap:g} s", "stream", run)


EXPERIMENT = Experiment(
    "stream",
    "§7.2, Figures 9b and 10",
    compute,
    rooms=POLICY_ROOMS,
    figures=(fig09b_stream, fig09b_mean, stream_changes, fig10_stream, alpha_stream),
    inputs=(
        Profiles(),
        TablesOf("tuning"),
        *(StoredPolicy(use) for use in LEARNED),
        PoliciesIn("stream", ("trainings",)),
    ),
    tiny={
        "streams": 2, "jobs": 3, "alpha_streams": 2, "interarrival_s": [25], "series_step_s": 20, "trainings": ["tiny"],
    },
)  # fmt: skip
