"""§7.2 on a real cluster: one batch of queries under several schedulers, measured and simulated.

The measured side is read from `data/spark/experiment`, which `decima spark experiment` writes; no Spark is needed here.
"""

from __future__ import annotations

import numpy as np
import pandas

from decima import plotting
from decima.core.errors import ConfigError
from decima.core.objectives import AVG_JCT, MAKESPAN
from decima.evaluation.run import simulate
from decima.evaluation.statistics import paired_change
from decima.plotting.words import count
from decima.systems.spark.schedulers import Scheduler
from decima.workload.profile import JobProfile
from decima.workload.sources import WorkloadSource
from experiments.captions import INTERVAL, SPARK_WORKLOAD, Run, Tables
from experiments.comparisons import policy_row, rows_renamed
from experiments.experiment import Context, Experiment, Files, Policies
from experiments.params import checkout
from experiments.rooms import LOGS, POLICY_ROOMS
from measure.fidelity.simulation import batch_workload, cluster_settings, plan_profiles
from measure.records import CONTROL
from measure.results import Measured, read, schedulers_of

REAL, SIMULATED, WARM = "real Spark", "simulated", "simulated (warm-up)"
LATENCY = ("decisions", "steered_share", "round_trip_ms_median", "round_trip_ms_p99", "active_jobs_mean")
TITLES = {objective.column: objective.label for objective in (AVG_JCT, MAKESPAN)}


def compute(source: WorkloadSource, params: dict, context: Context) -> dict[str, pandas.DataFrame]:
    """Tables of the experiment.

    - ``real_spark``: average JCT and makespan per run, measured and simulated; ``real_spark_changes``: paired by run.
    - ``real_spark_jobs``: JCT per job; ``real_spark_tasks``: one measured and one simulated run per scheduler.
    - ``real_spark_runs``: load of every attempt, rejected ones included.
    - ``real_spark_latency``: round trips; ``real_spark_plan``: the plan.

    They do not depend on the workload of the run: the jobs are those that were measured. They are
    simulated twice, with the measured workload and with the durations that the same queries had alone in the same
    applications just before.
    """
    measured = read(checkout() / "data" / "spark" / "experiment")
    schedulers = {name: make() for name, make in schedulers_of(measured.card).items()}
    real = measured.scores().assign(where=REAL)
    scores, jobs, tasks = [real.drop(columns="run")], [], []
    for where, profiles in _profiles(measured).items():
        part, part_jobs, part_tasks = _simulate(measured, profiles, schedulers, params["seeds"])
        scores.append(part.assign(where=where))
        jobs.append(part_jobs.assign(where=where))
        tasks.append(part_tasks.assign(where=where))
    shown = shown_round(measured)
    table = pandas.concat(scores, ignore_index=True)
    tables = {
        "real_spark": table[["where", "batch", "repetition", "scheduler", *TITLES]],
        "real_spark_changes": changes(table),
        "real_spark_jobs": _job_times(measured, pandas.concat(jobs)),
        "real_spark_tasks": pandas.concat([_measured_tasks(measured, shown), _of_round(tasks[0], shown)]),
        "real_spark_runs": measured.runs.drop(columns=["log", *LATENCY]),
        "real_spark_latency": _latency(measured),
        "real_spark_plan": _plan_table(measured, shown).assign(seeds=params["seeds"]),
    }
    # The recording calls every learned policy decima.
    policies = {name: entry["parameters"].get("policy") for name, entry in measured.card["schedulers"].items()}
    rows = {name: policy_row(policy) for name, policy in policies.items() if policy}
    return {name: rows_renamed(rows, kept) for name, kept in tables.items()}


def _profiles(measured: Measured) -> dict[str, dict[str, JobProfile]]:
    sets = {SIMULATED: plan_profiles(measured.plan)}
    if measured.profiles:
        sets[WARM] = {profile.name: profile for profile in measured.profiles}
    return sets


def _simulate(
    measured: Measured, profiles: dict[str, JobProfile], schedulers: dict[str, Scheduler], seeds: int
) -> tuple[pandas.DataFrame, pandas.DataFrame, pandas.DataFrame]:
    """Mean scores over seeds per measured run; JCT per job; tasks of first seed.

    Jobs arrive when the first Spark job of the query did, and JCT counts from the first submission, as measured.
    """
    plan, settings = measured.plan, cluster_settings(measured.plan.executors)
    scores, jobs, tasks = [], [], []
    usable = measured.runs[measured.runs["usable"] & (measured.runs["scheduler"] != CONTROL)]
    for run in usable.itertuples():
        arrived = measured.jobs[measured.jobs["run"] == run.run].sort_values("job")["arrival_s"]
        workload = batch_workload(plan, run.batch, profiles, 1000.0 * arrived.to_numpy())
        names = plan.batch(run.batch)
        key = {"batch": run.batch, "repetition": run.repetition, "scheduler": run.scheduler}
        completions = []
        for seed in range(seeds):
            scheduler = schedulers[run.scheduler]
            result = simulate(
                workload, scheduler, settings.executors, seed, log=seed == 0, **_changed(settings.as_dict())
            )
            completions.append(result.completion_ms / 1000.0)
            if result.log is not None:
                frame = result.log.tasks().drop(columns="wave").assign(**key)
                frame["job_name"] = [names[job] for job in frame["job"]]
                tasks.append(frame)
        ends = np.array(completions)
        scores.append(key | {"avg_jct_s": float(ends.mean()), "makespan_s": float(ends.max(axis=1).mean())})
        jobs += [key | {"job": job, "jct_s": float(mean)} for job, mean in enumerate(ends.mean(axis=0))]
    return pandas.DataFrame(scores), pandas.DataFrame(jobs), pandas.concat(tasks, ignore_index=True)


