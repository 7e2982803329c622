"""Appendix H: Decima and heuristics against a batch's best order, simplified environment (Figure 22)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pandas

from decima import plotting
from decima.evaluation.run import score_matrix
from decima.plotting.words import count
from decima.systems.spark.alpha import alpha_sweep
from decima.systems.spark.optimum.exhaustive import exhaustive_search, replay_settings
from decima.systems.spark.schedulers import make_scheduler
from decima.workload.sources import TRAINING_SEED, WorkloadSource
from experiments.captions import INTERVAL, Run, Tables, distinct, learned_words, presets
from experiments.comparisons import changes_over_trainings, learned_schedulers, scores_of_trainings
from experiments.experiment import Context, Experiment, PoliciesIn, Profiles, StoredPolicy
from experiments.rooms import POLICY_ROOMS

if TYPE_CHECKING:
    from decima.plotting.style import Figure

# With what the trainings in the simplified environment are compared.
AGAINST = ("exhaustive", "capped_srw", "weighted_fair")


def compute(source: WorkloadSource, params: dict, context: Context) -> dict[str, pandas.DataFrame]:
    """Tables ``appendix_h`` (average JCT by batch and policy), ``appendix_h_trainings`` and ``appendix_h_orders``.

    All policies run in the event simulator under the rules of the search; alpha is tuned on other batches. A strict
    order can be read in two ways (``exhaustive_search(runnable_only=...)``): ``exhaustive`` is the better of both.

    ``decima`` and ``decima_warm`` were trained on batches in the full environment. ``decima_simplified`` (parameter
    ``simplified``) was trained in this one, as the paper's was. Its row is the mean of its training runs; the second
    table compares them one by one. The last table has the distribution over orders.
    """
    seeds = list(range(params["batches"]))
    batches = source.batches(seeds, params["jobs"])
    settings = replay_settings(context.executors)
    training = [TRAINING_SEED + seed for seed in range(20)]
    sweep = alpha_sweep(
        source.batches(training, params["jobs"]),
        settings,
        seeds=training,
        workers=context.threads,
        progress=context.bar("alpha"),
    )
    policies = {
        "fifo": make_scheduler("fifo"),
        "fair": make_scheduler("fair"),
        "weighted_fair": sweep.scheduler(),
        "sjf_cp": make_scheduler("sjf_cp"),
        "capped_srw": make_scheduler("capped_srw:plain"),
    } | learned_schedulers(context, "batch", "warm_batch")
    scores = score_matrix(batches, list(policies.values()), settings, workers=context.threads)
    rows = [
        {"batch": seed, "policy": name, "avg_jct_s": score}
        for name, of_batches in zip(policies, scores, strict=True)
        for seed, score in zip(seeds, of_batches, strict=True)
    ]
    mine = {"decima_simplified": params["simplified"]}
    trained = scores_of_trainings(mine, batches, seeds, settings, context, "trained in the simplified environment")
    means = trained.groupby("seed")["avg_jct_s"].mean()
    rows += [{"batch": seed, "policy": "decima_simplified", "avg_jct_s": score} for seed, score in means.items()]
    orders = []
    for seed, batch in zip(seeds, batches, strict=True):
        search = partial(exhaustive_search, batch, context.executors, threads=context.threads)
        waiting = search(progress=context.bar(f"orders of batch {seed}"))
        eager = search(runnable_only=True, distribution=False)
        best_s = min(waiting.replayed_best_avg_jct_s, eager.replayed_best_avg_jct_s)
        rows.append({"batch": seed, "policy": "exhaustive", "avg_jct_s": best_s})
        orders.append(
            {
                "batch": seed,
                "orders": waiting.num_orders,
                "best_s": waiting.best_avg_jct_s,
                "sjf_order_s": waiting.sjf_avg_jct_s,
                "median_s": waiting.distribution.median_s,
                "worst_s": waiting.distribution.max_s,
                "runnable_only_best_s": eager.best_avg_jct_s,
                "replayed_best_s": waiting.replayed_best_avg_jct_s,
                "replayed_runnable_only_best_s": eager.replayed_best_avg_jct_s,
            }
        )
    table = pandas.DataFrame(rows)
    others = table.rename(columns={"batch": "seed", "policy": "scheduler"}).query("scheduler in @AGAINST")
    return {
        "appendix_h": table,
        "appendix_h_trainings": changes_over_trainings(trained, others),
        "appendix_h_orders": pandas.DataFrame(orders),
    }


def fig22_optimality(tables: Tables, run: Run) -> Figure:
    """Figure 22."""
    table = tables["appendix_h"]
    figure = plotting.style.new_figure(plotting.style.PAGE, 1.0 + 0.24 * table["policy"].nunique())
    plotting.optimality.ratio_bars(table, figure.subplots(), reference="exhaustive")
    bars_mean = f"; error bars: {INTERVAL}" if table["batch"].nunique() >= 3 else ""
    caption = (
        f"{distinct(table, 'batch', 'batch')} (dots), simplified environment, {run.cluster}{bars_mean}; "
        f"{learned_words(run, table['policy'], 'batch', 'warm_batch')}; trained there: mean of "
        f"{count(tables['appendix_h_trainings']['training'].nunique() - 1, 'training seed')}.{presets(table['policy'])}"
    )
    title = "Figure 22: Decima and heuristics against exhaustive search"
    return plotting.style.entitle(figure, title, caption, run.workload)


EXPERIMENT = Experiment(
    "appendix_h",
    "appendix H, Figure 22",
    compute,
    rooms=(*POLICY_ROOMS, "systems/spark/optimum"),
    figures=(fig22_optimality,),
    inputs=(Profiles(), StoredPolicy("batch"), StoredPolicy("warm_batch"), PoliciesIn("appendix_h", ("simplified",))),
    tiny={"batches": 2, "jobs": 3, "simplified": ["tiny", "tiny"]},
)
