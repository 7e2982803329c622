"""Command `decima train`: learn a policy from scratch, or continue where a run stopped."""

from __future__ import annotations

import signal
import sys
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from decima.commands.shared import options
from decima.commands.shared.options import option
from decima.commands.shared.outputs import check_folder
from decima.commands.shared.verbs import INTERRUPTED, SYSTEMS, Verb
from decima.core.config import checkout_root
from decima.core.errors import ConfigError
from decima.core.files import fields_of, read_json, read_yaml
from decima.core.grammar import hint, value_text

if TYPE_CHECKING:
    from decima.learning.trainer import Trained


def read_trainings() -> dict[str, dict[str, dict]]:
    """Options of training runs by paper and policy, from ``params/training`` of the checkout.

    Raises:
        ConfigError: The current folder is in no checkout, or a file is not as expected.
    """
    if (root := checkout_root()) is None:
        raise ConfigError("--params reads params/training of a checkout of the project; the current folder is in none")
    papers: dict[str, dict[str, dict]] = {}
    for path in sorted((root / "params" / "training").glob("*.yaml")):
        for paper, blocks in fields_of(read_yaml(path).get("training"), f"{path}: training").items():
            checked = {name: fields_of(block, f"{path}: {name}") for name, block in fields_of(blocks, paper).items()}
            papers.setdefault(paper, {}).update(checked)
    return papers


def system_of_block(words: list[str]) -> str | None:
    """System of the training that `--params NAME` describes; None without such words."""
    names = [word.partition("=")[2] for word in words if word.startswith("--params=")]
    names += [name for word, name in pairwise(words) if word == "--params"]
    papers = [paper for paper, blocks in read_trainings().items() if names[0] in blocks] if names else []
    return next((paper for paper in papers if paper in SYSTEMS), None)


# Options that may differ when a run is resumed; each has a value.
_FREE = ("--out", "--iterations", "--minutes", "--workers", "--threads", "--backend")
_words: list[str] = []  # of this call


def resumed(words: list[str]) -> list[str]:
    """Words of a call; `--resume --out FOLDER` alone takes those of its run."""
    values, rest, left = {}, [], iter(words)
    for word in left:
        option, equals, value = word.partition("=")
        if option not in _FREE:
            rest.append(word)
        else:
            values[option] = value if equals else next(left, "")
    from decima.learning.trainer import COMMAND

    path = Path(values.get("--out", ""), COMMAND)
    if rest == ["--resume"] and path.is_file():
        try:
            words = [*map(str.__str__, read_json(path)), *words]
        except (OSError, ValueError, TypeError) as error:
            raise ConfigError(f"cannot resume: {path} is damaged: {error}") from error
    _words[:] = words
    return list(words)


def _blocks() -> dict[str, dict]:
    return {key: block for paper in read_trainings().values() for key, block in paper.items()}


def use_block(context: typer.Context, name: str | None) -> str | None:
    """Make a block of params/training the defaults of the command."""
    if name is None:
        return None
    blocks = _blocks()
    if name not in blocks:
        raise ConfigError(f"--params {name}: not described in params/training{hint(name, blocks)}")
    known = [option.name for option in context.command.params]
    if unknown := set(blocks[name]) - set(known):
        raise ConfigError(
            f"params/training, {name}: unknown option {min(unknown)!r}; expected some of: {', '.join(known)}"
        )
    context.default_map = {option: _option_text(option, value) for option, value in blocks[name].items()}
    return name


def _option_text(option: str, value: Any) -> str | list[str]:
    """Parameter as command-line text: GROUP.KEY=VALUE for changes, SOURCE:KEY=VALUE,... for jobs."""
    if option == "changes":
        from decima.learning.training import change_texts

        return change_texts(fields_of(value, "changes"))
    if option == "jobs" and isinstance(value, dict):
        options = {key: inner for key, inner in value.items() if key != "source"}
        return ":".join(filter(None, (value.get("source"), value_text(options))))
    return value_text(value)


