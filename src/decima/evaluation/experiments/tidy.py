"""Scores of many schedulers on many workloads as tidy frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas

from decima.evaluation.experiments.store import Context
from decima.evaluation.run import score_matrix
from decima.evaluation.statistics import paired_change
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


def paired_changes(scores: pandas.DataFrame, schedulers: Sequence[str], baselines: Sequence[str]) -> pandas.DataFrame:
    """Change of the mean against each baseline in percent, paired by seed, with its 95 % confidence interval.

    Args:
        scores: scheduler, seed, avg_jct_s.
        schedulers: Who is compared.
        baselines: With whom.

    Returns:
        against, scheduler, seeds, change_percent, low, high.
    """
    table = scores.pivot(index="seed", columns="scheduler", values="avg_jct_s")
    rows = [
        (baseline, name, len(table), *paired_change(table[name].to_numpy(), table[baseline].to_numpy()))
        for baseline in baselines
        for name in schedulers
        if name != baseline
    ]
    return pandas.DataFrame(rows, columns=["against", "scheduler", "seeds", "change_percent", "low", "high"])
