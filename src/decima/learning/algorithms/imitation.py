"""Imitation of a heuristic's decisions, first in its states, then in the policy's states (DAgger)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from decima.core.errors import ConfigError
from decima.learning.algorithms.interface import register_algorithm
from decima.learning.algorithms.parts import AgentAlgorithm, EpisodeLengths, Updates
from decima.learning.configuration import Progress, number, switch, whole
from decima.learning.loss import Gradient, Loss, shuffled_parts
from decima.learning.rollout import Teacher

if TYPE_CHECKING:
    from decima.learning.agent import Agent

#: Columns of :func:`imitate`.
IMITATED = ("cross_entropy", "entropy_stage", "entropy_limit", "gradient_norm", "learning_rate")


@dataclass(frozen=True)
class ImitationConfig(Updates, EpisodeLengths):
    """Configuration of pre-training: initial stored policy, heuristic, and the way of imitation."""

    start_policy: str | None = field(
        default=None,
        metadata={
            "doc": "Stored policy whose weights training begins with; what else the network has starts as usual. none: "
            "random weights."
        },
    )
    teacher: str | None = field(
        default=None, metadata={"doc": "Scheduler of the system to imitate first; none: train from scratch."}
    )
    teacher_parameters: dict[str, float] = field(default_factory=dict, metadata={"doc": "Its parameters by name."})
    teacher_iterations: int = whole(0, "Iterations of imitation; 0: none.", 0)
    teacher_idles: bool = switch(
        False,
        "Learn also when and for how long the teacher idles, if the policy may; else its idle slots are no lesson and "
        "those of the policy stay as rare as they are.",
    )
    teacher_sequences: int = whole(16, "Job sequences per iteration of imitation.", 1)
    teacher_lr: float = number(1e-3, "Learning rate at the first iteration of imitation.", above=True)
    teacher_lr_end: float = number(1e-3, "Learning rate at its last one; geometric in between.", above=True)
    teacher_share_end: float = number(
        0.0, "Probability at the end of imitation that a decision of the teacher is carried out; 1 at first.", 0.0, 1.0
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.teacher_parameters, dict):
            raise ConfigError(f"recipe: teacher_parameters must be a mapping, got {self.teacher_parameters!r}")
        if not isinstance(self.teacher, str | None):
            raise ConfigError(f"recipe: teacher must be the name of a scheduler, got {self.teacher!r}")

    @property
    def wanted(self) -> bool:
        """Whether training begins with imitation."""
        return self.teacher is not None and self.teacher_iterations > 0

    def _share(self, iteration: int) -> float:
        return min(1.0, iteration / max(1, self.teacher_iterations - 1))

    def teacher_share(self, iteration: int) -> float:
        """Probability that the teacher acts, linear over the iterations of imitation."""
        return 1.0 + (self.teacher_share_end - 1.0) * self._share(iteration)

    def learning_rate(self, iteration: int) -> float:
        """Adam's learning rate, geometric over the iterations of imitation."""
        return self.teacher_lr * (self.teacher_lr_end / self.teacher_lr) ** self._share(iteration)

    def teacher_at(self, iteration: int) -> Teacher:
        """Teacher of an iteration of imitation, as rollouts receive it."""
        parameters = tuple(sorted(self.teacher_parameters.items()))
        return Teacher(self.teacher, parameters, self.teacher_share(iteration), self.teacher_idles)


@register_algorithm(ImitationConfig, "imitation")
class Imitation(AgentAlgorithm):
    """Lowers the cross-entropy of the teacher's recorded stages and effects of its limits.

    Args:
        config: Teacher, learning rate, passes and updates per pass.
        agent: What acts and learns.
        seed: Seed of the run.

    Raises:
        ConfigError: There is no teacher.
    """

    def __init__(self, config: ImitationConfig, agent: Agent, seed: int) -> None:
        if config.teacher is None:
            raise ConfigError("recipe: imitation needs a teacher, the name of a scheduler")
        super().__init__(config, agent, seed, (*IMITATED, "teacher_share"))

    def iterate(self, now: Progress) -> dict:
        """Run the teacher and the policy, and learn the teacher's decisions."""
        config, agent = self.config, self.agent
        length_s = config.mean_episode_s(0, 0.0)
        records = agent.collect(now.iteration, config.teacher_sequences, 1, length_s, config.teacher_at(now.since))
        groups, rate = self.choices(records, now), config.learning_rate(now.since)
        row = imitate(agent, config, records, groups, rate, [self.seed, now.iteration, 2])
        return agent.describe(records) | row | {"teacher_share": config.teacher_share(now.since)}


def imitate(
    agent: Agent, config: Updates, records: Sequence, groups: list[np.ndarray], rate: float, seed: Sequence[int]
) -> dict[str, float]:
    """Lower the cross-entropy of the recorded decisions of a teacher.

    Args:
        agent: What learns.
        config: How often records are used.
        records: Episodes with a teacher.
        groups: Their decisions with a choice, int64 [D] per episode; without any, nothing is learned.
        rate: Adam's learning rate.
        seed: Source of the order of updates.

    Returns:
        Values of :data:`IMITATED` by name, averages over the decisions of the last pass.
    """
    if not any(map(len, groups)):
        return {}
    batch = agent.batch(records)
    rng, loss = np.random.default_rng(seed), Loss(effect_classes=True)
    for _ in range(config.epochs):
        gradients: list[Gradient] = []
        norms = []
        for part in shuffled_parts(groups, config.minibatches, rng):
            ones = np.ones(len(part), np.float32)
            gradients.append(agent.learner.gradient(batch, part, ones, ones, loss))
            mean = gradients[-1].values / np.float32(len(part))
            norms.append(agent.learner.apply(mean, rate, config.gradient_norm))
    decisions = sum(gradient.decisions for gradient in gradients)
    sums = {name: sum(gradient.sums[name] for gradient in gradients) for name in ("log_prob", *IMITATED[1:3])}
    values = (-sums["log_prob"] / decisions, *(sums[name] / decisions for name in IMITATED[1:3]))
    return dict(zip(IMITATED, (*values, float(np.mean(norms)), rate), strict=True))
