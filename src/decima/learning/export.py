"""Export of a training run as stored policy: weights and a card of their origin."""

from __future__ import annotations

import importlib.metadata
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from decima import __version__
from decima.core.config import checkout_root
from decima.core.errors import CheckpointError, PolicyError
from decima.learning.cards import LEARNED, learned
from decima.learning.store import save_policy

if TYPE_CHECKING:
    from decima.learning.run import TrainingRun
    from decima.learning.trainer import Trained

POLICY_NAME = "policy"
# Columns of the curve that a card keeps, of the iterations that were validated.
_KEPT = ("iteration", "phase", "wall_s", "cpu_s", "jct_s", "val_greedy", "val_sampled")
_CRITIC = "critic_loss"  # kept too if there is a critic


class TrainedTask(Protocol):
    """Learned task, as a card describes it."""

    @property
    def label(self) -> str:
        """A few words for people."""

    @property
    def metric(self) -> str:
        """Column of the score that selected the weights, in seconds if it ends in ``_s``."""

    @property
    def data_version(self) -> str:
        """Source of the jobs and digest of the data behind it."""

    def as_dict(self) -> dict[str, Any]:
        """Fields by name, JSON-ready."""


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
    except PolicyError:
        raise
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
            run.architecture.as_dict(),
            trained.curve,
            iterations=trained.iterations,
            kept_iteration=trained.iteration,
            seed=run.seed,
        ),
        "task": run.task.as_dict(),
        "recipe": run.recipe.as_dict(),
        "data": run.task.data_version,
        "revision": git_revision(),
        "versions": {"decima-sched": __version__, "tensorflow": importlib.metadata.version("tensorflow")},
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
