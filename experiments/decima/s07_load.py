"""§7.4, appendix B: average JCT of every scheduler by stream load, and meanings of load."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas

from decima import plotting
from decima.evaluation.run import simulate
from decima.evaluation.tuning import tune
from decima.systems.spark.alpha import alpha_sweep
from decima.systems.spark.result import Result
from decima.systems.spark.schedulers import CompiledScheduler, make_scheduler
from decima.workload.jobs import Workload
from decima.workload.sources import TRAINING_SEED, WorkloadSource
from experiments.captions import INTERVAL, Run, Tables, distinct
from experiments.comparisons import learned_policy, paired_changes, policy_row, score_table
from experiments.decima.s07_stream import UNTUNED
from experiments.decima.s07_tuning import SHOWN
from experiments.experiment import Context, Experiment, Profiles, StoredPolicy
from experiments.rooms import POLICY_ROOMS

if TYPE_CHECKING:
    from decima.plotting.style import Figure

# The paper's load of continuous arrivals, §7.2.
PAPER_LOAD = 0.85
# Whose schedules show how busy the cluster is.
SHOWN_BUSY = "weighted_fair"
# Whose policies are shown at every load.
LEARNED = ("stream", "warm_stream")


def compute(source: WorkloadSource, params: dict, context: Context) -> dict[str, pandas.DataFrame]:
    """Tables ``load`` (scores), ``load_changes`` (paired, against both tuned weighted fairs) and ``load_meanings``.

    The heuristics that have parameters are tuned at every gap, on training streams; the policies
    are those of experiment ``stream``, without the one that sees entry costs.
    """
    train_seeds = [TRAINING_SEED + index for index in range(params["sequences"])]
    seeds = list(range(params["streams"]))
    scores, changes, meanings = [], [], []
    for gap_s in params["interarrival_s"]:
        gap = {"interarrival_s": gap_s}
        schedulers = {name: make_scheduler(name) for name in UNTUNED}
        train = source.streams(train_seeds, params["train_jobs"], gap_s)
        schedulers |= _tuned(train, train_seeds, params["budget"], context, gap_s)
        learned = {policy_row(context.policies[use]): learned_policy(context, use) for use in LEARNED}
        schedulers |= learned
        streams = source.streams(seeds, params["jobs"], gap_s)
        table = score_table(schedulers, streams, seeds, context.settings(), context, f"load, {gap_s} s", **gap)
        scores.append(table)
        baselines = ("weighted_fair", "weighted_fair_arrival")
        changes.append(paired_changes(table, ("capped_srw", *learned), baselines).assign(**gap))
        for stream, seed in zip(streams, seeds, strict=True):
            result = simulate(stream, schedulers[SHOWN_BUSY], context.executors, seed, log=True)
            meanings.append({**gap, "seed": seed} | loads(result))
    return {
        "load": pandas.concat(scores),
        "load_changes": pandas.concat(changes),
        "load_meanings": pandas.DataFrame(meanings),
    }


def _tuned(
    train: list[Workload], seeds: list[int], budget: int, context: Context, gap_s: float
) -> dict[str, CompiledScheduler]:
    """Best weighted fair, the same with jobs by arrival, and capped SRW, for one gap."""
    settings, label = context.settings(), f"{gap_s} s"
    sweep = alpha_sweep(
        train, settings, variants=SHOWN, seeds=seeds, workers=context.threads, progress=context.bar(f"alpha, {label}")
    )
    by_arrival = sweep.table[sweep.table["order"] == 0]
    names = ["alpha", "sticky", "stage_rule", "order"]
    arrival = dict(zip(names, by_arrival.groupby(names)["avg_jct_s"].mean().idxmin(), strict=True))
    capped = tune(
        "capped_srw",
        train,
        settings,
        train_seeds=seeds,
        budget=budget,
        workers=context.threads,
        progress=context.bar(f"capped_srw, {label}"),
    )
    return {
        "weighted_fair": make_scheduler("weighted_fair", **sweep.best()),
        "weighted_fair_arrival": make_scheduler("weighted_fair", **arrival),
        "capped_srw": capped.make(),
    }


def loads(result: Result) -> dict[str, float]:
    """Load of a logged stream in three meanings, as shares of total executor time.

    Executor time counts up to the last arrival.

    - ``nominal``: nominal work of the jobs.
    - ``busy``: time in which tasks run.
    - ``held``: time in which an executor belongs to a job or moves to one. It begins with the move before its first
      task of a job and ends with the job, or when it leaves for another.
    """
    horizon_ms = float(result.workload.arrival_ms.max())
    total_ms = result.settings.executors * horizon_ms
    log = result.log
    return {
        "nominal": result.jobs["work_s"].sum() * 1000.0 / total_ms,
        "busy": _inside(log.start_ms, log.finish_ms, horizon_ms) / total_ms,
        "held": _inside(*_held(result), horizon_ms) / total_ms,
    }


def _held(result: Result) -> tuple[np.ndarray, np.ndarray]:
    """Begin and end in ms of every time that an executor spends with one job."""
    log, delay_ms = result.log, result.settings.moving_delay_ms
    order = np.lexsort((log.start_ms, log.executor))
    executor, job, start_ms = log.executor[order], log.job[order], log.start_ms[order]
    first = np.ones(len(order), dtype=bool)
    first[1:] = (np.diff(executor) != 0) | (np.diff(job) != 0)
    begin_ms = start_ms[first] - delay_ms
    executor, job = executor[first], job[first]
    end_ms = result.completion_ms[job]
    stays = executor[1:] == executor[:-1]
    end_ms[:-1][stays] = np.minimum(end_ms[:-1][stays], begin_ms[1:][stays])
    return begin_ms, end_ms


def _inside(begin_ms: np.ndarray, end_ms: np.ndarray, horizon_ms: float) -> float:
    """Sum of the parts of some intervals that lie before a horizon."""
    return float(np.maximum(0.0, np.minimum(end_ms, horizon_ms) - np.minimum(begin_ms, horizon_ms)).sum())


def jct_over_load(tables: Tables, run: Run) -> Figure:
    """Average JCT of every scheduler by the gap between arrivals, and the gaps' loads."""
    table, changes, meanings = tables["load"], tables["load_changes"], tables["load_meanings"]
    figure = plotting.style.new_figure(plotting.style.PAGE, 6.2)
    first, second, third = figure.subplots(3, 1, height_ratios=(1.4, 1.4, 1))
    plotting.load.score_over_gap(table, first)
    plotting.load.change_over_gap(changes[changes["against"] == SHOWN_BUSY], SHOWN_BUSY, second)
    plotting.load.loads_over_gap(meanings, PAPER_LOAD, third)
    label = plotting.style.scheduler_style(SHOWN_BUSY).label
    first.set_title("(a) average JCT", loc="left")
    second.set_title(f"(b) against {label}", loc="left")
    third.set_title(f"(c) load, under {label}", loc="left")
    policies = ", ".join(run.policies[use] for use in LEARNED)
    caption = (
        f"{distinct(table, 'seed', 'stream')} per gap, {run.cluster}; band: {INTERVAL}, paired. Tuned heuristics: "
        f"tuned at each gap on training streams. Policies: {policies}."
    )
    return plotting.style.entitle(figure, "Average JCT over load", caption, run.workload)


EXPERIMENT = Experiment(
    "load",
    "§7.4",
    compute,
    rooms=POLICY_ROOMS,
    figures=(jct_over_load,),
    inputs=(Profiles(), *(StoredPolicy(use) for use in LEARNED)),
    tiny={"interarrival_s": [25, 14], "sequences": 2, "train_jobs": 3, "streams": 2, "jobs": 4, "budget": 8},
)
