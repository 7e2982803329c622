"""Commands `decima compare` and `decima tune`: schedulers side by side, and heuristics fitted to a workload."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from decima.commands.shared import options
from decima.commands.shared.outputs import check_output, output_path, write_table
from decima.commands.shared.schedulers import opened
from decima.commands.shared.schedules import CHARTS, draw_schedules
from decima.core.errors import ConfigError
from decima.plotting.words import count

if TYPE_CHECKING:
    from decima.evaluation.comparison import Comparison


def register(root: typer.Typer) -> None:
    """Add the commands."""
    root.command()(compare)
    root.command()(tune)


@options.grouped
def compare(
    schedulers: Annotated[
        list[str],
        typer.Argument(
            metavar="SCHEDULER...",
            help="Names, with presets or parameters (weighted_fair:paper; decima:greedy=false), or tuned .json files.",
        ),
    ],
    *,
    jobs: options.Jobs = "tpch",
    seeds: Annotated[int, typer.Option(metavar="N", min=1, max=options.MOST, help="Runs of every scheduler.")] = 20,
    seed: Annotated[
        int, typer.Option(metavar="N", min=0, help="First seed; of the jobs of a file, only durations differ.")
    ] = 0,
    baseline: Annotated[
        str | None, typer.Option(metavar="NAME", help="Compare with this one.", show_default="the first")
    ] = None,
    interarrival_s: Annotated[
        str | None,
        typer.Option(
            "--interarrival-s",
            metavar="S,S,...",
            help="Mean gaps of a stream in seconds (45,25,14): one table, with a row per gap and scheduler.",
            show_default="what --jobs says",
        ),
    ] = None,
    metric: options.Metric = "avg_jct",
    cluster: options.Cluster,
    workers: options.Workers = None,
    backend: options.Backend = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the score of every run (.csv or .parquet).")
    ] = None,
    gantt: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw the runs of the first seed (.png or .pdf; .html to explore)."),
    ] = None,
) -> None:
    """Run several schedulers on the same workloads and seeds."""
    from decima.evaluation.comparison import GapComparison
    from decima.evaluation.comparison import compare as run_comparison
    from decima.evaluation.run import simulate
    from decima.workload.sources import parse_gaps, parse_jobs

    specs = {None: parse_jobs(jobs)} if interarrival_s is None else parse_gaps(interarrival_s, jobs)
    spec = next(iter(specs.values()))
    check_output(out, ".csv", ".parquet", inputs=(spec.path,))
    check_output(gantt, *CHARTS, inputs=(spec.path,))
    if gantt is not None and len(specs) > 1:
        raise ConfigError(f"--gantt draws the runs of one gap, and --interarrival-s gives {len(specs)}")
    settings = cluster.settings()
    with opened(schedulers) as made:
        comparisons = {
            gap_s: run_comparison(
                made,
                each.workload if each.path is None else each.workload(seed),
                seeds=range(seed, seed + seeds),
                baseline=baseline,
                metric=metric,
                workers=workers,
                backend=backend,
                progress="compare" if gap_s is None else f"compare, {gap_s:g} s",
                cluster=settings,
            )
            for gap_s, each in specs.items()
        }
        if gantt is not None:
            first = spec.workload(seed)
            runs = [simulate(first, each, seed=seed, cluster=settings, log=True) for each in made.values()]
            draw_schedules(gantt, *runs)
    comparison = comparisons[None] if interarrival_s is None else GapComparison(comparisons)
    if out is not None:
        write_table(out, comparison.scores)
    typer.echo(str(comparison))
    parts = [("" if gap_s is None else f"{gap_s:g} s: ") + _best(each) for gap_s, each in comparisons.items()]
    any_one = next(iter(comparisons.values()))
    typer.echo(
        f"best of {count(len(made), 'scheduler')} on {any_one.label}: {', '.join(parts)}"
        + "".join(f"; wrote {path}" for path in (out, gantt) if path is not None)
    )


def _best(comparison: Comparison) -> str:
    """Who is best, with its score, and by how much it is better than the baseline if time limits allow to say so."""
    summary = comparison.summary()
    best = summary.iloc[0]
    cut = set(summary.scheduler[summary.unfinished > 0])
    score = "at least " * (best.scheduler in cut) + comparison.objective.shown(
        best[comparison.objective.with_unit("mean")]
    )
    against = f" ({count(best.unfinished, 'job')} unfinished)" if best.unfinished else ""
    if best.scheduler != comparison.baseline and not cut & {best.scheduler, comparison.baseline}:
        against = f", {best.change_percent:+.1f} % against {comparison.baseline}"
    return f"{best.scheduler} with {score}{against}"


@options.grouped
def tune(
    scheduler: Annotated[
        str,
        typer.Argument(metavar="SCHEDULER", help="Name; those given with it (weighted_fair:sticky=0) stay."),
    ],
    *,
    jobs: options.Jobs = "tpch",
    train: Annotated[
        int, typer.Option(metavar="N", min=1, max=options.MOST, help="Workloads to fit the parameters to.")
    ] = 20,
    test: Annotated[
        int, typer.Option(metavar="N", min=0, max=options.MOST, help="Held-out workloads to score the result on.")
    ] = 20,
    budget: Annotated[int, typer.Option(metavar="N", min=1, max=options.MOST, help="Candidates to try.")] = 400,
    baseline: Annotated[
        str | None, typer.Option(metavar="NAME", help="Scheduler to compare with, as in 'decima compare'.")
    ] = None,
    metric: options.Metric = "avg_jct",
    cluster: options.Cluster,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Seed of the search and of the first workload.")] = 0,
    workers: options.Workers = None,
    backend: options.Backend = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Keep the search here; the same call continues it after an interruption."),
    ] = None,
    grid: Annotated[
        str | None,
        typer.Option(
            metavar="KEY=A+B,...",
            help="Try every combination of these values (alpha=-1+0,larger=0+1) instead of a search.",
        ),
    ] = None,
    table: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the score of every combination (.csv or .parquet).")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write parameters and scores (.json); a scheduler elsewhere.")
    ] = None,
) -> None:
    """Fit the parameters of a heuristic by CMA-ES, or a grid, and score it on held-out workloads."""
    from decima.evaluation.grid import grid_search, grid_table, read_grid
    from decima.evaluation.tuning import TEST_SEED
    from decima.evaluation.tuning import tune as run_tuning
    from decima.systems.spark.schedulers import make_scheduler, read_scheduler
    from decima.workload.sources import parse_jobs

    spec = parse_jobs(jobs)
    check_output(out, ".json", inputs=(spec.path, checkpoint))
    check_output(checkpoint, ".json", inputs=(spec.path,))
    check_output(table, ".csv", ".parquet", inputs=(spec.path,))
    points = None if grid is None else read_grid(grid)
    if points is None and table is not None:
        raise ConfigError("--table keeps the scores of a grid; expected --grid KEY=A+B with it")
    if points is not None and checkpoint is not None:
        raise ConfigError("--checkpoint keeps a search by CMA-ES; expected no --grid with it")
    if seed + train > TEST_SEED:
        raise ConfigError(f"seed + train must be at most {TEST_SEED}, where the seeds of test workloads begin")
    settings = cluster.settings()
    name, fixed = read_scheduler(scheduler)
    against = None if baseline is None else make_scheduler(baseline)
    train_seeds = range(seed, seed + train)
    test_seeds = range(TEST_SEED + seed, TEST_SEED + seed + test)
    common = {
        "test": spec.workloads(test_seeds) if test else None,
        "train_seeds": train_seeds,
        "test_seeds": test_seeds if test else None,
        "metric": metric,
        "fixed": fixed,
        "baseline": against,
        "workers": workers,
        "backend": backend,
        "progress": "tune",
    }
    trained = spec.workloads(train_seeds)
    if points is not None:
        result = grid_search(name, trained, settings, points, **common)
    else:
        result = run_tuning(name, trained, settings, budget=budget, seed=seed, checkpoint=checkpoint, **common)
    if table is not None:
        write_table(table, grid_table(result))
    if out is not None:
        with output_path(out) as temporary:
            result.save(temporary)
    typer.echo(str(result))
    kept, scores = ("test", result.test) if result.test else ("train", result.train)
    tuned, default = scores["tuned"].mean(), scores["default"].mean()
    typer.echo(
        f"{name} tuned on {', '.join(result.about['train']['labels'])}: {result.objective.shown(tuned)} on {kept} "
        f"workloads, {100.0 * (tuned / default - 1.0):+.1f} % against its defaults"
        + ("" if out is None else f"; wrote {out}")
    )
