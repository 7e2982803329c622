"""Node features for rules and networks, normalised by the mean execution time at arrival."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from decima.systems.heterogeneous.ranks import rank_down, rank_up
from decima.systems.heterogeneous.workload import Instance


def units(instance: Instance) -> np.ndarray:
    """Mean execution time of the nodes arrived by each job's arrival, float64 [jobs], seconds.

    Nothing of it lies in the future, and twice the work and data is twice the unit; 1 where that mean is 0.
    """
    arrival = np.array([job.arrival_s for job in instance.jobs])
    order = np.argsort(arrival, kind="stable")
    sums = np.add.reduceat(instance.mean_time_s, instance.first_node[:-1])[order].cumsum()
    counts = np.diff(instance.first_node)[order].cumsum()
    last = np.searchsorted(arrival[order], arrival, side="right") - 1
    mean = sums[last] / counts[last]
    return np.where(mean > 0.0, mean, 1.0)


def _over_edges(instance: Instance, which: str, how: Callable) -> np.ndarray:
    start, _, data = instance.parents if which == "in" else instance.children
    total = np.zeros(len(instance))
    how.at(total, np.repeat(np.arange(len(instance)), np.diff(start)), instance.cluster.mean_transfer_s(data))
    return total


def _mean_over_edges(instance: Instance, which: str) -> np.ndarray:
    start = (instance.parents if which == "in" else instance.children)[0]
    return _over_edges(instance, which, np.add) / np.maximum(np.diff(start), 1)


def _by_job(instance: Instance, values: np.ndarray, how: Callable) -> np.ndarray:
    return how.reduceat(values, instance.first_node[:-1])[instance.job_of_node]


def _level(instance: Instance) -> np.ndarray:
    return rank_up(instance, transfers=0.0)


@dataclass(frozen=True)
class NodeFeature:
    """A number of a node."""

    name: str
    doc: str  # what it is
    # Of an instance, float64 [nodes]; None where it changes with every node of the job that is assigned.
    values: Callable[[Instance], np.ndarray] | None
    is_time: bool = True  # counted in the unit of :func:`units`


FEATURES = (
    NodeFeature("left", "nodes of the job not yet assigned", None, is_time=False),
    NodeFeature("left_time", "their mean execution times, summed", None),
    NodeFeature("given", "nodes of the job that were assigned", None, is_time=False),
    NodeFeature("time", "its own mean execution time", lambda each: each.mean_time_s),
    NodeFeature("data_in", "mean transfer time of its incoming data", lambda each: _mean_over_edges(each, "in")),
    NodeFeature("data_out", "mean transfer time of its outgoing data", lambda each: _mean_over_edges(each, "out")),
    NodeFeature("rank_up", "upward rank (Eq. 5)", rank_up),
    NodeFeature("rank_down", "downward rank (Eq. 6)", rank_down),
    NodeFeature("level", "upward rank without transfers", _level),
    NodeFeature("most_in", "largest incoming transfer", lambda each: _over_edges(each, "in", np.maximum)),
    NodeFeature("most_out", "largest outgoing transfer", lambda each: _over_edges(each, "out", np.maximum)),
    NodeFeature("job_time", "work of its job", lambda each: _by_job(each, each.mean_time_s, np.add)),
    NodeFeature("job_path", "longest path of its job, no transfers", lambda e: _by_job(e, _level(e), np.maximum)),
    NodeFeature("job_rank", "longest path of its job", lambda each: _by_job(each, rank_up(each), np.maximum)),
)
_BY_NAME = {feature.name: feature for feature in FEATURES}
#: Numbers of the features that change while a schedule is made.
CHANGING = tuple(feature.name for feature in FEATURES if feature.values is None)
#: What a node of the paper has (section IV-A): two of its job, its own, and the ranks.
PAPER = ("left", "left_time", "time", "data_in", "data_out", "rank_up", "rank_down")
RANKS = ("rank_up", "rank_down")
#: Further ones that do not change, of which a linear rule is made.
MORE = ("level", "most_in", "most_out", "job_time", "job_path", "job_rank")
#: What Decima knows of a stage, where a stage is one unit of work: how many are left, how long it takes, the work left
#: in the job, and how many executors the job was given.
DECIMA = ("left", "time", "left_time", "given")
SETS = {"paper": PAPER, "extended": PAPER + MORE, "decima": DECIMA}
#: Plain features are multiplied by this, so that those of usual jobs are about 1.
SCALE = 0.1


def static_features(instance: Instance, names: Sequence[str], logarithms: bool) -> np.ndarray:
    """Features of all nodes, float32 [nodes, features]; changing ones are 0.

    Args:
        instance: Jobs and cluster.
        names: Names among :data:`FEATURES`.
        logarithms: As log(1 + x); else times :data:`SCALE`.
    """
    unit = units(instance)[instance.job_of_node]
    columns = np.zeros((len(instance), len(names)))
    for column, name in enumerate(names):
        feature = _BY_NAME[name]
        if feature.values is not None:
            values = feature.values(instance)
            columns[:, column] = values / unit if feature.is_time else values
    columns = np.log1p(columns) if logarithms else columns * SCALE
    return columns.astype(np.float32)


def outgoing(instance: Instance, logarithms: bool) -> np.ndarray:
    """Features from summed mean transfer times of every node's outgoing edges (Eq. 7), float32 [nodes]."""
    total = _over_edges(instance, "out", np.add) / units(instance)[instance.job_of_node]
    return (np.log1p(total) if logarithms else total * SCALE).astype(np.float32)


def deepest(instance: Instance) -> int:
    """Nodes on the longest path of any job."""
    return int(instance.longest_down(np.ones(len(instance))).max())
