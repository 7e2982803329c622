"""Commands `decima exhaustive` and `decima bound`: how far schedulers are from the best possible."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from decima.commands.shared import options
from decima.commands.shared.outputs import check_output, write_json, write_table
from decima.commands.shared.schedulers import opened
from decima.plotting.words import count

ResultOut = Annotated[Path | None, typer.Option(metavar="FILE", help="Write the result (.json).")]


def register(root: typer.Typer) -> None:
    """Add the commands."""
    root.command()(bound)
    root.command()(exhaustive)


@dataclass(frozen=True)
class KnownCluster(options.Cluster):
    """Options of a simulated cluster whose task durations are known beforehand."""

    durations: Annotated[
        str,
        typer.Option(metavar="sampled|mean", help="The search knows the durations; bounds of sampled ones are loose."),
    ] = "mean"


@options.grouped
def bound(
    schedulers: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SCHEDULER...",
            help="Heuristics to set beside the bounds, as in 'decima compare'.",
            show_default="fair weighted_fair capped_srw",
        ),
    ] = None,
    *,
    jobs: options.Jobs = "tpch",
    instances: Annotated[int, typer.Option(metavar="N", min=1, max=options.MOST, help="Workloads to draw.")] = 1,
    budget: Annotated[
        int, typer.Option(metavar="N", min=0, max=options.MOST, help="Schedules to try on each; 0: no search.")
    ] = 2000,
    cluster: KnownCluster,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Seed of the search and of the first workload.")] = 0,
    workers: options.Workers = None,
    backend: options.Backend = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write instance, policy, avg_jct_s (.csv or .parquet).")
    ] = None,
) -> None:
    """Set heuristics beside a searched schedule and a lower bound."""
    import pandas

    from decima.evaluation.run import score_matrix
    from decima.optimum.bounds import lower_bound
    from decima.optimum.schedule_search import search_schedule
    from decima.workload.sources import parse_jobs

    spec = parse_jobs(jobs)
    check_output(out, ".csv", ".parquet", inputs=(spec.path,))
    settings = cluster.settings()
    seeds = range(seed, seed + instances)
    workloads = spec.workloads(seeds)
    together = {"workers": workers, "backend": backend}
    with opened(schedulers or ["fair", "weighted_fair", "capped_srw"]) as made:
        scores = score_matrix(workloads, list(made.values()), settings, seeds=seeds, progress="heuristics", **together)
    # The search steers capped_srw; it begins with the parameters that this has here.
    start = next((scheduler.values for scheduler in made.values() if scheduler.name == "capped_srw"), None)
    rows = []
    for instance, workload in enumerate(workloads):
        values = dict(zip(made, scores[:, instance].tolist(), strict=True))
        if budget > 0:
            label = f"search, instance {instance + 1} of {instances}"
            found = search_schedule(
                workload, settings, budget, start=start, seed=seeds[instance], progress=label, **together
            )
            values["search"] = found.avg_jct_s
        values["lower_bound"] = lower_bound(workload, settings).avg_jct_s
        rows += [{"instance": seeds[instance], "policy": name, "avg_jct_s": value} for name, value in values.items()]
    table = pandas.DataFrame(rows)
    if out is not None:
        write_table(out, table)
    means = table.groupby("policy", sort=False)["avg_jct_s"].mean()
    floor = means["lower_bound"]
    typer.echo(f"{'policy':<24} {'average JCT [s]':>16} {'above lower bound':>18}")
    for name, mean in means.items():
        above = f"{100.0 * (mean / floor - 1.0):.1f} %" if floor > 0.0 else "-"
        typer.echo(f"{name:<24} {mean:>16.2f} {above:>18}")
    best = means.drop("lower_bound").idxmin()
    typer.echo(
        f"{workloads[0].label} ({count(instances, 'instance')}, {count(len(workloads[0]), 'job')} each, "
        f"{settings.durations} durations): best found {means[best]:.2f} s by {best}, lower bound {floor:.2f} s"
        + ("" if out is None else f"; wrote {out}")
    )


def exhaustive(
    jobs: options.Jobs = "tpch:n=10",
    seed: options.Seed = 0,
    executors: options.Executors = 50,
    runnable_only: Annotated[
        bool,
        typer.Option(
            "--runnable-only", help="Executors go to the first job with a runnable stage instead of waiting for stages."
        ),
    ] = False,
    best_only: Annotated[
        bool, typer.Option("--best-only", help="Rule orders out by a bound: the same best order, no distribution.")
    ] = False,
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=20, help="Largest batch accepted.")] = 10,
    threads: options.Threads = None,
    out: ResultOut = None,
) -> None:
    """Try every order of a batch, simplified as in appendix H; time grows with the factorial of its jobs."""
    from decima.optimum.exhaustive import exhaustive_search
    from decima.workload.sources import parse_jobs

    spec = parse_jobs(jobs)
    check_output(out, ".json", inputs=(spec.path,))
    workload = spec.workload(seed)
    result = exhaustive_search(
        workload,
        executors,
        runnable_only=runnable_only,
        distribution=not best_only,
        limit=limit,
        threads=threads,
        progress="exhaustive",
    )
    if out is not None:
        skipped = ("workload", "distribution", "elapsed_s")
        document = {"label": workload.label, "jobs": [job.name for job in workload.jobs]}
        document |= {name: value for name, value in vars(result).items() if name not in skipped}
        document["distribution"] = None if result.distribution is None else vars(result.distribution)
        write_json(out, document)
    typer.echo(
        f"{workload.label} ({count(len(workload), 'job')}, {count(result.executors, 'executor')}): {result}"
        + ("" if out is None else f"; wrote {out}")
    )
