"""Entries that the tests of the benchmark score; each is one thing that an entry may do, or may not."""

import time

from decima.core.decision import CompiledDecision
from decima.systems.spark.fields import state_at
from decima.systems.spark.rules.choices import choose
from decima.systems.spark.schedulers import CompiledScheduler, Decision


class Shortest:
    """Least remaining work first, all executors to one stage."""

    name = "shortest"

    def reset(self, rng):
        self.rng = rng

    def decide(self, observation):
        stage = min(observation.frontier, key=lambda stage: (stage.job.remaining_work_ms, stage.id))
        return observation.grant(stage, observation.num_free_executors)


class Chance(Shortest):
    name = "chance"

    def decide(self, observation):
        stage = observation.frontier[self.rng.integers(len(observation.frontier))]
        return observation.grant(stage, observation.num_free_executors)


# Classes like Shortest that decide so.
WRONG = {
    "Sleeps": lambda self, seen: time.sleep(0.01) or Shortest.decide(self, seen),
    "Raises": lambda self, seen: seen.frontier[10**6],
    "Nonsense": lambda self, seen: 3.5,
    "Impossible": lambda self, seen: Decision(seen.frontier[0], 0),
    "Idles": lambda self, seen: Decision.idle(),
}
globals().update({name: type(name, (Shortest,), {"decide": decide}) for name, decide in WRONG.items()})


@CompiledDecision
def _first(address):
    state = state_at(address)
    if state.num_frontier == 0:
        state.action[0] = -1
        state.action[1] = state.num_source
        return
    for index in range(state.num_active):
        job = state.active[index]
        for stage in range(state.job_first_stage[job], state.job_first_stage[job + 1]):
            if state.stage_in_frontier[stage]:
                choose(state, stage, state.num_source)
                return


def compiled():
    return CompiledScheduler("first", _first)
