"""Python schedulers for tests, written against the public interface only."""

import numpy as np

from decima.schedulers import Decision, make_scheduler


class Through:
    """A compiled scheduler asked through `decide`, hidden from the fast path."""

    def __init__(self, inner):
        self.inner = make_scheduler(inner)
        self.name = self.inner.name

    def reset(self, rng):
        self.inner.reset(rng)

    def decide(self, observation):
        return self.inner.decide(observation)


class Watching(Through):
    """Calls `look(observation)` before each decision of another scheduler."""

    def __init__(self, inner, look):
        super().__init__(inner)
        self.look = look

    def decide(self, observation):
        self.look(observation)
        return super().decide(observation)


class Greedy:
    """All offered executors to the first runnable stage, else to the first stage of the frontier; never idles."""

    name = "greedy"

    def reset(self, rng):
        pass

    def decide(self, observation):
        stages = observation.frontier
        stage = next((stage for stage in stages if stage.runnable), stages[0])
        return observation.grant(stage, observation.num_free_executors)


class Idler:
    """Any stage and number with equal chance; idles on purpose with a given chance."""

    name = "idler"

    def __init__(self, idle=0.15):
        self.idle = idle

    def reset(self, rng):
        self.rng = rng

    def decide(self, observation):
        if self.rng.random() < self.idle:
            return Decision.idle()
        stages = observation.frontier
        stage = stages[self.rng.integers(len(stages))]
        return observation.grant(stage, int(self.rng.integers(observation.num_free_executors)) + 1)


def careless_choice(seed, refused=0.02):
    """`choose(state)` for raw decisions: idles also with a part of the executors, at times chooses what is refused."""
    rng = np.random.default_rng(seed)

    def choose(state):
        offered = state.num_source
        if rng.random() < refused:
            return int(rng.integers(-1, state.num_stages)), int(rng.integers(0, offered + 3))
        frontier = state.frontier()
        if len(frontier) == 0:
            return -1, offered
        if rng.random() < 0.1:
            return -1, int(rng.integers(1, offered + 1))
        stage = int(rng.choice(frontier))
        limit = int(rng.integers(1, offered + 1))
        if state.job_limit:
            job = state.stage_job[stage]
            limit += int(state.job_attached[job] + state.job_moving[job] + state.job_commit[job])
            limit -= int(state.job_outgoing[job]) + (offered if job == state.source_job else 0)
        return stage, limit

    return choose
