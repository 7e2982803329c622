"""Lower bounds on the makespan: no schedule of an instance is shorter, whoever makes it."""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from decima.core.jit import njit
from decima.systems.heterogeneous.workload import Instance

_ROUNDING = 1e-12  # largest relative error of a sum of times


@dataclass(frozen=True)
class Bounds:
    """Lower bounds in seconds, counted from time 0."""

    path_s: float  # arrival and longest path of a job, every node on its best executor, no transfers
    work_s: float  # all work from some arrival on, all executors busy from there to the end
    transfers_s: float  # paths with transfers that no placement avoids, nodes may be copied
    single_copy_s: float  # the same for schedules with one copy of each node; holds for those only

    def floor(self, *, duplicate: bool = True) -> float:
        """The best bound for schedules with copies, or for those without."""
        bounds = [self.path_s, self.work_s, self.transfers_s]
        return max(bounds if duplicate else [*bounds, self.single_copy_s])


def lower_bound(instance: Instance, *, duplicate: bool = True) -> float:
    """Best bound in seconds for schedules that may duplicate nodes, or may not."""
    return bounds(instance).floor(duplicate=duplicate)


def unit_s(instance: Instance) -> Fraction | None:
    """Largest unit in s in which all times are whole; None below 1e-15.

    Times are those of nodes on executors, of transfers between them and of arrivals, with every number read as the
    shortest decimal that it is written as. A schedule in which nothing could start earlier begins and ends everything
    at multiples of the unit.
    """
    cluster = instance.cluster
    rates = [cluster.rate] if cluster.uniform else np.unique(cluster.rate[~np.eye(len(cluster), dtype=bool)]).tolist()
    data = np.unique(instance.parents[2]).tolist() if len(cluster) > 1 else []
    pairs = [(instance.work, cluster.speeds)] if cluster.costs is None else [(cluster.costs, 1.0)]
    times = {Fraction(0)}
    for amounts, paces in (*pairs, (instance.arrival_s, 1.0)):
        finite = np.unique(amounts[np.isfinite(amounts)]).tolist()
        times |= {_exact(amount) / _exact(pace) for amount in finite for pace in np.unique(paces).tolist()}
    sent = {_exact(size) / _exact(rate) if math.isfinite(rate) else 0 for size in data for rate in rates}
    times |= {_exact(cluster.latency_s) + each for each in sent}
    scale = math.lcm(*(each.denominator for each in times))
    common = math.gcd(*(int(each * scale) for each in times))
    return Fraction(common, scale) if common * 10**15 > scale else None


def _exact(number: float) -> Fraction:
    return Fraction(repr(float(number)))


def whole_bound_s(instance: Instance, bound_s: float) -> float:
    """The smallest multiple of the instance's unit that a bound allows, seconds."""
    unit = unit_s(instance)
    if unit is None:
        return bound_s
    units = bound_s / float(unit)
    # Sums of times are off by their last digits; where these are whole units, nothing is rounded up.
    return max(bound_s, float(math.ceil(units * (1.0 - _ROUNDING)) * unit)) if units * _ROUNDING < 0.5 else bound_s


def bounds(instance: Instance) -> Bounds:
    """All bounds of an instance.

    With transfers: a node begins when the data of all parents is on its executor. Of those parents that were executed
    there, each took its smallest time there, one after the other; the data of the others took its shortest transfer.
    The parents whose data would come last are the ones to have there; all numbers of them are tried. This holds with
    copies as well. With one copy of each node the same is true of its children, read backwards.
    """
    least_s = instance.least_time_s
    below = instance.longest_down(least_s)
    start_s = _with_transfers(instance, instance.order, instance.parents, instance.arrival_s)
    behind_s = _with_transfers(instance, instance.order[::-1].copy(), instance.children, np.zeros(len(instance)))
    return Bounds(
        path_s=float((instance.arrival_s + below).max()),
        work_s=_work_s(instance),
        transfers_s=float((start_s + below).max()),
        single_copy_s=float((start_s + least_s + behind_s).max()),
    )


def _work_s(instance: Instance) -> float:
    """Bound in s: from each arrival on, later work is spread over all executors."""
    cluster = instance.cluster
    # Given times: a node takes its smallest time of some executor at least.
    amount = instance.work if cluster.costs is None else instance.least_time_s
    pace = cluster.speeds.sum() if cluster.costs is None else float(len(cluster))
    order = np.argsort(instance.arrival_s, kind="stable")
    later = np.cumsum(amount[order][::-1])[::-1]
    return float((instance.arrival_s[order] + later / pace).max())


def _with_transfers(
    instance: Instance, order: np.ndarray, edges: tuple[np.ndarray, np.ndarray, np.ndarray], first: np.ndarray
) -> np.ndarray:
    start, other, data = edges
    sent_s = instance.cluster.least_transfer_s(data)
    if len(instance.cluster) == 1:
        sent_s = np.full(len(data), np.inf)  # nothing is sent anywhere
    return earliest_start(order, start, other, sent_s, instance.least_time_s, first)


@njit(cache=True, nogil=True)
def earliest_start(order, start, other, sent, least, first):
    """Earliest start of each node in an order; reversed, the least time after it.

    Args:
        order: Nodes, those that a node waits for before it, int64 [nodes].
        start: First edge of a node, int64 [nodes + 1].
        other: Whom it waits for over an edge, int64 [edges].
        sent: Shortest transfer over an edge, float64 [edges].
        least: Smallest time of a node, float64 [nodes].
        first: No node begins before, float64 [nodes].

    Returns:
        float64 [nodes].
    """
    earliest = np.zeros(len(order))
    most = 0
    for node in range(len(order)):
        most = max(most, start[node + 1] - start[node])
    here = np.empty(most, np.int64)
    for node in order:
        edges = np.arange(start[node], start[node + 1])
        there = np.empty(len(edges))
        for position in range(len(edges)):
            above = other[edges[position]]
            there[position] = earliest[above] + least[above] + sent[edges[position]]
        by_time = np.argsort(-there, kind="mergesort")
        best = first[node]
        if len(edges) > 0:
            best = np.inf
            for count in range(len(edges) + 1):
                # The first ones were executed here; of the others the data comes.
                ready = first[node]
                if count < len(edges):
                    ready = max(ready, there[by_time[count]])
                for position in range(count):
                    here[position] = other[edges[by_time[position]]]
                ready = max(ready, _one_after_the_other(here, count, earliest, least))
                best = min(best, ready)
        earliest[node] = best
    return earliest


@njit
def _one_after_the_other(nodes, count, earliest, least):
    """End of nodes executed sequentially by one executor, ordered and delayed by their earliest starts."""
    for position in range(1, count):
        node = nodes[position]
        hole = position
        while hole > 0 and earliest[nodes[hole - 1]] > earliest[node]:
            nodes[hole] = nodes[hole - 1]
            hole -= 1
        nodes[hole] = node
    time = 0.0
    for position in range(count):
        time = max(time, earliest[nodes[position]]) + least[nodes[position]]
    return time
