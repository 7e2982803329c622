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
from experiments.captions import INTERVAL, Run, Tables, learned_words
from experiments.comparisons import learned_schedulers
from experiments.decima.s07_tuning import tuned_schedulers
from experiments.experiment import Context, Experiment, Files, Profiles, StoredPolicy, TablesOf
from experiments.params import checkout
from experiments.rooms import POLICY_ROOMS

if TYPE_CHECKING:
    from decima.plotting.style import Figure


ROOM = "benchmarks/results/batch_room.csv"
TITLES = {"all alike": "as in Figure 9a", "tail": "the tail of the paper"}
ENTRY = "decima:policy=tpch-batch-entry"


def compute(source: WorkloadSource, params: dict, context: Context) -> dict[str, pandas.DataFrame]:
    """Tables ``bounds`` (average JCT with mean durations by arrivals, instance and policy) and ``room``.

    ``search`` has future knowledge: it knows the batch and looks for the best schedule of that very batch. The second
    table is kept: ``python -m benchmarks.claims batch_room``.
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
    return {"bounds": pandas.DataFrame(rows), "room": pandas.read_csv(checkout() / ROOM).dropna()}


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


def room(tables: Tables, run: Run) -> Figure:
    """What a search that knows the future finds, by its budget (§7.2)."""
    table = tables["room"]
    table = table.assign(budget=pandas.to_numeric(table["scheduler"].str.extract(r"search, (\d+)", expand=False)))
    figure = plotting.style.new_figure(plotting.style.PAGE, 2.8)
    panels = figure.subplots(1, len(TITLES), sharex=True, sharey=True)
    for letter, axes, sizes in zip("ab", panels, TITLES, strict=True):
        rows = table[table["sizes"] == sizes]
        search, drawn = rows.dropna(subset="budget"), {"color": plotting.style.BLACK, "marker": "o", "markersize": 3}
        reach = [search["change_percent"] - search["low"], search["high"] - search["change_percent"]]
        axes.errorbar(search["budget"], search["change_percent"], yerr=reach, label="search", **drawn)
        for name in ("weighted_fair", "capped_srw", ENTRY):
            shown = plotting.style.scheduler_style("decima_entry" if name == ENTRY else name)
            change = rows.loc[rows["scheduler"] == name, "change_percent"].item()
            axes.axhline(change, color=shown.color, linestyle="--", linewidth=1.0, label=shown.label)
        axes.axhline(-30.0, color=plotting.style.GREY, linewidth=0.8, linestyle=":", label="Figure 9a")
        axes.set(xscale="log", xlabel="schedules that the search tries", xticks=search["budget"][::2])
        plotting.style.plain_numbers(axes.xaxis)
        axes.set_title(f"({letter}) {TITLES[sizes]}, {rows['batches'].max()} batches", loc="left")
    panels[0].set_ylabel("average JCT against fair (%)")
    panels[0].legend(fontsize=6.5, loc="upper right", ncols=2)
    panels[0].set_ylim(top=4.0)
    caption = (
        f"Mean durations, 50 executors, batches of 20 jobs; bars: {INTERVAL}, paired. "
        "(b) 23 % of the jobs have 82 % of the work. Figure 9a: what the paper's gain needs."
    )
    return plotting.style.entitle(figure, "What a search finds on batches", caption, "TPC-H")


EXPERIMENT = Experiment(
    "bounds",
    "with appendix H",
    compute,
    rooms=(*POLICY_ROOMS, "systems/spark/optimum"),
    figures=(bounds, room),
    inputs=(Profiles(), TablesOf("tuning"), StoredPolicy("batch"), StoredPolicy("warm_batch"), Files([ROOM])),
    tiny={"instances": 1, "jobs": 3, "budget": 20},
)
