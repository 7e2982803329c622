"""The pipeline's commands: `python -m experiments --help`, in the checkout."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from decima.commands.shared.verbs import DecimaGroup

RUN = Annotated[
    str,
    typer.Option(
        "--run", metavar="RUN", help="Run of params.yaml; auto: tpch-quick if TPC-H is there, else embedded-quick."
    ),
]
EXPERIMENT = Annotated[str, typer.Argument(metavar="EXPERIMENT", help="Name of the experiment, or all.")]
THREADS = Annotated[int | None, typer.Option(metavar="N", help="Worker threads, all cores by default.")]
SITE = Path("build/site")

app = typer.Typer(
    cls=DecimaGroup,
    help="Stages of the pipeline: stamps, tables, figures, notebooks, report, site.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.command()
def stamps() -> None:
    """Write the stamp of every result into build/stamps; stages with changed stamps run again."""
    from experiments.stamps import write_stamps

    typer.echo(f"stamps: {len(write_stamps())} changed")


@app.command()
def workload(run: RUN = "auto") -> None:
    """Write the label and the digest of a run's job profiles into build/workloads/RUN."""
    from decima.core.files import atomic_write_text
    from decima.workload.sources import get_source
    from experiments.params import checkout, resolve_run, run_params

    run = resolve_run(run)
    source = get_source(run_params(run)["workload"])
    atomic_write_text(checkout() / "build" / "workloads" / run, f"{source.label} sha256:{source.digest()}\n")


@app.command()
def make(experiment: EXPERIMENT, run: RUN = "auto", threads: THREADS = None) -> None:
    """Make tables and figures that are out of date, of one or all experiments."""
    from experiments import making

    if experiment == "all":
        making.make_all(run, threads=threads)
    else:
        typer.echo(making.make(experiment, run, threads=threads))


@app.command()
def evaluate(experiment: EXPERIMENT, run: RUN = "auto", threads: THREADS = None) -> None:
    """Compute the tables of an experiment into reports/RUN/tables/EXPERIMENT."""
    from experiments.tables import run_experiment

    for name, run_name, folder in _each(experiment, run, "tables"):
        paths = run_experiment(name, run_name, threads=threads, progress=True)
        typer.echo(f"{name}: {len(paths)} tables in {folder}")


@app.command()
def plot(experiment: EXPERIMENT, run: RUN = "auto") -> None:
    """Draw the figures of an experiment into reports/RUN/figures/EXPERIMENT: png, svg, of a published run pdf."""
    from experiments.figures import draw
    from experiments.tables import load

    for name, run_name, folder in _each(experiment, run, "figures"):
        written = draw(name, run_name, load(name, run_name, progress=True), folder)
        typer.echo(f"{name}: {len(written)} figures in {folder}")


@app.command()
def notebook(
    slug: Annotated[str, typer.Argument(metavar="NAME", help="Name of the notebook without .ipynb, or all.")],
    run: RUN = "auto",
) -> None:
    """Execute a notebook into reports/RUN/notebooks, or those with changed stamps, two at a time."""
    from experiments.params import resolve_run, run_folder
    from experiments.report import execute_notebook, execute_notebooks

    run = resolve_run(run)
    if slug == "all":
        typer.echo(f"notebooks: {len(execute_notebooks(run))} executed, in {run_folder(run) / 'notebooks'}")
    else:
        typer.echo(f"{slug}: {execute_notebook(slug, run)}")


@app.command()
def report(run: RUN = "auto") -> None:
    """Build one HTML page from the executed notebooks of a run."""
    from experiments.params import resolve_run
    from experiments.report import build_report

    typer.echo(f"report: {build_report(resolve_run(run))}")


@app.command()
def results(run: RUN = "tpch-full") -> None:
    """Write the figures and tables of a run that the repository shows into reports/results/RUN."""
    from experiments.results import collect

    typer.echo(f"results: {collect(run) / 'README.md'}")
    _warn_of_versions(run)


