"""Appendix J: scheduling without task durations, on batches and streams (Figure 23)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas

from decima import plotting
from decima.systems.spark.policy.scheduler import load_policy
from decima.systems.spark.schedulers import make_scheduler
from decima.workload.arrivals import with_wrong_estimates
from decima.workload.sources import WorkloadSource
from experiments.captions import INTERVAL, Run, Tables, distinct
from experiments.comparisons import (
    BASELINES,
    changes_by_load,
    each_training,
    on_streams_of_load,
    score_table,
    scores_of_trainings,
)
from experiments.decima.s07_tuning import tuned_schedulers, weighted_fair_by_arrival
from experiments.experiment import Context, Experiment, PoliciesIn, Profiles, TablesOf
from experiments.rooms import POLICY_ROOMS

if TYPE_CHECKING:
    from decima.plotting.style import Figure

# Both learned from random weights in as many iterations; one sees durations, the other never did.
SEEING, BLIND = "decima", "decima_blind"


def compute(source: WorkloadSource, params: dict, context: Context) -> dict[str, pandas.DataFrame]:
    """Tables ``appendix_j`` (scores by arrivals), ``appendix_j_changes`` (paired) and ``appendix_j_estimates``.

    ``decima_blind`` is trained without task durations and never sees one; ``decima`` sees them and had the
    same number of iterations (parameters ``blind`` and ``seeing``, a training or several each). Of the heuristics, FIFO
    and fair sharing need no durations either; weighted fair and capped shortest remaining work know them. In the last
    table, what schedulers are given about durations is wrong by a random factor, at test time only.
    """
    of_batches, of_streams = (
        {SEEING: params["seeing"][arrivals], BLIND: params["blind"][arrivals]} for arrivals in ("batch", "stream")
    )
    first = {name: each_training(of)[0] for name, of in of_streams.items()}
    seeds = list(range(params["batches"]))
    rules = {name: make_scheduler(name) for name in ("fifo", "fair")} | tuned_schedulers(context, "batch")
    rules |= {"weighted_fair_arrival": weighted_fair_by_arrival(context, "batch")}
    batches, label = source.batches(seeds, params["batch_jobs"]), "batches without durations"
    known = (batches, seeds, context.settings(), context, label)
    scores = pandas.concat(
        [
            scores_of_trainings(of_batches, *known, rules).assign(arrivals="batch"),
            on_streams_of_load(of_streams, source, params, context, "streams without durations"),
        ]
    )
    scores["arrivals"] = scores["arrivals"].fillna(scores["interarrival_s"].map("one job every {:g} s".format))
    changes, _ = changes_by_load(scores, (SEEING, BLIND), BASELINES, by="arrivals")
    return {
        "appendix_j": scores[["arrivals", "scheduler", "training", "seed", "avg_jct_s"]],
        "appendix_j_estimates": _wrong_estimates(first, source, params, context),
        "appendix_j_changes": changes,
    }


def _wrong_estimates(policies: dict[str, str], source: WorkloadSource, params: dict, context: Context):
    """Average JCT on busy streams by spread of the estimates' errors, first training runs."""
    seeds, gap_s = list(range(params["streams"])), min(params["interarrival_s"])
    schedulers = {"fair": make_scheduler("fair"), **tuned_schedulers(context, f"stream-{gap_s}s")}
    schedulers |= {name: load_policy(stored) for name, stored in policies.items()}
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
    means = table[table["scheduler"] != "fifo"].groupby(["arrivals", "scheduler", "seed"], sort=False, as_index=False)
    figure = plotting.style.new_figure(plotting.style.PAGE, 2.8)
    plotting.bars.paired_panels(means["avg_jct_s"].mean(), figure, group="arrivals", against="fair")
    counts = " and ".join(
        distinct(table[table["arrivals"] == arrivals], "seed", "batch" if arrivals == "batch" else "stream")
        for arrivals in (kinds[0], kinds[-1])
    )
    caption = (
        f"Paired by sequence, {counts} per panel; bars: {INTERVAL}; {run.cluster}; Decima: mean of "
        f"{distinct(table, 'training', 'training seed')}. Fair sharing also ignores durations, the other "
        f"heuristics use them."
    )
    return plotting.style.entitle(figure, "Figure 23: without task durations", caption, run.workload)


EXPERIMENT = Experiment(
    "appendix_j",
    "appendix J, Figure 23",
    compute,
    rooms=POLICY_ROOMS,
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
