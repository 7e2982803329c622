"""Planning with the simulator: gain over the base rule, and the value of more knowledge."""

from __future__ import annotations

import pandas

from decima import plotting
from decima.evaluation.run import score_matrix
from decima.evaluation.statistics import paired_change
from decima.plotting.words import count
from decima.systems.spark.lookahead.copies import BASE
from decima.systems.spark.lookahead.scheduler import Lookahead, PlanSettings
from decima.systems.spark.optimum.bounds import lower_bound
from decima.systems.spark.optimum.schedule_search import search_schedule
from decima.systems.spark.policy.architecture import NO_RESIDUAL
from decima.systems.spark.schedulers import make_scheduler
from decima.systems.spark.settings import Settings
from decima.workload.jobs import Workload
from decima.workload.sources import WorkloadSource, get_source
from experiments.captions import INTERVAL, Run, Tables, distinct
from experiments.comparisons import learned_policy, policy_row, score_table
from experiments.decima.s07_tuning import tuned_schedulers
from experiments.experiment import Context, Experiment, Profiles, StoredPolicy, TablesOf
from experiments.rooms import POLICY_ROOMS

# Sequences that nothing was tuned, validated or tried on.
FIRST_SEED = 5000
# Labels of other workloads in tables, by their key among the parameters; others have their key.
LABELS = {
    "embedded_50": "embedded, 50 executors",
    "embedded_4": "embedded, 4 executors",
    "embedded_classes": "embedded, 4 classes",
    "tpch_classes_best_fit": "TPC-H, 4 classes, best fit",
    "tpch_classes": "TPC-H, 4 classes",
}


def compute(source: WorkloadSource, params: dict, context: Context) -> dict[str, pandas.DataFrame]:
    """Tables ``planned`` (scores by budget), ``planned_changes`` (against the rule), ``elsewhere`` and ``knowing``.

    ``elsewhere`` has the change against the rule on other workloads and clusters. ``knowing`` has average JCTs with
    mean durations by kind of arrivals, of which rules, policy and plans know only what happens, while ``search`` knows
    the whole batch or stream and looks for the best schedule of that very one.
    """
    batches = source.batches(_seeds(params["batches"]), params["jobs"])
    streams = source.streams(_seeds(params["streams"]), params["stream_jobs"], params["interarrival_s"])
    batch, stream = "batches", f"streams, {params['interarrival_s']:g} s"
    planned = pandas.concat(
        [
            _planned(batches, params["budgets"], "none", batch, context),
            _planned(streams, params["stream_budgets"], "poisson", stream, context),
        ]
    )
    return {
        "planned": planned,
        "planned_changes": _changes(planned),
        "elsewhere": _elsewhere(params, context),
        "knowing": pandas.concat(
            [
                _knowing("batches", batches[: params["instances"]], "batch", "batch", params, context),
                _knowing(
                    "streams",
                    streams[: params["stream_instances"]],
                    f"stream-{params['interarrival_s']:g}s",
                    "residual_stream",
                    params,
                    context,
                ),
            ]
        ),
    }


def _seeds(number: int) -> list[int]:
    return list(range(FIRST_SEED, FIRST_SEED + number))


def _planned(
    workloads: list[Workload], budgets: list[int], arrivals: str, case: str, context: Context
) -> pandas.DataFrame:
    """Scores of the rule, as budget 0, and of its plans."""
    schedulers = {0: make_scheduler(BASE)}
    schedulers |= {budget: make_scheduler(f"lookahead:{budget},arrivals={arrivals}") for budget in budgets}
    labelled = {str(budget): scheduler for budget, scheduler in schedulers.items()}
    table = score_table(labelled, workloads, _seeds(len(workloads)), context.settings(), context, case, case=case)
    return table.assign(budget=table["scheduler"].astype(int)).drop(columns="scheduler")


def _changes(planned: pandas.DataFrame) -> pandas.DataFrame:
    """Change of the mean against the rule, percent, paired by seed, with 95 % interval."""
    rows = []
    for case, scores in planned.groupby("case", sort=False):
        table = scores.pivot(index="seed", columns="budget", values="avg_jct_s")
        rows += [
            (case, budget, len(table), *paired_change(table[budget].to_numpy(), table[0].to_numpy()))
            for budget in table.columns[1:]
        ]
    return pandas.DataFrame(rows, columns=["case", "budget", "seeds", "change_percent", "low", "high"])


def _elsewhere(params: dict, context: Context) -> pandas.DataFrame:
    """Change against the rule on other workloads, each with a rule that suits it."""
    rows = []
    for key, case in params["elsewhere"].items():
        label = LABELS.get(key, key)
        source = get_source(case["source"])
        more = {"requests": case["requests"]} if "requests" in case else {}
        seeds = _seeds(case["workloads"])
        if "interarrival_s" in case:
            workloads = [source.stream(case["jobs"], case["interarrival_s"], seed, **more) for seed in seeds]
        else:
            workloads = [source.batch(case["jobs"], seed, **more) for seed in seeds]
        cluster = {"classes": case["classes"]} if "classes" in case else {"executors": case["executors"]}
        settings = Settings.of_mode("paper", **cluster)
        arrivals = "poisson" if "interarrival_s" in case else "none"
        planned = Lookahead(
            make_scheduler(case["base"]), PlanSettings.of_budget(params["budgets"][0], arrivals=arrivals)
        )
        plain, with_plans = score_matrix(
            workloads, [make_scheduler(case["base"]), planned], settings, seeds=seeds, workers=context.threads
        )
        rows.append((label, case["base"], params["budgets"][0], len(seeds), *paired_change(with_plans, plain)))
    return pandas.DataFrame(rows, columns=["case", "base", "budget", "seeds", "change_percent", "low", "high"])


