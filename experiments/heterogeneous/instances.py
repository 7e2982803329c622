"""Instances and schedules that several experiments about heterogeneous executors compare."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import pandas

from decima.core.progress import progress_bar
from decima.evaluation.statistics import paired_change
from decima.systems.heterogeneous import Instance, make_scheduler, metrics
from decima.systems.heterogeneous.generators import MEASURED, tpch_instance
from decima.systems.heterogeneous.optimum.bounds import lower_bound
from experiments.experiment import Context

if TYPE_CHECKING:
    from decima.workload.sources import WorkloadSource

BOUND = "lower_bound"
OURS = "lachesis"
# Baselines of section V-B; then what its related work names, and this project's own.
PAPER = ("fifo_deft", "sjf_deft", "hrrn_deft", "high_rank_up_deft", "heft", "tdca", "decima_deft")
OTHERS = ("cpop", "dls", "tds", "peft", "discounted_rank", "linear_rank")
SCHEDULERS = (*PAPER, *OTHERS, OURS)
# Those that figures show.
SHOWN = (*PAPER, "discounted_rank", "linear_rank", OURS, BOUND)
# Policies of the figures, from random weights by PPO: of three trainings the one with the best validation.
LEARNED = {OURS: "lachesis-random", "decima_deft": "decima-deft-random-1"}
# The imitation of the linear rule, in tables only.
WARM_START = {"lachesis/warm start": "lachesis"}
BATCH_POLICIES = (*LEARNED.values(), "lachesis-batch")


def text(name: str, settings: str = "") -> str:
    """Text of a scheduler, with the policy of the figures for a learned one."""
    settings = ",".join(part for part in (settings, f"policy={LEARNED[name]}" if name in LEARNED else "") if part)
    return f"{name}:{settings}" if settings else name


def drawn(
    source: WorkloadSource, jobs: int, ccr: float | str, count: int, executors: int, gap_s: float | None = None
) -> list[Instance]:
    """Instances of one point of a figure, with seeds 0, 1, ...

    Args:
        source: Where profiles come from.
        jobs: Number of jobs.
        ccr: Ratio of communication to computation, or ``"measured"``.
        count: Number of instances.
        executors: Size of the cluster.
        gap_s: Mean gap between arrivals in seconds; when omitted, all arrive at 0.
    """
    edges = ccr if ccr == MEASURED else float(ccr)
    return [
        tpch_instance(jobs, seed, edges=edges, executors=executors, interarrival_s=gap_s, source=source.name)
        for seed in range(count)
    ]


def schedule_rows(instances: Sequence[Instance], schedulers: Mapping[str, str], **where) -> Iterator[dict]:
    """Rows of instance and scheduler: makespan_s, speedup, slr, above_bound; the bound as a scheduler.

    Args:
        instances: What to schedule.
        schedulers: Texts of schedulers by the names that tables give them.
        **where: Columns that all rows have.
    """
    built = {name: make_scheduler(text) for name, text in schedulers.items()}
    for seed, instance in enumerate(instances):
        floor_s = lower_bound(instance)
        usual = None
        for name, scheduler in built.items():
            measured = metrics(scheduler.schedule(instance, seed))
            usual = measured if usual is None else usual
            row = {"scheduler": name, "seed": seed, "makespan_s": measured.makespan_s, "speedup": measured.speedup}
            yield where | row | {"slr": measured.slr, "above_bound": measured.makespan_s / floor_s}
        ratio = usual.makespan_s / floor_s
        row = {"scheduler": BOUND, "seed": seed, "makespan_s": floor_s, "speedup": usual.speedup * ratio}
        yield where | row | {"slr": usual.slr / ratio, "above_bound": 1.0}


def means(rows: pandas.DataFrame, keys: Sequence[str]) -> pandas.DataFrame:
    """Mean of every measure over instances by keys and scheduler; SLR only for batches."""
    columns = [name for name in ("makespan_s", "speedup", "slr", "above_bound") if rows[name].notna().all()]
    return rows.groupby([*keys, "scheduler"], sort=False)[columns].mean().reset_index()


def changes(rows: pandas.DataFrame, keys: Sequence[str], mine: str = OURS) -> pandas.DataFrame:
    """Change of one scheduler's mean makespan against every other's, paired by instance.

    Returns:
        Columns: the keys, against, change_percent, low, high (95 % interval).
    """
    paired = []
    for key, group in rows.groupby(list(keys), sort=False):
        table = group.pivot(index="seed", columns="scheduler", values="makespan_s")
        for other in dict.fromkeys(group["scheduler"]):
            if other != mine:
                change = paired_change(table[mine].to_numpy(), table[other].to_numpy())
                paired.append((*key, other, *change))
    return pandas.DataFrame(paired, columns=[*keys, "against", "change_percent", "low", "high"])


def best_other(averages: pandas.DataFrame, paired: pandas.DataFrame, keys: Sequence[str], others: Sequence[str]):
    """Change against the best other scheduler at every point, with the change the bound allows.

    Args:
        averages: Of :func:`means`.
        paired: Of :func:`changes`.
        keys: Columns of a point.
        others: Schedulers to be better than.

    Returns:
        Columns: the keys, against, change_percent, low, high, room_percent (change that would reach the bound).
    """
    table = averages.pivot_table(index=list(keys), columns="scheduler", values="makespan_s", sort=False)
    best = table[list(others)].idxmin(axis=1).rename("against").reset_index()
    room = 100.0 * (table[BOUND] / table[list(others)].min(axis=1) - 1.0)
    joined = best.merge(paired, on=[*keys, "against"], how="left", sort=False)
    return joined.assign(room_percent=room.to_numpy())


def points(context: Context, label: str, grid: Sequence[tuple]) -> Iterator[tuple]:
    """The points of a grid, under a progress bar."""
    bar = progress_bar(context.bar(label), len(grid), "point")
    for point in grid:
        yield point
        bar.update()
    bar.close()
