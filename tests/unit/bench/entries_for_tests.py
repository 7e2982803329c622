"""Entries that the tests of the benchmark score; each is one thing that an entry may do, or may not."""

import operator
import os
import sys
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
