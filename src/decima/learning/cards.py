"""Cards of stored policies: origin, export of a training run, and a table of all."""

from __future__ import annotations

import importlib.metadata
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from decima import __version__
from decima.core.config import checkout_root
from decima.core.errors import CheckpointError, ConfigError, PolicyError
from decima.core.grammar import hint, present_name
from decima.learning.store import read_card, save_policy, stored_cards, stored_files

if TYPE_CHECKING:
    import pandas

    from decima.learning.run import TrainingRun
    from decima.learning.trainer import Trained

POLICY_NAME = "policy"
LEARNED = "learned"  # the key of the block
RANDOM = "random weights"
# How a policy came to its weights, for those who have to tell such policies apart.
ALONE, WARM = "alone", "warm"
COLUMNS = ("from", "algorithm", "iterations", "kept_iteration", "cpu_s", "wall_s", "seed")
# Columns of the curve that a card keeps, of the iterations that were validated.
_KEPT = ("iteration", "phase", "wall_s", "cpu_s", "jct_s", "val_greedy", "val_sampled")
_CRITIC = "critic_loss"  # kept too if there is a critic


def learned(
    recipe: Mapping[str, Any],
    curve: Sequence[Mapping[str, Any]],
    *,
    iterations: int | None,
    kept_iteration: int | None,
    seed: int | None,
) -> dict[str, Any]:
    """Origin of weights and the iteration that was kept, for a card.

    Args:
        recipe: Fields of the recipe by name.
        curve: Rows of the training curve, counted from 0; the last one has the times of the whole run.
        iterations: Iterations of the run.
        kept_iteration: After how many of them the stored weights were measured.
        seed: Random seed.

    Returns:
        ``from`` (``random weights``, ``random weights by way of`` a stored policy that itself began there, or all that
        applies of ``warm start from`` and ``imitation of``),
        ``algorithm`` (of the kept iteration: ``imitation`` where learning alone found nothing better), ``iterations``,
        ``kept_iteration``, ``cpu_s``, ``wall_s``, ``seed``. None stands for what was not recorded.
    """
    teacher = recipe.get("teacher") if recipe.get("teacher_iterations") else None
    origins = {"warm start from": recipe.get("start_policy"), "imitation of": teacher}
    phases = {row["iteration"] + 1: row.get("phase") for row in curve}
    last = curve[-1] if curve else {}
    words = "; ".join(f"{how} {what}" for how, what in origins.items() if what) or RANDOM
    if words == f"warm start from {(start := recipe.get('start_policy'))}" and _is_alone(start):
        words = f"{RANDOM} by way of {start}"
    values = (
        words,
        phases.get(kept_iteration) or recipe.get("algorithm"),
        iterations,
        kept_iteration,
        last.get("cpu_s"),
        last.get("wall_s"),
        seed,
    )
    return dict(zip(COLUMNS, values, strict=True))


def how_learned(card: Mapping[str, Any]) -> str:
    """How a policy came to its weights, in one word.

    Args:
        card: Card of a stored policy.

    Returns:
        ``alone`` (reinforcement learning from scratch) or ``warm`` (it first imitated a heuristic, or continued from
        another policy).

    Raises:
        PolicyError: The card does not say.
    """
    origin = (card.get(LEARNED) or {}).get("from")
    if not origin:
        raise PolicyError(f"the card of policy {card.get('name', '(no name)')} lacks how it was learned")
    return ALONE if origin.startswith(RANDOM) else WARM


def _is_alone(name: str) -> bool:
    files = stored_files(name)
    return files is not None and files[1].is_file() and how_learned(read_card(files[1])) == ALONE


def models(system: str | None = None) -> pandas.DataFrame:
    """Stored policies and how they were learned, a row per policy.

    Example:
        >>> models("cloud")[["name", "parameters"]].head(2)
                         name  parameters
        0         cloud-burst        1857
        1  cloud-burst-random        1857

    Args:
        system: ``spark``, ``heterogeneous`` or ``cloud``; None: all.

    Returns:
        ``name``, ``system``, ``paper`` (its folder), ``parameters`` (of the network), ``task``, and the entries of
        ``learned`` in the card.

    Raises:
        ConfigError: There is no policy of that system.
        PolicyError: A card is damaged.
    """
    import pandas

    return pandas.DataFrame(list_models(system), columns=["name", "system", "paper", "parameters", "task", *COLUMNS])


def list_models(system: str | None = None) -> list[dict[str, Any]]:
    """Rows of :func:`models`."""
    rows = []
    for name, path in stored_cards().items():
        card = read_card(path)
        row = {"name": name, "system": card.get("system"), "paper": path.parent.name}
        row |= {"parameters": card.get("parameters"), "task": card.get("label")}
        rows.append(row | {key: (card.get(LEARNED) or {}).get(key) for key in COLUMNS})
    if system is None:
        return rows
    system, known = present_name(system), sorted({row["system"] for row in rows})
    if system not in known:
        raise ConfigError(f"no policy of system {system!r} is stored{hint(system, known)}; known: {', '.join(known)}")
    return [row for row in rows if row["system"] == system]


def export(run: TrainingRun, trained: Trained, path: Path) -> Path:
    """Write the best policy of a run.

    Args:
        run: What was trained.
        trained: Its outcome.
        path: Folder and name of the policy.

    Returns:
        The file of the weights.

    Raises:
        CheckpointError: The files cannot be written.
        PolicyError: The weights are not finite.
    """
    try:
        return save_policy(path, run.architecture, trained.weights, card(run, trained))
    except OSError as error:
        raise CheckpointError(f"cannot write {path}: {error.strerror or error}") from error


def card(run: TrainingRun, trained: Trained) -> dict:
    """Entries of the card besides name and architecture; JSON-ready."""
    unit = "_s" if run.task.metric.endswith("_s") else ""
    validated = [row for row in trained.curve if "val_greedy" in row]
    kept = (*_KEPT, _CRITIC) if any(_CRITIC in row for row in validated) else _KEPT
    return {
        "label": run.task.label,
        "greedy": trained.mode != "sampled",
        "validation": {
            "metric": run.task.metric,
            f"score{unit}": trained.score,
            "sequences": run.recipe.budget.validation_sequences,
            f"references{unit}": trained.references,
        },
        LEARNED: learned(
            run.recipe.as_dict(),
            trained.curve,
            iterations=trained.iterations,
            kept_iteration=trained.iteration,
            seed=run.seed,
        ),
        "task": run.task.as_dict(),
        "recipe": run.recipe.as_dict(),
        "data": run.task.data_version,
        "revision": git_revision(),
        "versions": {"decima-sched": __version__}
        | ({"tensorflow": importlib.metadata.version("tensorflow")} if run.uses_tensorflow else {}),
        "curve": {name: [row.get(name) for row in validated] for name in kept},
    }


def git_revision() -> str | None:
    """Commit of this code's checkout, with a plus if files differ; None outside of one."""
    root = checkout_root(Path(__file__).parent)
    if root is None:
        return None

    def git(*arguments: str) -> subprocess.CompletedProcess:
        return subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=False)

    try:
        commit = git("rev-parse", "HEAD")
        changed = git("status", "--porcelain", "--untracked-files=no", "--", "src")
    except FileNotFoundError:  # no git on this machine
        return None
    if commit.returncode != 0:
        return None
    return commit.stdout.strip() + ("+" if changed.stdout.strip() else "")
