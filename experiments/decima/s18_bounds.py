"""Distance from the optimum: Decima, heuristics, best known schedules and a lower bound."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas

from decima import plotting
from decima.evaluation.run import score_matrix
from decima.plotting.words import count
from decima.systems.spark.optimum.bounds import lower_bound
from decima.systems.spark.optimum.schedule_search import search_schedule
from decima.systems.spark.schedulers import make_scheduler
from decima.workload.sources import WorkloadSource
from experiments.captions import Run, Tables, learned_words
from experiments.comparisons import learned_schedulers
from experiments.decima.s07_tuning import tuned_schedulers
from experiments.experiment import Context, Experiment, Profiles, StoredPolicy, TablesOf
from experiments.rooms import POLICY_ROOMS

if TYPE_CHECKING:
    from decima.plotting.style import Figure


def compute(source: WorkloadSource, params: dict, context: Context) -> dict[str, pandas.DataFrame]:
    """Table ``bounds``: average JCT with mean durations by arrivals, instance and policy.

    ``search`` has future knowledge: it knows the batch and looks for the best schedule of that very batch.
    """
    settings = context.settings(durations="mean")
    seeds = list(range(params["instances"]))
    workloads = source.batches(seeds, params["jobs"])
    tuned = tuned_schedulers(context, "batch")
    policies = {"fair": make_scheduler("fair")} | tuned | learned_schedulers(context, "batch", "warm_batch")
    scores = score_matrix(workloads, list(policies.values()), settings, workers=context.threads)
    rows = []
    for seed, workload in zip(seeds, workloads, strict=True):
        best = search_schedule(
            workload,
            settings,
            params["budget"],
            start=tuned["capped_srw"].values,
            workers=context.threads,
            progress=context.bar(f"search, instance {seed}"),
        )
        values = {name: score[seed] for name, score in zip(policies, scores, strict=True)}
        values |= {"search": best.avg_jct_s, "lower_bound": lower_bound(workload, settings).avg_jct_s}
        instance = {"arrivals": "batch", "instance": seed}
        rows += [instance | {"policy": name, "avg_jct_s": value} for name, value in values.items()]
    return {"bounds": pandas.DataFrame(rows)}


def bounds(tables: Tables, run: Run) -> Figure:
    """Draw the distance of every policy from the best known schedule and a lower bound."""
    table = tables["bounds"]
    kinds = list(dict.fromkeys(table["arrivals"]))
    number = int(table.groupby("arrivals")["instance"].nunique().max())
    figure = plotting.style.new_figure(plotting.style.PAGE, max(2.1, 1.2 + 0.28 * number))
    grid = figure.subplots(1, len(kinds), squeeze=False)[0]
    for axes, arrivals in zip(grid, kinds, strict=True):
        plotting.optimality.distance_from_floor(table[table["arrivals"] == arrivals], axes, legend=axes is grid[-1])
        axes.set_title(arrivals, loc="left")
    caption = (
        f"{count(number, 'instance')}{' of each kind' if len(kinds) > 1 else ''}, mean durations, {run.cluster}; "
        f"{learned_words(run, table['policy'], 'batch', 'warm_batch')}. The "
        f"optimum lies on the grey line between lower bound and search."
    )
    return plotting.style.entitle(figure, "Distance from the optimum", caption, run.workload)


EXPERIMENT = Experiment(
    "bounds",
    "with appendix H",
    compute,
    rooms=(*POLICY_ROOMS, "systems/spark/optimum"),
    figures=(bounds,),
    inputs=(Profiles(), TablesOf("tuning"), StoredPolicy("batch"), StoredPolicy("warm_batch")),
    tiny={"instances": 1, "jobs": 3, "budget": 20},
)