def _changed(settings: dict) -> dict:
    return {name: value for name, value in settings.items() if name not in ("executors", "mode")}


def changes(scores: pandas.DataFrame) -> pandas.DataFrame:
    """Change of the mean between all schedulers in percent, paired by batch and repetition.

    Args:
        scores: where, batch, repetition, scheduler, avg_jct_s, makespan_s.

    Returns:
        where, metric, against, scheduler, pairs, change_percent, low, high (95 % confidence interval).
    """
    rows = []
    for where, part in scores.groupby("where", sort=False):
        for metric in TITLES:
            table = part.pivot(index=["batch", "repetition"], columns="scheduler", values=metric)
            for against in table.columns:
                for name in table.columns.drop(against):
                    both = table[[name, against]].dropna()
                    if len(both):
                        change = paired_change(both[name].to_numpy(), both[against].to_numpy())
                        rows.append((where, metric, against, name, len(both), *change))
    columns = ["where", "metric", "against", "scheduler", "pairs", "change_percent", "low", "high"]
    return pandas.DataFrame(rows, columns=columns)


def shown_round(measured: Measured) -> tuple[int, int]:
    """Batch and repetition to draw: the first in which every scheduler has a usable run.

    Raises:
        ConfigError: there is none.
    """
    scores = measured.scores()
    wanted = set(measured.plan.schedulers) | ({CONTROL} if measured.plan.control else set())
    for cell, part in scores.groupby(["batch", "repetition"]):
        if set(part["scheduler"]) >= wanted:
            return cell
    raise ConfigError("there is no round in which every scheduler has a usable run")


def _latency(measured: Measured) -> pandas.DataFrame:
    """Decisions of the usable runs behind the plugin."""
    runs = measured.runs[measured.runs["usable"] & (measured.runs["scheduler"] != CONTROL)]
    return runs[["batch", "repetition", "scheduler", *LATENCY]]


def _of_round(tasks: pandas.DataFrame, shown: tuple[int, int]) -> pandas.DataFrame:
    columns = ["where", "scheduler", "job", "job_name", "stage", "executor", "start_s", "finish_s"]
    return tasks.loc[(tasks["batch"] == shown[0]) & (tasks["repetition"] == shown[1]), columns]


def _measured_tasks(measured: Measured, shown: tuple[int, int]) -> pandas.DataFrame:
    runs = measured.runs[measured.runs["usable"]]
    chosen = runs[(runs["batch"] == shown[0]) & (runs["repetition"] == shown[1])].set_index("run")["scheduler"]
    tasks = measured.tasks[measured.tasks["run"].isin(chosen.index)]
    names = measured.plan.batch(shown[0])
    return pandas.DataFrame(
        {
            "where": REAL,
            "scheduler": tasks["run"].map(chosen),
            "job": tasks["job"],
            "job_name": [names[job] for job in tasks["job"]],
            "stage": tasks["stage"],
            "executor": tasks["executor"],
            "start_s": tasks["start_ms"] / 1000.0,
            "finish_s": tasks["finish_ms"] / 1000.0,
        }
    )


def _job_times(measured: Measured, simulated: pandas.DataFrame) -> pandas.DataFrame:
    """Mean JCT per batch, scheduler and job: where (simulated), batch, scheduler, job, query, real_s, simulated_s."""
    usable = measured.runs[measured.runs["usable"]]
    real = measured.jobs.merge(usable[["run", "batch", "scheduler"]], on="run")
    key = ["batch", "scheduler", "job"]
    table = real.groupby([*key, "query"])["finish_s"].mean().rename("real_s").reset_index("query")
    means = simulated.groupby(["where", *key])["jct_s"].mean().rename("simulated_s").reset_index("where")
    return means.join(table, how="inner").reset_index()


def _plan_table(measured: Measured, shown: tuple[int, int]) -> pandas.DataFrame:
    plan = measured.plan
    values = {
        "scale": plan.scale, "executors": plan.executors, "queries": plan.queries, "batches": plan.batches,
        "repetitions": plan.repetitions, "shown_batch": shown[0], "shown_repetition": shown[1],
    }  # fmt: skip
    return pandas.DataFrame([values])


