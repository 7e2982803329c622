"""How much the long tests do: minutes in continuous integration, hours when asked (``make reliability``)."""

import os


def count(name, default):
    """Number that an environment variable asks for."""
    return int(os.environ.get(name, default))


RANDOM_RUNS = count("DECIMA_RANDOM_RUNS", 240)  # runs under the independent checker
GUARDED_RUNS = count("DECIMA_GUARDED_RUNS", 48)  # runs with every array between inaccessible pages
KILLS = count("DECIMA_KILLS", 2)  # kills of a training
FUZZ_INPUTS = count("DECIMA_FUZZ_INPUTS", 2000)  # damaged inputs, over all readers
# First seed of all of these; what fails names the seed that repeats it alone.
FIRST_SEED = count("DECIMA_FIRST_SEED", 0)
