"""Heuristics and a policy of published shape under released rules, and the published simulator's numbers."""

from __future__ import annotations

import pandas

from decima import plotting
from decima.systems.spark.schedulers import make_scheduler
from decima.workload.sources import WorkloadSource
from experiments.captions import INTERVAL, Run, Tables, distinct, presets, untuned
from experiments.comparisons import learned_schedulers, score_table
from experiments.experiment import Context, Experiment, Profiles, StoredPolicy
from experiments.rooms import POLICY_ROOMS

SCHEDULERS = {
    "released_fifo": ("released_fifo", {}),
    "sjf_cp": ("sjf_cp", {}),
    "sjf_cp_sticky": ("sjf_cp", {"sticky": 1}),
    "released_fair": ("released_fair", {}),
    "fair_strict": ("fair", {"sticky": 0}),
    "naive_weighted_fair": ("naive_weighted_fair", {}),
    "weighted_fair": ("weighted_fair", {"preset": "paper"}),
    "capped_srw": ("capped_srw", {"preset": "plain"}),
}


def compute(source: WorkloadSource, params: dict, context: Context) -> dict[str, pandas.DataFrame]:
    """Table ``released``: batches of 20 jobs in seven and six sizes, and streams.

    Streams have 1 + 200 jobs of seven sizes, one every 25 s. The learned policy was trained on batches and is tested on
    batches.
    """
    seeds = list(range(params["seeds"]))
    settings = context.settings("released")
    cases = {
        "batch, seven sizes": source.batches(seeds, 20, "released"),
        "batch, six sizes": source.batches(seeds, 20, "paper"),
        "stream, seven sizes": source.streams(seeds, 200, 25, "released"),
    }
    if params["long_stream_jobs"]:
        cases["long stream, seven sizes"] = source.streams(seeds[:1], params["long_stream_jobs"], 25, "released")
    schedulers = {name: make_scheduler(scheduler, **values) for name, (scheduler, values) in SCHEDULERS.items()}
    policies = learned_schedulers(context, "released")
    tables = []
    for case, workloads in cases.items():
        chosen = schedulers | policies if case.startswith("batch") else schedulers
        if case.startswith("long"):  # the others grow a backlog without end
            chosen = {name: schedulers[name] for name in ("released_fair", "fair_strict", "capped_srw")}
        tables.append(score_table(chosen, workloads, seeds[: len(workloads)], settings, context, case, arrivals=case))
    return {"released": pandas.concat(tables)}


def released_rules(tables: Tables, run: Run) -> plotting.style.Figure:
    """Heuristics and the policy of the published shape under the released rules."""
    table = untuned(tables["released"])
    figure = plotting.bars.scheduler_bars(table, group="arrivals").figure
    caption = (
        f"Up to {distinct(table, 'seed', 'seed')} per group; bars: {INTERVAL}; {run.cluster}; policy "
        f"{run.policies['released']}, trained on TPC-H.{presets(table['scheduler'])}"
    )
    return plotting.style.entitle(figure, "Schedulers under the released rules", caption, run.workload)


EXPERIMENT = Experiment(
    "released",
    "§6.2, the released simulator",
    compute,
    rooms=POLICY_ROOMS,
    figures=(released_rules,),
    inputs=(Profiles(), StoredPolicy("released")),
    tiny={"seeds": 2, "long_stream_jobs": 4},
)
