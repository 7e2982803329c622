"""Learned policies with idle slots against twins of equal budget that have none, and against the best rule without."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas

from decima import plotting
from decima.evaluation.pool import RunPool
from decima.evaluation.run import simulate
from decima.evaluation.statistics import paired_change
from decima.policy.store import load_policy
from decima.reproduction.captions import INTERVAL, Run, Tables
from decima.reproduction.comparisons import score_table
from decima.reproduction.duan_wu.s22_idle_rules import shortest_first, streams
from decima.reproduction.experiment import Context, Experiment, Files
from decima.schedulers import Scheduler, make_scheduler
from decima.simulator.settings import Settings
from decima.workload.sources import WorkloadSource

if TYPE_CHECKING:
    from decima.plotting.style import Figure

POLICY, TWIN = "idle_policy", "idle_twin"
RULE = "capped_srw"
# Workloads of Figures 4 and 5, the paper's synthetic jobs and some for which slots pay: source, executors, mean length
# in seconds, and the policies that were trained on them.
CASES = {
    "half long, 3 executors": ("half_long", 3, 30.0, {POLICY: "idle-half-long-3", TWIN: "idle-half-long-3-twin"}),
    "rare long, 2 executors": ("rare_long", 2, 29.0, {POLICY: "idle-rare-long-2", TWIN: "idle-rare-long-2-twin"}),
}
POLICIES = (
    "idle-rare-long-2", "idle-rare-long-2-twin", "idle-rare-long-5", "idle-rare-long-5-twin", "idle-clocked-10",
    "idle-clocked-10-twin", "idle-half-long-3", "idle-half-long-3-twin",
)  # fmt: skip


def compute(source: WorkloadSource, params: dict, context: Context) -> dict[str, pandas.DataFrame]:
    """Tables ``idle_learned`` (scores), ``idle_learned_changes`` (paired), ``idle_cdf`` and ``idle_load``."""
    scores, changes = [], []
    for name, case in params["workloads"].items():
        executors, load = case["executors"], case["load"]
        made: dict[str, Scheduler] = {RULE: shortest_first()}
        made |= {kind: load_policy(case[kind]) for kind in (TWIN, POLICY)}
        workloads = streams(case["jobs"], params["streams"], params["jobs"], load=load, executors=executors)
        settings, seeds = Settings.simplified(executors=executors), list(range(params["streams"]))
        table = score_table(made, workloads, seeds, settings, context, name, workload=name)
        scores.append(table)
        rows = table.pivot(index="seed", columns="scheduler", values="avg_jct_s")
        changes += [
            (name, against, *paired_change(rows[POLICY].to_numpy(), rows[against].to_numpy()))
            for against in (TWIN, RULE)
        ]
    columns = ["workload", "against", "change_percent", "low", "high"]
    return {
        "idle_learned": pandas.concat(scores),
        "idle_learned_changes": pandas.DataFrame(changes, columns=columns),
        "idle_cdf": _distributions(params["cdf"]),
        "idle_load": _loads(params["load"], context),
    }


def _distributions(params: dict) -> pandas.DataFrame:
    """Percentiles of the JCT of all jobs by workload, load and scheduler."""
    percents = np.arange(1, 101)
    found = []
    for case, (jobs, executors, _, policies) in CASES.items():
        made = {"fifo": make_scheduler("fifo")} | {kind: load_policy(name) for kind, name in policies.items()}
        settings = Settings.simplified(executors=executors)
        for load in params["load"]:
            workloads = streams(jobs, params["streams"], params["jobs"], load=load, executors=executors)
            for name, scheduler in made.items():
                jct_s = [simulate(each, scheduler, cluster=settings).jct_ms / 1000.0 for each in workloads]
                columns = {"workload": case, "load": load, "scheduler": name, "percent": percents}
                found.append(pandas.DataFrame(columns | {"jct_s": np.percentile(np.concatenate(jct_s), percents)}))
    return pandas.concat(found)


def _loads(params: dict, context: Context) -> pandas.DataFrame:
    """Average JCT and makespan by number of jobs that arrive in one span of time."""
    found = []
    seeds = range(params["streams"])
    for case, (jobs, executors, length_s, policies) in CASES.items():
        made = {"sjf_cp": make_scheduler("sjf_cp")} | {kind: load_policy(name) for kind, name in policies.items()}
        settings = Settings.simplified(executors=executors)
        for load in params["load"]:
            number = round(load * executors * params["window_s"] / length_s)
            workloads = streams(jobs, len(seeds), number, interarrival_s=params["window_s"] / number)
            with RunPool(workloads, settings, seeds=seeds, workers=context.threads, keep=False) as pool:
                scores = pool.measure(list(made.values()), ("avg_jct", "makespan"))
            for row, name in enumerate(made):
                columns = {column: values[row] for column, values in scores.items()}
                case_columns = {"workload": case, "jobs": number, "scheduler": name, "seed": seeds}
                found.append(pandas.DataFrame(case_columns | columns))
    return pandas.concat(found)


def learned_changes(tables: Tables, run: Run) -> Figure:
    """Change of the average JCT by the policy with slots, against its twin and the rule without, per workload."""
    changes = tables["idle_learned_changes"]
    shown = changes.assign(scheduler=changes["against"])
    figure = plotting.style.new_figure(plotting.style.PAGE, 0.8 + 0.45 * changes["workload"].nunique())
    plotting.bars.change_points(shown, "workload", figure.subplots())
    number = tables["idle_learned"]["seed"].nunique()
    caption = (
        f"Learned policy with idle slots against the one named, paired by stream; bars: {INTERVAL}; {number} fresh "
        "streams per workload. Capped SRW: shortest remaining work first, without slots."
    )
    return plotting.style.entitle(figure, "What a learned policy gains by idling", caption, "two classes of jobs")


def fig4_idle_cdf(tables: Tables, run: Run) -> Figure:
    """Figure 4: distribution of the JCT at two loads, without and with slots."""
    table = tables["idle_cdf"]
    loads = sorted(table["load"].unique())
    figure = plotting.style.new_figure(plotting.style.PAGE, 4.8)
    for row, load in zip(figure.subplots(len(loads), len(CASES), sharey=True), loads, strict=True):
        for axes, case in zip(row, CASES, strict=True):
            shown = table[(table["load"] == load) & (table["workload"] == case)]
            plotting.idling.jct_percentiles(shown, axes, legend=axes is row[-1])
            axes.set_title(f"{case}, {100 * load:.0f} %", loc="left")
    caption = (
        "Policies trained on these jobs (rare long ones at a load of 60 %). Left, both do the same: the one that may "
        "idle has learned not to. The largest JCTs, beyond the 98th percentile, are not shown."
    )
    return plotting.style.entitle(figure, "Figure 4: distribution of the JCT", caption, "two classes of jobs")


def fig5_idle_load(tables: Tables, run: Run) -> Figure:
    """Figure 5: average JCT and makespan over the number of jobs."""
    table = tables["idle_load"]
    figure = plotting.style.new_figure(plotting.style.PAGE, 4.8)
    for row, column in zip(figure.subplots(2, len(CASES)), ("avg_jct_s", "makespan_s"), strict=True):
        for axes, case in zip(row, CASES, strict=True):
            shown = table[table["workload"] == case]
            plotting.idling.score_over_jobs(shown, column, axes, legend=axes is row[-1])
            axes.set_title(case, loc="left")
    caption = (
        f"Jobs that arrive in one span of time, mean of {table['seed'].nunique()} streams each; policies trained at "
        "loads of 60 to 80 % (left) and 60 % (right). Lines that coincide are drawn over each other."
    )
    return plotting.style.entitle(figure, "Figure 5: more jobs", caption, "two classes of jobs")


EXPERIMENT = Experiment(
    "idle_learned",
    "Duan and Wu, Table 1, Figures 4 and 5",
    compute,
    figures=(learned_changes, fig4_idle_cdf, fig5_idle_load),
    inputs=tuple(Files.of_policy(name) for name in POLICIES),
    tiny={
        "workloads": {
            "rare": {
                "jobs": "rare_long", "executors": 2, "load": 0.6,
                POLICY: "idle-rare-long-2", TWIN: "idle-rare-long-2-twin",
            },
        },
        "streams": 2, "jobs": 12,
        "cdf": {"load": [0.6, 0.8], "streams": 1, "jobs": 12},
        "load": {"load": [0.5, 0.8], "window_s": 150, "streams": 2},
    },
)  # fmt: skip
