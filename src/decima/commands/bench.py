"""Command `decima bench`: the benchmark's tasks, results of entries, and the page about them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from decima.commands.shared import options
from decima.commands.shared.compilation import watch_compilation
from decima.commands.shared.options import option
from decima.commands.shared.outputs import check_output, write_text, wrote
from decima.commands.shared.verbs import VerbGroup
from decima.core.errors import ConfigError
from decima.core.files import plain

HELP = "Score schedulers on fixed tasks, with tuned heuristics and bounds."
app = typer.Typer(cls=VerbGroup, help=HELP, no_args_is_help=True)
Tasks = Annotated[list[str] | None, option("NAME", "Only this task; may be repeated.", "--task", show_default="all")]
USES = ("validation", "training", "test")
ROW = "{:<18} {:>12} {:>12} {:>12} {:>8} {:>14}"


@app.command("list")
def list_tasks() -> None:
    """List tasks: objective, instances, seeds, tuned heuristic, and missing data."""
    from decima.bench.references import tuned_rule
    from decima.bench.tasks import SUITE, tasks

    for task in tasks().values():
        typer.echo(f"{task.name:<18} {task.title}")
        typer.echo(f"    {task.objective.label}, {len(task.instances())} instances, {task.settings.label}")
        typer.echo(f"    test seeds {_span(task.seeds())}, training {_span(task.seeds('training'))}, ", nl=False)
        typer.echo(f"validation {_span(task.seeds('validation'))}; tuned: {tuned_rule(task)}")
        if missing := task.missing():
            typer.echo(f"    not here: {missing}")
    typer.echo(f"{len(tasks())} tasks of {SUITE}")


def _span(seeds: range) -> str:
    return f"{seeds.start} to {seeds.stop - 1}"


@app.command()
def run(
    entry: Annotated[
        str,
        typer.Argument(
            metavar="ENTRY",
            help="A scheduler with options, a policy file, my_scheduler.py:Mine, remote:HOST:PORT, or tuned.",
        ),
    ],
    quick: Annotated[bool, typer.Option("--quick", help="Only the first instances of every task.")] = False,
    task: Tasks = None,
    system: Annotated[str | None, option("NAME", "System of the entry.", show_default="that knows the name")] = None,
    out: options.ResultOut = None,
    workers: options.Workers = None,
) -> None:
    """Run an entry on the tasks of its system and show the bounds."""
    from decima.bench.entries import entry_of
    from decima.bench.results import summary, write_result
    from decima.bench.run import run as run_tasks
    from decima.bench.tasks import task_named, tasks

    watch_compilation()
    check_output(out, ".json")
    names = [task_named(name).name for name in task or tasks()]
    chosen, skipped = [], []
    for name, each in tasks().items():
        (chosen if name in names else skipped).append(each)
    document = run_tasks(entry_of(entry, system), chosen, skipped, quick=quick, workers=workers, progress="bench")
    if out is not None:
        write_result(out, document)
    typer.echo(ROW.format("task", "score", "bound", "µs/decision", "failed", "seconds"))
    for name, result in document["tasks"].items():
        typer.echo(_line(name, result, document))
    for name, why in document["not_run"].items():
        typer.echo(f"{name:<18} not run: {why}")
    for result in document["tasks"].values():
        for instance, why in list(result["failures"].items())[:1]:
            typer.echo(f"failed, {instance}: {why}")
    typer.echo(summary(document) + wrote(out))


def _line(name: str, result: dict, document: dict) -> str:
    from decima.bench.references import reference_scores
    from decima.bench.tasks import task_named

    bounds = reference_scores(task_named(name), "bound", quick=document["quick"])
    scores, times = result["scores"], document["times"][name]
    mean = "-" if None in scores else f"{sum(scores) / len(scores):.3f}"
    floor = "-" if None in bounds else f"{sum(bounds) / len(bounds):.3f}"
    decision_us = "-" if times["decision_us"] is None else f"{times['decision_us']:.1f}"
    return ROW.format(name, mean, floor, decision_us, len(result["failures"]), f"{times['seconds']:.1f}")


@app.command()
def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder with result files.")],
    out: Annotated[Path | None, option("FILE", "Write the page (.md).", show_default="terminal")] = None,
) -> None:
    """Make a page of results: tasks by entries, paired with the tuned heuristics, with bounds."""
    from decima.bench.report import markdown, read_folder

    check_output(out, ".md")
    if not folder.is_dir():
        raise ConfigError(f"there is no folder {folder}")
    documents = read_folder(folder)
    if out is None:
        typer.echo(markdown(documents))
        return
    write_text(out, markdown(documents))
    typer.echo(f"{len(documents)} entries" + wrote(out))


@app.command()
def check(file: Annotated[Path, typer.Argument(metavar="FILE", help="Result file.")]) -> None:
    """Verify a result file: form, hashes of the tasks, complete seeds."""
    from decima.bench.results import read_result, summary

    typer.echo(summary(read_result(file)))


@app.command()
def score(
    files: Annotated[list[Path], typer.Argument(metavar="FILE", help="Files with a function `rule`.")],
    task: Annotated[str, option("NAME", "Task of the Spark cluster.")] = "embedded-batch",
    seeds: Annotated[str, option("|".join(USES), "Instances to score on.")] = "validation",
    limit_s: Annotated[float, option("S", "Time that one heuristic may take.", min=0.1)] = 30.0,
) -> None:
    """Score heuristics of one function each, a JSON line per file."""
    from decima.bench.scoring import RuleScorer
    from decima.bench.tasks import task_named

    if seeds not in USES:
        raise ConfigError(f"seeds must be {', '.join(USES)}, got {seeds!r}")
    if missing := [path for path in files if not path.is_file()]:
        raise ConfigError(f"there is no file {missing[0]}")
    with RuleScorer(task_named(task), seeds, limit_s) as scorer:
        for line in scorer.score_all(files):
            typer.echo(json.dumps(plain(line)))
