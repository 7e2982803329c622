"""Parameters of the heuristics, tuned on training sequences outside of all tests (§7.1 (5))."""

from __future__ import annotations

import json
import re

import pandas

from decima import plotting
from decima.evaluation.tuning import tune
from decima.systems.spark.alpha import ALL_VARIANTS, alpha_sweep
from decima.systems.spark.schedulers import CompiledScheduler, make_scheduler
from decima.workload.jobs import Workload
from decima.workload.sources import TRAINING_SEED, WorkloadSource
from experiments.captions import Run, Tables, distinct
from experiments.experiment import Context, Experiment, Profiles
from experiments.rooms import SPARK_ROOMS

# Variants of weighted fair whose curves are shown on test sequences: (sticky, stage_rule, order).
SHOWN = ((1, 0, 0), (0, 0, 0), (1, 0, 1), (0, 0, 1))


def arrival_kinds(source: WorkloadSource, params: dict, seeds: list[int]) -> dict[str, list[Workload]]:
    """Sequences by arrivals: ``batch`` and one ``stream-<gap>s`` per mean interarrival time."""
    kinds = {"batch": source.batches(seeds, params["batch_jobs"])}
    for gap_s in params["interarrival_s"]:
        kinds[f"stream-{gap_s}s"] = source.streams(seeds, params["stream_jobs"], gap_s)
    return kinds


def compute(source: WorkloadSource, params: dict, context: Context) -> dict[str, pandas.DataFrame]:
    """Tables ``tuned`` (best parameters by arrivals) and ``alpha_training`` (curves of all variants)."""
    seeds = [TRAINING_SEED + index for index in range(params["sequences"])]
    settings = context.settings()
    tuned, curves = [], []
    for arrivals, workloads in arrival_kinds(source, params, seeds).items():
        sweep = alpha_sweep(
            workloads, settings, variants=ALL_VARIANTS, seeds=seeds, **context.work(f"alpha, {arrivals}")
        )
        curves.append(sweep.table.assign(arrivals=arrivals))
        best = {"weighted_fair": sweep.best(), "capped_srw": _tune(workloads, seeds, params, context, arrivals)}
        tuned += [
            {"arrivals": arrivals, "scheduler": name, "parameters": json.dumps(values, sort_keys=True)}
            for name, values in best.items()
        ]
    return {"tuned": pandas.DataFrame(tuned), "alpha_training": pandas.concat(curves)}


def _tune(
    workloads: list[Workload], seeds: list[int], params: dict, context: Context, arrivals: str
) -> dict[str, float]:
    result = tune(
        "capped_srw",
        workloads,
        context.settings(),
        train_seeds=seeds,
        budget=params["budget"],
        fixed={"preset": "plain"},
        **context.work(f"capped_srw, {arrivals}"),
    )
    return result.parameters


def tuned_schedulers(context: Context, arrivals: str) -> dict[str, CompiledScheduler]:
    """``weighted_fair`` and ``capped_srw`` with the parameters tuned for these arrivals."""
    table = context.tables("tuning")["tuned"]
    rows = table[table["arrivals"] == arrivals]
    return {row.scheduler: make_scheduler(row.scheduler, **json.loads(row.parameters)) for row in rows.itertuples()}


def weighted_fair_by_arrival(context: Context, arrivals: str) -> CompiledScheduler:
    """Best weighted fair for these arrivals with jobs below their share served by arrival."""
    curves = context.tables("tuning")["alpha_training"]
    rows = curves[(curves["arrivals"] == arrivals) & (curves["order"] == 0)]
    means = rows.groupby(["alpha", "sticky", "stage_rule"])["avg_jct_s"].mean()
    alpha, sticky, stage_rule = means.idxmin()
    return make_scheduler("weighted_fair", alpha=alpha, sticky=sticky, stage_rule=stage_rule, order=0)


def alpha_training(tables: Tables, run: Run) -> plotting.style.Figure:
    """The curves from which the tuned alpha is taken."""
    table = tables["alpha_training"]
    kinds = list(dict.fromkeys(table["arrivals"]))
    rows = -(-len(kinds) // 2)
    figure = plotting.style.new_figure(plotting.style.PAGE, 0.6 + 2.2 * rows)
    grid = figure.subplots(rows, 2, sharex=True, squeeze=False).ravel()
    for axes in grid[len(kinds) :]:
        axes.set_axis_off()
    for letter, axes, arrivals in zip("abcdefgh", grid, kinds, strict=False):
        plotting.curves.alpha_curve(table[table["arrivals"] == arrivals], axes)
        gap = re.fullmatch(r"stream-(.+)s", arrivals)
        axes.set_title(f"({letter}) {f'a job every {gap[1]} s' if gap else 'batches'}", loc="left")
    caption = (
        f"Mean over {distinct(table, 'seed', 'training sequence')}, none of which is tested on; {run.cluster}. "
        "Green band: one standard error; grey: from the best to the worst of the other variants. The best point gives "
        "the parameters of tuned weighted fair."
    )
    return plotting.style.entitle(figure, "Tuning weighted fair", caption, run.workload)


def alpha_figure(table: pandas.DataFrame, arrivals: str, noun: str, run: Run) -> plotting.style.Figure:
    """Average JCT over alpha on test sequences.

    Args:
        table: Of an alpha sweep.
        arrivals: What the title says of the sequences.
        noun: A sequence.
        run: What the sweep ran on.
    """
    figure = plotting.style.new_figure(plotting.style.PAGE, 2.6)
    plotting.curves.alpha_curve(table, figure.subplots())
    caption = (
        f"{distinct(table, 'seed', noun)}, {run.cluster}. Green band: one standard error; grey: from the best to the "
        "worst of the other variants."
    )
    return plotting.style.entitle(figure, f"Weighted fair scheduling over α, {arrivals}", caption, run.workload)


EXPERIMENT = Experiment(
    "tuning",
    "§7.1 (5)",
    compute,
    rooms=SPARK_ROOMS,
    figures=(alpha_training,),
    inputs=(Profiles(),),
    tiny={"sequences": 2, "batch_jobs": 3, "stream_jobs": 3, "interarrival_s": [25, 14], "budget": 8},
)
