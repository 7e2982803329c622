"""Policies with idle slots against control policies of equal budget and the best slotless rule."""

from __future__ import annotations

import numpy as np
import pandas

from decima import plotting
from decima.evaluation.pool import UNFINISHED, RunPool
from decima.evaluation.run import simulate
from decima.evaluation.statistics import paired_change
from decima.systems.spark.policy.learned import load_policy
from decima.systems.spark.schedulers import Scheduler, make_scheduler
from decima.systems.spark.settings import Settings
from decima.workload.sources import WorkloadSource
from experiments.captions import INTERVAL, Run, Tables
from experiments.comparisons import score_table
from experiments.experiment import Context, Experiment, Policies
from experiments.idle_slots.s22_idle_rules import LABELS, shortest_first, streams

POLICY, CONTROL = "idle_policy", "idle_twin"
# The same policy without the shape of jobs, and with it in the places of two other features, drawn by a seed.
PLAIN, REPLACED = "idle_plain", "idle_replaced"
KINDS = (CONTROL, PLAIN, REPLACED, POLICY)
RULE = "capped_srw"
# Workloads of Figures 4 and 5, the paper's synthetic jobs and some for which slots pay: source, executors, mean length
# in seconds, and the policies that were trained on them.
CASES = {
    "half long, 3 executors": ("half_long", 3, 30.0, {POLICY: "idle-half-long-3", CONTROL: "idle-half-long-3-twin"}),
    "rare long, 2 executors": ("rare_long", 2, 29.0, {POLICY: "idle-rare-long-2", CONTROL: "idle-rare-long-2-twin"}),
}
HALF_LONG = {
    PLAIN: "idle-half-long-3-plain",
    REPLACED: "idle-half-long-3-replaced",
}
# Half of the jobs of two classes, half TPC-H, in mode `paper`; of Figure 4 only.
MIXED = "mixed, 10 executors"
MIXED_POLICIES = {
    POLICY: "idle-mixed-10",
    CONTROL: "idle-mixed-10-twin",
    PLAIN: "idle-mixed-10-plain",
    REPLACED: "idle-mixed-10-replaced",
}
POLICIES = (
    "idle-rare-long-2", "idle-rare-long-2-twin", "idle-rare-long-5", "idle-rare-long-5-twin", "idle-clocked-10",
    "idle-clocked-10-twin", "idle-clocked-50", "idle-clocked-50-twin", "idle-half-long-3", "idle-half-long-3-twin",
    *HALF_LONG.values(), *MIXED_POLICIES.values(), "idle-tpch-stream", "idle-tpch-stream-twin",
)  # fmt: skip


def _settings(mode: str, executors: int) -> Settings:
    return Settings.simplified(executors=executors) if mode == "simplified" else Settings.paper(executors=executors)


def _rule(mode: str) -> Scheduler:
    """Best known rule without idling, with a cap per job for jobs of several tasks."""
    return shortest_first() if mode == "simplified" else make_scheduler("capped_srw")


