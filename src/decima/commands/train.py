"""Command `decima train`: learn a policy from scratch, or go on where a run stopped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from decima.commands.shared import options
from decima.commands.shared.node_training import is_for_nodes, train_nodes
from decima.commands.shared.training import Training
from decima.core.grammar import read_fields


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


@options.grouped
def train(
    context: typer.Context,
    jobs: Annotated[
        str,
        typer.Argument(
            metavar="JOBS",
            help="Source that sequences are drawn from (tpch:n=20; embedded:n=200,interarrival_s=20-45); or "
            "lachesis-batch, lachesis-stream: nodes on unequal executors (lachesis-batch:jobs=5-100,ccr=0.3-10).",
        ),
    ] = "tpch",
    *,
    training: Training,
    cluster: TrainedCluster,
    objective: options.Metric = "avg_jct",
    architecture: Annotated[
        str,
        typer.Option(
            metavar="paper|released|classes",
            help="Network of the paper, of the published code, or for four classes of executors; of nodes "
            "paper|fast|decima.",
        ),
    ] = "paper",
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

    if is_for_nodes(jobs):
        train_nodes(context, jobs, training, cluster.changes)
        return
    training.check()
    groups = options.changed_texts(cluster.changes, "settings", "recipe", "architecture")
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
    from decima.learning.run import TrainingRun

    training.carry_out(TrainingRun(task, recipe, network, training.seed))
