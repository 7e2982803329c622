"""Appendix J: scheduling without task durations, on batches and streams (Figure 23)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas

from decima import plotting
from decima.systems.spark.policy.learned import load_policy
from decima.systems.spark.schedulers import make_scheduler
from decima.workload.arrivals import with_wrong_estimates
from decima.workload.sources import WorkloadSource
from experiments.captions import INTERVAL, Run, Tables, distinct
from experiments.comparisons import (
    BASELINES,
    changes_by_gap,
    on_streams_of_load,
    paired_changes,
    score_table,
)
from experiments.decima.s07_tuning import tuned_schedulers, weighted_fair_by_arrival
from experiments.experiment import Context, Experiment, PoliciesIn, Profiles, TablesOf

if TYPE_CHECKING:
    from decima.plotting.style import Figure

# Both learned from random weights in as many iterations; one sees durations, the other never did.
SEEING, BLIND = "decima", "decima_blind"


def compute(source: WorkloadSource, params: dict, context: Context) -> dict[str, pandas.DataFrame]:
    """Tables ``appendix_j`` (scores by arrivals), ``appendix_j_changes`` (paired) and ``appendix_j_estimates``.

    ``decima_blind`` is trained without task durations and never sees one; ``decima`` sees them and had as many
    iterations (parameters ``blind`` and ``seeing``). Of the heuristics, FIFO and fair sharing need no durations
    either; weighted fair and capped shortest remaining work know them. In the last table, what schedulers are told
    about durations is wrong by a random factor, at test time only.
    """
    seeds = list(range(params["batches"]))
    schedulers = {name: make_scheduler(name) for name in ("fifo", "fair")} | tuned_schedulers(context, "batch")
    schedulers |= {"weighted_fair_arrival": weighted_fair_by_arrival(context, "batch")}
    schedulers |= {name: load_policy(stored) for name, stored in _policies(params, "batch").items()}
    batches = source.batches(seeds, params["batch_jobs"])
    table = score_table(schedulers, batches, seeds, context.settings(), context, "batches without durations")
    scores = [table.assign(arrivals="batch")]
    changes = [paired_changes(table, (SEEING, BLIND), BASELINES).assign(arrivals="batch")]
    streams = on_streams_of_load(_policies(params, "stream"), source, params, context, "streams without durations")
    for gap_s, rows in streams.groupby("interarrival_s", sort=False):
        scores.append(rows.assign(arrivals=f"one job every {gap_s:g} s"))
    of_streams, _ = changes_by_gap(streams, (SEEING, BLIND), BASELINES)
    changes.append(of_streams.assign(arrivals=[f"one job every {gap_s:g} s" for gap_s in of_streams["interarrival_s"]]))
    columns = ["arrivals", "scheduler", "seed", "avg_jct_s"]
    return {
        "appendix_j": pandas.concat(scores)[columns],
        "appendix_j_estimates": _wrong_estimates(source, params, context),
        "appendix_j_changes": pandas.concat(changes).drop(columns=["interarrival_s", "trainings"]),
    }


def _policies(params: dict, arrivals: str) -> dict[str, str]:
    """Stored policies for batches or streams, by their rows."""
    return {SEEING: params["seeing"][arrivals], BLIND: params["blind"][arrivals]}


def _wrong_estimates(source: WorkloadSource, params: dict, context: Context) -> pandas.DataFrame:
    """Average JCT on the busiest streams by spread of the estimates' errors."""
    seeds, gap_s = list(range(params["streams"])), min(params["interarrival_s"])
    schedulers = {"fair": make_scheduler("fair"), **tuned_schedulers(context, f"stream-{gap_s}s")}
    schedulers |= {name: load_policy(stored) for name, stored in _policies(params, "stream").items()}
    streams = source.streams(seeds, params["jobs"], gap_s)
    scores = []
    for spread in params["spreads"]:
        wrong = [with_wrong_estimates(stream, spread, seed) for stream, seed in zip(streams, seeds, strict=True)]
        label = f"estimates wrong by {spread}"
        scores.append(score_table(schedulers, wrong, seeds, context.settings(), context, label, spread=spread))
    return pandas.concat(scores)


def fig23_no_durations(tables: Tables, run: Run) -> Figure:
    """Figure 23: average JCT with and without task durations."""
    table = tables["appendix_j"]
    kinds = list(dict.fromkeys(table["arrivals"]))
    figure = plotting.bars.scheduler_bars(table[table["scheduler"] != "fifo"], group="arrivals").figure
    counts = " and ".join(
        distinct(table[table["arrivals"] == arrivals], "seed", "batch" if arrivals == "batch" else "stream")
        for arrivals in (kinds[0], kinds[-1])
    )
    caption = (
        f"{counts} per panel; bars: {INTERVAL}; {run.cluster}. Fair sharing knows no durations either, the other rules "
        "do."
    )
    return plotting.style.entitle(figure, "Figure 23: without task durations", caption, run.workload)


EXPERIMENT = Experiment(
    "appendix_j",
    "appendix J, Figure 23",
    compute,
    figures=(fig23_no_durations,),
    inputs=(
        Profiles(),
        TablesOf("tuning"),
        TablesOf("load"),
        PoliciesIn("appendix_j", ("seeing", "blind")),
    ),
    tiny={
        "batches": 2,
        "batch_jobs": 3,
        "interarrival_s": [25, 14],
        "streams": 2,
        "jobs": 4,
        "spreads": [0, 0.7],
        "seeing": {"batch": "tiny", "stream": "tiny"},
        "blind": {"batch": "tiny", "stream": "tiny"},
    },
)