def real_spark_gantt(tables: Tables, run: Run) -> plotting.style.Figure:
    """Figure 3 on real Spark, and the same batch in simulation."""
    tasks, plan = tables["real_spark_tasks"], tables["real_spark_plan"].iloc[0]
    figure = plotting.gantt.gantt_grid(tasks, executors=int(plan["executors"]))
    caption = (
        f"One batch of {plan['queries']:g} queries at scale factor {plan['scale']:g}, all submitted at once, "
        f"{_executors(plan)}. Left: one measured run each, from Spark's event log; right: one simulated run each with "
        "the measured profiles and the same arrivals. Dotted lines: a job completes; white: idle."
    )
    return plotting.style.entitle(figure, "Figure 3 on real Spark, and simulated", caption, SPARK_WORKLOAD)


def real_spark_bars(tables: Tables, run: Run) -> plotting.style.Figure:
    """Average JCT and makespan, measured and simulated."""
    table = tables["real_spark"]
    figure = plotting.style.new_figure(plotting.style.PAGE, 2.7)
    for axes, (metric, title) in zip(figure.subplots(1, 2), TITLES.items(), strict=True):
        last = metric == list(TITLES)[-1]
        plotting.bars.scheduler_bars(table, axes, group="where", value=metric, legend=last)
        axes.set_title(title, loc="left")
        axes.set_ylabel(f"{title} (s)")
    caption = f"{_runs(tables)}; bars: {INTERVAL} over runs, {_executors(tables['real_spark_plan'].iloc[0])}."
    return plotting.style.entitle(figure, "Schedulers on real Spark and in simulation", caption, SPARK_WORKLOAD)


def real_spark_changes(tables: Tables, run: Run) -> plotting.style.Figure:
    """Paired differences between schedulers, measured and simulated."""
    table = tables["real_spark_changes"]
    figure = plotting.style.new_figure(plotting.style.PAGE, 2.6)
    grid = figure.subplots(1, 2, sharey=True)
    for axes, (metric, title) in zip(grid, TITLES.items(), strict=True):
        part = table[(table["metric"] == metric) & (table["against"] == "fifo") & (table["scheduler"] != "fifo")]
        plotting.bars.change_points(part, "where", axes, legend=metric == list(TITLES)[-1])
        axes.set_xlabel(f"change of {title}\nagainst FIFO (%)")
    grid[1].tick_params(labelleft=False)
    caption = f"Paired by run: {_runs(tables)}; bars: {INTERVAL}."
    return plotting.style.entitle(figure, "Differences between schedulers, real and simulated", caption, SPARK_WORKLOAD)


def real_spark_jobs(tables: Tables, run: Run) -> plotting.style.Figure:
    """JCT of every job: simulated over measured."""
    table = tables["real_spark_jobs"]
    kinds = list(dict.fromkeys(table["where"]))
    end = 1.05 * float(max(table["real_s"].max(), table["simulated_s"].max()))
    figure = plotting.style.new_figure(plotting.style.PAGE, 3.2)
    grid = figure.subplots(1, len(kinds), sharey=True, squeeze=False)[0]
    for axes, where in zip(grid, kinds, strict=True):
        for name in plotting.style.display_order(table["scheduler"]):
            part = table[(table["scheduler"] == name) & (table["where"] == where)]
            appearance = plotting.style.scheduler_style(name)
            marks = {"s": 14, "color": appearance.color, "marker": appearance.marker, "label": appearance.label}
            axes.scatter(part["real_s"], part["simulated_s"], **marks)
        axes.plot([0.0, end], [0.0, end], color=plotting.style.GREY, linewidth=0.8, zorder=1)
        axes.set(xlabel="JCT on real Spark (s)", xlim=(0.0, end), ylim=(0.0, end), aspect="equal")
        axes.set_title(where, loc="left")
    grid[0].set_ylabel("JCT simulated (s)")
    grid[-1].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    caption = f"One point per job of a batch and scheduler, mean over runs: {_runs(tables)}."
    return plotting.style.entitle(figure, "Completion of every job, real and simulated", caption, SPARK_WORKLOAD)


def _runs(tables: Tables) -> str:
    table, plan = tables["real_spark"], tables["real_spark_plan"].iloc[0]
    real = table[table["where"] == "real Spark"].groupby("scheduler").size()
    fewest, most = int(real.min()), int(real.max())
    runs = count(most, "run") if fewest == most else f"{fewest} to {count(most, 'run')}"
    return (
        f"{count(int(plan['batches']), 'batch')} of {plan['queries']:g} queries, {runs} per scheduler on Spark, "
        f"each simulated with {count(int(plan['seeds']), 'seed')}"
    )


def _executors(plan: pandas.Series) -> str:
    return f"{plan['executors']:g} one-core executors on one machine"


EXPERIMENT = Experiment(
    "real_spark",
    "§2.3 and §7.2 on a real cluster, Figures 3 and 9a",
    compute,
    rooms=(*POLICY_ROOMS, *LOGS, "measure", "measure/fidelity"),
    figures=(real_spark_gantt, real_spark_bars, real_spark_changes, real_spark_jobs),
    inputs=(Files(["data/spark/experiment"]), Policies(("spark-batch",))),
    tiny={"seeds": 2},
)
