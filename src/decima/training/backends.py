"""Rollout backends by name."""

from __future__ import annotations

from decima.exceptions import ConfigError
from decima.training.ray_backend import RayBackend
from decima.training.rollout import ProcessBackend, RolloutBackend, ThreadBackend
from decima.training.task import Task

BACKENDS = {"threads": ThreadBackend, "processes": ProcessBackend, "ray": RayBackend}


def make_backend(kind: str, task: Task, workers: int | None = None) -> RolloutBackend:
    """A backend by name.

    Args:
        kind: ``"threads"``, ``"processes"`` or ``"ray"``.
        task: What to draw sequences of.
        workers: Workers, all cores by default.

    Raises:
        ConfigError: The name is unknown, ``workers`` is no number, or Ray is not installed.
    """
    if kind not in BACKENDS:
        raise ConfigError(f"backend must be 'threads', 'processes' or 'ray', got {kind!r}")
    return BACKENDS[kind](task, workers)
