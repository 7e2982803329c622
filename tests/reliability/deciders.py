"""Schedulers with random parameters, policies with random architectures and weights."""

import numpy as np

from decima.systems.spark.policy.architecture import Architecture
from decima.systems.spark.policy.scheduler import LearnedScheduler
from decima.systems.spark.schedulers import make_scheduler
from tests.unit.systems.spark.policy.policies import GAP_S, architectures, random_weights

SIZES = (1, 2, 3, 5, 8, 16, 17, 33)


def random_parameters(name, rng):
    """Values for some of the parameters of a registered scheduler."""
    values = {}
    for parameter in getattr(make_scheduler(name), "parameters", ()):
        if rng.random() < 0.5 and parameter.name != "entry_s":  # which needs a moving delay
            value = float(rng.uniform(parameter.low, min(parameter.high, parameter.low + 20.0)))
            values[parameter.name] = value if parameter.tunable else round(value)
    return values


def random_architecture(rng):
    """One of all options that tests know, with layers of random number and width."""
    known = list(architectures())
    base = known[rng.integers(len(known))].as_dict()

    def widths():
        return tuple(int(size) for size in rng.choice(SIZES, rng.integers(1, 4)))

    changes = {"hidden": widths(), "score_hidden": widths(), "embedding": int(rng.choice(SIZES))}
    changes |= {"durations": bool(rng.random() < 0.8), "interarrival_hint": bool(rng.random() < 0.3)}
    return Architecture(**(base | changes | {"max_executors": int(rng.choice([20, 21, 50]))}))


def random_policy(rng, **options):
    """A policy that nobody trained; it draws its actions half of the time."""
    architecture = random_architecture(rng)
    weights = random_weights(architecture, int(rng.integers(2**31)), scale=float(rng.choice([0.1, 1.0, 3.0])))
    greedy = bool(rng.random() < 0.5)
    return LearnedScheduler(architecture, weights.astype(np.float32), greedy, interarrival_s=GAP_S, **options)