@dataclass(frozen=True)
class Training:
    """Options of the training itself, whatever is trained."""

    out: Annotated[Path, option("FOLDER", "Folder for checkpoint, curve and policy.")] = ...
    recipe: Annotated[str, option("fast|paper|FILE", "Name of a recipe, or a YAML file.")] = "fast"
    iterations: Annotated[int | None, option("N", "Stop after this number of iterations.")] = None
    minutes: Annotated[float | None, option("M", "Stop after this number of minutes.")] = None
    seed: options.Seed = 0
    policy: Annotated[
        Path | None, option("NAME", "Folder and name of the policy's two files.", show_default="FOLDER/policy")
    ] = None
    resume: Annotated[bool, typer.Option("--resume", help="Continue the run in the folder.")] = False
    workers: options.Workers = None
    backend: options.Backend = None
    params: Annotated[
        str | None,
        option(
            "NAME",
            "Take options of a stored policy's training, from params/training.",
            is_eager=True,
            callback=use_block,
        ),
    ] = None

    def carry_out(self, system: str, jobs: str, changes: list[str] | None, **options: Any) -> None:
        """Train, store the best policy and print a summary; exit if interrupted.

        Raises:
            ConfigError: A folder cannot be written to.
        """
        from decima.learning.training import change_texts, train

        check_folder(self.out)
        if self.policy is not None:
            check_folder(self.policy.parent)
        shared = {
            name: getattr(self, name)
            for name in ("recipe", "iterations", "minutes", "seed", "workers", "backend", "out", "policy", "resume")
        }
        if self.params is not None:  # what the command line changes goes before, field by field
            block = {text.partition("=")[0]: text for text in change_texts(_blocks()[self.params].get("changes", {}))}
            changes = [*(block | {text.partition("=")[0]: text for text in changes or ()}).values()]
        before = signal.signal(signal.SIGTERM, as_ctrl_c)
        try:
            result = train(jobs, system=system, set=changes or (), progress=True, command=_words, **shared, **options)
        except KeyboardInterrupt as error:
            if not error.args:
                raise
            typer.echo(f"error: {error}; --resume continues {self.out}", err=True)
            sys.exit(INTERRUPTED)
        finally:
            signal.signal(signal.SIGTERM, before)
        task = result.run.task
        summary = _summary(result.trained, " s" if task.metric.endswith("_s") else "")
        typer.echo(f"{result.run.recipe.name} on {task.label}: {summary}; wrote {result.path}")


def as_ctrl_c(*_: object) -> None:
    """Handle SIGTERM, which batch systems send, as SIGINT, also where a shell ignores that."""
    handler = signal.getsignal(signal.SIGINT)
    (handler if callable(handler) else signal.default_int_handler)(signal.SIGINT, None)


def _summary(trained: Trained, unit: str) -> str:
    from decima.learning.trainer import ratio

    changes = {name: 100.0 * (ratio(trained.score, score) - 1.0) for name, score in trained.references.items()}
    against = ", ".join(f"{change:+.1f} % against {name}" for name, change in changes.items())
    return (
        f"{trained.iterations} iterations, best validation {trained.score:.2f}{unit} ({trained.mode}, "
        f"after {trained.iteration}; {against})"
    )


Jobs = Annotated[
    str,
    typer.Argument(
        metavar="JOBS",
        help="Source of the training sequences (tpch:n=20; embedded:n=200,interarrival_s=20-45); for heterogeneous "
        "executors lachesis-batch or lachesis-stream (lachesis-batch:jobs=5-100,ccr=0.3-10); for the cloud sources "
        "separated by ; (generated;redrawn:trace=burst).",
    ),
]
Architecture = Annotated[
    str,
    option(
        "NAME",
        "Network: paper, released, classes or FILE.py:NAME, a Keras model; for heterogeneous executors paper, fast or "
        "decima; for the cloud shared (one scorer for all VMs) or paper.",
    ),
]


def train(
    system: str,
    jobs: Jobs = "tpch",
    *,
    training: Training,
    cluster: options.SystemOptions,
    objective: options.Learned = "avg_jct",
    architecture: Architecture = "paper",
) -> None:
    """Train a policy and save the checkpoint with the best validation score.

    A run that is limited by iterations has the same result for the same seed; the learning rate of one that is limited
    by minutes follows the clock.
    """
    from decima.systems.heterogeneous.policy.task import draws

    if draws(jobs):
        raise ConfigError(f"jobs {jobs!r} are for heterogeneous executors: decima train --system heterogeneous {jobs}")
    chosen = {name: getattr(cluster, name) for name in ("executors", "mode", "classes", "durations")}
    training.carry_out(system, jobs, cluster.changes, architecture=architecture, objective=objective, **chosen)


def train_heterogeneous(
    system: str,
    jobs: Jobs = "lachesis-batch",
    *,
    training: Training,
    cluster: options.SystemOptions,
    architecture: Architecture = "paper",
) -> None:
    """Train a policy for heterogeneous executors; save the checkpoint with the best validation score."""
    training.carry_out(system, jobs, cluster.changes, architecture=architecture)


def train_cloud(
    system: str,
    jobs: Jobs = "generated;generated:pattern=burst",
    *,
    training: Training,
    cluster: options.SystemOptions,
    architecture: Architecture = "shared",
) -> None:
    """Train a placement policy and save the checkpoint with the best validation score.

    Recipes: fast, paper (REINFORCE, Algorithm 2) and paper-dqn (Algorithm 1), both with Table 5.
    """
    chosen = {name: getattr(cluster, name) for name in ("vms", "betas", "mode", "reward")}
    training.carry_out(system, jobs, cluster.changes, architecture=architecture, **chosen)


_TRAINED: dict[str, Any] = dict(zip(SYSTEMS, (train, train_heterogeneous, train_cloud), strict=True))
VERB = Verb(
    "train",
    {name: {"": options.maker(command, name, "train")} for name, command in _TRAINED.items()},
    system_of_block,
    resumed,
)
