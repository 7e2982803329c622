"""What all commands that train have in common: their options, their run, and what they say at the end."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Protocol

import typer

from decima.commands.shared import options
from decima.commands.shared.errors import INTERRUPTED
from decima.commands.shared.outputs import check_folder
from decima.core.config import checkout_root
from decima.core.errors import ConfigError

if TYPE_CHECKING:
    from decima.learning.export import FinishedRun
    from decima.learning.recipe import Recipe
    from decima.learning.trainer import Trained, Trainer


class TrainableRun(Protocol):
    """Something to train: a run for a card (:class:`decima.learning.export.FinishedRun`) that makes its trainer."""

    def trainer(
        self, folder: Path, *, backend: str | None = None, workers: int | None = None, progress: bool = False
    ) -> Trainer:
        """The trainer, with checkpoint and curve in the folder."""


def use_block(context: typer.Context, name: str | None) -> str | None:
    """Make a block of params/training the defaults of the command; what the command line says goes before."""
    if name is None:
        return None
    # Commands of another system have a section of their own.
    group = context.parent.info_name if context.parent is not None else None
    section = "cloud_training" if group == "cloud" else "training"
    blocks = read_trainings(section)
    if name not in blocks:
        raise ConfigError(f"--params {name}: params/training describes no such training; it has: {', '.join(blocks)}")
    known = [option.name for option in context.command.params]
    if unknown := set(blocks[name]) - set(known):
        raise ConfigError(
            f"params/training, {name}: unknown option {min(unknown)!r}; expected some of: {', '.join(known)}"
        )
    context.default_map = {option: _as_given(option, value) for option, value in blocks[name].items()}
    return name


def read_trainings(section: str = "training") -> dict[str, dict]:
    """Options of all trainings of stored policies, by name, from ``params/training`` of the checkout.

    Args:
        section: ``training``, or ``cloud_training`` for executor placement.

    Raises:
        ConfigError: The current folder is in no checkout.
    """
    import yaml

    if (root := checkout_root()) is None:
        raise ConfigError("--params reads params/training of a checkout of the project; the current folder is in none")
    blocks: dict[str, dict] = {}
    for path in sorted((root / "params" / "training").glob("*.yaml")):
        blocks |= yaml.safe_load(path.read_text(encoding="utf-8")).get(section, {})
    return blocks


def _as_given(option: str, value: object) -> str | list[str]:
    """A parameter as the command line has it: text; of changes GROUP.KEY=VALUE texts; of jobs SOURCE:KEY=VALUE,..."""
    if option == "changes":
        groups = value.items()
        return [f"{group}.{key}={_as_given(key, inner)}" for group, fields in groups for key, inner in fields.items()]
    if isinstance(value, dict):
        drawn = ",".join(f"{key}={_as_given(key, inner)}" for key, inner in value.items() if key != "source")
        return ":".join(filter(None, (value.get("source"), drawn)))
    if isinstance(value, list):
        return "+".join(_as_given(option, inner) for inner in value)
    return value if isinstance(value, str) else json.dumps(value)


@dataclass(frozen=True)
class Training:
    """Options of the training itself, whatever is trained."""

    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Where checkpoint, curve and policy go.")] = ...
    recipe: Annotated[str, typer.Option(metavar="fast|paper|FILE", help="How to learn; a file is YAML.")] = "fast"
    iterations: Annotated[int | None, typer.Option(metavar="N", help="Stop after so many iterations.")] = None
    minutes: Annotated[float | None, typer.Option(metavar="M", help="Stop after so many minutes.")] = None
    seed: options.Seed = 0
    policy: Annotated[
        Path | None,
        typer.Option(metavar="NAME", help="Folder and name of the policy.", show_default="FOLDER/policy"),
    ] = None
    resume: Annotated[bool, typer.Option("--resume", help="Continue the run in the folder.")] = False
    workers: options.Workers = None
    backend: options.Backend = None
    params: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            is_eager=True,
            callback=use_block,
            help="Take options of a stored policy's training, from params/training.",
        ),
    ] = None

    def check(self) -> None:
        """Refuse what would fail after the training, or make no sense.

        Raises:
            ConfigError: The seed is negative, or a folder cannot be written to.
        """
        check_folder(self.out)
        if self.policy is not None:
            check_folder(self.policy.parent)
        if self.seed < 0:
            raise ConfigError(f"seed must be a whole number of at least 0, got {self.seed}")

    def limited(self, recipe: Recipe) -> Recipe:
        """The recipe with the limits that were given."""
        limits = {
            "iterations": self.iterations,
            "wall_seconds": None if self.minutes is None else 60.0 * self.minutes,
        }
        return recipe.replace(**{name: value for name, value in limits.items() if value is not None})

    def carry_out(self, run: TrainableRun | FinishedRun) -> None:
        """Train, store the best policy and say what came out; an interrupted run ends the process."""
        from decima.learning.export import POLICY_NAME, export

        trainer = run.trainer(self.out, backend=self.backend, workers=self.workers, progress=True)
        try:
            trained = trainer.train(self.resume)
        except KeyboardInterrupt:
            typer.echo(
                f"error: interrupted after {trainer.iterations} iterations; --resume continues {self.out}", err=True
            )
            sys.exit(INTERRUPTED)
        written = export(run, trained, self.out / POLICY_NAME if self.policy is None else self.policy)
        unit = " s" if run.task.metric.endswith("_s") else ""
        typer.echo(f"{run.recipe.name} on {run.task.label}: {_summary(trained, unit)}; wrote {written}")


def _summary(trained: Trained, unit: str) -> str:
    changes = {name: 100.0 * (trained.score / score - 1.0) for name, score in trained.references.items()}
    against = ", ".join(f"{change:+.1f} % against {name}" for name, change in changes.items())
    return (
        f"{trained.iterations} iterations, best validation {trained.score:.2f}{unit} ({trained.mode}, "
        f"after {trained.iteration}; {against})"
    )