@app.command()
def redraw(
    run: RUN = "tpch-full",
    write: Annotated[bool, typer.Option("--write", help="Replace the figures that differ, and their digests.")] = False,
) -> None:
    """Draw the kept figures anew from the kept tables; fail where one differs."""
    from experiments.results import redraw

    stale, missing = redraw(run, write=write)
    for name in missing:
        typer.echo(f"{name}: not drawn, a table of it is too large to be kept")
    for name in stale:
        typer.echo(f"{name}: {'replaced' if write else 'differs from the kept file'}")
    typer.echo(f"redraw: {len(stale)} figures {'replaced' if write else 'differ'}, {len(missing)} not drawn")
    raise typer.Exit(code=int(bool(stale) and not write))


@app.command()
def publish(
    slug: Annotated[str, typer.Argument(metavar="NAME", help="Notebook without .ipynb, accounts, or all.")] = "all",
) -> None:
    """Write accounts, headline claims and outputs of committed notebooks anew, from published results."""
    from experiments.accounts import write_accounts
    from experiments.notebooks import notebook_slugs
    from experiments.published import START
    from experiments.published import publish as write

    for each in [START, *notebook_slugs()] if slug == "all" else [slug][slug == "accounts" :]:
        typer.echo(f"{each}: {write(each)}")
    if slug in ("all", "accounts"):
        typer.echo(f"accounts: {write_accounts()[0].parent}")


@app.command()
def site(
    run: RUN = "auto",
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder of the pages.")] = SITE,
    versions: Annotated[bool, typer.Option("--versions", help="Add the pages of every tag v...")] = False,
) -> None:
    """Build the site with the notebooks of a complete run, else with the committed ones."""
    from experiments.site import build_site

    typer.echo(f"site: {build_site(run, out, versions)}")


@app.command()
def stale(run: RUN = "auto") -> None:
    """List kept or published tables that are not those of the present code.

    It exits with 1 if there are any.
    """
    from experiments.params import resolve_run
    from experiments.reference import stale as old
    from experiments.reference import version_warnings

    run = resolve_run(run)
    lines = old(run)
    for line in [*lines, *version_warnings(run)] or [f"{run}: all tables are those of the present code"]:
        typer.echo(line)
    if lines:
        raise typer.Exit(1)


@app.command()
def adopt(
    run: RUN = "auto",
    unchecked: Annotated[
        bool, typer.Option("--unchecked", help="Also where the tables were not computed again; the stamps say so.")
    ] = False,
) -> None:
    """Renew stamps of kept or published tables after changes that move no number.

    Tables that were computed with the present code (`decima reproduce`) must equal the kept ones.
    """
    from experiments.params import resolve_run
    from experiments.reference import adopt as renew

    run = resolve_run(run)
    typer.echo(f"{run}: {', '.join(renew(run, unchecked=unchecked)) or 'nothing to adopt'}")


@app.command()
def reproduce(
    profile: Annotated[
        str, typer.Option(metavar="quick|full", help="quick (minutes) or full (the published numbers).")
    ] = "quick",
    check: Annotated[bool, typer.Option("--check", help="Compare with the results that are kept.")] = False,
    record: Annotated[bool, typer.Option("--record", help="Keep the results to compare with.")] = False,
) -> None:
    """Fetch the data, run the whole pipeline and print the path of the report.

    Without TPC-H, the run uses the embedded workload. With --check it also lists the tables and figures that equal the
    kept ones and by how much others differ. It exits with 1 if a table differs; timings and results of TensorFlow's
    training may differ.
    """
    from experiments.params import checkout, run_folder
    from experiments.report import reproduce as run_pipeline

    run = run_pipeline(profile)
    folder = run_folder(run)
    typer.echo(f"Report:  {folder / 'index.html'}\nFigures: {folder / 'figures'}\nTables:  {folder / 'tables'}")
    typer.echo(f"Site:    make site RUN={run} puts it into {checkout() / SITE / 'index.html'}")
    _warn_of_versions(run)
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


def _warn_of_versions(run: str) -> None:
    from experiments.reference import version_warnings

    for line in version_warnings(run):
        typer.echo(f"warning: tables of {line}", err=True)


def _each(experiment: str, run: str, part: str) -> list[tuple[str, str, Path]]:
    """Names of the selected experiments, with the run and the folder of a result's part."""
    from experiments.experiment import experiment_names
    from experiments.params import resolve_run, run_folder

    run = resolve_run(run)
    names = experiment_names() if experiment == "all" else [experiment]
    return [(name, run, run_folder(run) / part / name) for name in names]


if __name__ == "__main__":
    app(prog_name="python -m experiments")
