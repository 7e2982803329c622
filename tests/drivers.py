"""Python schedulers for tests, written against the public interface only."""

from dataclasses import replace

import numpy as np

from decima.systems.spark.rules.delays import delay_refusal
from decima.systems.spark.schedulers import Decision, list_schedulers, make_scheduler
from decima.systems.spark.schedulers.interface import StageView

# Those made from their name alone that decide in the core; what plans by simulation has its own tests.
IN_CORE = list_schedulers(bare=True)


class Through:
    """A compiled scheduler asked through `decide`, hidden from the fast path."""

    def __init__(self, inner):
        self.inner = make_scheduler(inner) if isinstance(inner, str) else inner
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


#: Delays that often end with a task or an arrival, at the instant they begin, or at no other event.
DELAYS_MS = (1000.0, 2000.0, 3000.0, 1e-9, 777.7)


class Delaying(Through):
    """Delays some of the stages that another scheduler chooses."""

    def __init__(self, inner, share=0.5, seed=0):
        super().__init__(inner)
        self.name = f"delaying {self.name}"
        self.share = share
        self.seed = seed

    def reset(self, rng):
        super().reset(rng)
        self.chance = np.random.default_rng(self.seed)

    def decide(self, observation):
        decision = super().decide(observation)
        stage = getattr(decision.stage, "id", decision.stage)
        if stage is None or not StageView(observation.state, stage).delayable:
            return decision
        if self.chance.random() >= self.share:
            return decision
        return replace(decision, delay_ms=float(self.chance.choice(DELAYS_MS)))


class ClassChooser:
    """Any stage, any class on offer that it fits or best fit, and any number; idles at times while tasks run."""

    name = "class chooser"

    def __init__(self, seed=0):
        self.seed = seed

    def reset(self, rng):
        self.rng = np.random.default_rng(self.seed)

    def decide(self, observation):
        stages = observation.frontier
        stage = stages[self.rng.integers(len(stages))]
        assert (stage.fits & (observation.offers > 0)).any()
        assert observation.offers.sum() == observation.num_free_executors
        kinds = [None, *np.flatnonzero(stage.fits & (observation.offers > 0)).tolist()]
        kind = kinds[self.rng.integers(len(kinds))]
        return observation.grant(stage, int(self.rng.integers(observation.num_free_executors)) + 1, kind)


def careless_choice(seed, refused=0.02, delayed=0.0, classes=1):
    """`choose(state)` for raw decisions: idles also with a part of the executors, at times chooses what is refused."""
    rng = np.random.default_rng(seed)

    def choose(state):
        decision = choose_stage(state)
        stage = decision[0]
        if classes == 1 or len(decision) > 2 or rng.random() < 0.5:
            return decision
        kinds = [kind for kind in range(classes) if state.class_offers[kind] > 0 and stage >= 0]
        kinds = [kind for kind in kinds if state.group_fits[state.stage_group[stage]] >> kind & 1]
        if rng.random() < refused:
            kinds = [int(rng.integers(-1, classes + 1))]
        return (*decision, 0.0, int(rng.choice(kinds))) if kinds else decision

    def choose_stage(state):
        if delayed == 0.0:
            return undelayed(state)
        if rng.random() < delayed and state.num_frontier > 0:
            stages = [stage for stage in state.frontier() if rng.random() < refused or not delay_refusal(state, stage)]
            if stages:
                return int(rng.choice(stages)), int(rng.integers(1, 5)), float(rng.choice(DELAYS_MS))
        return undelayed(state)

    def undelayed(state):
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
