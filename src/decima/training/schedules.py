"""Numbers of a recipe that change while training goes on."""

from __future__ import annotations

import math

from decima.training.recipe import Recipe


def budget_used(recipe: Recipe, iteration: int, wall_s: float, cpu_s: float) -> float:
    """Share of the budget that is used, 0 to 1; of the iterations if these are limited, else of the time."""
    if recipe.iterations is not None:
        return min(1.0, iteration / recipe.iterations)
    shares = [used / limit for used, limit in ((wall_s, recipe.wall_seconds), (cpu_s, recipe.cpu_seconds)) if limit]
    return min(1.0, max(shares, default=0.0))


def is_over(recipe: Recipe, iteration: int, wall_s: float, cpu_s: float) -> bool:
    """Whether a stop condition holds."""
    limits = ((iteration, recipe.iterations), (wall_s, recipe.wall_seconds), (cpu_s, recipe.cpu_seconds))
    return any(limit is not None and used >= limit for used, limit in limits)


def _share(iterations: int | None, iteration: int, progress: float) -> float:
    return progress if iterations is None else min(1.0, iteration / iterations)


def learning_rate(recipe: Recipe, iteration: int, progress: float) -> float:
    """Adam's learning rate.

    Args:
        recipe: The recipe.
        iteration: Iterations since imitation ended.
        progress: Share of the budget that was left then and is used now, 0 to 1.
    """
    share = _share(recipe.lr_iterations, iteration, progress)
    start, end = recipe.lr_start, recipe.lr_end
    if recipe.lr_shape == "geometric":
        return start * (end / start) ** share
    if recipe.lr_shape == "cosine":
        share = 0.5 - 0.5 * math.cos(math.pi * share)
    return start + (end - start) * share


def entropy_weight(recipe: Recipe, iteration: int, progress: float) -> float:
    """Weight of the entropy bonus; arguments as for :func:`learning_rate`."""
    share = _share(recipe.entropy_iterations, iteration, progress)
    return recipe.entropy_start + (recipe.entropy_end - recipe.entropy_start) * share


def trace_s(recipe: Recipe, progress: float) -> float | None:
    """Time constant of the advantage's trace at a share of the budget, 0 to 1; None for full returns."""
    if recipe.trace_s is None or recipe.trace_end_s is None:
        return recipe.trace_s
    return recipe.trace_s * (recipe.trace_end_s / recipe.trace_s) ** progress


def mean_episode_s(recipe: Recipe, iteration: int, progress: float) -> float | None:
    """Mean episode length of streams, None for no end; arguments as for :func:`learning_rate`."""
    if recipe.episode_start_s is None:
        return None
    start, end = recipe.episode_start_s, recipe.episode_end_s
    if recipe.episode_growth_s is not None:
        return min(end, start + recipe.episode_growth_s * iteration)
    return 1.0 / (1.0 / start + (1.0 / end - 1.0 / start) * progress)


def teacher_share(recipe: Recipe, iteration: int) -> float:
    """Probability that the teacher acts, linear over the iterations of imitation."""
    last = max(1, recipe.teacher_iterations - 1)
    start, end = recipe.teacher_share_start, recipe.teacher_share_end
    return start + (end - start) * min(1.0, iteration / last)


def teacher_learning_rate(recipe: Recipe, iteration: int) -> float:
    """Learning rate of imitation, geometric over its iterations."""
    share = min(1.0, iteration / max(1, recipe.teacher_iterations - 1))
    return recipe.teacher_lr * (recipe.teacher_lr_end / recipe.teacher_lr) ** share
