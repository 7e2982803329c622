"""Commands of the pipeline: evaluate, plot, notebook, report, results, site, reproduce, pipeline."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

RUN = Annotated[
    str, typer.Option("--run", help="Run of params.yaml; auto: tpch-quick if TPC-H is there, else embedded-quick.")
]
SITE = Path("build/site")


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    for command in (evaluate, plot, notebook, report, results, site, reproduce, pipeline):
        app.command()(command)


def evaluate(
    experiment: Annotated[str, typer.Argument(help="Name of the experiment, or all.")],
    run: RUN = "auto",
    threads: Annotated[int | None, typer.Option(help="Worker threads, all cores by default.")] = None,
) -> None:
    """Compute the tables of an experiment into reports/RUN/tables/EXPERIMENT."""
    from experiments.experiment import experiment_names
    from experiments.params import resolve_run, run_folder
    from experiments.tables import run_experiment

    run = resolve_run(run)
    names = experiment_names() if experiment == "all" else (experiment,)
    for name in names:
        paths = run_experiment(name, run, threads=threads, progress=True)
        typer.echo(f"{name}: {len(paths)} tables in {run_folder(run) / 'tables' / name}")


def plot(
    experiment: Annotated[str, typer.Argument(help="Name of the experiment, or all.")],
    run: RUN = "auto",
) -> None:
    """Draw the figures of an experiment into reports/RUN/figures/EXPERIMENT, as png, pdf and svg."""
    from experiments.experiment import experiment_names
    from experiments.figures import draw
    from experiments.params import resolve_run, run_folder
    from experiments.tables import load

    run = resolve_run(run)
    for name in experiment_names() if experiment == "all" else (experiment,):
        folder = run_folder(run) / "figures" / name
        written = draw(name, run, load(name, run, progress=True), folder)
        typer.echo(f"{name}: {len(written)} figures in {folder}")


def notebook(
    slug: Annotated[str, typer.Argument(help="Name of the notebook without .ipynb, or all.")],
    run: RUN = "auto",
) -> None:
    """Execute a notebook into reports/RUN/notebooks."""
    from experiments.params import resolve_run, run_folder
    from experiments.report import execute_notebook, notebook_slugs

    run = resolve_run(run)
    for name in notebook_slugs() if slug == "all" else (slug,):
        execute_notebook(name, run)
        typer.echo(f"{name}: {run_folder(run) / 'notebooks' / name}.ipynb")


def report(run: RUN = "auto") -> None:
    """Build one HTML page from the executed notebooks of a run."""
    from experiments.params import resolve_run
    from experiments.report import build_report

    typer.echo(f"report: {build_report(resolve_run(run))}")


def results(run: RUN = "tpch-full") -> None:
    """Write the figures and tables of a run that the repository shows into reports/results/RUN."""
    from experiments.results import collect

    typer.echo(f"results: {collect(run) / 'README.md'}")


def site(
    run: RUN = "auto",
    out: Annotated[Path, typer.Option(help="Folder of the pages.")] = SITE,
) -> None:
    """Build the site from the documentation and the executed notebooks of a run; auto: of a run that has them."""
    from experiments.site import build_site

    typer.echo(f"site: {build_site(run, out)}")


def reproduce(
    profile: Annotated[str, typer.Option(help="quick (minutes) or full (the published numbers).")] = "quick",
    check: Annotated[bool, typer.Option("--check", help="Compare with the results that are kept.")] = False,
    record: Annotated[bool, typer.Option("--record", help="Keep the results to compare with.")] = False,
) -> None:
    """Fetch the data, run the whole pipeline and say where the report is; without TPC-H use the embedded workload.

    With --check it also says which tables and figures equal the kept ones and by how much others differ, and exits 1
    if a table differs that may not; timings and what TensorFlow trains may.
    """
    from experiments.params import checkout, run_folder
    from experiments.report import reproduce as run_pipeline

    run = run_pipeline(profile)
    folder = run_folder(run)
    typer.echo(f"Report:  {folder / 'index.html'}\nFigures: {folder / 'figures'}\nTables:  {folder / 'tables'}")
    typer.echo(f"Site:    make site RUN={run} puts it into {checkout() / SITE / 'index.html'}")
    if check:
        from experiments.reference import compare_with_kept

        comparison = compare_with_kept(run)
        for line in comparison.lines():
            typer.echo(line)
        if comparison.failed:
            raise typer.Exit(1)
    if record:
        from experiments.reference import record as keep

        typer.echo(f"Kept:    {keep(run)}")


def pipeline() -> None:
    """Write dvc.yaml anew from experiments, notebooks and the code that they execute."""
    from experiments.pipeline import write_pipeline

    typer.echo("dvc.yaml: written anew" if write_pipeline() else "dvc.yaml: up to date")
