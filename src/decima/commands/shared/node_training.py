"""What `decima train` does where the policy chooses nodes on unequal executors."""

from __future__ import annotations

from collections.abc import Sequence

import typer

from decima.commands.shared import options
from decima.commands.shared.training import Training
from decima.core.errors import ConfigError
from decima.core.grammar import read_fields

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
        jobs: The task, see :func:`decima.systems.unequal.policy.task.read_task`.
        training: Options of the training.
        changes: Texts of ``--set``.

    Raises:
        ConfigError: An option has no effect here, or a value is out of range.
    """
    from decima.learning.quiet import import_tensorflow
    from decima.systems.unequal.policy.architecture import NodeArchitecture
    from decima.systems.unequal.policy.task import read_task

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
    from decima.learning.recipe import Recipe
    from decima.systems.unequal.policy.run import NodeRun

    recipe = training.limited(Recipe.of(training.recipe, groups["recipe"], task.kind))
    training.carry_out(NodeRun(task, recipe, network, training.seed))
