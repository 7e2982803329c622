"""Policies with idle slots against control policies of equal budget and the best slotless rule."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas

from decima import plotting
from decima.evaluation.pool import UNFINISHED, RunPool
from decima.evaluation.run import score_matrix, simulate
from decima.evaluation.statistics import paired_change
from decima.plotting.words import count
from decima.systems.spark.policy.scheduler import load_policy
from decima.systems.spark.schedulers import Scheduler, make_scheduler
from decima.systems.spark.settings import Settings
from decima.workload.sources import TRAINING_SEED, WorkloadSource
from experiments.captions import INTERVAL, Run, Tables
from experiments.comparisons import score_table
from experiments.experiment import Context, Experiment, Policies
from experiments.idle_slots.s22_idle_rules import LABELS, shortest_first, streams
from experiments.rooms import POLICY_ROOMS

POLICY, CONTROL = "idle_policy", "idle_twin"
# The same policy without the shape of jobs, and with it in the places of two other features, drawn by a seed.
PLAIN, REPLACED = "idle_plain", "idle_replaced"
KINDS = (CONTROL, PLAIN, REPLACED, POLICY)
RULE, TUNED = "capped_srw", "sjf_cp_tuned"
# Forms of SJF-CP, by its two options; the first is the usual one, which is kept where none is better.
FORMS = [(0, 1), (0, 0), (0, 2), (1, 1), (1, 0), (1, 2)]


def _policies(name: str, shapes: bool = False) -> dict[str, str]:
    """Stored policy, its control, and those that see other shapes of jobs, by column."""
    return {
        column: name + column.removeprefix(POLICY).replace("idle_", "-")
        for column in (KINDS if shapes else (CONTROL, POLICY))
    }


# Executors stay with a job until it ends, limits never fall: the paper's model.
BOUND = {"mode": "paper", "job_bound": True}
# Workloads of Figures 4 and 5, the paper's and one for which slots pay: source, or alpha of mixed jobs; executors, mean
# work in seconds (of mixed jobs with all sizes of TPC-H), settings, and the policies that were trained on them.
CASES: dict[str, tuple] = {
    "half long, 3 executors": ("half_long", 3, 30.0, {"mode": "simplified"}, _policies("idle-half-long-3", True)),
    "rare long, 2 executors": ("rare_long", 2, 29.0, {"mode": "simplified"}, _policies("idle-rare-long-2")),
    "mixed, 10 executors": (0.5, 10, 393.5, {"mode": "paper"}, _policies("idle-mixed-10", True)),
    "mixed, 10 executors, bound": (0.5, 10, 393.5, BOUND, _policies("idle-bound-mixed-10")),
    "TPC-H, 50 executors": (0.0, 50, 757.0, {"mode": "paper"}, _policies("idle-tpch-stream")),
    "TPC-H, 10 executors, bound": (0.0, 10, 757.0, BOUND, _policies("idle-bound-tpch-10")),
}
PAIRS = ("idle-rare-long-5", "idle-clocked-10", "idle-clocked-50", "idle-bound-rare-long-2", "idle-bound-half-long-3")
POLICIES = (
    *(name for case in CASES.values() for name in case[4].values()),
    *(name for pair in PAIRS for name in _policies(pair).values()),
)


def _rule(mode: str) -> Scheduler:
    """Best known rule without idling, with a cap per job for jobs of several tasks."""
    return shortest_first() if mode == "simplified" else make_scheduler("capped_srw")


def measured(
    key: str, params: dict, context: Context, policies: Mapping[str, str] | None = None
) -> tuple[pandas.DataFrame, pandas.DataFrame]:
    """Average JCTs on the streams of one workload, and what slots change there.

    Args:
        key: Workload among the parameters.
        params: Parameters of the experiment.
        context: Surroundings.
        policies: Names or files by column; those of the workload by default.
    """
    case, name = params["workloads"][key], LABELS.get(key, key)
    policies = policies or {column: case[column] for column in KINDS if column in case}
    executors, mode = case["executors"], case.get("mode", "simplified")
    settings = Settings.of_mode(mode, executors=executors, job_bound=case.get("job_bound", False))
    count, number = (case.get(each, params[each]) for each in ("streams", "jobs_each"))
    schedulers = {RULE: _rule(mode)} | {column: load_policy(policy) for column, policy in policies.items()}
    arrivals = {"interarrival_s": case["interarrival_s"]} if "interarrival_s" in case else {}
    arrivals = arrivals or {"load": case["load"], "executors": executors}
    workloads = streams(case["jobs"], count, number, **arrivals)
    table = score_table(schedulers, workloads, list(range(count)), settings, context, name, workload=name)
    rows = table.pivot(index="seed", columns="scheduler", values="avg_jct_s")
    changes = [
        (name, against, *paired_change(rows[POLICY].to_numpy(), rows[against].to_numpy()))
        for against in schedulers
        if against != POLICY
    ]
    return table, pandas.DataFrame(changes, columns=["workload", "against", "change_percent", "low", "high"])


def compute(source: WorkloadSource, params: dict, context: Context) -> dict[str, pandas.DataFrame]:
    """Tables ``idle_learned`` (scores), ``idle_learned_changes`` (paired), ``idle_cdf``, ``idle_load``, ``_sjf``."""
    parts = [measured(key, params, context) for key in params["workloads"]]
    load, forms = _loads(params["load"], context)
    return {
        "idle_learned": pandas.concat(scores for scores, _ in parts),
        "idle_learned_changes": pandas.concat(changes for _, changes in parts),
        "idle_cdf": _distributions(params["cdf"]),
        "idle_load": load,
        "idle_sjf": forms,
    }


def _text(jobs: str | float, params: dict) -> str:
    """Jobs of a case: its source, or mixed jobs with its alpha."""
    return jobs if isinstance(jobs, str) else f"{params['mixed']},alpha={jobs:g}"


def _distributions(params: dict) -> pandas.DataFrame:
    """Percentiles of the JCT of all jobs by workload, load and scheduler."""
    percents = np.arange(1, 101)
    parts = []
    for case, (jobs, executors, _, cluster, policies) in CASES.items():
        schedulers = {"fifo": make_scheduler("fifo"), RULE: _rule(cluster["mode"])}
        schedulers |= {policy: load_policy(name) for policy, name in policies.items()}
        settings = Settings.of_mode(**cluster, executors=executors)
        for load in params["load"]:
            arrivals = {"load": load, "executors": executors}
            workloads = streams(_text(jobs, params), params["streams"], params["jobs"], **arrivals)
            for name, scheduler in schedulers.items():
                jct_s = [simulate(each, scheduler, cluster=settings).jct_ms / 1000.0 for each in workloads]
                columns = {"workload": case, "load": load, "scheduler": name, "percent": percents}
                parts.append(pandas.DataFrame(columns | {"jct_s": np.percentile(np.concatenate(jct_s), percents)}))
    return pandas.concat(parts)


def _loads(params: dict, context: Context) -> tuple[pandas.DataFrame, pandas.DataFrame]:
    """Average JCT and makespan by number of jobs in one span; forms of SJF-CP.

    ``change_percent``: of the average JCT, the policy with slots against the row's scheduler, paired by stream.
    """
    rows, forms = [], []
    seeds = range(params["streams"])
    for case, (jobs, executors, length_s, cluster, policies) in CASES.items():
        settings = Settings.of_mode(**cluster, executors=executors)
        text = _text(jobs, params)
        tuned, scores = _tuned_sjf(text, settings, params, context)
        forms.append(scores.assign(workload=case))
        schedulers = {"sjf_cp": make_scheduler("sjf_cp"), TUNED: tuned, RULE: _rule(cluster["mode"])}
        schedulers |= {policy: load_policy(policies[policy]) for policy in (CONTROL, POLICY)}
        window_s = params["window_s" if text == jobs else "mixed_window_s"]
        for load in params["load"]:
            number = round(load * executors * window_s / length_s)
            workloads = streams(text, len(seeds), number, interarrival_s=window_s / number)
            with RunPool(workloads, settings, seeds=seeds, workers=context.threads, keep=False) as pool:
                scores = pool.measure(list(schedulers.values()), ("avg_jct", "makespan"))
            ours = scores["avg_jct_s"][-1]
            for row, name in enumerate(schedulers):
                means = [float(np.mean(scores[column][row])) for column in ("avg_jct_s", "makespan_s", UNFINISHED)]
                rows.append((case, number, name, len(seeds), *means, *paired_change(ours, scores["avg_jct_s"][row])))
    columns = ["workload", "jobs", "scheduler", "streams", "avg_jct_s", "makespan_s", UNFINISHED]
    return pandas.DataFrame(rows, columns=[*columns, "change_percent", "low", "high"]), pandas.concat(forms)


def _tuned_sjf(jobs: str, settings: Settings, params: dict, context: Context) -> tuple[Scheduler, pandas.DataFrame]:
    """SJF-CP with the options that are best on training streams; scores of all forms."""
    options = {"load": params["train_load"], "executors": settings.executors}
    workloads = streams(jobs, params["train"], params["train_jobs"], TRAINING_SEED, **options)
    schedulers = [make_scheduler("sjf_cp", sticky=sticky, stage_rule=rule) for sticky, rule in FORMS]
    means = score_matrix(workloads, schedulers, settings, workers=context.threads).mean(axis=1)
    table = pandas.DataFrame(FORMS, columns=["sticky", "stage_rule"]).assign(avg_jct_s=means)
    return schedulers[int(np.argmin(means))], table


def learned_changes(tables: Tables, run: Run) -> plotting.style.Figure:
    """Change of average JCT by slots, against the control policy and the rule, per workload."""
    changes = tables["idle_learned_changes"]
    shown = changes.assign(scheduler=changes["against"])
    figure = plotting.style.new_figure(plotting.style.PAGE, 0.8 + 0.45 * changes["workload"].nunique())
    plotting.bars.change_points(shown, "workload", figure.subplots())
    params = run.params["idle_learned"]
    cases = params["workloads"].items()
    counts = {LABELS.get(key, key): case.get("streams", params["streams"]) for key, case in cases}
    number = max(counts.values())
    few = "".join(f", {count} of {name}" for name, count in counts.items() if count < number)
    caption = (
        f"Learned policy with idle slots against the one named, paired by stream; bars: {INTERVAL}; {number} fresh "
        f"streams per workload{few}. Capped SRW: shortest remaining work first, without slots."
    )
    return plotting.style.entitle(figure, "Gain of a learned policy from idling", caption, "two classes of jobs")


def _gains_most(tables: Tables) -> str:
    """Workload of Figures 4 and 5 on which slots gain most."""
    table = tables["idle_load"]
    gains = table[table["scheduler"] == CONTROL].groupby("workload")["change_percent"].min()
    return str(gains.idxmin())


def fig4_idle_cdf(tables: Tables, run: Run) -> plotting.style.Figure:
    """Figure 4: distribution of the JCT at two loads, without and with slots."""
    table = tables["idle_cdf"]
    case = _gains_most(tables)
    loads = sorted(table["load"].unique())
    figure = plotting.style.new_figure(plotting.style.PAGE, 2.8)
    for axes, load in zip(figure.subplots(1, len(loads), sharey=True, squeeze=False)[0], loads, strict=True):
        shown = table[(table["load"] == load) & (table["workload"] == case)]
        plotting.curves.jct_percentiles(shown, axes, legend=load == loads[-1])
        longest_s = shown[(shown["scheduler"] != "fifo") & (shown["percent"] <= 98)]["jct_s"].max()
        axes.set_xlim(0.0, min(axes.get_xlim()[1], 2.0 * longest_s))
        axes.set_title(f"({'abcd'[loads.index(load)]}) load {100 * load:.0f} %", loc="left")
        axes.set_ylabel("CDF" if load == loads[0] else "")
    others = table["workload"].nunique() - 1
    caption = (
        f"Workload: {case}, where idle slots shorten the average JCT most. On the other {count(others, 'workload')} "
        "the policies learned not to idle, so that their distributions lie on each other; the table has them. Cut off: "
        "what is beyond the 98th percentile, and FIFO beyond twice the others."
    )
    return plotting.style.entitle(figure, "Figure 4: distribution of the JCT", caption, "two classes of jobs; mixed")


def fig5_idle_load(tables: Tables, run: Run) -> plotting.style.Figure:
    """Figure 5: average JCT and makespan over the number of jobs."""
    case = _gains_most(tables)
    table, others = (rows for _, rows in tables["idle_load"].groupby(tables["idle_load"]["workload"] != case))
    most = others[others["scheduler"] == CONTROL]["change_percent"].abs().max()
    figure = plotting.style.new_figure(plotting.style.PAGE, 2.8)
    for axes, column in zip(figure.subplots(1, 2), ("avg_jct_s", "makespan_s"), strict=True):
        plotting.curves.score_over_jobs(table, column, axes, legend=column == "makespan_s")
        axes.set_title(f"({'a' if column == 'avg_jct_s' else 'b'})", loc="left")
        axes.set_ylim(0.0, 1.08 * table[column].max())
    caption = (
        f"Workload: {case}. Jobs that arrive in one span of time, mean of {table['streams'].max()} streams each. "
        "SJF-CP, tuned: the best of its six forms on training streams. On the other workloads, which the table has, "
        f"slots change the average JCT by at most {most:.1f} %."
    )
    return plotting.style.entitle(figure, "Figure 5: more jobs", caption, "two classes of jobs; mixed")


EXPERIMENT = Experiment(
    "idle_learned",
    "Duan and Wu, Table 1, Figures 4 and 5",
    compute,
    rooms=(*POLICY_ROOMS, "systems/spark/optimum"),
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
        "load": {
            "load": [0.5, 0.8], "window_s": 150, "streams": 2, "mixed": "half_tpch:base=embedded",
            "mixed_window_s": 800, "train": 1, "train_jobs": 8, "train_load": 0.6,
        },
    },
)  # fmt: skip
