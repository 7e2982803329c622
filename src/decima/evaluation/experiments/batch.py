"""§7.2, batched arrivals: average JCT of Decima and the heuristics over many batches (Figure 9a), curve over alpha."""

from __future__ import annotations

import pandas

from decima.evaluation.alpha import alpha_sweep
from decima.evaluation.experiments.learned import BASELINES, learned_schedulers
from decima.evaluation.experiments.store import Context
from decima.evaluation.experiments.tidy import paired_changes, score_table
from decima.evaluation.experiments.tuning import SHOWN, tuned_schedulers, weighted_fair_by_arrival
from decima.schedulers import make_scheduler
from decima.workload.sources import WorkloadSource

UNTUNED = ("fifo", "sjf_cp", "fair", "naive_weighted_fair", "random")


def compute(source: WorkloadSource, params: dict, context: Context) -> dict[str, pandas.DataFrame]:
    """Tables ``batch``, ``batch_changes`` (paired, in percent) and ``alpha_batch``.

    ``weighted_fair_each`` takes the best alpha and variant for each batch separately, as the paper says it does; it is
    optimistic, since it takes the minimum of many noisy scores.
    """
    seeds = list(range(params["batches"]))
    workloads = source.batches(seeds, params["jobs"])
    schedulers = {name: make_scheduler(name) for name in UNTUNED} | tuned_schedulers(context, "batch")
    schedulers |= {"weighted_fair_arrival": weighted_fair_by_arrival(context, "batch")}
    learned = learned_schedulers(context, "batch")
    schedulers |= learned
    scores = score_table(schedulers, workloads, seeds, context.settings(), context, "batches")
    sweep = alpha_sweep(
        workloads,
        context.settings(),
        variants=SHOWN,
        seeds=seeds,
        threads=context.threads,
        progress=context.bar("alpha"),
    )
    each = sweep.per_workload()[["seed", "avg_jct_s"]].assign(scheduler="weighted_fair_each")
    return {
        "batch": pandas.concat([scores, each])[scores.columns],
        "batch_changes": paired_changes(scores, ["capped_srw", *learned], BASELINES),
        "alpha_batch": sweep.table,
    }
