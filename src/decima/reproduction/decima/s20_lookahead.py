"""Planning with the simulator: what plans gain on their rule, and what knowing more would be worth."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas

from decima import plotting
from decima.evaluation.run import score_matrix
from decima.evaluation.statistics import paired_change
from decima.optimum.bounds import lower_bound
from decima.optimum.schedule_search import search_schedule
from decima.planning.scheduler import BASE
from decima.plotting.words import count
from decima.reproduction.captions import Run, Tables, distinct
from decima.reproduction.comparisons import learned_policy, score_table
from decima.reproduction.decima.s07_tuning import tuned_schedulers
from decima.reproduction.experiment import Context, Experiment, Profiles, StoredPolicy, TablesOf
from decima.schedulers import make_scheduler
from decima.workload.jobs import Workload
from decima.workload.sources import WorkloadSource

if TYPE_CHECKING:
    from decima.plotting.style import Figure

# Sequences that nothing was tuned, validated or tried on.
FIRST_SEED = 5000


def compute(source: WorkloadSource, params: dict, context: Context) -> dict[str, pandas.DataFrame]:
    """Tables ``planned`` (scores by budget), ``planned_changes`` (against the rule) and ``knowing``.

    ``knowing`` has average JCTs with mean durations, of which rules, policy and plans know only what happens, while
    ``search`` knows the whole batch and looks for the best schedule of that very batch.
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
        "knowing": _knowing(batches[: params["instances"]], params, context),
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
    """Change of the mean against the rule in percent, paired by seed, with its 95 % confidence interval."""
    rows = []
    for case, scores in planned.groupby("case", sort=False):
        table = scores.pivot(index="seed", columns="budget", values="avg_jct_s")
        rows += [
            (case, budget, len(table), *paired_change(table[budget].to_numpy(), table[0].to_numpy()))
            for budget in table.columns[1:]
        ]
    return pandas.DataFrame(rows, columns=["case", "budget", "seeds", "change_percent", "low", "high"])


def _knowing(workloads: list[Workload], params: dict, context: Context) -> pandas.DataFrame:
    settings = context.settings(durations="mean")
    tuned = tuned_schedulers(context, "batch")
    policies = {"fair": make_scheduler("fair")} | tuned | {"decima": learned_policy(context, "batch")}
    policies["lookahead"] = make_scheduler(f"lookahead:{params['budgets'][-1]}")
    scores = score_matrix(workloads, list(policies.values()), settings, workers=context.threads)
    rows = []
    for instance, workload in enumerate(workloads):
        found = search_schedule(
            workload,
            settings,
            params["search"],
            start=tuned[BASE].values,
            workers=context.threads,
            progress=context.bar(f"search, batch {instance}"),
        )
        values = {name: score[instance] for name, score in zip(policies, scores, strict=True)}
        values |= {"search": found.avg_jct_s, "lower_bound": lower_bound(workload, settings).avg_jct_s}
        rows += [{"instance": instance, "policy": name, "avg_jct_s": value} for name, value in values.items()]
    return pandas.DataFrame(rows)


def plans_over_budget(tables: Tables, run: Run) -> Figure:
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


def knowing(tables: Tables, run: Run) -> Figure:
    """Average JCT from fair sharing to what no schedule can beat, on the same batches."""
    table = tables["knowing"]
    number = table["instance"].nunique()
    axes = plotting.optimality.distance_from_floor(table)
    caption = (
        f"{count(number, 'batch')}, mean durations, {run.cluster}; policy {run.policies['batch']}. "
        "The optimum lies on the grey line between lower bound and search."
    )
    return plotting.style.entitle(axes.figure, "What knowing more is worth", caption, run.workload)


EXPERIMENT = Experiment(
    "lookahead",
    "planning with the simulator",
    compute,
    figures=(plans_over_budget, knowing),
    inputs=(Profiles(), TablesOf("tuning"), StoredPolicy("batch")),
    tiny={
        "batches": 2,
        "jobs": 3,
        "budgets": [56],
        "streams": 2,
        "stream_jobs": 3,
        "interarrival_s": 14,
        "stream_budgets": [56],
        "instances": 1,
        "search": 20,
    },
)
