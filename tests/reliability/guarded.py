"""Random runs with every array between fences; a program, so that what it finds kills a process of its own.

``python -m tests.reliability.guarded runs FIRST COUNT`` runs seeds at both ends of the arrays and prints a line before
and after each run; ``... short COUNT STEP`` lets compiled code see every STEPth array one entry too short, each in a
process of its own, and prints what became of it.
"""

import hashlib
import json
import os
import signal
import sys

import numpy as np

from decima.core.errors import DeadlockError
from decima.core.record import BOUND
from decima.systems.spark.fields import CLUSTER
from decima.systems.spark.policy.fields import POLICY
from decima.systems.spark.policy.scheduler import record_episode
from decima.systems.spark.schedulers import make_scheduler
from decima.systems.spark.schedulers.fields import RULE, rule_record
from decima.systems.spark.state import new_state
from decima.systems.spark.system import run_state
from tests.drivers import IN_CORE, careless_choice
from tests.random_clusters import of_kind, random_settings, random_workload
from tests.reliability.deciders import random_parameters, random_policy

# Decisions by the run's own caller, with a copy in the middle; a network in the core; one whose decisions are recorded.
WAYS = ("by hand", "network", "recorded network")


def subjects():
    """Every compiled scheduler that can be made, and the other ways; networks more often than the rest."""
    return [*IN_CORE, *WAYS, *WAYS[1:], *WAYS[1:]]


def guarded_run(seed):
    """A random run; returns (what decided, digest of what happened)."""
    rng = np.random.default_rng([seed, 77])
    subject = subjects()[seed % len(subjects())]
    workload, settings = random_workload(rng, max_jobs=6, max_stages=7, max_tasks=9), random_settings(rng)
    workload, settings = of_kind(rng.integers(3), workload, settings, rng)
    state = new_state(workload, settings, log_tasks=bool(rng.random() < 0.5), log_decisions=bool(rng.random() < 0.5))
    try:
        if subject == "by hand":
            return subject, _by_hand(state, seed)
        if subject == "recorded network":
            teacher = make_scheduler("random") if rng.random() < 0.5 else None
            policy = random_policy(rng, record=True, teacher=teacher, teacher_share=float(rng.random()))
            record_episode(state, policy, seed)
        else:
            scheduler = _scheduler(subject, rng)
            if rng.random() < 0.5:
                _give_hints(state, rng)
            for repeat in range(2):  # a state that has run before, then without the hints
                run_state(state, scheduler, seed + repeat)
                rule_record(state).release(*_hints())
    except DeadlockError:
        return subject, "deadlock"
    return subject, _digest(state)


def _scheduler(subject, rng):
    return random_policy(rng) if subject == "network" else make_scheduler(subject, **random_parameters(subject, rng))


def _by_hand(state, seed):
    careless = careless_choice(seed, refused=0.0, delayed=0.2, classes=state.num_classes)

    def choose(state):
        stage, *others = careless(state)
        return (stage, state.num_source) if stage == -1 else (stage, *others)  # who idles twice in a round is refused

    state.start(*np.random.default_rng(seed).spawn(2))
    steps = int(np.random.default_rng(seed).integers(1, 12))
    while state.advance():
        state.decide(*choose(state))
        steps -= 1
        if steps == 0:
            state = state.copy()
    return _digest(state)


def _hints():
    return [name for name, field in RULE.arrays.items() if field.storage == BOUND and field.extent != "parameter"]


def _give_hints(state, rng):
    record = rule_record(state)
    for name in _hints():
        hint = getattr(record, name)
        numbers = hint.dtype == np.int64  # of pools, below that of jobs
        record.bind(name, rng.integers(len(hint), size=len(hint)) if numbers else rng.uniform(0.0, 3.0, len(hint)))


def _digest(state):
    parts = (state.job_finish_ms, state.completion_order, np.array([state.num_decisions, state.busy_ms]))
    return hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest()[:12]


def say(*words):
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def runs(fence, first, count):
    """Run seeds at both ends; the last line says how many arrays were placed."""
    for seed in range(first, first + count):
        for fence.at_end in (True, False):
            say(f"seed {seed}, arrays at the {'end' if fence.at_end else 'beginning'} of their pages")
            say(*guarded_run(seed))
    say(json.dumps(fence.placed))


def short(fence, count, step):
    """Let arrays be one entry too short, at either end; prints a line per array: name and what the two runs died of."""
    for seed in range(count):
        guarded_run(seed)  # everything is compiled, and nothing dies, before an array is made short
    names = [name for layout in (CLUSTER, RULE, POLICY) for name in layout.arrays]
    for name in names[::step]:
        say(json.dumps([name, *(_death(fence, name, at_end, count) for at_end in (True, False))]))


def _death(fence, name, at_end, count):
    """Name of the signal that ends a process whose array is too short, None if it lives."""
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        fence.at_end, fence.short = at_end, name
        for seed in reversed(range(count)):  # networks first, which use most arrays
            guarded_run(seed)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    return signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else None


if __name__ == "__main__":
    from tests.reliability.fence import Fence

    what, *numbers = sys.argv[1:]
    {"runs": runs, "short": short}[what](Fence(), *map(int, numbers))
