"""Scores of many schedulers on many workloads as tidy frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas

from decima.evaluation.experiments.store import Context
from decima.evaluation.run import score_matrix
from decima.schedulers import Scheduler
from decima.simulator.settings import Settings
from decima.workload.jobs import Workload


def score_table(
    schedulers: Mapping[str, Scheduler],
    workloads: Sequence[Workload],
    seeds: Sequence[int],
    settings: Settings,
    context: Context,
    label: str,
    **columns,
) -> pandas.DataFrame:
    """Average JCT of every scheduler on every workload.

    Returns:
        Frame with the given constant columns, then scheduler, seed, avg_jct_s.
    """
    scores = score_matrix(
        workloads,
        list(schedulers.values()),
        settings,
        seeds=seeds,
        threads=context.threads,
        progress=context.bar(label),
    )
    return pandas.DataFrame(
        [
            {**columns, "scheduler": name, "seed": seed, "avg_jct_s": score}
            for name, row in zip(schedulers, scores, strict=True)
            for seed, score in zip(seeds, row, strict=True)
        ]
    )
