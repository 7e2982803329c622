"""What process workers of tests import, with the compiled code of a simulation."""

import pandas  # noqa: F401

import decima
import decima.evaluation.pool
import decima.learning.rollout
from decima.workload import synthetic_batch

for scheduler in ("fair", "decima"):
    decima.simulate(synthetic_batch(2), scheduler)
