"""Entries that the tests of the benchmark score; each is one thing that an entry may do, or may not."""

import operator
import os
import sys
import time

import numpy as np

from decima.bench.sched_sim import SchedSimScheduler
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


class Seeds(Shortest):
    """Says what the generator tells of its seed."""

    def decide(self, observation):
        raise ValueError(f"{self.rng.bit_generator.seed_seq.entropy}")


class Runs:
    """What a reader of pickles calls; no reader of JSON does."""

    def __reduce__(self):
        return os._exit, (3,)


class Text(str):
    __slots__ = ()
    __reduce__ = Runs.__reduce__


class Named(Shortest):
    name = Text("named")


def answers(text):
    """Function that writes an answer of its own to the pipe of its process."""

    def decide(self, observation):
        frame = sys._getframe()
        while "link" not in frame.f_locals:
            frame = frame.f_back
        frame.f_locals["link"].send_bytes(text)
        time.sleep(60)

    return decide


class FairAgent:
    """Agent for spark-sched-sim: the releasing job first, then the first job below its share of the executors."""

    name = "fair_agent"
    num_executors = 50

    def schedule(self, obs):
        nodes, offered = obs["dag_batch"].nodes, obs["num_committable_execs"]
        place = np.cumsum(nodes[:, 2]) - 1  # of a node among those that may be chosen
        roots = np.setdiff1d(np.arange(len(nodes)), obs["dag_batch"].edge_links[:, 1])
        jobs, share = len(obs["exec_supplies"]), -(-self.num_executors // len(obs["exec_supplies"]))
        source = obs["source_job_idx"]
        for job in [source] * (source < jobs) + [job for job in range(jobs) if job != source]:
            rows = np.arange(*obs["dag_ptr"][job : job + 2])
            rows = sorted(rows[nodes[rows, 2] > 0], key=lambda row: row not in roots)
            missing = offered if job == source else share - obs["exec_supplies"][job]
            if rows and missing > 0:
                return {"stage_idx": int(place[rows[0]]), "num_exec": min(offered, missing)}, {}
        return {"stage_idx": -1, "num_exec": offered}, {}


class ChanceAgent(FairAgent):
    """One that draws, and is seeded by the adapter."""

    name = "chance_agent"

    def set_seed(self, seed):
        self.rng = np.random.default_rng(seed)

    def schedule(self, obs):
        choices = int(obs["dag_batch"].nodes[:, 2].sum())
        executors = int(self.rng.integers(1, obs["num_committable_execs"] + 1))
        return {"stage_idx": int(self.rng.integers(choices)), "num_exec": executors}, {}


def sched_sim_fair():
    return SchedSimScheduler(FairAgent())


# Classes like Shortest that decide so.
WRONG = {
    "ReadsEnds": lambda self, seen: seen.grant(seen.frontier[int(seen.state.heap_ms[0]) % 1], 1),
    "ReadsArrivals": lambda self, seen: seen.state.job_arrival_ms[seen.state.num_active],
    "ChangesState": lambda self, seen: operator.setitem(seen.state.stage_next, slice(None), 0),
    "ChangesTime": lambda self, seen: setattr(seen.state, "now_ms", 0.0),
    "Sleeps": lambda self, seen: time.sleep(60),
    "Crashes": lambda self, seen: os._exit(7),
    "Raises": lambda self, seen: seen.frontier[10**6],
    "Nonsense": lambda self, seen: 3.5,
    "Impossible": lambda self, seen: Decision(seen.frontier[0], 0),
    "Idles": lambda self, seen: Decision.idle(),
    "NotJson": answers(b"\x80\x04K\x01."),
    "Deep": answers(b"[" * 100_000),
    "NoPair": answers(b"7"),
    "Text": answers(b'[true, "0"]'),
    "Texts": answers(b'[true, ["0", 1, 0, 0]]'),
    "Long": answers(b" " * (1 << 21)),
    "Swallows": lambda self, seen: np.ones(10**10),  # more memory than an entry may have
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
