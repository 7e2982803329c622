"""Warm start: the policy learns a heuristic's decisions, first in its states, then in those of the policy (DAgger)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from decima.policy.batch import GraphBatch
from decima.training.gradient import Learner, Loss, shuffled_parts
from decima.training.recipe import Recipe
from decima.training.rollout import Teacher
from decima.training.schedules import teacher_learning_rate, teacher_share

if TYPE_CHECKING:
    from decima.policy.record import EpisodeRecord


def teacher_of(recipe: Recipe, iteration: int) -> Teacher:
    """The teacher at an iteration of imitation."""
    return Teacher(recipe.teacher, tuple(sorted(recipe.teacher_parameters.items())), teacher_share(recipe, iteration))


def imitate(
    learner: Learner,
    batch: GraphBatch,
    records: Sequence[EpisodeRecord],
    recipe: Recipe,
    rng: np.random.Generator,
    iteration: int,
) -> dict[str, float]:
    """Lower the cross-entropy of the recorded decisions of the teacher: its stage and the effect of its limit.

    Args:
        learner: What learns.
        batch: The records as a batch.
        records: Episodes in which the teacher's decisions were recorded.
        recipe: Learning rate, passes and updates per pass.
        rng: Source of chance for the order of updates.
        iteration: Of imitation, from 0.

    Returns:
        Averages over the decisions of the last pass, by column of the curve.
    """
    groups = useful_decisions(records)
    loss = Loss(effect_classes=True)
    rate = teacher_learning_rate(recipe, iteration)
    for _ in range(recipe.epochs):
        gradients, norms = [], []
        for part in shuffled_parts(groups, recipe.minibatches, rng):
            ones = np.ones(len(part), np.float32)
            gradients.append(learner.gradient(batch, part, ones, ones, loss))
            mean = gradients[-1].values / np.float32(len(part))
            norms.append(learner.apply(mean, rate, recipe.gradient_norm))
    decisions = sum(gradient.decisions for gradient in gradients)

    def average(name: str) -> float:
        return sum(gradient.sums[name] for gradient in gradients) / decisions

    return {
        "cross_entropy": -average("log_prob"),
        "entropy_stage": average("entropy_stage"),
        "entropy_limit": average("entropy_limit"),
        "gradient_norm": float(np.mean(norms)),
        "learning_rate": rate,
    }


def useful_decisions(records: Sequence[EpisodeRecord]) -> list[np.ndarray]:
    """Per episode, the decisions with a choice, numbered through all records; int64.

    A decision with one stage to choose and one effect of every limit has probability 1 whatever the weights are.
    """
    groups, first = [], 0
    for record in records:
        open_choice = (np.diff(record.decision_candidates) > 1) | (record.classes > 1)
        groups.append(first + np.flatnonzero(open_choice))
        first += len(record.choice)
    return groups
