"""Training of a policy in any system, from texts or values; ``decima train`` calls it."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

from decima.core.checks import check_whole
from decima.core.errors import ConfigError
from decima.core.files import read_json
from decima.core.grammar import changed_texts, hint, present_name, value_text
from decima.learning.quiet import import_tensorflow, uninterrupted
from decima.learning.recipe import TENSORFLOW, Recipe

if TYPE_CHECKING:
    import pandas

    from decima.learning.run import TrainingRun
    from decima.learning.trainer import Trained

SYSTEMS = ("spark", "heterogeneous", "cloud")  # the first is meant by jobs that are for no other
# Runs that nobody gave a folder for; their folders are removed when the process ends.
_FOLDERS: list[tempfile.TemporaryDirectory] = []


@dataclass(frozen=True)
class TrainingRequest:
    """Training request, common to all systems.

    Raises:
        ConfigError: The seed is not a whole number of at least 0.
    """

    recipe: str | Recipe  # name, path of a .yaml file, or a recipe
    changes: Sequence[str]  # texts ``group.key=value``
    limits: Mapping[str, float]  # fields of the budget that replace those of the recipe
    seed: int

    def __post_init__(self) -> None:
        check_whole("seed", self.seed, least=0)

    def groups(self, *names: str) -> dict[str, dict[str, str]]:
        """Changed texts by group and key.

        Raises:
            ConfigError: A change is of another group.
        """
        return changed_texts(self.changes, *names)

    def recipe_for(self, task: str, texts: Mapping[str, str]) -> Recipe:
        """The recipe for a task with its changes and limits.

        Raises:
            ConfigError: There is no such recipe, or a value is out of range.
        """
        return Recipe.of(self.recipe, texts, task).replace(**self.limits)


@dataclass(frozen=True)
class TrainingResult:
    """A finished training: policy, curve and card."""

    run: TrainingRun  # task, recipe, network and seed
    trained: Trained  # best weights and how they were measured
    path: Path  # file of the stored weights

    @cached_property
    def card(self) -> dict[str, Any]:
        """What is stored with the weights: network, task, recipe, how it was learned, scores."""
        return read_json(self.path.with_name(self.path.name.replace(".weights.h5", ".json")))

    @cached_property
    def curve(self) -> pandas.DataFrame:
        """A row per iteration: times, columns of the algorithm, scores where validated."""
        import pandas

        return pandas.DataFrame(self.trained.curve)

    @cached_property
    def policy(self) -> Any:
        """The best weights as a scheduler of their system."""
        return self.run.make_scheduler(self.path)

    def save(self, path: str | Path) -> Path:
        """Store weights and card under another name.

        Args:
            path: Folder and name of the policy.

        Returns:
            The file of the weights.

        Raises:
            CheckpointError: The files cannot be written.
        """
        from decima.learning.cards import export

        return export(self.run, self.trained, Path(path))


def train(
    jobs: str,
    *,
    system: str | None = None,
    recipe: str | Recipe = "fast",
    set: Mapping[str, Any] | Sequence[str] = (),
    iterations: int | None = None,
    minutes: float | None = None,
    seed: int = 0,
    workers: int | None = None,
    backend: str | None = None,
    out: str | Path | None = None,
    policy: str | Path | None = None,
    resume: bool = False,
    progress: bool = False,
    command: Sequence[str] | None = None,
    **options: Any,
) -> TrainingResult:
    """Train a policy and save the checkpoint with the best validation score.

    Example:
        >>> small = ["recipe.sequences=1", "recipe.rollouts=2", "recipe.validation_sequences=1"]
        >>> result = train("embedded:n=1", executors=3, iterations=1, workers=1, set=small)
        >>> len(result.curve)
        1

    Args:
        jobs: What sequences are drawn from: a source with options (``"tpch:n=20"``), ``"lachesis-batch"`` or
            ``"lachesis-stream"`` for heterogeneous executors, ``"generated"`` and others for the cloud.
        system: ``spark``, ``heterogeneous`` or ``cloud``; None: the one that jobs of that name are for.
        recipe: How to learn: ``"fast"``, ``"paper"``, the path of a YAML file, or a recipe.
        set: Changed fields of recipe, architecture and settings: ``{"recipe.lr_start": 2e-3}``,
            ``{"recipe": {"lr_start": 2e-3}}`` or ``["recipe.lr_start=2e-3"]``.
        iterations: Maximum number of iterations.
        minutes: Time limit in minutes.
        seed: Random seed.
        workers: Workers; no result depends on it.
        backend: ``"threads"``, ``"processes"`` or ``"ray"``.
        out: Folder of checkpoint, curve and policy; None: a folder that lasts as long as the process.
        policy: Folder and name of the stored policy instead of ``policy`` in that folder.
        resume: Resume the run in `out`.
        progress: Show a progress bar.
        command: Words of the call that begins the run, stored in the folder.
        **options: ``architecture`` and the options of the system: ``executors``, ``mode``, ``objective``, ``classes``,
            ``durations`` of the Spark cluster; ``vms``, ``betas``, ``mode``, ``reward`` of the cloud.

    Raises:
        ConfigError: A name is unknown, a value out of range, or nothing ends the training.
        KeyboardInterrupt: The training was interrupted; its message says after how many iterations.
    """
    limits = {"iterations": iterations, "wall_seconds": None if minutes is None else 60.0 * minutes}
    limits = {name: value for name, value in limits.items() if value is not None}
    request = TrainingRequest(recipe, change_texts(set), limits, seed)
    module = _task_module(system or system_of_jobs(jobs))
    known = [name for name in signature(module.read_parts).parameters if name not in ("jobs", "request")]
    for name in options:
        if name not in known:
            raise ConfigError(f"training has no option {name!r}{hint(name, known)} here; it has: {', '.join(known)}")
    parts = module.read_parts(jobs, request, **options)
    if parts[1].adam.gradient == TENSORFLOW or not module.COMPILES:
        import_tensorflow()
    with uninterrupted():
        run = getattr(import_module(f"{module.__package__}.run"), module.RUN)(*parts, seed)
    if out is None:
        _FOLDERS.append(tempfile.TemporaryDirectory(prefix="decima-train-"))
        out = _FOLDERS[-1].name
    trainer = run.trainer(out, backend=backend, workers=workers, progress=progress, command=command)
    try:
        trained = trainer.train(resume)
    except KeyboardInterrupt:
        done = f"{trainer.iterations} iteration{'s' * (trainer.iterations != 1)}"
        raise KeyboardInterrupt(f"interrupted after {done}") from None
    from decima.learning.cards import POLICY_NAME, export

    path = Path(out, POLICY_NAME) if policy is None else Path(policy)
    return TrainingResult(run, trained, export(run, trained, path))


def system_of_jobs(jobs: str) -> str:
    """System that jobs are for; the Spark cluster if no other system has them.

    Raises:
        ConfigError: They are not a text.
    """
    from decima.workload.sources import SOURCES

    if not isinstance(jobs, str):
        raise ConfigError(f"jobs to train on are drawn from a source, expected its name, got {type(jobs).__name__}")
    if jobs.partition(":")[0] in SOURCES:
        return SYSTEMS[0]  # without loading the others
    return next((name for name in SYSTEMS[1:] if _task_module(name).draws(jobs)), SYSTEMS[0])


def change_texts(changes: Mapping[str, Any] | Sequence[str]) -> list[str]:
    """Changed fields as texts ``group.key=value``.

    Args:
        changes: Such texts, values by ``group.key``, or values by group and key.
    """
    if not isinstance(changes, Mapping):
        return list(changes)
    flat: dict[str, Any] = {}
    for name, value in changes.items():
        grouped = isinstance(value, Mapping) and "." not in name
        flat |= {f"{name}.{key}": inner for key, inner in value.items()} if grouped else {name: value}
    return [f"{name}={value_text(value)}" for name, value in flat.items()]


def _task_module(system: str) -> Any:
    """Module of a system with what its policies are trained for."""
    system = present_name(system)
    if system not in SYSTEMS:
        raise ConfigError(f"unknown system {system!r}{hint(system, SYSTEMS)}; known: {', '.join(SYSTEMS)}")
    return import_module(f"decima.systems.{system}.policy.task")
