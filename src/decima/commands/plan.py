"""Commands `decima plan`: schedules for executors of different speed, checked, bounded and compared."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from decima.commands.shared import options
from decima.commands.shared.outputs import check_output, output_path, write_json, write_table
from decima.core.errors import ConfigError
from decima.plotting.words import count

if TYPE_CHECKING:
    from decima.systems.unequal import Instance, Schedule

app = typer.Typer(help="Schedule DAGs on executors of different speed: plan, check, bound, optimum, compare, import.")

JobsText = Annotated[
    str | None,
    typer.Option(
        "--jobs",
        metavar="JOBS",
        help="canonical; random:nodes=100,ccr=5; gauss:size=8; fft:points=16; jobs of the simulator (embedded:n=20); "
        "or a file with jobs (.json).",
        show_default="embedded:n=20 at the paper's sizes",
    ),
]
Out = Annotated[Path | None, typer.Option(metavar="FILE", help="Write the schedule (.json).")]
TimeLimit = Annotated[float, typer.Option(metavar="S", help="Give up after so many seconds.")]


@dataclass(frozen=True)
class ClusterOptions:
    """Options of a cluster of unequal executors."""

    executors: Annotated[
        int | None, typer.Option(metavar="N", max=options.MOST, help="Executors.", show_default="50, or the file's")
    ] = None
    speeds: Annotated[
        str | None, typer.Option(metavar="V+V", help="Speed of each.", show_default="drawn from 2.1 to 3.6")
    ] = None
    rate: Annotated[
        float | None, typer.Option(metavar="X", help="Data per second between two of them.", show_default="125")
    ] = None
    latency_s: Annotated[float | None, typer.Option(metavar="S", help="Of every transfer.", show_default="0")] = None
    edges: Annotated[
        str | None,
        typer.Option(
            metavar="ccr=X|measured|own",
            help="Data between stages, for jobs of the simulator; own: what a file says (data_mb).",
            show_default="own, or ccr=1",
        ),
    ] = None

    def instance(self, jobs: str | None, seed: int) -> Instance:
        """The instance that the options and a text mean; without a text, the jobs of the paper at a ratio of 1."""
        from decima.systems.unequal.sources import PAPER_JOBS, read_instance

        edges = "ccr=1" if jobs is None and self.edges is None else self.edges
        return read_instance(PAPER_JOBS if jobs is None else jobs, self.cluster(), edges, seed)

    def cluster(self):
        """What is said about the cluster alone."""
        from decima.systems.unequal import sources

        return sources.ClusterOptions(self.executors, self.speeds, self.rate, self.latency_s)


def register(root: typer.Typer) -> None:
    """Add the commands."""
    root.add_typer(app, name="plan")


@app.command()
@options.grouped
def schedule(
    scheduler: Annotated[
        str, typer.Argument(metavar="SCHEDULER", help="A name, with settings: high_rank_up_deft:decision=idle.")
    ] = "heft",
    *,
    jobs: JobsText = None,
    cluster: ClusterOptions,
    seed: options.Seed = 0,
    out: Out = None,
    gantt: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw it (.png, .pdf or .svg).")] = None,
    instance: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write jobs and cluster (.json), for 'decima plan check'.")
    ] = None,
    service: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="Ask this service ('decima serve --unequal') for every decision."),
    ] = None,
) -> None:
    """Schedule jobs, and say how long it takes and how long it must take."""
    from decima.systems.unequal import lower_bound, make_scheduler, metrics, save_instance
    from decima.systems.unequal.json_format import schedule_document

    made = make_scheduler(scheduler)
    inputs = _inputs(jobs)
    check_output(out, ".json", inputs=inputs)
    check_output(instance, ".json", inputs=inputs)
    check_output(gantt, ".png", ".pdf", ".svg", inputs=inputs)
    problem = cluster.instance(jobs, seed)
    planned = made.schedule(problem, seed) if service is None else _asked(service, scheduler, problem, seed)
    if instance is not None:
        with output_path(instance) as temporary:
            save_instance(problem, temporary)
    if out is not None:
        write_json(out, schedule_document(planned))
    if gantt is not None:
        _draw(gantt, planned)
    judged = metrics(planned)
    floor_s = lower_bound(problem)
    written = _written(out, instance, gantt)
    typer.echo(
        f"{_what(problem)}: {planned.scheduler} takes {judged.makespan_s:g} s{_above(judged.makespan_s, floor_s)}, "
        f"speedup {judged.speedup:.2f}, average JCT {judged.avg_jct_s:.2f} s, utilisation "
        f"{100.0 * judged.utilisation:.1f} %, {judged.duplicates} further copies{written}"
    )


@app.command()
@options.grouped
def check(
    file: Annotated[Path, typer.Argument(metavar="SCHEDULE", help="A schedule (.json).")],
    *,
    jobs: JobsText = None,
    cluster: ClusterOptions,
    seed: options.Seed = 0,
) -> None:
    """Check a schedule against the rules of the model; exit code 2 and the first breach if it breaks one."""
    from decima.systems.unequal import load_schedule, validate

    problem = cluster.instance(jobs, seed)
    read = load_schedule(file, problem)
    validate(problem, read)
    typer.echo(f"{_what(problem)}: {file} is valid: {len(read)} copies, makespan {read.makespan_s:g} s")


@app.command()
@options.grouped
def optimum(
    *,
    jobs: JobsText = None,
    cluster: ClusterOptions,
    duplicate: Annotated[bool, typer.Option("--duplicate/--single", help="Whether nodes may be copied.")] = True,
    solver: Annotated[
        str, typer.Option(metavar="search|cp_sat", help="cp_sat proves larger instances and needs OR-Tools.")
    ] = "search",
    time_limit_s: TimeLimit = 60.0,
    seed: options.Seed = 0,
    out: Out = None,
) -> None:
    """Find the shortest schedule of a small instance and prove it."""
    from decima.systems.unequal.json_format import schedule_document
    from decima.systems.unequal.optimum.exact import optimum as shortest

    check_output(out, ".json", inputs=_inputs(jobs))
    problem = cluster.instance(jobs, seed)
    found = shortest(problem, duplicate=duplicate, solver=solver, time_limit_s=time_limit_s, progress="optimum")
    if out is not None:
        write_json(out, schedule_document(found.schedule))
    kind = "with copies" if duplicate else "without copies"
    typer.echo(
        f"{_what(problem)}: the shortest schedule {kind} takes {found.makespan_s:g} s, proved over "
        f"{found.explored:,} {'partial schedules' if solver == 'search' else 'branches of CP-SAT'}{_written(out)}"
    )


@app.command()
@options.grouped
def bound(*, jobs: JobsText = None, cluster: ClusterOptions, seed: options.Seed = 0) -> None:
    """Show lower bounds: no schedule is shorter."""
    from decima.systems.unequal.optimum.bounds import bounds

    problem = cluster.instance(jobs, seed)
    found = bounds(problem)
    for name, meaning in (
        ("path_s", "longest path, every node on its best executor"),
        ("work_s", "all work over all executors"),
        ("transfers_s", "paths with transfers that no placement avoids"),
        ("single_copy_s", "the same with one copy of each node"),
    ):
        typer.echo(f"{name:<14} {getattr(found, name):>14.6g}  {meaning}")
    typer.echo(
        f"{_what(problem)}: no schedule takes less than {found.floor():g} s, none without copies less than "
        f"{found.floor(duplicate=False):g} s"
    )


@app.command()
@options.grouped
def compare(
    schedulers: Annotated[
        list[str] | None,
        typer.Argument(metavar="SCHEDULER...", help="Schedulers.", show_default="all with their default settings"),
    ] = None,
    *,
    jobs: JobsText = None,
    cluster: ClusterOptions,
    instances: Annotated[int, typer.Option(metavar="N", min=1, max=options.MOST, help="Instances to draw.")] = 1,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the first instance; the next has the next.")] = 0,
    search: Annotated[
        int, typer.Option(metavar="N", min=0, max=options.MOST, help="Priorities to try on each instance; 0: none.")
    ] = 0,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a row per instance and scheduler (.csv or .parquet).")
    ] = None,
) -> None:
    """Set schedulers side by side, above the lower bound."""
    from decima.commands.shared.schedulers import require_different
    from decima.systems.unequal import compare as side_by_side
    from decima.systems.unequal import list_schedulers, make_scheduler

    texts = schedulers or list_schedulers()
    require_different(texts)
    for text in texts:
        make_scheduler(text)
    check_output(out, ".csv", ".parquet", inputs=_inputs(jobs))
    problems = [cluster.instance(jobs, seed + number) for number in range(instances)]
    table = side_by_side(texts, problems, seed=seed, budget=search, progress="compare")
    if out is not None:
        write_table(out, table)
    means = table.groupby("scheduler", sort=False)[["makespan_s", "above_bound", "speedup", "avg_jct_s"]].mean()
    typer.echo(f"{'scheduler':<28} {'makespan [s]':>14} {'over bound':>11} {'speedup':>8} {'avg JCT [s]':>12}")
    for name, row in means.iterrows():
        rest = "" if name == "lower_bound" else f"{row.speedup:>8.2f} {row.avg_jct_s:>12.2f}"
        typer.echo(f"{name:<28} {row.makespan_s:>14.2f} {row.above_bound:>11.3f} {rest}".rstrip())
    best = means["makespan_s"].drop("lower_bound").idxmin()
    typer.echo(
        f"{_what(problems[0])}, {count(instances, 'instance')}: shortest on average {best}, "
        f"{means.above_bound[best]:.3f} of the bound{_written(out)}"
    )


@app.command("import")
@options.grouped
def import_workflows(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Workflows of WfCommons (.json).")],
    *,
    out: Annotated[Path, typer.Option(metavar="FILE", help="Where to write jobs and cluster (.json).")],
    cluster: ClusterOptions,
    seed: Annotated[int, typer.Option(metavar="N", help="Draws the speeds of executors.")] = 0,
) -> None:
    """Make jobs of workflows of WfCommons, with a cluster beside them; runtimes are work, data is in MB."""
    from decima.systems.unequal import Instance, save_instance
    from decima.systems.unequal.wfcommons import import_wfcommons

    if cluster.edges is not None:
        raise ConfigError("--edges cannot be given: workflows say how large their files are")
    check_output(out, ".json", inputs=tuple(files))
    problem = Instance([import_wfcommons(file) for file in files], cluster.cluster().make(seed), out.stem)
    with output_path(out) as temporary:
        save_instance(problem, temporary)
    typer.echo(f"{_what(problem)}; wrote {out}")


@app.command("schedulers")
def list_all() -> None:
    """List the schedulers with their settings."""
    from decima.systems.unequal import list_schedulers
    from decima.systems.unequal.schedulers.registry import find

    names = list_schedulers()
    for name in names:
        entry = find(name)
        typer.echo(f"{name:<20} {entry.doc}")
        settings = [f"{key}={getattr(entry.rules, key)}" for key in entry.open]
        settings += [f"{number.name}={number.default:g}" for number in entry.numbers]
        settings += [f"{text.name}={text.default or 'NAME'}" for text in entry.texts]
        typer.echo(f"{'':<20} {entry.source}; {', '.join(settings).lower()}")
    typer.echo(f"{len(names)} schedulers; settings are written behind the name: heft:decision=event")


def _asked(service: str, scheduler: str, problem: Instance, seed: int) -> Schedule:
    """The schedule that a service makes node by node while it is executed."""
    from decima.connect.service.client import ServiceClient, check_address
    from decima.connect.service.node_client import schedule_by_service
    from decima.connect.service.security import read_token

    check_address(service)
    with ServiceClient(service, token=read_token(None)) as client:
        return schedule_by_service(problem, client, scheduler, seed=seed)


def _draw(path: Path, planned: Schedule) -> None:
    from decima.plotting import style
    from decima.plotting.copies import gantt

    rows = len(planned.instance.cluster)
    figure = style.new_figure(style.PAGE, min(9.0, 1.2 + 0.25 * max(rows, 4)))
    gantt(planned, figure.subplots())
    with output_path(path) as temporary:
        temporary.write_bytes(style.image(figure, path.suffix[1:]))


def _inputs(jobs: str | None) -> tuple[Path, ...]:
    return (Path(jobs),) if jobs is not None and jobs.endswith(".json") else ()


def _what(problem: Instance) -> str:
    return (
        f"{problem.label} ({count(len(problem.jobs), 'job')}, {count(len(problem), 'node')}, "
        f"{count(len(problem.cluster), 'executor')}, CCR {problem.ccr:.2g})"
    )


def _above(makespan_s: float, floor_s: float) -> str:
    return f" ({makespan_s / floor_s:.3f} of the lower bound)" if floor_s > 0.0 else ""


def _written(*paths: Path | None) -> str:
    names = [str(path) for path in paths if path is not None]
    return f"; wrote {', '.join(names)}" if names else ""
