"""Commands `decima cloud`: executors on cloud VMs, what placements cost and how long jobs take."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from decima.commands.shared import options
from decima.commands.shared.outputs import check_folder, check_output, output_path, write_json, write_table
from decima.commands.shared.schedulers import require_different
from decima.commands.shared.training import Training
from decima.core.errors import ConfigError
from decima.plotting.words import count

if TYPE_CHECKING:
    from decima.systems.cloud.result import PlacementResult
    from decima.systems.cloud.settings import PlacementSettings
    from decima.systems.cloud.sources import JobsSpec

app = typer.Typer(help="Place the executors of Spark jobs on cloud VMs.", no_args_is_help=False)

Jobs = Annotated[
    str,
    typer.Option(
        "--jobs",
        metavar="JOBS",
        help="A source with options (generated; generated:pattern=burst,n=200; normal; burst; redrawn:trace=burst; "
        "dag:jobs=two_class), see 'decima cloud vms'; or a .csv file.",
    ),
]
Rule = Annotated[
    str,
    typer.Option("--policy", metavar="RULE", help="Who places executors, see 'decima cloud vms' (ilp_beta:beta=0.5)."),
]
TableOut = Annotated[Path | None, typer.Option(metavar="FILE", help="Write the table (.csv or .parquet).")]
CHARTS = (".png", ".pdf", ".svg")


def register(root: typer.Typer) -> None:
    """Add the commands."""
    root.add_typer(app, name="cloud")


_VMS = "table4, released, families, compute, or a .csv file."


@dataclass(frozen=True)
class Cloud:
    """Options of VMs, billing and rules."""

    vms: Annotated[str, typer.Option(metavar="VMS", help=_VMS, show_default="by mode")] = ""
    beta: Annotated[float, typer.Option(metavar="X", help="Weight of cost against mean duration, 0 to 1.")] = 1.0
    mode: Annotated[
        str, typer.Option(metavar="paper|released", help="The clock only goes forward, or as in the published code.")
    ] = "paper"
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="GROUP.KEY=VALUE",
            help="Change a rule or the billing (billing.granularity_s=3600; rules.spread_rule=not_all_one); may be "
            "given several times.",
        ),
    ] = None

    @property
    def file(self) -> Path | None:
        """The file of VMs, if it is one."""
        return Path(self.vms) if self.vms.endswith(".csv") else None

    def settings(self) -> PlacementSettings:
        """Make the settings.

        Raises:
            DecimaError: An option is out of range, or the file of VMs is not as expected.
        """
        from decima.core.grammar import read_fields
        from decima.systems.cloud import Billing, PlacementSettings, Rules, make_cluster

        texts = options.changed_texts(self.changes, "rules", "billing")
        rules = read_fields(texts["rules"], Rules, "--set rules.")
        billing = Billing(**read_fields(texts["billing"], Billing, "--set billing."))
        cluster = make_cluster(self.vms) if self.vms else None
        return PlacementSettings.of_mode(self.mode, cluster=cluster, beta=self.beta, billing=billing, **rules)


def _read(jobs: str, cloud: Cloud, *outputs: tuple[Path | None, tuple[str, ...]]) -> tuple[JobsSpec, PlacementSettings]:
    """Jobs and settings; outputs that could not be written are refused before the work."""
    from decima.systems.cloud import parse_placement_jobs

    spec = parse_placement_jobs(jobs)
    for path, endings in outputs:
        check_output(path, *endings, inputs=(spec.path, cloud.file))
    return spec, cloud.settings()


def _money(value: float, currency: str) -> str:
    return f"{value:.4f} {currency}"


def _wrote(*paths: Path | None) -> str:
    written = [str(path) for path in paths if path is not None]
    return f"; wrote {', '.join(written)}" if written else ""


@app.command()
def vms(
    vms: Annotated[str, typer.Argument(metavar="VMS", help=_VMS)] = "table4",
    out: TableOut = None,
) -> None:
    """Show a list of VMs, and which sources of jobs and rules there are."""
    from decima.systems.cloud import make_cluster
    from decima.systems.cloud.schedulers.registry import placement_entries
    from decima.systems.cloud.sources import SOURCES

    check_output(out, ".csv", ".parquet", inputs=(Path(vms) if vms.endswith(".csv") else None,))
    cluster = make_cluster(vms)
    table = cluster.describe()
    if out is not None:
        write_table(out, table)
    typer.echo(table.to_string(index=False))
    typer.echo("\nsources of jobs")
    for source in SOURCES.values():
        typer.echo(f"  {source.name:<16} {source.doc}")
        for option in source.options:
            typer.echo(f"    {option.name:<20} {option.doc}")
    typer.echo("\nrules")
    for entry in placement_entries():
        typer.echo(f"  {entry.name:<16} {entry.doc} ({entry.source})")
        for option in entry.options:
            typer.echo(f"    {option.name:<20} {option.doc}")
    typer.echo(
        f"\n{cluster.label}: {count(len(cluster), 'VM')}, {cluster.cores} cores, {cluster.memory_gb:g} GB, "
        f"{cluster.price_per_hour:.2f} {cluster.currency} per hour{_wrote(out)}"
    )


@app.command()
@options.grouped
def simulate(
    *,
    jobs: Jobs = "generated",
    policy: Rule = "ilp_exact",
    cloud: Cloud,
    seed: options.Seed = 0,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the result with all jobs (.json).")] = None,
    log: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write every executor with its VM (.csv or .parquet).")
    ] = None,
    gantt: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw VMs over time (.png, .pdf or .svg).")] = None,
) -> None:
    """Run one placement rule on one workload."""
    from decima.systems.cloud import place

    tables = (".csv", ".parquet")
    spec, settings = _read(jobs, cloud, (out, (".json",)), (log, tables), (gantt, CHARTS))
    result = place(spec.workload(seed), policy, settings, seed).require_complete()
    if log is not None:
        write_table(log, result.executors())
    if gantt is not None:
        _draw(gantt, [result])
    if out is not None:
        document = result.as_dict() | {"vms": result.vms().to_dict("records"), "jobs": result.jobs().to_dict("records")}
        write_json(out, document)
    currency = settings.cluster.currency
    typer.echo(
        f"{result.scheduler} on {result.workload.label} ({count(len(result.workload), 'job')}, {settings.label}): "
        f"cost {_money(result.cost, currency)}, mean duration {result.mean_duration_s:.2f} s, response "
        f"{result.response_s:.2f} s, {result.good_placements} well placed, {count(result.waits, 'wait')}"
        + _wrote(out, log, gantt)
    )


@app.command()
@options.grouped
def compare(
    policies: Annotated[
        list[str] | None,
        typer.Argument(metavar="RULE...", help="Rules, see 'decima cloud vms'.", show_default="all but ilp_highs"),
    ] = None,
    *,
    jobs: Jobs = "generated",
    seeds: Annotated[
        int, typer.Option(metavar="N", min=1, max=options.MOST, help="Workloads to draw; runs of every rule.")
    ] = 20,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="First seed.")] = 0,
    baseline: Annotated[
        str | None, typer.Option(metavar="RULE", help="Compare with this one.", show_default="aep, or the first")
    ] = None,
    metric: Annotated[
        str, typer.Option(metavar="NAME", help="What counts: cost, duration, response, good, waits or reward.")
    ] = "cost",
    cloud: Cloud,
    workers: options.Workers = None,
    backend: options.Backend = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the scores of every run (.csv or .parquet).")
    ] = None,
    gantt: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the runs of the first seed (.png, .pdf or .svg).")
    ] = None,
) -> None:
    """Run several placement rules on the same workloads and seeds."""
    from decima.systems.cloud import compare_placements, list_placements, place
    from decima.systems.cloud.objectives import placement_objective

    spec, settings = _read(jobs, cloud, (out, (".csv", ".parquet")), (gantt, CHARTS))
    objective = placement_objective(metric)
    chosen = policies or [name for name in list_placements() if name != "ilp_highs"]
    require_different(chosen)
    numbers = range(seed, seed + seeds)
    workloads = spec.workloads(numbers)
    comparison = compare_placements(
        chosen,
        workloads,
        settings,
        numbers,
        baseline=baseline or ("aep" if "aep" in chosen else None),
        metric=metric,
        workers=workers,
        backend=backend,
        progress="compare",
    )
    if out is not None:
        write_table(out, comparison.scores)
    if gantt is not None:
        _draw(gantt, [place(workloads[0], name, settings, seed) for name in chosen])
    summary = comparison.summary()
    typer.echo(comparison.title)
    typer.echo(_table(comparison, summary, objective))
    best = summary.iloc[0]
    mean = best[objective.with_unit("mean")]
    shown = _money(mean, settings.cluster.currency) if metric == "cost" else objective.shown(mean)
    against = ""
    if best.scheduler != comparison.baseline:
        against = f", {best.change_percent:+.1f} % against {comparison.baseline}"
    typer.echo(
        f"best of {count(len(summary), 'rule')} on {comparison.label}: {best.scheduler} with {shown}{against}"
        + _wrote(out, gantt)
    )


def _table(comparison, summary, objective) -> str:
    """Means of every metric, and the paired change of the one that counts, as text."""
    import pandas

    from decima.systems.cloud.objectives import OBJECTIVES

    means = comparison.scores.groupby("scheduler")
    table = pandas.DataFrame({"rule": summary["scheduler"]})
    digits = {"cost": 4, "reward": 1}
    for each in OBJECTIVES.values():
        column = means[each.column].mean().reindex(summary["scheduler"]).to_numpy()
        shown = f"{each.label} [{each.unit}]" if each.unit else each.label
        table[shown] = [f"{value:.{digits.get(each.name, 2)}f}" for value in column]
    changes = zip(summary["change_percent"], summary["change_low"], summary["change_high"], strict=True)
    table[f"{objective.label} against {comparison.baseline} (95 %)"] = [
        "baseline" if name == comparison.baseline else _change(*change)
        for name, change in zip(summary["scheduler"], changes, strict=True)
    ]
    return table.to_string(index=False)


def _change(change: float, low: float, high: float) -> str:
    interval = "" if low != low else f" ({low:+.1f} to {high:+.1f})"
    return "-" if change != change else f"{change:+.1f} %{interval}"


def _draw(path: Path, results: list[PlacementResult]) -> None:
    from decima.plotting import style
    from decima.plotting.placements import placements_figure

    figure = placements_figure(results)
    with output_path(path) as temporary:
        temporary.write_bytes(style.image(figure, path.suffix[1:]))


Nodes = Annotated[
    int,
    typer.Option(
        metavar="N", min=0, max=options.MOST * 100, help="Placements to try in a busy period; 0: no exact search."
    ),
]
Budget = Annotated[int, typer.Option(metavar="N", min=0, max=options.MOST, help="Plans to try in the search.")]


@app.command()
@options.grouped
def optimum(
    *,
    jobs: Jobs = "generated",
    cloud: Cloud,
    nodes: Nodes = 8_000_000,
    budget: Budget = 100_000,
    waits: Annotated[bool, typer.Option("--waits", help="Search for voluntary waits before jobs, too.")] = False,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Seed of the jobs and of the search.")] = 0,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write result and bounds (.json).")] = None,
    log: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write every executor with its VM (.csv or .parquet).")
    ] = None,
    gantt: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw VMs over time (.png, .pdf or .svg).")] = None,
) -> None:
    """Find the best placement of known jobs: exact where possible, else searched; and what nothing can pass."""
    from decima.systems.cloud import place
    from decima.systems.cloud.optimum.best import optimum as find

    spec, settings = _read(jobs, cloud, (out, (".json",)), (log, (".csv", ".parquet")), (gantt, CHARTS))
    workload = spec.workload(seed)
    best = find(workload, settings, nodes=nodes, budget=budget, waits=waits, seed=seed, progress="optimum")
    result, currency = best.result, settings.cluster.currency
    if log is not None:
        write_table(log, result.executors())
    if gantt is not None:
        _draw(gantt, [result])
    if out is not None:
        write_json(out, best.as_dict() | {"jobs": result.jobs().to_dict("records")})
    typer.echo(f"{'':<22} {'cost':>10} {'duration [s]':>13} {'R_epi':>10}")
    for name in ("aep", "ilp_exact", "ilp_beta", "good_first"):
        other = place(workload, name, settings, seed)
        typer.echo(f"{name:<22} {other.cost:>10.4f} {other.mean_duration_s:>13.2f} {other.reward:>10.2f}")
    typer.echo(f"{best.kind:<22} {result.cost:>10.4f} {result.mean_duration_s:>13.2f} {result.reward:>10.2f}")
    shown = "-" if best.reward_bound is None else f"{best.reward_bound:.2f}"
    last = "" if best.interval_bound is not None else shown
    typer.echo(f"{'bound by work':<22} {best.work_bound:>10.4f} {'':>13} {last:>10}")
    if best.interval_bound is not None:
        typer.echo(f"{'bound by interval':<22} {best.interval_bound:>10.4f} {'':>13} {shown:>10}")
    without = "voluntary waits allowed" if waits else "no voluntary waits"
    typer.echo(
        f"{best.kind} of {workload.label} ({count(len(workload), 'job')}, {settings.label}, {without}; "
        f"{best.proved_periods} of {count(best.periods, 'busy period')} proved, {best.nodes:,} placements tried): cost "
        f"{_money(result.cost, currency)}, mean duration {result.mean_duration_s:.2f} s" + _wrote(out, log, gantt)
    )


@app.command()
@options.grouped
def plan(
    *,
    jobs: Jobs = "generated",
    policy: Annotated[
        str,
        typer.Option(
            "--policy", metavar="RULE", help="A rule, see 'decima cloud vms', or optimum: the best that is found."
        ),
    ] = "optimum",
    cloud: Cloud,
    nodes: Nodes = 8_000_000,
    budget: Budget = 100_000,
    seed: options.Seed = 0,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the plan, executor by executor (.csv, .parquet or .json)."),
    ] = None,
    kubernetes: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Write a Spark pod template and the submit options of every job; must not exist."
        ),
    ] = None,
    gantt: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw VMs over time (.png, .pdf or .svg).")] = None,
) -> None:
    """Plan which executor goes on which VM and what it costs, for people and for Spark on Kubernetes."""
    from decima.systems.cloud import place
    from decima.systems.cloud.optimum.best import optimum as find
    from decima.systems.cloud.plan import plan_document, plan_frame

    spec, settings = _read(jobs, cloud, (out, (".csv", ".parquet", ".json")), (gantt, CHARTS))
    if kubernetes is not None:
        if kubernetes.exists():
            raise ConfigError(f"cannot write {kubernetes}: it exists; expected the name of a new folder")
        check_folder(kubernetes)
    workload = spec.workload(seed)
    if policy == "optimum":
        result = find(workload, settings, nodes=nodes, budget=budget, seed=seed, progress="plan").result
    else:
        result = place(workload, policy, settings, seed).require_complete()
    if kubernetes is not None:
        _write_templates(kubernetes, result)
    if out is not None and out.suffix == ".json":
        write_json(out, plan_document(result))
    elif out is not None:
        write_table(out, plan_frame(result))
    if gantt is not None:
        _draw(gantt, [result])
    if out is None and kubernetes is None:
        typer.echo(plan_frame(result).to_string(index=False))
    typer.echo(
        f"plan by {result.scheduler} of {workload.label} ({count(len(workload), 'job')}, {settings.label}): cost "
        f"{_money(result.cost, settings.cluster.currency)}, mean duration {result.mean_duration_s:.2f} s, "
        f"{result.good_placements} well placed" + _wrote(out, kubernetes, gantt)
    )


def _write_templates(folder: Path, result: PlacementResult) -> None:
    """Write templates and options into a new folder, which appears when all is written."""
    import shutil
    import tempfile

    import yaml

    from decima.systems.cloud.kubernetes import LIMITS, file_name, spark_jobs

    made = spark_jobs(result, str(folder))
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        for each in made:
            (temporary / file_name(each.job)).write_text(
                yaml.safe_dump(each.template, sort_keys=False), encoding="utf-8"
            )
            notes = "".join(f"# {note}\n" for note in each.notes)
            lines = "".join(f"{key} {value}\n" for key, value in each.options.items())
            (temporary / f"job-{each.job}.conf").write_text(notes + lines, encoding="utf-8")
        text = "What Spark on Kubernetes cannot be told of a plan:\n\n" + "".join(f"- {limit}\n" for limit in LIMITS)
        (temporary / "LIMITS.md").write_text(text, encoding="utf-8")
        temporary.chmod(0o755)
        temporary.rename(folder)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


@app.command()
@options.grouped
def train(
    *,
    training: Training,
    jobs: Annotated[
        str, typer.Option("--jobs", metavar="JOBS", help="Sources as for the other commands; several with ; between.")
    ] = "generated;generated:pattern=burst",
    vms: Annotated[str, typer.Option(metavar="VMS", help="Lists of VMs; several with ; between.")] = "table4",
    betas: Annotated[str, typer.Option(metavar="X", help="Weights of cost, 0 to 1; several with ; between.")] = "1",
    mode: Annotated[str, typer.Option(metavar="paper|released", help="Rules of the environment.")] = "paper",
    reward: Annotated[
        str, typer.Option(metavar="per_job|table3", help="What every job takes from R_epi, or the paper's rewards.")
    ] = "per_job",
    architecture: Annotated[
        str, typer.Option(metavar="shared|paper", help="One scorer for all VMs, or the vector of the paper.")
    ] = "shared",
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="GROUP.KEY=VALUE",
            help="Change a field of rules, billing, recipe or architecture (recipe.lr_start=1e-3; "
            "architecture.masked=true); may be given several times.",
        ),
    ] = None,
) -> None:
    """Train a placement policy; the best one at validation is kept.

    Recipes: fast, paper (REINFORCE, Algorithm 2) and paper-dqn (Algorithm 1), both with Table 5.
    """
    from decima.core.grammar import read_fields
    from decima.learning.quiet import import_tensorflow
    from decima.systems.cloud import Billing, Rules
    from decima.systems.cloud.policy.architecture import PlacementArchitecture
    from decima.systems.cloud.policy.task import KIND, PlacementTask, texts

    training.check()
    groups = options.changed_texts(changes, "rules", "billing", "recipe", "architecture")
    try:
        weights = tuple(float(beta) for beta in texts(betas))
    except ValueError as error:
        raise ConfigError(f"--betas {betas}: expected numbers with ; between") from error
    task = PlacementTask(
        texts(jobs),
        texts(vms),
        weights,
        mode,
        reward,
        read_fields(groups["rules"], Rules, "--set rules."),
        read_fields(groups["billing"], Billing, "--set billing."),
    )
    network = PlacementArchitecture.named(
        architecture,
        len(task.settings[0].cluster),
        **read_fields(groups["architecture"], PlacementArchitecture, "--set architecture."),
    )
    import_tensorflow()
    from decima.learning.recipe import Recipe
    from decima.systems.cloud.policy.run import PlacementRun

    recipe = training.limited(Recipe.of(training.recipe, groups["recipe"], KIND))
    training.carry_out(PlacementRun(task, recipe, network, training.seed))
