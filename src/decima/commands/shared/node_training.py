"""What `decima train` does where the policy chooses nodes on unequal executors."""

from __future__ import annotations

from collections.abc import Sequence

import typer

from decima.commands.shared import options
from decima.commands.shared.training import Training
from decima.exceptions import ConfigError
from decima.grammar import read_fields

#: Names that begin the JOBS of such a training.
KINDS = ("lachesis-batch", "lachesis-stream")
_OWN = ("cluster.executors", "executors", "mode", "durations", "objective")


def is_for_nodes(jobs: str) -> bool:
    """Whether JOBS of the command mean unequal executors."""
    return jobs.partition(":")[0] in KINDS


def train_nodes(context: typer.Context, jobs: str, training: Training, changes: Sequence[str] | None) -> None:
    """Train such a policy.

    Args:
        context: Of the command, which knows what was given.
        jobs: The task, see :func:`decima.heterogeneous.policy.task.read_task`.
        training: Options of the training.
        changes: Texts of ``--set``.

    Raises:
        ConfigError: An option has no effect here, or a value is out of range.
    """
    from decima.heterogeneous.policy.architecture import NodeArchitecture
    from decima.heterogeneous.policy.task import read_task
    from decima.policy.quiet import import_tensorflow

    for name in _OWN:
        source = context.get_parameter_source(name)
        if source is not None and source.name not in ("DEFAULT", "DEFAULT_MAP"):
            raise ConfigError(f"--{name} has no effect on {jobs.partition(':')[0]}, whose JOBS say it: {jobs}:...")
    training.check()
    groups = options.changed_texts(list(changes or ()), "recipe", "architecture")
    task = read_task(jobs)
    network = NodeArchitecture.named(
        context.params["architecture"], **read_fields(groups["architecture"], NodeArchitecture, "--set architecture.")
    )
    import_tensorflow()
    from decima.heterogeneous.policy.training import NodeRun
    from decima.training.recipe import Recipe

    recipe = training.limited(Recipe.of(training.recipe, groups["recipe"], task.kind))
    training.carry_out(NodeRun(task, recipe, network, training.seed))
