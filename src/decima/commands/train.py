"""Command `decima train`: learn a policy from scratch, or go on where a run stopped."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import typer

from decima.commands.shared import options
from decima.commands.shared.outputs import check_folder
from decima.commands.shared.verbs import INTERRUPTED, SYSTEMS, Verb
from decima.core.config import checkout_root
from decima.core.errors import ConfigError
from decima.core.grammar import changed_texts, read_fields

if TYPE_CHECKING:
    from decima.learning.export import FinishedRun
    from decima.learning.recipe import Recipe
    from decima.learning.trainer import Trained, Trainer

UNEQUAL_JOBS = ("lachesis-batch", "lachesis-stream")  # JOBS that are for unequal executors


class TrainableRun(Protocol):
    """Something to train: a run for a card (:class:`decima.learning.export.FinishedRun`) that makes its trainer."""

    def trainer(
        self, folder: Path, *, backend: str | None = None, workers: int | None = None, progress: bool = False
    ) -> Trainer:
        """The trainer, with checkpoint and curve in the folder."""


def read_trainings() -> dict[str, dict[str, dict]]:
    """Options of trainings by paper and name of the policy, from ``params/training`` of the checkout.

    Raises:
        ConfigError: The current folder is in no checkout.
    """
    import yaml

    if (root := checkout_root()) is None:
        raise ConfigError("--params reads params/training of a checkout of the project; the current folder is in none")
    papers: dict[str, dict[str, dict]] = {}
    for path in sorted((root / "params" / "training").glob("*.yaml")):
        for paper, blocks in yaml.safe_load(path.read_text(encoding="utf-8"))["training"].items():
            papers.setdefault(paper, {}).update(blocks)
    return papers


def system_of_block(words: list[str]) -> str | None:
    """System of the training that `--params NAME` describes; None without such words."""
    names = [word.partition("=")[2] for word in words if word.startswith("--params=")]
    names += [name for word, name in pairwise(words) if word == "--params"]
    papers = [paper for paper, blocks in read_trainings().items() if names[0] in blocks] if names else []
    return next((paper for paper in papers if paper in SYSTEMS), None)


def use_block(context: typer.Context, name: str | None) -> str | None:
    """Make a block of params/training the defaults of the command."""
    if name is None:
        return None
    blocks = {key: block for paper in read_trainings().values() for key, block in paper.items()}
    if name not in blocks:
        raise ConfigError(f"--params {name}: params/training describes no such training; it has: {', '.join(blocks)}")
    known = [option.name for option in context.command.params]
    if unknown := set(blocks[name]) - set(known):
        raise ConfigError(
            f"params/training, {name}: unknown option {min(unknown)!r}; expected some of: {', '.join(known)}"
        )
    context.default_map = {option: _as_given(option, value) for option, value in blocks[name].items()}
    return name


def _as_given(option: str, value: object) -> str | list[str]:
    """Parameter as command-line text: GROUP.KEY=VALUE for changes, SOURCE:KEY=VALUE,... for jobs."""
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
        """Train, store the best policy and print a summary."""
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


Jobs = Annotated[
    str,
    typer.Argument(
        metavar="JOBS",
        help="What sequences are drawn from: a source (tpch:n=20; embedded:n=200,interarrival_s=20-45); for unequal "
        "executors lachesis-batch or lachesis-stream (lachesis-batch:jobs=5-100,ccr=0.3-10); for the cloud sources "
        "with ; between (generated;redrawn:trace=burst).",
    ),
]
Architecture = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="Network: paper, released or classes; for unequal executors paper, fast or decima; for the cloud shared "
        "(one scorer for all VMs) or paper.",
    ),
]


def train(
    system: str,
    jobs: Jobs = "tpch",
    *,
    training: Training,
    cluster: options.SystemOptions,
    objective: options.Metric = "avg_jct",
    architecture: Architecture = "paper",
) -> None:
    """Train a policy; the best one at validation is kept.

    A run that is limited by iterations has the same result for the same seed; the learning rate of one that is limited
    by minutes follows the clock.
    """
    from decima.learning.quiet import import_tensorflow
    from decima.learning.recipe import Recipe
    from decima.systems.spark.policy.architecture import Architecture
    from decima.systems.spark.policy.task import Task
    from decima.systems.spark.settings import Settings

    if jobs.partition(":")[0] in UNEQUAL_JOBS:
        raise ConfigError(f"jobs {jobs!r} are for unequal executors: decima train --system unequal {jobs}")
    training.check()
    groups = changed_texts(cluster.changes, "settings", "recipe", "architecture")
    switches = read_fields(groups["settings"], Settings, "--set settings.")
    chosen_cluster = cluster.of_values(switches)
    if chosen_cluster.classes:
        switches["classes"] = [list(each) for each in chosen_cluster.classes]
    if cluster.durations is not None:
        switches["durations"] = cluster.durations
    task = Task.of_jobs(
        jobs, executors=chosen_cluster.executors, mode=cluster.mode, objective=objective, settings=switches
    )
    recipe = training.limited(Recipe.of(training.recipe, groups["recipe"], task.kind))
    network = Architecture.named(
        architecture, **read_fields(groups["architecture"], Architecture, "--set architecture.")
    )
    import_tensorflow()
    from decima.systems.spark.policy.run import DecimaRun

    training.carry_out(DecimaRun(task, recipe, network, training.seed))


def train_unequal(
    system: str,
    jobs: Jobs = "lachesis-batch",
    *,
    training: Training,
    cluster: options.SystemOptions,
    architecture: Architecture = "paper",
) -> None:
    """Train a policy for unequal executors and keep the best one at validation."""
    from decima.learning.quiet import import_tensorflow
    from decima.systems.unequal.policy.architecture import NodeArchitecture
    from decima.systems.unequal.policy.task import read_task

    training.check()
    groups = changed_texts(cluster.changes, "recipe", "architecture")
    task = read_task(jobs)
    network = NodeArchitecture.named(
        architecture, **read_fields(groups["architecture"], NodeArchitecture, "--set architecture.")
    )
    import_tensorflow()
    from decima.learning.recipe import Recipe
    from decima.systems.unequal.policy.run import NodeRun

    recipe = training.limited(Recipe.of(training.recipe, groups["recipe"], task.kind))
    training.carry_out(NodeRun(task, recipe, network, training.seed))


def train_cloud(
    system: str,
    jobs: Jobs = "generated",
    *,
    training: Training,
    cluster: options.SystemOptions,
    architecture: Architecture = "shared",
) -> None:
    """Train a placement policy; the best one at validation is kept.

    Recipes: fast, paper (REINFORCE, Algorithm 2) and paper-dqn (Algorithm 1), both with Table 5.
    """
    from decima.learning.quiet import import_tensorflow
    from decima.systems.cloud import Billing, Rules
    from decima.systems.cloud.policy.architecture import PlacementArchitecture
    from decima.systems.cloud.policy.task import FAMILY, PlacementTask, texts

    training.check()
    groups = changed_texts(cluster.changes, "rules", "billing", "recipe", "architecture")
    try:
        weights = tuple(float(beta) for beta in texts(cluster.betas))
    except ValueError as error:
        raise ConfigError(f"--betas {cluster.betas}: expected numbers with ; between") from error
    task = PlacementTask(
        texts(jobs),
        texts(cluster.vms),
        weights,
        cluster.mode,
        cluster.reward,
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

    recipe = training.limited(Recipe.of(training.recipe, groups["recipe"], FAMILY))
    training.carry_out(PlacementRun(task, recipe, network, training.seed))


_TRAINED: dict[str, Any] = dict(zip(SYSTEMS, (train, train_unequal, train_cloud), strict=True))
VERB = Verb(
    "train", {name: {"": options.maker(command, name, "train")} for name, command in _TRAINED.items()}, system_of_block
)