def _knowing(
    arrivals: str, workloads: list[Workload], tuned_for: str, use: str, params: dict, context: Context
) -> pandas.DataFrame:
    """Average JCTs with increasing knowledge, from least to all, on the same workloads."""
    settings = context.settings(durations="mean")
    tuned = tuned_schedulers(context, tuned_for)
    policy = learned_policy(context, use)
    future = "poisson" if arrivals == "streams" else "none"
    least, most = params["budgets"][0], params["budgets"][-1]
    policies = {"fair": make_scheduler("fair")} | tuned | {policy_row(context.policies[use]): policy}
    if policy.architecture.residual != NO_RESIDUAL:  # others have no factors that could be planned
        policies["decima_lookahead"] = Lookahead(policy, PlanSettings.of_budget(least, arrivals=future))
    for name, budget in {"lookahead_least": least, "lookahead": most}.items():
        policies[name] = Lookahead(tuned[BASE], PlanSettings.of_budget(budget, arrivals=future))
    scores = score_matrix(workloads, list(policies.values()), settings, workers=context.threads)
    rows = []
    for instance, workload in enumerate(workloads):
        best = search_schedule(
            workload,
            settings,
            params["search"],
            start=tuned[BASE].values,
            **context.work(f"search, {arrivals} {instance}"),
        )
        bound = lower_bound(workload, settings)
        values = {name: score[instance] for name, score in zip(policies, scores, strict=True)}
        values |= {"search": best.avg_jct_s, "lower_bound": bound.avg_jct_s}
        values["lower_bound_unpriced"] = max(bound.path_ms, bound.work_ms, bound.combined_ms) / 1000.0
        where = {"arrivals": arrivals, "instance": instance}
        rows += [where | {"policy": name, "avg_jct_s": value} for name, value in values.items()]
    return pandas.DataFrame(rows)


def plans_over_budget(tables: Tables, run: Run) -> plotting.style.Figure:
    """Change of the average JCT against the rule over the simulated runs per plan."""
    changes, planned = tables["planned_changes"], tables["planned"]
    axes = plotting.load.change_over_budget(changes)
    numbers = [f"{case}: {distinct(rows, 'seed', 'seed')}" for case, rows in planned.groupby("case", sort=False)]
    rule = plotting.style.scheduler_style(BASE).label
    caption = (
        f"Paired against {rule}, the rule that is planned; bars: 95 % confidence interval; {'; '.join(numbers)}; "
        f"{run.cluster}."
    )
    return plotting.style.entitle(axes.figure, "What plans gain", caption, run.workload)


def elsewhere(tables: Tables, run: Run) -> plotting.style.Figure:
    """Change against the rule on other workloads and clusters."""
    table = tables["elsewhere"]
    axes = plotting.load.change_by_case(table)
    seeds = "; ".join(f"{row.case}: {count(row.seeds, 'seed')}" for row in table.itertuples())
    runs = table["budget"].iloc[0]
    caption = f"Paired against the rule that is planned, {runs} runs per plan; bars: {INTERVAL}; {seeds}."
    return plotting.style.entitle(axes.figure, "Plans on other workloads", caption, "several workloads")


def knowing(tables: Tables, run: Run) -> plotting.style.Figure:
    """Average JCT relative to the best known schedule, from fair sharing to the bound."""
    table = tables["knowing"]
    kinds = list(dict.fromkeys(table["arrivals"]))
    figure = plotting.style.new_figure(plotting.style.PAGE, 4.0)
    for axes, which in zip(figure.subplots(1, len(kinds), squeeze=False)[0], kinds, strict=True):
        plotting.optimality.ratio_bars(table[table["arrivals"] == which], axes, reference="search", instance="instance")
        axes.set_title(which, loc="left")
    nouns = {"batches": "batch", "streams": "stream"}
    numbers = [count(rows["instance"].nunique(), nouns[which]) for which, rows in table.groupby("arrivals", sort=False)]
    caption = (
        f"{' and '.join(numbers)}, mean durations, {run.cluster}; policies {run.policies['batch']} and "
        f"{run.policies['residual_stream']}; from three instances on: {INTERVAL}. The optimum lies between "
        "search and lower bound."
    )
    return plotting.style.entitle(figure, "What knowing more is worth", caption, run.workload)


EXPERIMENT = Experiment(
    "lookahead",
    "planning with the simulator",
    compute,
    rooms=(*POLICY_ROOMS, "systems/spark/lookahead", "systems/spark/optimum"),
    figures=(plans_over_budget, elsewhere, knowing),
    inputs=(Profiles(), TablesOf("tuning"), StoredPolicy("batch"), StoredPolicy("residual_stream")),
    tiny={
        "batches": 2,
        "jobs": 3,
        "budgets": [56],
        "streams": 2,
        "stream_jobs": 3,
        "interarrival_s": 14,
        "stream_budgets": [56],
        "instances": 1,
        "stream_instances": 1,
        "search": 20,
        "elsewhere": {
            "two classes": {
                "source": "synthetic",
                "jobs": 3,
                "workloads": 2,
                "requests": "uniform",
                "classes": [[0.5, 4], [1.0, 4]],
                "base": "priced_srw",
            },
            "idle slots": {
                "source": "synthetic",
                "jobs": 3,
                "interarrival_s": 10,
                "workloads": 2,
                "executors": 4,
                "base": "idle_rule:hold=1,base=0.4",
            },
        },
    },
)
