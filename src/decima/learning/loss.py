"""Losses of recorded decisions, sums of their gradients, and how decisions are divided among updates."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

# What algorithms make better and agents have.
PROBABILITIES, VALUES, CRITIC = "probabilities of decisions", "values of actions", "a critic"
STREAMS = "streams whose jobs' times are summed"
# What is summed over decisions besides the gradient.
SUMS = ("loss", "log_prob", "entropy_stage", "entropy_limit", "entropy_delay", "kl", "clipped")


@dataclass(frozen=True)
class Loss:
    """Options of the loss of decisions.

    The loss of a decision is -min(r A, clip(r, 1 - clip, 1 + clip) A) - entropy_weight (H_stage + H_limit + H_delay),
    where r is the ratio of its probability to the recorded one. A limit counts where it has an effect, an idle slot
    (H_delay) where the policy was free to choose one. Without ``ratio``, r is 1 and its gradient that of log P:
    REINFORCE, or with A = 1 the cross-entropy of a teacher's decision.
    """

    ratio: bool = False  # compare with the recorded probabilities (PPO)
    clip: float = 0.2  # range of the ratio
    entropy_weight: float = 0.0  # weight of the entropy of all choices
    effect_classes: bool = True  # probability and entropy of limits by effect


@dataclass(frozen=True)
class Gradient:
    """Sum over decisions."""

    values: np.ndarray  # float32 [parameters], gradient of the loss
    sums: dict[str, float]  # sums of :data:`SUMS` by name
    decisions: int  # number of decisions

    def mean(self, name: str) -> float:
        """Average of one of the sums."""
        return self.sums[name] / self.decisions


def shuffled_parts(
    groups: Sequence[np.ndarray], count: int, rng: np.random.Generator, segment: int = 64
) -> list[np.ndarray]:
    """Divide decisions into ``count`` parts at random, consecutive ones of an episode staying together.

    Neighbours share most of their job graphs, so a part of whole segments costs less than one of single decisions.

    Args:
        groups: Int [D] per episode, its decisions in order.
        count: Number of parts; fewer are returned if there are fewer segments.
        rng: Random generator.
        segment: Decisions that stay together.

    Returns:
        Parts, int arrays; segments inside a part in their original order.
    """
    segments = [group[first : first + segment] for group in groups for first in range(0, len(group), segment)]
    order = rng.permutation(len(segments))
    parts = [np.sort(part) for part in np.array_split(order, count) if len(part)]
    return [np.concatenate([segments[index] for index in part]) for part in parts]
