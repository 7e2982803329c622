"""Heuristics and a policy of published shape under released rules, and the published simulator's numbers."""

from __future__ import annotations

import textwrap

import pandas

from decima import plotting
from decima.systems.spark.schedulers import make_scheduler
from decima.workload.sources import WorkloadSource
from experiments.captions import INTERVAL, Run, Tables, distinct, presets, untuned
from experiments.comparisons import learned_schedulers, score_table
from experiments.experiment import Context, Experiment, Files, Profiles, StoredPolicy
from experiments.params import checkout
from experiments.rooms import POLICY_ROOMS

SCHEDULERS = {
    "released_fifo": ("released_fifo", {}),
    "sjf_cp": ("sjf_cp", {}),
    "sjf_cp_sticky": ("sjf_cp", {"sticky": 1}),
    "released_fair": ("released_fair", {}),
    "fair_strict": ("fair", {"sticky": 0}),
    "naive_weighted_fair": ("naive_weighted_fair", {}),
    "weighted_fair": ("weighted_fair", {"preset": "paper"}),
    "capped_srw": ("capped_srw", {"preset": "plain"}),
}

PUBLISHED = "benchmarks/results/published_experiment.csv"
CLAIMED = -21.0  # percent, to fair sharing (abstract, and the README of the published code)


def compute(source: WorkloadSource, params: dict, context: Context) -> dict[str, pandas.DataFrame]:
    """Tables ``released`` (batches of 20 jobs in seven and six sizes, and streams) and ``published_experiment``.

    Streams have 1 + 200 jobs of seven sizes, one every 25 s. The learned policy was trained on batches and is tested on
    batches. The second table is kept: ``python -m benchmarks.claims published_experiment``.
    """
    seeds = list(range(params["seeds"]))
    settings = context.settings("released")
    cases = {
        "batch, seven sizes": source.batches(seeds, 20, "released"),
        "batch, six sizes": source.batches(seeds, 20, "paper"),
        "stream, seven sizes": source.streams(seeds, 200, 25, "released"),
    }
    if params["long_stream_jobs"]:
        cases["long stream, seven sizes"] = source.streams(seeds[:1], params["long_stream_jobs"], 25, "released")
    schedulers = {name: make_scheduler(scheduler, **values) for name, (scheduler, values) in SCHEDULERS.items()}
    policies = learned_schedulers(context, "released")
    tables = []
    for case, workloads in cases.items():
        chosen = schedulers | policies if case.startswith("batch") else schedulers
        if case.startswith("long"):  # the others grow a backlog without end
            chosen = {name: schedulers[name] for name in ("released_fair", "fair_strict", "capped_srw")}
        tables.append(score_table(chosen, workloads, seeds[: len(workloads)], settings, context, case, arrivals=case))
    everybody = pandas.read_csv(checkout() / PUBLISHED).drop(columns="source").dropna(subset="change_percent")
    for end in ("low", "high"):  # none for a single stream
        everybody[end] = everybody[end].fillna(everybody["change_percent"])
    return {"released": pandas.concat(tables), "published_experiment": everybody}


def released_rules(tables: Tables, run: Run) -> plotting.style.Figure:
    """Heuristics and the policy of the published shape under the released rules."""
    table = untuned(tables["released"])
    figure = plotting.bars.scheduler_bars(table, group="arrivals").figure
    caption = (
        f"Up to {distinct(table, 'seed', 'seed')} per group; bars: {INTERVAL}; {run.cluster}; policy "
        f"{run.policies['released']}, trained on TPC-H.{presets(table['scheduler'])}"
    )
    return plotting.style.entitle(figure, "Schedulers under the released rules", caption, run.workload)


def published_experiment(tables: Tables, run: Run) -> plotting.style.Figure:
    """What others and we find in the experiment of the published code."""
    rows, style = tables["published_experiment"], plotting.style
    figure = style.new_figure(style.PAGE, 0.7 + 0.3 * len(rows))
    axes = figure.subplots()
    colors = dict(zip(rows["who"].unique(), (style.BLACK, style.INDIGO, style.BROWN, style.WINE), strict=True))
    for number, row in enumerate(rows.itertuples()):
        reach = [[row.change_percent - row.low], [row.high - row.change_percent]]
        marks = {"marker": "o", "markersize": 4, "color": colors[row.who], "capsize": 2 * (row.low < row.high)}
        axes.errorbar(row.change_percent, number, xerr=reach, linewidth=1.0, **marks)
    for change, line in ((0.0, "-"), (CLAIMED, ":")):
        axes.axvline(change, color=style.GREY, linewidth=0.8, linestyle=line)
    style.label_rows(axes, [textwrap.fill(f"{row.who}: {row.scheduler}", 44) for row in rows.itertuples()])
    axes.tick_params("y", labelsize=6.5)
    axes.set_xlabel("change of average JCT (%)")
    caption = (
        "Change to fair sharing as published: 50 executors, seven sizes, one job every 25 s, rules of the published "
        f"simulator. Streams of 5,000 jobs, of spark-sched-sim 200. Bars: {INTERVAL} over streams, where there are "
        "several. Dotted: the claim."
    )
    return style.entitle(figure, "The experiment of the published code", caption, "TPC-H")


EXPERIMENT = Experiment(
    "released",
    "§6.2, the released simulator",
    compute,
    rooms=POLICY_ROOMS,
    figures=(released_rules, published_experiment),
    inputs=(Profiles(), StoredPolicy("released"), Files([PUBLISHED])),
    tiny={"seeds": 2, "long_stream_jobs": 4},
)
