"""Commands `decima simulate`, `decima compare` and `decima tune`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from decima.commands.shared import options, outputs
from decima.commands.shared.options import option
from decima.commands.shared.verbs import SYSTEMS, Verb
from decima.core.errors import ConfigError

if TYPE_CHECKING:
    from decima.evaluation.comparison import Comparison


def simulate(
    system: str,
    *,
    scheduler: options.SchedulerText = "fair",
    cluster: options.SystemOptions,
    seed: options.Seed = 0,
    out: options.ResultOut = None,
    log: Annotated[Path | None, option("FILE", "Write every task (.parquet or .csv).")] = None,
    gantt: options.Gantt = None,
) -> None:
    """Run one scheduler on one workload."""
    from decima.core.system import form_for
    from decima.evaluation.run import simulate as run

    module: Any = options.module_of(system)
    files = outputs.RunFiles(module, out, gantt, log)
    with options.opened([scheduler], system) as schedulers:
        chosen = schedulers[scheduler]
        values = getattr(chosen, "values", {})
        files.check((*cluster.files(), *(Path(value) for key, value in values.items() if key == "file")))
        settings, workload = cluster.settings(), cluster.spec().workload(seed)
        logged = (out, log, gantt) != (None, None, None)
        result = run(workload, chosen, seed=seed, cluster=settings, log=logged)
        parameters = getattr(form_for(chosen, workload), "values", {})
    if hasattr(module, "checked"):
        result = module.checked(result)
    options.say_remarks([chosen], [workload])
    typer.echo(str(result) + files.write(result, parameters, seed))


ObjectiveName = Annotated[
    str | None, option("NAME", options.METRICS, show_default="average JCT, makespan or cost by the system")
]


def compare(
    system: str,
    schedulers: Annotated[
        list[str],
        typer.Argument(
            metavar="SCHEDULER",
            help="Names, with presets or parameters (weighted_fair:paper; decima:greedy=false), or tuned .json files; "
            "all schedulers where it may be omitted.",
            show_default=False,
        ),
    ],
    *,
    cluster: options.SystemOptions,
    seeds: Annotated[int, option("N", "Runs of every scheduler, a workload for each.", min=1, max=options.MOST)] = 20,
    seed: Annotated[int, option("N", "First seed; with jobs from a file, seeds change only durations.", min=0)] = 0,
    baseline: Annotated[str | None, option("NAME", "Scheduler to compare with.", show_default="the first")] = None,
    metric: ObjectiveName = None,
    workers: options.Workers = None,
    backend: options.Backend = None,
    out: Annotated[Path | None, option("FILE", "Write all scores (.csv, .parquet) or the table (.md, .tex).")] = None,
    gantt: options.Gantt = None,
) -> None:
    """Compare schedulers on the same workloads and seeds; `--gantt` draws the first seed."""
    from decima.evaluation.comparison import compare as run
    from decima.evaluation.run import simulate

    module: Any = options.module_of(system)
    schedulers = schedulers or module.all_schedulers()
    inputs = cluster.files()
    outputs.check_output(out, *outputs.TABLES, ".md", ".tex", inputs=inputs)
    outputs.check_chart(gantt, module, inputs)
    with options.opened(schedulers, system) as competitors:
        settings, spec = cluster.settings(), cluster.spec()
        comparison = run(
            competitors | getattr(cluster, "searches", dict)(),
            spec,
            seeds=range(seed, seed + seeds),
            cluster=settings,
            baseline=baseline,
            metric=metric,
            workers=workers,
            backend=backend,
            progress="compare",
        )
        if gantt is not None:
            workload = spec.workload(seed)
            runs = [simulate(workload, each, seed=seed, cluster=settings, log=True) for each in competitors.values()]
            outputs.draw_schedules(gantt, runs)
    if out is not None:
        if out.suffix in (".md", ".tex"):
            text = comparison.to_markdown() if out.suffix == ".md" else comparison.to_latex()
            outputs.write_text(out, text + "\n")
        else:
            outputs.write_table(out, comparison.scores)
    typer.echo(str(comparison))
    typer.echo(best(comparison) + outputs.wrote(out, gantt))


def best(comparison: Comparison) -> str:
    """Sentence about the best scheduler, its score and its change against the baseline."""
    from decima.plotting.words import count

    summary = comparison.summary()
    first = summary.iloc[0]
    cut = set(summary.scheduler[summary.unfinished > 0])
    words = {"": "", "≥": "at least ", "≤": "at most ", "~": "about "}
    score = words[first["mark"]] + comparison.objective.shown(first[comparison.objective.with_unit("mean")])
    against = f" ({count(first.unfinished, 'job')} unfinished)" if first.unfinished else ""
    if first.scheduler != comparison.baseline and not cut & {first.scheduler, comparison.baseline}:
        against = f", {first.change_percent:+.1f} % against {comparison.baseline}"
    return f"best of {count(len(summary), 'scheduler')} on {comparison.label}: {first.scheduler} with {score}{against}"


def tune(
    system: str,
    scheduler: Annotated[
        str,
        typer.Argument(
            metavar="SCHEDULER", help="Name; parameters given with it (weighted_fair:sticky=0) keep their values."
        ),
    ],
    *,
    train: Annotated[int, option("N", "Workloads to fit the parameters to.", min=1, max=options.MOST)] = 20,
    test: Annotated[int, option("N", "Held-out workloads to score the result on.", min=0, max=options.MOST)] = 20,
    budget: Annotated[int, option("N", "Candidates to try.", min=1, max=options.MOST)] = 400,
    baseline: Annotated[str | None, option("NAME", "Scheduler to compare with, as in 'decima compare'.")] = None,
    metric: ObjectiveName = None,
    cluster: options.SystemOptions,
    seed: Annotated[int, option("N", "Seed of the search and of the first workload.", min=0)] = 0,
    workers: options.Workers = None,
    backend: options.Backend = None,
    grid: Annotated[
        str | None,
        option("KEY=A+B,...", "Try every combination of these values (alpha=-1+0,larger=0+1) instead of a search."),
    ] = None,
    table: Annotated[Path | None, option("FILE", "Write the score of every combination (.csv or .parquet).")] = None,
    out: Annotated[
        Path | None, option("FILE", "Write parameters and scores (.json); other commands take the file as a scheduler.")
    ] = None,
) -> None:
    """Fit a heuristic's parameters by CMA-ES or a grid; score it on held-out workloads."""
    from decima.core.system import get_system
    from decima.evaluation.grid import grid_search, grid_table, read_grid
    from decima.evaluation.tuning import TEST_SEED
    from decima.evaluation.tuning import tune as run_tuning

    runs_on = get_system(system)
    spec = cluster.spec()
    outputs.check_output(out, ".json", inputs=(spec.path,))
    outputs.check_output(table, ".csv", ".parquet", inputs=(spec.path,))
    points = None if grid is None else read_grid(grid)
    if points is None and table is not None:
        raise ConfigError("--table keeps the scores of a grid; expected --grid KEY=A+B with it")
    if seed + train > TEST_SEED:
        raise ConfigError(f"seed + train must be at most {TEST_SEED}, where the seeds of test workloads begin")
    settings = cluster.settings()
    name, fixed = options.registry_of(system).read_scheduler(scheduler)
    against = None if baseline is None else runs_on.make_scheduler(baseline)
    train_seeds = range(seed, seed + train)
    test_seeds = range(TEST_SEED + seed, TEST_SEED + seed + test)
    common = {
        "test": spec.workloads(test_seeds) if test else None,
        "train_seeds": train_seeds,
        "test_seeds": test_seeds if test else None,
        "metric": metric or runs_on.scored[0],
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
        result = run_tuning(name, trained, settings, budget=budget, seed=seed, **common)
    if table is not None:
        outputs.write_table(table, grid_table(result))
    if out is not None:
        with outputs.output_path(out) as temporary:
            result.save(temporary)
    typer.echo(str(result))
    kept, scores = ("test", result.test) if result.test else ("train", result.train)
    tuned, default = scores["tuned"].mean(), scores["default"].mean()
    typer.echo(
        f"{name} tuned on {', '.join(result.about['train']['labels'])}: {result.objective.shown(tuned)} on {kept} "
        f"workloads, {100.0 * (tuned / default - 1.0):+.1f} % against its defaults" + outputs.wrote(out)
    )


VERBS = (
    Verb("simulate", {name: {"": options.maker(simulate, name, "simulate")} for name in SYSTEMS}),
    Verb("compare", {name: {"": options.maker(compare, name, "compare")} for name in SYSTEMS}),
    Verb("tune", {name: {"": options.maker(tune, name, "tune")} for name in ("spark", "heterogeneous")}),
)
