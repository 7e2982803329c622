"""§7.2, batches: average JCT of Decima and heuristics (Figure 9a), and a curve over alpha."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas

from decima import plotting
from decima.systems.spark.alpha import alpha_sweep
from decima.systems.spark.policy.scheduler import load_policy
from decima.systems.spark.schedulers import make_scheduler
from decima.workload.sources import WorkloadSource
from experiments.captions import INTERVAL, Run, Tables, against_labels, distinct, learned_words
from experiments.comparisons import (
    BASELINES,
    changes_over_trainings,
    learned_schedulers,
    paired_changes,
    score_table,
    scores_of_trainings,
)
from experiments.decima.s07_tuning import SHOWN, alpha_figure, tuned_schedulers, weighted_fair_by_arrival
from experiments.experiment import Context, Experiment, PoliciesIn, Profiles, StoredPolicy, TablesOf
from experiments.rooms import POLICY_ROOMS

if TYPE_CHECKING:
    from decima.plotting.style import Figure

UNTUNED = ("fifo", "sjf_cp", "fair", "naive_weighted_fair", "random")
# Rows of Figure 9a; the others are left to the tables.
_FIG09A = ("fifo", "sjf_cp", "fair", "naive_weighted_fair", "weighted_fair", "capped_srw", "decima")
# Whose policies are compared: Decima's, one that saw more, and one that imitated a rule first.
LEARNED = ("batch", "entry_batch", "warm_batch")


def compute(source: WorkloadSource, params: dict, context: Context) -> dict[str, pandas.DataFrame]:
    """Tables ``batch``, ``batch_changes`` (paired, in percent), ``batch_trainings`` and ``alpha_batch``.

    ``batch_trainings`` has the change of every training of a policy, and the interval over its training runs.

    ``weighted_fair_each`` takes the best alpha and variant for each batch separately, as the paper says it does; it is
    optimistic, since it takes the minimum of many noisy scores.
    """
    seeds = list(range(params["batches"]))
    workloads = source.batches(seeds, params["jobs"])
    schedulers = {name: make_scheduler(name) for name in UNTUNED} | tuned_schedulers(context, "batch")
    schedulers |= {"weighted_fair_arrival": weighted_fair_by_arrival(context, "batch")}
    learned = learned_schedulers(context, *LEARNED)
    learned |= {name: load_policy(policy) for name, policy in params["others"].items()}
    schedulers |= learned
    scores = score_table(schedulers, workloads, seeds, context.settings(), context, "batches")
    sweep = alpha_sweep(
        workloads,
        context.settings(),
        variants=SHOWN,
        seeds=seeds,
        workers=context.threads,
        progress=context.bar("alpha"),
    )
    alone = sweep.per_workload()[["seed", "avg_jct_s"]].assign(scheduler="weighted_fair_each")
    again = scores_of_trainings(params["trainings"], workloads, seeds, context.settings(), context, "trainings")
    rules, each = scores[scores["scheduler"].isin(BASELINES)], again.groupby("scheduler", sort=False)
    trainings = [changes_over_trainings(rows, rules).assign(scheduler=name) for name, rows in each]
    return {
        "batch": pandas.concat([scores, alone])[scores.columns],
        "batch_trainings": pandas.concat(trainings),
        "batch_changes": paired_changes(scores, ["capped_srw", *learned], BASELINES),
        "alpha_batch": sweep.table,
    }


def fig09a_batch(tables: Tables, run: Run) -> Figure:
    """Figure 9a."""
    table = tables["batch"]
    table = table[table["scheduler"].isin(_FIG09A)]
    caption = (
        f"{distinct(table, 'seed', 'batch')} of 20 jobs, one seed each, {run.cluster}; "
        f"{learned_words(run, tables['batch']['scheduler'], 'batch')}."
    )
    figure = plotting.curves.cdf(table).figure
    figure.set_size_inches(plotting.style.PAGE, 3.4)
    return plotting.style.entitle(figure, "Figure 9a: batched arrivals", caption, run.workload)


def batch_changes(tables: Tables, run: Run) -> Figure:
    """Decima and capped SRW against other heuristics on batches, paired."""
    changes = tables["batch_changes"]
    figure = plotting.style.new_figure(plotting.style.PAGE, 2.4)
    plotting.bars.change_points(against_labels(changes), "against", figure.subplots())
    caption = (
        f"Paired by seed; bars: {INTERVAL}; {int(changes['seeds'].iloc[0])} batches of 20 jobs, {run.cluster}; "
        f"{learned_words(run, tables['batch']['scheduler'], *LEARNED)}."
    )
    return plotting.style.entitle(figure, "Decima against the heuristics, batched arrivals", caption, run.workload)


def batch_heuristics(tables: Tables, run: Run) -> Figure:
    """Figure 9a without Decima, and with the heuristics that it leaves out."""
    table = tables["batch"].query("not scheduler.str.startswith('decima')")
    caption = f"{distinct(table, 'seed', 'batch')} of 20 jobs, one seed each, {run.cluster}."
    figure = plotting.curves.cdf(table).figure
    return plotting.style.entitle(figure, "Heuristics on batched arrivals", caption, run.workload)


def alpha_batch(tables: Tables, run: Run) -> Figure:
    """Average JCT over alpha, batches."""
    return alpha_figure(tables["alpha_batch"], "batches of 20 jobs", "batch", run)


EXPERIMENT = Experiment(
    "batch",
    "§7.2, Figure 9a",
    compute,
    rooms=POLICY_ROOMS,
    figures=(fig09a_batch, batch_changes, batch_heuristics, alpha_batch),
    inputs=(
        Profiles(),
        TablesOf("tuning"),
        *(StoredPolicy(use) for use in LEARNED),
        PoliciesIn("batch", ("trainings", "others")),
    ),
    tiny={"batches": 2, "jobs": 3, "trainings": {"decima": ["tiny", "tiny"]}, "others": {"decima_reinforce": "tiny"}},
)
