"""Heuristics under the released rules, to be held against the numbers of the published simulator."""

from __future__ import annotations

import pandas

from decima.evaluation.experiments.sources import Source
from decima.evaluation.experiments.store import Context
from decima.evaluation.experiments.tidy import score_table
from decima.schedulers import make_scheduler

SCHEDULERS = {
    "released_fifo": ("released_fifo", {}),
    "sjf_cp": ("sjf_cp", {}),
    "sjf_cp_sticky": ("sjf_cp", {"sticky": 1}),
    "released_fair": ("released_fair", {}),
    "fair_strict": ("fair", {"sticky": 0}),
    "naive_weighted_fair": ("naive_weighted_fair", {}),
    "weighted_fair": ("weighted_fair", {"alpha": -1.0}),
    "capped_srw": ("capped_srw", {}),
}


def compute(source: Source, params: dict, context: Context) -> dict[str, pandas.DataFrame]:
    """Table ``released``: batches of 20 (seven and six sizes) and streams of 1 + 200 jobs at 25 s (seven sizes)."""
    seeds = list(range(params["seeds"]))
    settings = context.settings("released")
    cases = {
        "batch, seven sizes": source.batches(seeds, 20, "released"),
        "batch, six sizes": source.batches(seeds, 20, "paper"),
        "stream, seven sizes": source.streams(seeds, 200, 25, "released"),
    }
    if params["long_stream_jobs"]:
        cases["long stream, seven sizes"] = source.streams(seeds[:1], params["long_stream_jobs"], 25, "released")
    schedulers = {name: make_scheduler(kind, **values) for name, (kind, values) in SCHEDULERS.items()}
    tables = []
    for case, workloads in cases.items():
        chosen = schedulers
        if case.startswith("long"):  # the others grow a backlog without end
            chosen = {name: schedulers[name] for name in ("released_fair", "fair_strict", "capped_srw")}
        tables.append(
            score_table(chosen, workloads, seeds[: len(workloads)], settings, context, case, arrivals=case)
        )
    return {"released": pandas.concat(tables)}
