"""Command `decima simulate`: one run, its result file, task log and Gantt chart."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from decima.commands.shared import options
from decima.commands.shared.outputs import check_output, write_json, write_table
from decima.commands.shared.schedulers import opened
from decima.commands.shared.schedules import CHARTS, draw_schedules
from decima.plotting.words import count

if TYPE_CHECKING:
    from decima.systems.spark.result import Result


def register(root: typer.Typer) -> None:
    """Add the command."""
    root.command()(simulate)


@options.grouped
def simulate(
    *,
    jobs: options.Jobs = "tpch",
    scheduler: options.SchedulerText = "fair",
    cluster: options.Cluster,
    time_limit_s: Annotated[
        float | None, typer.Option(metavar="S", help="End the run at this time.", show_default="none")
    ] = None,
    seed: options.Seed = 0,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the result (.json).")] = None,
    log: Annotated[Path | None, typer.Option(metavar="FILE", help="Write every task (.parquet or .csv).")] = None,
    gantt: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the tasks (.png or .pdf; .html to explore).")
    ] = None,
) -> None:
    """Run one scheduler on one workload."""
    from decima.evaluation.run import simulate as run
    from decima.systems.spark.schedulers import form_for
    from decima.workload.sources import parse_jobs

    spec = parse_jobs(jobs)
    outputs = {out: (".json",), log: (".parquet", ".csv"), gantt: CHARTS}
    with opened([scheduler]) as made:
        chosen = made[scheduler]
        values = getattr(chosen, "values", {})
        inputs = (spec.path, *(Path(value) for key, value in values.items() if key == "file"))
        for path, endings in outputs.items():
            check_output(path, *endings, inputs=inputs)
        settings = cluster.settings(time_limit_s)
        keep_log = any(path is not None for path in outputs)
        workload = spec.workload(seed)
        result = run(workload, chosen, seed=seed, cluster=settings, log=keep_log)
        values = getattr(form_for(chosen, workload), "values", {})
    if log is not None:
        write_table(log, result.log.tasks())
    if gantt is not None:
        draw_schedules(gantt, result)
    if out is not None:
        write_json(out, result_document(result, values))
    _summarize(result, [path for path in (out, log, gantt) if path is not None])


def result_document(result: Result, parameters: dict[str, Any]) -> dict[str, Any]:
    """Content of a result file, with decisions if the result has a log."""
    document = {
        "label": result.workload.label,
        "scheduler": result.scheduler,
        "parameters": parameters,
        "seed": result.seed,
        "settings": result.settings.as_dict(),
        "jobs": [
            {"name": job.name, "arrival_ms": job.arrival_ms, "initial": job.initial} for job in result.workload.jobs
        ],
        "completion_ms": result.completion_ms,
        "completion_order": result.completion_order,
        "makespan_ms": result.makespan_ms,
        "avg_jct_ms": result.avg_jct_ms,
        "num_unfinished": result.num_unfinished,
        "end_ms": result.end_ms,
        "truncated": result.truncated,
        "utilization": result.utilization,
        "num_decisions": result.num_decisions,
        "num_events": result.num_events,
        "node_finish_ms": result.stage_finish_ms,
    }
    if result.log is not None:
        document["decision_fields"] = list(result.log.decision_columns())
        document["decisions"] = result.log.decision_lists()
    return document


def _summarize(result: Result, written: list[Path]) -> None:
    unfinished = f", {result.num_unfinished} unfinished" if result.num_unfinished else ""
    jobs = count(len(result.workload), "job") + unfinished
    makespan = "" if result.num_unfinished else f", makespan {result.makespan_s:.1f} s"
    if len(result.completion_order):
        finished = " of the finished jobs" if result.num_unfinished else ""
        outcome = f"average JCT{finished} {result.avg_jct_s:.2f} s{makespan}"
    else:
        outcome = f"no job finished in {result.end_ms / 1000.0:.1f} s"
    typer.echo(
        f"{result.scheduler} on {result.workload.label} ({jobs}, {count(result.settings.executors, 'executor')}, "
        f"mode {result.settings.mode}, {result.settings.durations} durations): {outcome}, "
        f"{count(sum(result.num_events.values()), 'event')}"
        + (f"; wrote {', '.join(map(str, written))}" if written else "")
    )
