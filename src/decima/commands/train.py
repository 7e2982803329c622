"""`decima train`: learn a policy from scratch, or go on where a run stopped."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from decima.commands.shared import options
from decima.commands.shared.errors import INTERRUPTED
from decima.commands.shared.outputs import check_folder
from decima.exceptions import ConfigError

if TYPE_CHECKING:
    from decima.training.trainer import Trained


def register(root: typer.Typer) -> None:
    """Add the command."""
    root.command()(train)


def train(
    kind: Annotated[str, typer.Argument(metavar="batch|stream", help="All jobs at the start, or Poisson arrivals.")],
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Where checkpoint, curve and policy go.")],
    source: Annotated[str, typer.Option(metavar="tpch|embedded|measured", help="Where jobs come from.")] = "tpch",
    n: Annotated[
        int | None,
        typer.Option("--n", metavar="N", max=options.MOST, help="Jobs per sequence.", show_default="20, stream 200"),
    ] = None,
    interarrival_s: Annotated[
        str,
        typer.Option("--interarrival-s", metavar="S|LOW-HIGH", help="Mean gap of a stream; a range is mixed."),
    ] = "25",
    sizes: Annotated[str, typer.Option(metavar="SIZES", help="Job sizes to draw from: paper or released.")] = "paper",
    executors: options.Executors = 50,
    mode: options.Mode = "paper",
    durations: options.Durations = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--setting", metavar="KEY=VALUE", help="Change a setting of the simulated cluster; repeatable."),
    ] = None,
    objective: Annotated[
        str, typer.Option(metavar="NAME", help="What is to be small: avg_jct, makespan or p90_jct.")
    ] = "avg_jct",
    recipe: Annotated[str, typer.Option(metavar="fast|paper|FILE", help="How to learn; a file is YAML.")] = "fast",
    changes: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a field of the recipe; repeatable.")
    ] = None,
    architecture: Annotated[
        str, typer.Option(metavar="paper|released", help="Network of the paper or of the published code.")
    ] = "paper",
    features: Annotated[
        list[str] | None,
        typer.Option("--option", metavar="KEY=VALUE", help="Change a field of the architecture; repeatable."),
    ] = None,
    iterations: Annotated[int | None, typer.Option(metavar="N", help="Stop after so many iterations.")] = None,
    minutes: Annotated[float | None, typer.Option(metavar="M", help="Stop after so many minutes.")] = None,
    seed: options.Seed = 0,
    policy: Annotated[
        Path | None,
        typer.Option(metavar="NAME", help="Folder and name of the policy.", show_default="FOLDER/policy"),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the run in the folder.")] = False,
    workers: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Workers; no result depends on it.", show_default="all")
    ] = None,
    backend: Annotated[str, typer.Option(metavar="threads|processes|ray", help="Where episodes run.")] = "threads",
) -> None:
    """Train a policy; the best one at validation is kept.

    A run that is limited by iterations has the same result for the same seed; the learning rate of one that is limited
    by minutes follows the clock.
    """
    from decima.policy.architecture import Architecture
    from decima.policy.quiet import import_tensorflow
    from decima.training.recipe import Recipe
    from decima.training.task import Task

    check_folder(out)
    if policy is not None:
        check_folder(policy.parent)
    switches = _fields("--setting", settings)
    if taken := sorted({"executors", "mode"} & set(switches)):
        raise ConfigError(f"--setting {taken[0]}: this has an option of its own, --{taken[0]}")
    task = Task(
        kind,
        source=source,
        jobs=n,
        interarrival_s=_gaps(interarrival_s),
        sizes=sizes,
        executors=executors,
        mode=mode,
        objective=objective,
        settings=switches | ({} if durations is None else {"durations": durations}),
    )
    chosen = Recipe.of(recipe, changes or (), kind)
    limits = {"iterations": iterations, "wall_seconds": None if minutes is None else 60.0 * minutes}
    chosen = chosen.replace(**{name: value for name, value in limits.items() if value is not None})
    network = Architecture.named(architecture, **_fields("--option", features))
    if seed < 0:
        raise ConfigError(f"seed must be a whole number of at least 0, got {seed}")
    import_tensorflow()
    from decima.training.export import POLICY_NAME, export
    from decima.training.run import TrainingRun

    run = TrainingRun(task, chosen, network, seed)
    trainer = run.trainer(out, backend=backend, workers=workers, progress=sys.stderr.isatty())
    try:
        trained = trainer.train(resume)
    except KeyboardInterrupt:
        typer.echo(f"error: interrupted after {trainer.iterations} iterations; --resume continues {out}", err=True)
        sys.exit(INTERRUPTED)
    written = export(run, trained, out / POLICY_NAME if policy is None else policy)
    typer.echo(f"{chosen.name} on {task.label}: {_summary(trained)}; wrote {written}")


def _summary(trained: Trained) -> str:
    changes = {name: 100.0 * (trained.score / score - 1.0) for name, score in trained.references.items()}
    against = ", ".join(f"{change:+.1f} % against {name}" for name, change in changes.items())
    return (
        f"{trained.iterations} iterations, best validation {trained.score:.2f} s ({trained.mode}, "
        f"after {trained.iteration}; {against})"
    )


def _gaps(text: str) -> float | tuple[float, float]:
    """`25` or `20-45`."""
    try:
        gaps = tuple(float(part) for part in text.split("-"))
    except ValueError:
        gaps = ()
    if len(gaps) not in (1, 2):
        raise ConfigError(f"--interarrival-s: expected seconds such as 25, or a range such as 20-45, got {text!r}")
    return gaps[0] if len(gaps) == 1 else gaps


def _fields(option: str, pairs: list[str] | None) -> dict:
    """Fields of an architecture or of the settings from `key=value` texts."""
    from decima.training.recipe import parse_value

    values: dict = {}
    for pair in pairs or ():
        key, sign, text = pair.partition("=")
        if not sign or not key or key in values:
            example = {"--option": "limit=none", "--setting": "moving_delay_ms=0"}[option]
            raise ConfigError(f"{option} {pair!r}: expected KEY=VALUE once per key, for example {example}")
        # `none` is the name of an encoding of limits here.
        value = "none" if text.strip().lower() == "none" else parse_value(text)
        values[key] = tuple(value) if isinstance(value, list) else value
    return values
