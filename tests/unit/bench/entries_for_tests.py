"""Entries that the tests of the benchmark score; each is one thing that an entry may do, or may not."""

import contextlib
import os
import subprocess
import time

import numpy as np

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


class ReadsEnds(Shortest):
    def decide(self, observation):
        return observation.grant(observation.frontier[int(observation.state.heap_ms[0]) % 1], 1)


class ReadsArrivals(Shortest):
    def decide(self, observation):
        later = observation.state.job_arrival_ms[observation.state.num_active]
        return observation.grant(observation.frontier[0], 1 + int(later) % 1)


class ReadsTasks(Shortest):
    def decide(self, observation):
        from decima.bench.tasks import tasks

        return tasks()


class ChangesState(Shortest):
    def decide(self, observation):
        observation.state.stage_next[:] = 0


class ChangesTime(Shortest):
    def decide(self, observation):
        observation.state.now_ms = 0.0


class Sleeps(Shortest):
    def decide(self, observation):
        time.sleep(60)


class Crashes(Shortest):
    def decide(self, observation):
        os._exit(7)


class Raises(Shortest):
    def decide(self, observation):
        return observation.frontier[10**6]


class Nonsense(Shortest):
    def decide(self, observation):
        return 3.5


class Impossible(Shortest):
    def decide(self, observation):
        return Decision(observation.frontier[0], 0)


class Idles(Shortest):
    def decide(self, observation):
        return Decision.idle()


class Forks(Shortest):
    def decide(self, observation):
        with contextlib.suppress(Exception):
            os.fork()
        return super().decide(observation)


class Calls(Shortest):
    def decide(self, observation):
        subprocess.run(["true"], check=True)


class Swallows(Shortest):
    """Takes more memory than an entry may have."""

    def decide(self, observation):
        return np.ones(10**10)


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
