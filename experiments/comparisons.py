"""Scores of many schedulers on many workloads as tidy frames, with rows for stored policies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle, product
from typing import TYPE_CHECKING

import numpy as np
import pandas

from decima.core.errors import ConfigError
from decima.evaluation.run import score_matrix
from decima.evaluation.statistics import mean_interval, paired_change
from decima.learning.cards import ALONE, WARM, how_learned
from decima.learning.store import read_card, stored_files
from decima.systems.spark.policy import scheduler as learned
from decima.systems.spark.policy.scheduler import load_policy
from decima.systems.spark.schedulers import Scheduler
from decima.systems.spark.settings import Settings
from decima.workload.jobs import Workload
from decima.workload.sources import WorkloadSource
from experiments.experiment import Context

if TYPE_CHECKING:
    from decima.systems.spark.policy.scheduler import LearnedScheduler


def score_table(
    schedulers: Mapping[str, Scheduler],
    workloads: Sequence[Workload],
    seeds: Sequence[int],
    settings: Settings,
    context: Context,
    label: str,
    **columns,
) -> pandas.DataFrame:
    """Average JCT of every scheduler on every workload.

    Returns:
        Frame with the given constant columns, then scheduler, seed, avg_jct_s.
    """
    scores = score_matrix(
        workloads,
        list(schedulers.values()),
        settings,
        seeds=seeds,
        workers=context.threads,
        progress=context.bar(label),
    )
    return pandas.DataFrame(
        [
            {**columns, "scheduler": name, "seed": seed, "avg_jct_s": score}
            for name, row in zip(schedulers, scores, strict=True)
            for seed, score in zip(seeds, row, strict=True)
        ]
    )


def paired_changes(scores: pandas.DataFrame, schedulers: Sequence[str], baselines: Sequence[str]) -> pandas.DataFrame:
    """Change of the mean against each baseline, percent, paired by seed, with 95 % interval.

    Args:
        scores: scheduler, seed, avg_jct_s.
        schedulers: Who is compared.
        baselines: With whom.

    Returns:
        against, scheduler, seeds, change_percent, low, high.
    """
    table = scores.pivot(index="seed", columns="scheduler", values="avg_jct_s")
    rows = [
        (baseline, name, len(table), *paired_change(table[name].to_numpy(), table[baseline].to_numpy()))
        for baseline in baselines
        for name in schedulers
        if name != baseline
    ]
    return pandas.DataFrame(rows, columns=["against", "scheduler", "seeds", "change_percent", "low", "high"])


def changes_over_trainings(scores: pandas.DataFrame, baselines: pandas.DataFrame) -> pandas.DataFrame:
    """Change of the mean against each baseline in percent, by training.

    Args:
        scores: training, seed, avg_jct_s.
        baselines: scheduler, seed, avg_jct_s, on the same workloads; with a column training, ours are compared with
            those of the same place, from the start again where there are fewer.

    Returns:
        against, training, change_percent, low, high. The 95 % intervals of single training runs are over workloads,
        paired by seed; that of ``"mean"`` is over training runs, NaN with one.
    """
    ours = scores.pivot(index="seed", columns="training", values="avg_jct_s")
    rows = []
    for against, table in baselines.groupby("scheduler", sort=False):
        groups = table.set_index("seed").groupby("training" if "training" in table else "scheduler")["avg_jct_s"]
        theirs = cycle([scores.loc[ours.index].to_numpy() for _, scores in groups])
        each = [(name, *paired_change(ours[name].to_numpy(), other)) for name, other in zip(ours, theirs, strict=False)]
        mean, _, low, high = mean_interval(np.array([change for _, change, _, _ in each]))
        rows += [(against, *row) for row in [*each, ("mean", mean, low, high)]]
    return pandas.DataFrame(rows, columns=["against", "training", "change_percent", "low", "high"])


# With whom policies are compared, paired by sequence.
BASELINES = ("fair", "weighted_fair_arrival", "weighted_fair", "capped_srw")
# Names of a stored policy, or of several whose trainings differ in their seed alone.
Trainings = str | Sequence[str]


def each_training(trainings: Trainings) -> Sequence[str]:
    """Names of the stored policies, a single one as one of one."""
    return [trainings] if isinstance(trainings, str) else trainings


def on_streams_of_load(
    policies: Mapping[str, Trainings | Mapping[str, Trainings]],
    source: WorkloadSource,
    params: Mapping,
    context: Context,
    label: str,
) -> pandas.DataFrame:
    """Average JCT of stored policies on the streams of experiment ``load``, with its tuned heuristics.

    Args:
        policies: Names of stored policies by what the rows call them; by gap in seconds (``"14"``), where each has its
            own.
        source: Where jobs come from.
        params: ``interarrival_s``, a list of gaps, ``streams`` and ``jobs``, as of experiment ``load``.
        context: The run; its tables of ``load`` are read.
        label: What progress bars say.

    Returns:
        interarrival_s, scheduler, training (from 1; heuristics have 1), seed, avg_jct_s.

    Raises:
        ConfigError: Experiment ``load`` has no such streams.
    """
    tuned = context.tables("load")["load"]
    seeds = list(range(params["streams"]))
    parts = []
    for gap_s in params["interarrival_s"]:
        there = (tuned["interarrival_s"] == gap_s) & tuned["seed"].isin(seeds)
        rows = tuned[there & tuned["scheduler"].isin(BASELINES)]
        if len(rows) != len(BASELINES) * len(seeds):
            raise ConfigError(f"experiment load has not {len(seeds)} streams at {gap_s} s; {label} needs them")
        parts.append(rows.assign(training=1))
        here = {name: of[f"{gap_s:g}"] if isinstance(of, Mapping) else of for name, of in policies.items()}
        streams = source.streams(seeds, params["jobs"], gap_s)
        ours = scores_of_trainings(here, streams, seeds, context.settings(), context, f"{label}, {gap_s} s")
        parts.append(ours.assign(interarrival_s=gap_s))
    return pandas.concat(parts)[["interarrival_s", "scheduler", "training", "seed", "avg_jct_s"]]


def scores_of_trainings(
    policies: Mapping[str, Trainings],
    workloads: Sequence[Workload],
    seeds: Sequence[int],
    settings: Settings,
    context: Context,
    label: str,
    rules: Mapping[str, Scheduler] | None = None,
) -> pandas.DataFrame:
    """Average JCT of stored policies and of rules, by training.

    Returns:
        training (from 1; rules have 1), scheduler, seed, avg_jct_s.
    """
    of = {name: each_training(trainings) for name, trainings in policies.items()}
    parts = []
    for number in range(1, 1 + max(map(len, of.values()))):
        compared = {**rules} if rules and number == 1 else {}
        compared |= {name: load_policy(each[number - 1]) for name, each in of.items() if len(each) >= number}
        said = f"{label}, training {number}"
        parts.append(score_table(compared, workloads, seeds, settings, context, said, training=number))
    return pandas.concat(parts)


def changes_by_load(
    scores: pandas.DataFrame, schedulers: Sequence[str], baselines: Sequence[str], by: str = "interarrival_s"
) -> tuple[pandas.DataFrame, pandas.DataFrame]:
    """Changes against each baseline in percent, by load, of all training runs and of each.

    Args:
        scores: Table of :func:`on_streams_of_load`, or of :func:`scores_of_trainings` with a column for the load.
        schedulers: Who is compared.
        baselines: With whom.
        by: Column of the load.

    Returns:
        The load, against, scheduler, ``trainings``, seeds, change_percent, low, high. They are the mean over training
        runs with its 95 % interval over them; of a single training its change with the interval over workloads, paired
        by seed. Then the load, against, scheduler, training, change_percent, low, high of those with several training
        runs.
    """
    whole, each = [], []
    for load, rows in scores.groupby(by, sort=False):
        of = dict(list(rows.groupby("scheduler")))
        for against, name in (pair for pair in product(baselines, schedulers) if len(set(pair)) == 2):
            changes = changes_over_trainings(of[name], of[against]).assign(scheduler=name, **{by: load})
            number = len(changes) - 1
            counts = {"trainings": number, "seeds": of[against]["seed"].nunique()}
            whole.append(changes.iloc[[0 if number == 1 else -1]].assign(**counts))
            each.append(changes.iloc[: number if number > 1 else 0])
    names, values = [by, "against", "scheduler"], ["change_percent", "low", "high"]
    columns, columns_each = [*names, "trainings", "seeds", *values], [*names, "training", *values]
    return pandas.concat(whole)[columns], pandas.concat(each)[columns_each]


# Rows of stored policies by how they learned: Decima is reinforcement learning from random weights, nothing else.
ROWS = {ALONE: "decima", WARM: "decima_warm"}
# Uses whose policies tables and figures call Decima.
_CALLED_DECIMA = ("batch", "stream")


def policy_row(policy: str) -> str:
    """Row of a stored policy, by how it learned (:data:`ROWS`) and what it sees."""
    card = read_card(stored_files(policy)[1])
    row = ROWS[how_learned(card)]
    return "decima_entry" if row == "decima" and card["architecture"]["more_features"] else row


def rows_renamed(names: Mapping[str, str], table: pandas.DataFrame) -> pandas.DataFrame:
    """Table with other names in its columns ``scheduler`` and ``against``, if it has them."""
    return table.replace({column: dict(names) for column in ("scheduler", "against") if column in table})


def learned_policy(context: Context, use: str, greedy: bool | None = None) -> LearnedScheduler:
    """The policy that the run names for a use.

    Args:
        context: The run.
        use: ``"batch"`` or ``"stream"``, which learned from scratch; ``"entry_batch"`` or ``"entry_stream"``,
            which did so with more features; ``"warm_batch"``, ``"warm_stream"`` or ``"released"``.
        greedy: Take the most probable action, or draw it, as in training. When omitted, as the policy's card says,
            which is what was better on validation sequences.

    Raises:
        ConfigError: The policy would be called Decima, and was not trained from scratch.
    """
    name = context.policies[use]
    if use in _CALLED_DECIMA and policy_row(name) != "decima":
        raise ConfigError(
            f"run {context.run}: tables call the policy for {use} Decima, but {name} was not trained from "
            f"scratch; name one that was, or name it under warm_{use}"
        )
    return learned.decima(policy=name, greedy=greedy)


def learned_schedulers(context: Context, use: str, *others: str) -> dict[str, LearnedScheduler]:
    """Stored policies by their rows.

    Args:
        context: The run.
        use: The policy for this use comes twice: as its card says, and the other way, with ``_sampled`` or ``_greedy``
            behind the name of its row.
        *others: The policies for these uses come once.
    """
    stored = learned_policy(context, use)
    row = policy_row(context.policies[use])
    other = f"{row}_{'sampled' if stored.greedy else 'greedy'}"
    schedulers = {row: stored, other: learned_policy(context, use, greedy=not stored.greedy)}
    return schedulers | {policy_row(context.policies[name]): learned_policy(context, name) for name in others}
