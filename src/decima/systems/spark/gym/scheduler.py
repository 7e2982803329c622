"""Policies of the environment as schedulers, to be compared, served or tried on Spark."""

from __future__ import annotations

from decima.core.environment import GymScheduler
from decima.systems.spark.decision import OPTION_PARTS
from decima.systems.spark.schedulers.interface import Decision, Observation


class SparkGymScheduler(GymScheduler):
    """Scheduler that asks a policy of the environment; see :func:`decima.core.environment.as_scheduler`."""

    offered_again = True  # where every executor is parked, as in the environment

    def decide(self, observation: Observation) -> Decision:
        """Decide as the policy does about the same arrays."""
        stage, *options = self._env.decide(observation.state, self.choose)
        if stage < 0:
            return Decision.idle()
        chosen = dict(zip((part.attribute for part in OPTION_PARTS), options, strict=True))
        if chosen.get("executor_class", 0) in (-1, None):
            chosen["executor_class"] = None
        return Decision(stage, **chosen)
