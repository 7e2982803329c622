"""Imports of kernels and of process workers of tests, with what they would do first."""

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
from decima import plotting
from decima.workload import synthetic_batch
from experiments.experiment import experiment, experiment_names
from experiments.rooms import digest
from experiments.stamps import table_code

for scheduler in ("fair", "decima"):
    decima.simulate(synthetic_batch(2), scheduler)
for name in experiment_names():
    digest(experiment(name).rooms, table_code(name))
plotting.style.image(plotting.style.new_figure(2.0, 2.0), "png")
