"""Command `decima train`: learn a policy from scratch, or go on where a run stopped."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from decima.commands.shared import options
from decima.commands.shared.errors import INTERRUPTED
from decima.commands.shared.outputs import check_folder
from decima.exceptions import ConfigError
from decima.grammar import read_fields

if TYPE_CHECKING:
    from decima.training.trainer import Trained


def register(root: typer.Typer) -> None:
    """Add the command."""
    root.command()(train)


@dataclass(frozen=True)
class TrainedCluster(options.Cluster):
    """Options of the cluster to train for; `--set` changes the recipe and the network, too."""

    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="GROUP.KEY=VALUE",
            help="Change a field of the settings, the recipe or the architecture (settings.moving_delay_ms=0, "
            "recipe.lr_start=2e-3, architecture.limit=none); may be given several times.",
        ),
    ] = None


def _use_block(context: typer.Context, name: str | None) -> str | None:
    """Make a block of params.yaml the defaults of the command; what the command line says goes before."""
    if name is None:
        return None
    from decima.reproduction.params import read_params

    blocks = read_params("training")
    if name not in blocks:
        raise ConfigError(f"--params {name}: params.yaml describes no such training; it has: {', '.join(blocks)}")
    known = [option.name for option in context.command.params]
    if unknown := set(blocks[name]) - set(known):
        raise ConfigError(
            f"training.{name} in params.yaml: unknown option {min(unknown)!r}; expected some of: {', '.join(known)}"
        )
    context.default_map = {option: _as_given(option, value) for option, value in blocks[name].items()}
    return name


def _as_given(option: str, value: object) -> str | list[str]:
    """A parameter as the command line has it: text; of changes GROUP.KEY=VALUE texts; of jobs SOURCE:KEY=VALUE,..."""
    if option == "changes":
        groups = value.items()
        return [f"{group}.{key}={_as_given(key, inner)}" for group, fields in groups for key, inner in fields.items()]
    if option == "jobs" and isinstance(value, dict):
        drawn = [f"{key}={_as_given(key, inner)}" for key, inner in value.items() if key != "source"]
        return f"{value['source']}:{','.join(drawn)}" if drawn else value["source"]
    return value if isinstance(value, str) else json.dumps(value)


@options.grouped
def train(
    jobs: Annotated[
        str,
        typer.Argument(
            metavar="JOBS",
            help="Source that sequences are drawn from (tpch:n=20; embedded:n=200,interarrival_s=20-45).",
        ),
    ] = "tpch",
    *,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Where checkpoint, curve and policy go.")],
    cluster: TrainedCluster,
    objective: options.Metric = "avg_jct",
    recipe: Annotated[str, typer.Option(metavar="fast|paper|FILE", help="How to learn; a file is YAML.")] = "fast",
    architecture: Annotated[
        str, typer.Option(metavar="paper|released", help="Network of the paper or of the published code.")
    ] = "paper",
    iterations: Annotated[int | None, typer.Option(metavar="N", help="Stop after so many iterations.")] = None,
    minutes: Annotated[float | None, typer.Option(metavar="M", help="Stop after so many minutes.")] = None,
    seed: options.Seed = 0,
    policy: Annotated[
        Path | None,
        typer.Option(metavar="NAME", help="Folder and name of the policy.", show_default="FOLDER/policy"),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the run in the folder.")] = False,
    workers: options.Workers = None,
    backend: options.Backend = None,
    params: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", is_eager=True, callback=_use_block, help="Take options from training.NAME of params.yaml."
        ),
    ] = None,
) -> None:
    """Train a policy; the best one at validation is kept.

    A run that is limited by iterations has the same result for the same seed; the learning rate of one that is limited
    by minutes follows the clock.
    """
    from decima.policy.architecture import Architecture
    from decima.policy.quiet import import_tensorflow
    from decima.simulator.settings import Settings
    from decima.training.recipe import Recipe
    from decima.training.task import Task

    check_folder(out)
    if policy is not None:
        check_folder(policy.parent)
    groups = options.changed_texts(cluster.changes, "settings", "recipe", "architecture")
    switches = read_fields(groups["settings"], Settings, "--set settings.")
    cluster.of_values(switches)
    if cluster.durations is not None:
        switches["durations"] = cluster.durations
    task = Task.of_jobs(
        jobs, executors=cluster.executors, mode=cluster.mode, objective=objective, settings=switches
    )
    chosen = Recipe.of(recipe, groups["recipe"], task.kind)
    limits = {"iterations": iterations, "wall_seconds": None if minutes is None else 60.0 * minutes}
    chosen = chosen.replace(**{name: value for name, value in limits.items() if value is not None})
    network = Architecture.named(
        architecture, **read_fields(groups["architecture"], Architecture, "--set architecture.")
    )
    if seed < 0:
        raise ConfigError(f"seed must be a whole number of at least 0, got {seed}")
    import_tensorflow()
    from decima.training.export import POLICY_NAME, export
    from decima.training.run import TrainingRun

    run = TrainingRun(task, chosen, network, seed)
    trainer = run.trainer(out, backend=backend, workers=workers, progress=True)
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
