"""The experiments behind the figures: parameters in ``params.yaml``, tables in ``reports/<run>/tables/<experiment>``.

A *run* is a workload and a profile, such as ``tpch-quick``; runs differ only in parameters. Every experiment is a
module with ``compute(source, params, context) -> dict[str, DataFrame]``; nothing else writes tables, figures only read
them.
"""

from decima.evaluation.experiments.store import (
    EXPERIMENTS,
    Context,
    default_run,
    load,
    read_params,
    resolve_run,
    run_experiment,
    run_folder,
    run_names,
)

__all__ = [
    "EXPERIMENTS",
    "Context",
    "default_run",
    "load",
    "read_params",
    "resolve_run",
    "run_experiment",
    "run_folder",
    "run_names",
]
