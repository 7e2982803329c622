"""Gain of idling by simple rules: a linear rule, tuned per workload, against no slots."""

from __future__ import annotations

import json

import pandas

from decima import plotting
from decima.evaluation.run import score_matrix
from decima.evaluation.statistics import paired_change
from decima.evaluation.tuning import TuneResult, tune
from decima.systems.spark.optimum.idle_value import TwoClassCluster, idle_value
from decima.systems.spark.schedulers import Scheduler, make_scheduler
from decima.systems.spark.settings import Settings
from decima.workload.jobs import Workload
from decima.workload.sources import TRAINING_SEED, WorkloadSource, parse_jobs
from experiments.captions import INTERVAL, Run, Tables
from experiments.experiment import Context, Experiment
from experiments.rooms import SPARK_ROOMS

# Without slots: shortest remaining work first, each job as many executors as it can use.
BASE = {"preset": "plain", "c0": 30.0, "c1": 10.0, "power": 0.0, "release": 10.0}
# The same for jobs of several tasks: with a cap per job, tuned on streams.
CAPPED = {"preset": "stream", "c0": 1.3317, "c1": 0.29937, "power": 0.14095, "release": 1.0932}
# Fixed values of the linear rule by its name in tables.
RULES = {
    "idle_rule_blind": {"hold": 0, "ages": 0},
    "idle_rule": {"hold": 0, "ages": 1},
    "idle_rule_hold": {"hold": 1, "ages": 1},
}
OPTIMUM = "idle_optimum"
# Labels of workloads in tables, by their key among the parameters; others have their key.
LABELS = {
    "half_long_3_at_80": "half long, 3 executors, 80 %",
    "half_long_3_bound_at_80": "half long, 3 executors, bound, 80 %",
    "rare_long_2_at_60": "rare long, 2 executors, 60 %",
    "rare_long_2_bound_at_60": "rare long, 2 executors, bound, 60 %",
    "rare_long_5_at_80": "rare long, 5 executors, 80 %",
    "clocked_10_at_60": "clocked bursts, 10 executors, 60 %",
    "clocked_50_at_60": "clocked bursts, 50 executors, 60 %",
    "mixed_10_at_60": "mixed, 10 executors, 60 %",
    "mixed_10_bound_at_60": "mixed, 10 executors, bound, 60 %",
    "tpch_10_bound_at_60": "TPC-H, 10 executors, bound, 60 %",
    "tpch_50_at_25_s": "TPC-H stream, 50 executors, 25 s",
}
# Where tuning begins, beside the rule without slots: long stages wait while no executor becomes free soon.
START = {"base": -3.5, "soon": 3.0, "length": 1.0}


def streams(jobs: str, count: int, number: int, first: int = 0, **options: float) -> list[Workload]:
    """Fresh streams of a workload.

    Args:
        jobs: Source or name of a workload, with options.
        count: Streams.
        number: Jobs of each.
        first: Seed of the first.
        **options: Further options of the text.
    """
    values = "".join(f",{name}={value:g}" for name, value in options.items())
    text = f"{jobs}{',' if ':' in jobs else ':'}n={number}{values}"
    return [parse_jobs(text).workload(first + seed) for seed in range(count)]


def shortest_first() -> Scheduler:
    """Shortest remaining work first, without slots: the best order of jobs of one task."""
    return make_scheduler("capped_srw", **BASE)


def tuned_rule(
    workloads: list[Workload],
    seeds: list[int],
    settings: Settings,
    budget: int,
    fixed: dict,
    context: Context,
    label: str,
) -> TuneResult:
    """Linear rule with weights tuned by CMA-ES on workloads, some of its values fixed."""
    options = {"train_seeds": seeds, "budget": budget, "fixed": BASE | fixed, "start": START}
    return tune("idle_rule", workloads, settings, **options, **context.work(label))


