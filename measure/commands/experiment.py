"""`decima spark experiment`: batches of queries on real Spark under several schedulers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from decima.commands.shared import options
from decima.commands.shared.outputs import check_folder
from decima.core.progress import progress_bar

if TYPE_CHECKING:
    from decima.systems.spark.schedulers import Scheduler
    from measure.experiment import Plan

TUNED = "weighted_fair"
TUNING_BATCHES = 40


def register(group: typer.Typer) -> None:
    """Add the command to the group `decima spark`."""
    group.command()(experiment)


@options.grouped
def experiment(
    schedulers: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[SCHEDULER...]",
            help="Names, with parameters (weighted_fair:alpha=-1); weighted_fair alone is tuned first.",
            show_default="fifo fair weighted_fair decima",
        ),
    ] = None,
    *,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder of runs, logs and tables; resumed if present.")],
    scale: Annotated[float, typer.Option(metavar="S", help="TPC-H scale factor.")] = 0.5,
    executors: Annotated[int, typer.Option(metavar="N", min=1, help="One-core executors.")] = 4,
    queries: Annotated[int, typer.Option(metavar="N", help="Queries of a batch, all submitted at once.")] = 12,
    batches: Annotated[int, typer.Option(metavar="N", help="Different batches.")] = 2,
    repetitions: Annotated[int, typer.Option(metavar="N", help="Runs of each batch under each scheduler.")] = 4,
    control: Annotated[
        bool, typer.Option("--control/--no-control", help="Also run Spark's own FIFO without the plugin.")
    ] = True,
    rounds_per_start: Annotated[int, typer.Option(metavar="N", help="Rounds before Spark is started anew.")] = 4,
    warmups: Annotated[int, typer.Option(metavar="N", help="Times each query runs before a measured batch.")] = 2,
    attempts: Annotated[int, typer.Option(metavar="N", help="Attempts per contended run.")] = 3,
    wait_limit: Annotated[
        float, typer.Option(metavar="SHARE", help="Largest share of time that Spark's threads may wait for a core.")
    ] = 0.65,
    foreign_limit: Annotated[
        float, typer.Option(metavar="SHARE", help="Largest share of the cores that other processes may take.")
    ] = 0.15,
    data: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Generated tables.", show_default="the platform's cache")
    ] = None,
    memory_mb: Annotated[int, typer.Option(metavar="MIB", min=512, help="Memory of an executor.")] = 2048,
    seed: options.Seed = 0,
) -> None:
    """Run batches of TPC-H queries on real Spark under several schedulers.

    Contended runs are rejected and tried again. After an interruption, the same call continues.
    """
    from decima.connect.cluster import machine, tpch_tables
    from decima.connect.cluster.processes import ended_by_signals
    from decima.connect.cluster.standalone import StandaloneCluster
    from decima.systems.spark.schedulers import scheduler_text
    from measure import results
    from measure.collect import collect
    from measure.experiment import DEFAULT_SCHEDULERS, Experiment, Plan
    from measure.records import BatchRecord
    from measure.together import SparkBench

    check_folder(out)
    texts = list(schedulers or DEFAULT_SCHEDULERS)
    plan = Plan(
        scale, executors, queries, batches, repetitions, tuple(text.partition(":")[0] for text in texts),
        control, rounds_per_start, warmups, attempts, seed,
    )  # fmt: skip
    machine.require_spark()
    by_name = {name: _scheduler(text, plan) for name, text in zip(plan.schedulers, texts, strict=True)}
    about = {
        "schedulers": {name: _entry(scheduler) for name, scheduler in by_name.items()},
        "machine": machine.describe(),
    }
    measurement = Experiment(out, plan, about, wait_limit, foreign_limit)
    total = sum(len(block.runs) for block in measurement.missing())
    if total:
        machine.check_memory(executors, memory_mb)
        folder = tpch_tables.generate(scale, data)
        served = {name: scheduler_text(scheduler) for name, scheduler in by_name.items()}
        bar = progress_bar("Spark runs", total, "run")

        def finished(record: BatchRecord) -> None:
            bar.set_postfix_str(f"{record.run.key}{' contended' if record.contended else ''}", refresh=False)
            bar.update(not measurement.is_open(record.run))

        with ended_by_signals(), bar, StandaloneCluster(executors=executors, memory_mb=memory_mb) as cluster:
            measurement.measure(SparkBench(cluster, plan, out, folder, served, plan.durations()), finished)
    measured = collect(measurement)
    paths = results.write(measured, out)
    scores = measured.scores()
    typer.echo(
        f"{len(scores)} of {len(plan.runs())} runs usable, {int((~measured.runs['usable']).sum())} attempts rejected; "
        f"average JCT {_averages(scores)}; wrote {', '.join(path.name for path in paths)} in {out}"
    )


def _averages(scores) -> str:
    means = scores.groupby("scheduler", sort=False)["avg_jct_s"].mean().sort_values()
    return ", ".join(f"{name} {value:.1f} s" for name, value in means.items()) or "unknown"


def _scheduler(text: str, plan: Plan) -> Scheduler:
    """The scheduler; weighted fair without parameters is tuned for batches like those of the plan."""
    from decima.core.system import form_for
    from decima.systems.spark.schedulers import make_scheduler

    if text != TUNED:
        return form_for(make_scheduler(text), False)  # the queries of a batch are all there at the start
    from decima.systems.spark.alpha import ALL_VARIANTS, alpha_sweep
    from measure.fidelity.simulation import cluster_settings, training_workloads

    sweep = alpha_sweep(
        training_workloads(plan, TUNING_BATCHES),
        cluster_settings(plan.executors),
        variants=ALL_VARIANTS,
        progress="tuning weighted fair",
    )
    return sweep.scheduler()


def _entry(scheduler: Scheduler) -> dict:
    """Entry of a scheduler in the card, enough to make it again."""
    entry = {"scheduler": scheduler.name, "parameters": dict(scheduler.values)}
    if "policy" in scheduler.values:
        from decima.learning.store import read_policy

        entry["weights_sha256"] = read_policy(scheduler.values["policy"]).card["weights_sha256"]
    return entry
