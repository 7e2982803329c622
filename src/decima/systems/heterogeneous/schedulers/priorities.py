"""Priorities of nodes: ranks, features that rules and networks see, the linear rule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from decima.systems.heterogeneous import graph

if TYPE_CHECKING:
    from decima.systems.heterogeneous.workload import Instance


def rank_up(instance: Instance, *, transfers: float = 1.0, node_s: np.ndarray | None = None) -> np.ndarray:
    """Upward rank: longest path down with mean times, float64 [nodes], seconds.

    Args:
        instance: Jobs and cluster.
        transfers: Factor on the transfer times; 0 gives the static level.
        node_s: Mean time of each node, float64 [nodes], seconds; the time at the mean speed when omitted.

    Source: Eq. 5; the mean rate is the mean over all pairs of executors. HEFT's rank takes
    :attr:`.Instance.mean_cost_s`, the mean of a node's times, which is larger than the time at the mean speed.
    """
    mean_s = transfers * instance.cluster.mean_transfer_s(instance.children[2])
    return instance.longest_down(instance.mean_time_s if node_s is None else node_s, mean_s)


def rank_down(instance: Instance, *, node_s: np.ndarray | None = None) -> np.ndarray:
    """Longest way from the beginning to each node, itself not included, float64 [nodes], seconds.

    Args:
        instance: Jobs and cluster.
        node_s: As in :func:`rank_up`.

    Source: Eq. 6, with mean speed and mean rate as in Eq. 5.
    """
    start, parent, data = instance.parents
    mean_s = instance.cluster.mean_transfer_s(data)
    node_s = instance.mean_time_s if node_s is None else node_s
    return graph.longest_up(instance.order, start, parent, node_s, mean_s, np.zeros(len(instance)))


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


NAMES = ("time", "data_in", "data_out", "rank_up", "rank_down", *MORE)
#: Weights of the features, by when nodes are decided; found by `experiments/heterogeneous/linear_tuning.py`.
COEFFICIENTS: dict[str, tuple[float, ...]] = {
    "plan": (2.019, 1.865, 0.722, 3.953, -2.086, 1.627, -1.511, -0.03, 3.968, -4.0, 3.994),
    "idle": (3.922, 3.99, 3.514, 0.634, 1.888, 3.992, 0.26, -0.833, 1.821, -1.511, 2.289),
}
COEFFICIENTS["event"] = COEFFICIENTS["plan"]

# Parts of the transfer times that upward ranks count.
TRANSFER_PARTS = (1.0, 0.5, 0.25, 0.1, 0.0)


def linear_priority(instance: Instance, coefficients) -> np.ndarray:
    """Weighted sum of the features, float64 [nodes].

    Args:
        instance: Jobs and cluster.
        coefficients: Float [features], in the order of :data:`NAMES`.
    """
    return static_features(instance, NAMES, logarithms=True).astype(np.float64) @ np.asarray(coefficients)
