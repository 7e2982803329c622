"""Expert iteration: the policy runs, a planner improves its decisions by simulation, the policy learns them; and again.

Source: Anthony, Tian and Barber, "Thinking fast and slow with deep learning and tree search", NeurIPS 2017. Differs:
the planner is a scheduler that plans around a rule, ``lookahead``, not a tree search guided by the policy; so what is
learned is the planner's decisions in the states of the policy (DAgger), with no value function.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from decima.core.configuration import number, whole
from decima.core.errors import ConfigError
from decima.learning.algorithms.imitation import IMITATED, ImitationConfig, imitate
from decima.learning.algorithms.interface import register_algorithm
from decima.learning.algorithms.parts import AgentAlgorithm, EpisodeLengths, LearningRates, Updates
from decima.learning.budget import Progress
from decima.learning.loss import EPISODES
from decima.learning.rollout import Teacher

if TYPE_CHECKING:
    from decima.systems.spark.policy.agent import Agent


@dataclass(frozen=True)
class ExpertConfig(Updates, EpisodeLengths, LearningRates):
    """Configuration of expert iteration."""

    expert: str = field(
        default="lookahead:64",
        metadata={"doc": "Scheduler whose decisions are learned, with its options; a planner or a rule."},
    )
    expert_share: float = number(
        0.0, "Probability that a decision of the expert, not of the policy, is carried out.", 0.0, 1.0
    )
    greedy_share: float = number(0.5, "Share of the episodes in which the policy is greedy, not sampled.", 0.0, 1.0)
    sequences: int = whole(8, "Job sequences per iteration.", 1)
    rollouts: int = whole(1, "Episodes per sequence.", 1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.expert, str):
            raise ConfigError(f"recipe: expert must be the name of a scheduler, got {self.expert!r}")
        ImitationConfig(teacher=self.expert)  # refuses what cannot teach


@register_algorithm(ExpertConfig, "expert_iteration", learns=EPISODES)
class ExpertIteration(AgentAlgorithm):
    """Lowers the cross-entropy of what an expert would have done in the policy's own runs, greedy and sampled ones.

    Args:
        config: Expert, episodes and updates.
        agent: What acts and learns.
        seed: Seed of the run.
    """

    def __init__(self, config: ExpertConfig, agent: Agent, seed: int) -> None:
        super().__init__(config, agent, seed, IMITATED)

    def iterate(self, now: Progress) -> dict:
        """Run the policy, ask the expert at every decision, and learn its answers."""
        config, agent = self.config, self.agent
        length_s = config.mean_episode_s(now.since, now.share)
        expert = Teacher(config.expert, share=config.expert_share)
        options = {"greedy": config.greedy_share}
        records = agent.collect(now.iteration, config.sequences, config.rollouts, length_s, expert, **options)
        row = imitate(agent, config, records, config.learning_rate(now), [self.seed, now.iteration, 2])
        return agent.describe(records) | row
