"""How much the long tests do: minutes in continuous integration, hours when asked (``make reliability``)."""

import os

import pytest


def count(name, default):
    """Number that an environment variable asks for."""
    return int(os.environ.get(name, default))


RANDOM_RUNS = count("DECIMA_RANDOM_RUNS", 240)  # runs under the independent checker
ELASTIC_RUNS = count("DECIMA_ELASTIC_RUNS", 60)  # random runs on clusters whose executors change
GUARDED_RUNS = count("DECIMA_GUARDED_RUNS", 48)  # runs with every array between inaccessible pages
BRUTE_FORCE = count("DECIMA_BRUTE_FORCE", 24)  # instances whose placements are all tried
KILLS = count("DECIMA_KILLS", 1)  # kills of a training; half as many of a pipeline
FUZZ_INPUTS = count("DECIMA_FUZZ_INPUTS", 1000)  # damaged inputs, over all readers
LOG_MUTATIONS = count("DECIMA_LOG_MUTATIONS", 200)  # event logs with lost, swapped, cut or repeated lines or fields
# First seed of all of these; what fails names the seed that repeats it alone.
FIRST_SEED = count("DECIMA_FIRST_SEED", 0)
# Tests that cost more than they tell every day.
when_asked = pytest.mark.skipif(KILLS < 10, reason="only when asked: make reliability")