def compute(source: WorkloadSource, params: dict, context: Context) -> dict[str, pandas.DataFrame]:
    """Tables ``idle_learned`` (scores), ``idle_learned_changes`` (paired), ``idle_cdf`` and ``idle_load``."""
    scores, changes = [], []
    for key, case in params["workloads"].items():
        name = LABELS.get(key, key)
        executors, mode = case["executors"], case.get("mode", "simplified")
        count, number = (case.get(key, params[key]) for key in ("streams", "jobs_each"))
        schedulers: dict[str, Scheduler] = {RULE: _rule(mode)}
        schedulers |= {policy: load_policy(case[policy]) for policy in KINDS if policy in case}
        arrivals = {"interarrival_s": case["interarrival_s"]} if "interarrival_s" in case else {}
        arrivals = arrivals or {"load": case["load"], "executors": executors}
        workloads = streams(case["jobs"], count, number, **arrivals)
        settings, seeds = _settings(mode, executors), list(range(count))
        table = score_table(schedulers, workloads, seeds, settings, context, name, workload=name)
        scores.append(table)
        rows = table.pivot(index="seed", columns="scheduler", values="avg_jct_s")
        changes += [
            (name, against, *paired_change(rows[POLICY].to_numpy(), rows[against].to_numpy()))
            for against in schedulers
            if against != POLICY
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
    parts = []
    cases = {name: (*case[:2], "simplified", case[3]) for name, case in CASES.items()}
    half_long = next(iter(CASES))
    cases[half_long] = (*cases[half_long][:3], cases[half_long][3] | HALF_LONG)
    cases[MIXED] = (params["mixed"], 10, "paper", MIXED_POLICIES)
    for case, (jobs, executors, mode, policies) in cases.items():
        schedulers = {"fifo": make_scheduler("fifo"), RULE: _rule(mode)}
        schedulers |= {policy: load_policy(policies[policy]) for policy in KINDS if policy in policies}
        settings = _settings(mode, executors)
        for load in params["load"]:
            workloads = streams(jobs, params["streams"], params["jobs"], load=load, executors=executors)
            for name, scheduler in schedulers.items():
                jct_s = [simulate(each, scheduler, cluster=settings).jct_ms / 1000.0 for each in workloads]
                columns = {"workload": case, "load": load, "scheduler": name, "percent": percents}
                parts.append(pandas.DataFrame(columns | {"jct_s": np.percentile(np.concatenate(jct_s), percents)}))
    return pandas.concat(parts)


def _loads(params: dict, context: Context) -> pandas.DataFrame:
    """Average JCT and makespan by number of jobs that arrive in one span of time."""
    parts = []
    seeds = range(params["streams"])
    for case, (jobs, executors, length_s, policies) in CASES.items():
        schedulers = {"sjf_cp": make_scheduler("sjf_cp")} | {
            policy: load_policy(name) for policy, name in policies.items()
        }
        settings = Settings.simplified(executors=executors)
        for load in params["load"]:
            number = round(load * executors * params["window_s"] / length_s)
            workloads = streams(jobs, len(seeds), number, interarrival_s=params["window_s"] / number)
            with RunPool(workloads, settings, seeds=seeds, workers=context.threads, keep=False) as pool:
                scores = pool.measure(list(schedulers.values()), ("avg_jct", "makespan"))
            for row, name in enumerate(schedulers):
                columns = {column: scores[column][row] for column in ("avg_jct_s", "makespan_s", UNFINISHED)}
                case_columns = {"workload": case, "jobs": number, "scheduler": name, "seed": seeds}
                parts.append(pandas.DataFrame(case_columns | columns))
    return pandas.concat(parts)


def learned_changes(tables: Tables, run: Run) -> plotting.style.Figure:
    """Change of average JCT by slots, against the control policy and the rule, per workload."""
    changes = tables["idle_learned_changes"]
    shown = changes.assign(scheduler=changes["against"])
    figure = plotting.style.new_figure(plotting.style.PAGE, 0.8 + 0.45 * changes["workload"].nunique())
    plotting.bars.change_points(shown, "workload", figure.subplots())
    counts = tables["idle_learned"].groupby("workload")["seed"].nunique()
    number = counts.max()
    few = "".join(f", {count} of {name}" for name, count in counts.items() if count < number)
    caption = (
        f"Learned policy with idle slots against the one named, paired by stream; bars: {INTERVAL}; {number} fresh "
        f"streams per workload{few}. Capped SRW: shortest remaining work first, without slots."
    )
    return plotting.style.entitle(figure, "What a learned policy gains by idling", caption, "two classes of jobs")


def fig4_idle_cdf(tables: Tables, run: Run) -> plotting.style.Figure:
    """Figure 4: distribution of the JCT at two loads, without and with slots."""
    table = tables["idle_cdf"]
    loads, cases = sorted(table["load"].unique()), (*CASES, MIXED)
    figure = plotting.style.new_figure(plotting.style.PAGE, 5.2)
    for row, load in zip(figure.subplots(len(loads), len(cases), sharey=True), loads, strict=True):
        for axes, case in zip(row, cases, strict=True):
            shown = table[(table["load"] == load) & (table["workload"] == case)]
            plotting.idling.jct_percentiles(shown, axes, legend=False)
            axes.set_title(f"{case}, {100 * load:.0f} %", loc="left", fontsize=7)
    # Below the distributions of the mixed jobs there is room.
    axes.legend(loc="lower right", fontsize=5.5, handlelength=2.6)
    caption = (
        "Left and right, slots do not pay: policies learned not to idle and lie on each other, left on the optimum "
        "too (capped SRW: shortest first). Middle: trained at 60 %. JCTs beyond the 98th percentile are not shown."
    )
    return plotting.style.entitle(figure, "Figure 4: distribution of the JCT", caption, "two classes of jobs; mixed")


def fig5_idle_load(tables: Tables, run: Run) -> plotting.style.Figure:
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
    inputs=(Policies(POLICIES),),
    tiny={
        "workloads": {
            "rare": {
                "jobs": "rare_long", "executors": 2, "load": 0.6,
                POLICY: "idle-rare-long-2", CONTROL: "idle-rare-long-2-twin",
            },
        },
        "streams": 2, "jobs_each": 12,
        "cdf": {"load": [0.6, 0.8], "streams": 1, "jobs": 12, "mixed": "half_tpch:base=embedded"},
        "load": {"load": [0.5, 0.8], "window_s": 150, "streams": 2},
    },
)  # fmt: skip
