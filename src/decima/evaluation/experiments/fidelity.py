"""Appendix D: simulated against real job durations, from the committed event logs in ``data/spark`` (Figure 18)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from decima.exceptions import ConfigError

if TYPE_CHECKING:
    import pandas

    from decima.evaluation.experiments.store import Context
    from decima.workload.sources import WorkloadSource


def compute(source: WorkloadSource, params: dict, context: Context) -> dict[str, pandas.DataFrame]:
    """Tables ``fidelity_runs``, ``fidelity_floor`` and ``fidelity_summary``.

    Real TPC-H queries, whatever the workload of the run.
    """
    from decima import config
    from decima.spark.fidelity.logs import read_alone, read_mixes
    from decima.spark.fidelity.tables import fidelity_tables

    root = config.checkout_root()
    if root is None:
        raise ConfigError(f"{Path.cwd()} is not inside a checkout of the project; its data folder has the event logs")
    alone = [application for folder in params["alone"] for application in read_alone(root / folder)]
    mixes = [application for folder in params["mixes"] for application in read_mixes(root / folder)]
    return fidelity_tables(alone, mixes, params["simulations"], context.threads)
