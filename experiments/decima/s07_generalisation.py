"""§7.4, appendix I: policies on loads, clusters and queries outside of their training (Table 2)."""

from __future__ import annotations

import pandas

from decima import plotting
from decima.systems.spark.schedulers import make_scheduler
from decima.systems.spark.settings import Settings
from decima.workload.sources import WorkloadSource
from experiments.captions import INTERVAL, Run, Tables, distinct
from experiments.comparisons import (
    changes_by_load,
    learned_policy,
    on_streams_of_load,
    paired_changes,
    score_table,
    scores_of_trainings,
)
from experiments.experiment import Context, Experiment, PoliciesIn, Profiles, StoredPolicy, TablesOf
from experiments.rooms import POLICY_ROOMS

UNSEEN, SEEN = "trained_queries", ("trained_14", "fair", "capped_srw")
AGAINST = ("weighted_fair_arrival", "weighted_fair", "capped_srw")
# What the stored batch policy is compared with on clusters of other sizes; none is tuned for a size.
UNTUNED = {"fair": "fair", "capped_srw": "capped_srw:batch"}


def compute(source: WorkloadSource, params: dict, context: Context) -> dict[str, pandas.DataFrame]:
    """Tables ``generalisation``, and with this prefix ``changes``, ``executors``, ``queries`` and ``trainings``.

    The first two have policies by the gaps that they were trained on, at every gap of the test. Their paired changes
    are against heuristics tuned at every gap, of all training runs of a policy and of each; runs differ in their seed.
    Then follows the stored batch policy on clusters of other sizes. The last has a policy that never saw some of the
    queries and one that saw all, on streams of those queries alone and of all.
    """
    scores = on_streams_of_load(params["policies"], source, params, context, "generalisation")
    changes, trainings = changes_by_load(scores, list(params["policies"]), AGAINST)
    queries = _queries(source, params, context)
    return {
        "generalisation": scores,
        "generalisation_changes": changes,
        "generalisation_trainings": trainings,
        "generalisation_executors": _executors(source, params["executors"], context),
        "generalisation_queries": queries,
        "generalisation_unseen": changes_by_load(queries, [UNSEEN], SEEN, by="queries")[0],
    }


def _executors(source: WorkloadSource, params: dict, context: Context) -> pandas.DataFrame:
    """Paired changes of the batch policy against heuristics by number of executors."""
    seeds = list(range(params["batches"]))
    schedulers = {name: make_scheduler(text) for name, text in UNTUNED.items()}
    schedulers |= {"decima": learned_policy(context, "batch")}
    batches = source.batches(seeds, params["jobs"])
    parts = []
    for executors in params["numbers"]:
        settings = Settings.paper(executors=executors)
        table = score_table(schedulers, batches, seeds, settings, context, f"{executors} executors")
        parts.append(paired_changes(table, ["decima"], list(UNTUNED)).assign(executors=executors))
    return pandas.concat(parts)


def _queries(source: WorkloadSource, params: dict, context: Context) -> pandas.DataFrame:
    """Average JCT on streams of all queries and of left-out queries, by training."""
    rules = {"fair": make_scheduler("fair"), "capped_srw": make_scheduler("capped_srw:stream")}
    seeds = list(range(params["streams"]))
    gap_s, parts = min(params["interarrival_s"]), []
    for queries in ("all", params["left_out"]):
        streams = [source.stream(params["jobs"], gap_s, seed, queries=queries) for seed in seeds]
        known = (streams, seeds, context.settings(), context, f"queries {queries}", rules)
        parts.append(scores_of_trainings(params["query_policies"], *known).assign(queries=queries))
    return pandas.concat(parts)


def table2_generalisation(tables: Tables, run: Run) -> plotting.style.Figure:
    """Table 2 as curves: every policy at every gap, against weighted fair tuned there."""
    changes = tables["generalisation_changes"]
    changes = changes[changes["against"] == "weighted_fair"]
    figure = plotting.style.new_figure(plotting.style.PAGE, 2.8)
    axes = figure.subplots()
    plotting.load.change_over_gap(changes, "weighted_fair", axes)
    axes.set_xlabel("mean time between arrivals in the test (s); the load grows to the right")
    streams = distinct(tables["generalisation"], "seed", "stream")
    caption = (
        f"Average JCT against weighted fair tuned at each load, paired; {streams} per load, {run.cluster}. "
        f"Lines: means of {changes['trainings'].max()} training seeds; shaded: {INTERVAL} over seeds."
    )
    return plotting.style.entitle(figure, "Table 2: trained at one load, tested at another", caption, run.workload)


def table2(tables: Tables) -> pandas.DataFrame:
    """Table 2, extended: average JCT in s and standard error by scheduler and test gap."""
    groups = tables["generalisation"].groupby(["scheduler", "interarrival_s"], sort=False)["avg_jct_s"]
    means, errors = (values.unstack("interarrival_s") for values in (groups.mean(), groups.sem()))
    return means.round(1).astype(str) + " ± " + errors.round(1).astype(str)


EXPERIMENT = Experiment(
    "generalisation",
    "§7.4, Table 2, appendix I",
    compute,
    rooms=POLICY_ROOMS,
    figures=(table2_generalisation,),
    inputs=(
        Profiles(),
        TablesOf("load"),
        StoredPolicy("batch"),
        PoliciesIn("generalisation", ("policies", "query_policies")),
    ),
    tiny={
        "interarrival_s": [25, 14],
        "streams": 2,
        "jobs": 4,
        "policies": {"trained_14": ["tiny", "tiny"], "trained_mixed": "tiny"},
        "query_policies": {"trained_14": "tiny", "trained_queries": ["tiny", "tiny"]},
        "left_out": "5+9",
        "executors": {"numbers": [5, 10], "batches": 2, "jobs": 3},
    },
)