def compute(source: WorkloadSource, params: dict, context: Context) -> dict[str, pandas.DataFrame]:
    """Tables ``idle_rules`` (scores on fresh streams), ``idle_changes`` (paired), ``idle_weights`` (what was tuned)."""
    scores, changes, weights = [], [], []
    for key, case in params["workloads"].items():
        name = case.get("label", LABELS.get(key, key))
        mode = case.get("mode", "simplified")
        settings = Settings.of_mode(mode, executors=case["executors"], job_bound=case.get("job_bound", False))
        base = BASE if mode == "simplified" else CAPPED
        budget, train_jobs = (case.get(key, params[key]) for key in ("budget", "train_jobs"))
        train_seeds = [TRAINING_SEED + index for index in range(params["train"])]
        seeds = list(range(params["streams"]))
        jobs = case["jobs"] + ("," if ":" in case["jobs"] else ":")
        jobs += f"load={case['load']},executors={case['executors']}"
        train = [parse_jobs(f"{jobs},n={train_jobs}").workload(seed) for seed in train_seeds]
        test = [parse_jobs(f"{jobs},n={params['jobs']}").workload(seed) for seed in seeds]
        schedulers: dict[str, Scheduler] = {"capped_srw": make_scheduler("capped_srw", **base)}
        for rule, fixed in RULES.items():
            result = tuned_rule(train, train_seeds, settings, budget, base | fixed, context, f"{name}, {rule}")
            schedulers[rule] = result.make()
            tuned = {key: result.parameters[key] for key in result.tuned}
            weights.append({"workload": name, "scheduler": rule, "weights": json.dumps(tuned, sort_keys=True)})
        rows = score_matrix(test, list(schedulers.values()), settings, seeds=seeds, workers=context.threads)
        table = dict(zip(schedulers, rows, strict=True))
        scores += [
            {"workload": name, "scheduler": rule, "seed": seed, "avg_jct_s": score}
            for rule, row in table.items()
            for seed, score in zip(seeds, row, strict=True)
        ]
        changes += [(name, rule, *paired_change(table[rule], table["capped_srw"])) for rule in RULES]
        if case.get("optimum"):
            optimum = -_gain_percent(case, params["step_s"], context)
            changes.append((name, OPTIMUM, optimum, optimum, optimum))
    columns = ["workload", "scheduler", "change_percent", "low", "high"]
    return {
        "idle_rules": pandas.DataFrame(scores),
        "idle_changes": pandas.DataFrame(changes, columns=columns),
        "idle_weights": pandas.DataFrame(weights),
    }


def _gain_percent(case: dict, step_s: float, context: Context) -> float:
    """Gain of the optimum for a case of two classes."""
    options = parse_jobs(case["jobs"]).options
    cluster = TwoClassCluster(case["executors"], options["long_s"], options["short_s"], options["share"], case["load"])
    return idle_value(cluster, step_s=step_s, progress=context.bar("optimum")).gain_percent


def idle_rule_changes(tables: Tables, run: Run) -> plotting.style.Figure:
    """Linear rules against the rule without slots, per workload, with the optimum if known."""
    changes = tables["idle_changes"]
    figure = plotting.style.new_figure(plotting.style.PAGE, 0.8 + 0.6 * changes["workload"].nunique())
    plotting.bars.change_points(changes, "workload", figure.subplots())
    caption = (
        f"Against shortest remaining work without slots, paired by stream; bars: {INTERVAL}; "
        f"{run.params['idle_rules']['streams']} fresh streams per workload. Each heuristic is tuned on other "
        f"streams of its "
        "workload. Optimum: value iteration."
    )
    return plotting.style.entitle(figure, "Gain of a linear heuristic from idling", caption, "two classes of jobs")


EXPERIMENT = Experiment(
    "idle_rules",
    "Duan and Wu, Table 1 and Figure 4",
    compute,
    rooms=(*SPARK_ROOMS, "systems/spark/optimum"),
    figures=(idle_rule_changes,),
    tiny={
        "workloads": {"rare": {"jobs": "rare_long", "executors": 2, "load": 0.6, "optimum": True}},
        "train": 2, "train_jobs": 10, "streams": 2, "jobs": 12, "budget": 8, "step_s": 10.0,
    },
)  # fmt: skip
