"""Imports of kernels of notebooks and of process workers of tests, with a compiled simulation."""

import ipykernel.kernelapp  # noqa: F401
import networkx  # noqa: F401
import pandas  # noqa: F401
import pyarrow.parquet  # noqa: F401
import seaborn  # noqa: F401

import decima
import decima.evaluation.pool
import decima.learning.rollout
import experiments.captions
import experiments.figures
import experiments.tables  # noqa: F401
from decima.workload import synthetic_batch

for scheduler in ("fair", "decima"):
    decima.simulate(synthetic_batch(2), scheduler)
