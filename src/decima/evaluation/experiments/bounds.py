"""How far from optimal: Decima, heuristics, the best schedule found by search, a lower bound, on the same instances."""

from __future__ import annotations

import pandas

from decima.evaluation.experiments.learned import learned_schedulers
from decima.evaluation.experiments.store import Context
from decima.evaluation.experiments.tuning import tuned_schedulers
from decima.evaluation.run import score_matrix
from decima.optimum.bounds import lower_bound
from decima.optimum.schedule_search import search_schedule
from decima.schedulers import make_scheduler
from decima.workload.sources import WorkloadSource


def compute(source: WorkloadSource, params: dict, context: Context) -> dict[str, pandas.DataFrame]:
    """Table ``bounds``: average JCT with mean durations by kind of arrivals, instance and policy.

    ``search`` is clairvoyant: it knows the batch and looks for the best schedule of that very batch.
    """
    settings = context.settings(durations="mean")
    seeds = list(range(params["instances"]))
    workloads = source.batches(seeds, params["jobs"])
    tuned = tuned_schedulers(context, "batch")
    policies = {"fair": make_scheduler("fair")} | tuned | learned_schedulers(context, "batch")
    scores = score_matrix(workloads, list(policies.values()), settings, threads=context.threads)
    rows = []
    for seed, workload in zip(seeds, workloads, strict=True):
        found = search_schedule(
            workload,
            settings,
            params["budget"],
            start=tuned["capped_srw"].values,
            threads=context.threads,
            progress=context.bar(f"search, instance {seed}"),
        )
        values = {name: score[seed] for name, score in zip(policies, scores, strict=True)}
        values |= {"search": found.avg_jct_s, "lower_bound": lower_bound(workload, settings).avg_jct_s}
        instance = {"arrivals": "batch", "instance": seed}
        rows += [instance | {"policy": name, "avg_jct_s": value} for name, value in values.items()]
    return {"bounds": pandas.DataFrame(rows)}
