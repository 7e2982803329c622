"""From recorded episodes to better weights: advantages and the updates of REINFORCE and PPO."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from decima.policy.batch import GraphBatch
from decima.training.gradient import Gradient, Learner, Loss, shuffled_parts
from decima.training.imitation import useful_decisions
from decima.training.objectives import objective_rewards
from decima.training.recipe import Recipe
from decima.training.returns import Advantages, Episode, RegressionMemory, RewardRate, advantages
from decima.training.task import Task

if TYPE_CHECKING:
    from decima.policy.record import EpisodeRecord


def episodes_of(
    records: Sequence[EpisodeRecord], task: Task, recipe: Recipe, reward_rate: RewardRate
) -> list[list[Episode]]:
    """Episodes by sequence, with rewards of the task's objective.

    Args:
        records: The rollouts of every sequence, one after the other.
        task: Its objective gives the rewards.
        recipe: Scale of rewards; whether they are differential.
        reward_rate: Moving average; these episodes are added to it.
    """
    differential = task.streaming and recipe.differential
    sequences = []
    for first in range(0, len(records), recipe.rollouts):
        group = records[first : first + recipe.rollouts]
        ends_s = [record.end_ms / 1000.0 for record in group]
        if differential:  # an average is subtracted over time: nobody gains by being done sooner or later
            ends_s = [max(ends_s)] * len(group)
        sequences.append(
            [
                Episode(
                    record.time_ms / 1000.0,
                    end_s,
                    rewards / recipe.reward_scale_s,
                    np.asarray(record.critic, dtype=np.float64),
                )
                for record, end_s, rewards in zip(
                    group, ends_s, objective_rewards(task.objective, group), strict=True
                )
            ]
        )
    if differential:
        reward_rate.add([episode for group in sequences for episode in group], recipe.differential_window)
        sequences = [[reward_rate.subtract(episode) for episode in group] for group in sequences]
    return sequences


def recipe_advantages(
    sequences: list[list[Episode]], recipe: Recipe, memory: RegressionMemory, trace_s: float | None
) -> Advantages:
    """Advantages as the recipe wants them, with the present time constant of the trace; ``memory`` is updated."""
    return advantages(
        sequences,
        horizon_s=recipe.horizon_s,
        trace_s=trace_s,
        memory=memory if recipe.baseline == "regression" else None,
        memory_share=recipe.baseline_memory,
        ridge=recipe.baseline_ridge,
        normalise=recipe.normalise,
    )


def improve(
    learner: Learner,
    batch: GraphBatch,
    records: Sequence[EpisodeRecord],
    found: Advantages,
    recipe: Recipe,
    rng: np.random.Generator,
    learning_rate: float,
    entropy_weight: float,
) -> dict[str, float]:
    """Make good decisions more probable.

    Args:
        learner: What learns.
        batch: The records as a batch.
        records: Episodes of the present policy.
        found: Their advantages.
        recipe: Algorithm, passes, updates per pass, clips.
        rng: Source of chance for the order of updates.
        learning_rate: Step size.
        entropy_weight: Weight of the entropy bonus.

    Returns:
        Averages over decisions by column of the curve: loss, entropies, norm of the gradient, and the divergence from
        the policy that acted and share of clipped ratios at the last update.
    """
    groups = useful_decisions(records)
    weights = np.concatenate(found.values)
    recorded = np.concatenate([recorded_log_prob(record, recipe.effect_classes) for record in records])
    ppo = recipe.algorithm == "ppo"
    loss = Loss(ppo, recipe.clip, entropy_weight, recipe.effect_classes)
    gradients: list[Gradient] = []
    norms: list[float] = []
    for part in _updates(groups, recipe, rng):
        gradient = learner.gradient(batch, part, weights[part], recorded[part], loss)
        if recipe.kl_stop is not None and gradient.mean("kl") > recipe.kl_stop:
            break
        scale = len(part) if recipe.loss_reduction == "mean" else len(records)
        gradients.append(gradient)
        norms.append(learner.apply(gradient.values / np.float32(scale), learning_rate, recipe.gradient_norm))
    decisions = sum(gradient.decisions for gradient in gradients)
    averages = {
        name: sum(gradient.sums[name] for gradient in gradients) / max(1, decisions)
        for name in ("loss", "entropy_stage", "entropy_limit")
    }
    last = {name: gradients[-1].mean(name) if gradients else 0.0 for name in ("kl", "clipped")}
    norm = float(np.mean(norms)) if norms else 0.0
    return averages | last | {"gradient_norm": norm, "updates": len(gradients)}


def recorded_log_prob(record: EpisodeRecord, effect_classes: bool) -> np.ndarray:
    """Log-probability of the recorded decisions, float32 [D]; limits that all have one effect are no choice."""
    limit = record.log_prob_class if effect_classes else record.log_prob_limit
    return record.log_prob_stage + np.where(record.classes > 1, limit, np.float32(0.0))


def _updates(groups: list[np.ndarray], recipe: Recipe, rng: np.random.Generator):
    """Decisions of each update."""
    if recipe.algorithm == "reinforce":
        yield np.concatenate(groups)
        return
    for _ in range(recipe.epochs):
        yield from shuffled_parts(groups, recipe.minibatches, rng)
