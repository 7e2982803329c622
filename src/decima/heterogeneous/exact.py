"""The shortest schedule of a small instance, with and without copies of nodes."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np

from decima.checks import is_number
from decima.exceptions import ConfigError, DecimaError
from decima.heterogeneous import exact_kernel
from decima.heterogeneous.bounds import lower_bound
from decima.heterogeneous.instance import Instance
from decima.heterogeneous.priority_search import search
from decima.heterogeneous.registry import list_schedulers, make_scheduler
from decima.heterogeneous.rules import SLOTS, Rules
from decima.heterogeneous.schedule import Schedule
from decima.progress import progress_bar

MOST_NODES = 64
_STEPS = 20_000  # partial schedules between two looks at the clock
_TRIES = 40  # for each node, of the search for the schedule that it begins with


class NotProvedError(DecimaError, RuntimeError):
    """Time was up before the optimum was proved."""


@dataclass(frozen=True)
class Optimum:
    """A schedule that is proved to be the shortest."""

    schedule: Schedule
    makespan_s: float
    explored: int  # partial schedules that were looked at
    elapsed_s: float


def optimum(
    instance: Instance, *, duplicate: bool = True, time_limit_s: float = 60.0, progress: str | None = None
) -> Optimum:
    """Find the shortest schedule and prove that there is no shorter one.

    Args:
        instance: Jobs and cluster, at most 64 nodes; some 10 nodes on 3 executors are proved within seconds.
        duplicate: Whether nodes may be copied; the proof holds for any number of copies.
        time_limit_s: Seconds after which to give up.
        progress: Label of a line of progress; none without.

    Raises:
        ConfigError: The instance is too large, or the time limit is not above 0.
        NotProvedError: Time was up; the message has the best schedule and the bound.
    """
    if len(instance) > MOST_NODES:
        raise ConfigError(
            f"the instance has {len(instance)} nodes; the search for the optimum takes {MOST_NODES} at most"
        )
    if not is_number(time_limit_s) or not time_limit_s > 0.0:
        raise ConfigError(f"time_limit_s is {time_limit_s!r}; expected a number above 0")
    begin = time.monotonic()
    known = _start(instance, duplicate)
    floor_s = lower_bound(instance, duplicate=duplicate)
    search = _Search(instance, duplicate, known.makespan_s)
    done = known.makespan_s <= floor_s * (1.0 + 1e-12)
    with progress_bar(progress, 1.0, share=True) as bar:
        while not done and time.monotonic() - begin < time_limit_s:
            done = search.step(_STEPS)
            bar.update(min(1.0, (time.monotonic() - begin) / time_limit_s) - bar.n)
    if search.found[0, 0]:
        known = search.schedule()
    if not done:
        raise NotProvedError(
            f"no proof within {time_limit_s:g} s: the best schedule found takes {known.makespan_s:g} s, and none "
            f"takes less than {floor_s:g} s"
        )
    known = replace(known, scheduler="optimum", settings={"duplicate": duplicate})
    return Optimum(known, known.makespan_s, int(search.counts[exact_kernel.EXPLORED]), time.monotonic() - begin)


def _start(instance: Instance, duplicate: bool) -> Schedule:
    """The best schedule of all schedulers and of a short search."""
    schedules = [
        search(instance, _TRIES * len(instance), rules=Rules(slots=slots, duplicate=duplicate)).schedule
        for slots in SLOTS
    ]
    for name in list_schedulers():
        made = make_scheduler(name)
        if duplicate or not made.rules.duplicate:
            schedules.append(made.schedule(instance))
        elif "duplicate" in made.entry.open:
            schedules.append(make_scheduler(name, duplicate=False).schedule(instance))
    return min(schedules, key=lambda schedule: schedule.makespan_s)


class _Search:
    """Memory of a search that goes on step by step."""

    def __init__(self, instance: Instance, duplicate: bool, best_s: float) -> None:
        self.instance = instance
        cluster = instance.cluster
        nodes, executors = len(instance), len(cluster)
        depths = (nodes * executors if duplicate else nodes) + 1
        options = nodes * executors
        times = instance.work[:, None] / cluster.speeds if cluster.costs is None else np.array(cluster.costs)
        rates = np.full((executors, executors), cluster.rate) if cluster.uniform else np.array(cluster.rate)
        parent_start, parent, data = instance.parents
        sent = cluster.latency_s + data[:, None, None] / rates
        self.counts = np.zeros(exact_kernel.NUM_COUNTS, dtype=np.int64)
        self.best = np.array([best_s])
        self.found = np.zeros((1 + depths, 2), dtype=np.int64)
        option_counts = np.zeros((depths, 2), dtype=np.int64)
        option_counts[0, 0] = -1
        now = np.zeros((depths, 2))
        self._arguments = (
            self.counts,
            self.best,
            instance.order,
            times,
            sent,
            parent_start,
            parent,
            *instance.children[:2],
            instance.arrival_s,
            _twins(times, cluster.uniform),
            bool((times > 0.0).all()),
            duplicate,
            np.full((nodes, executors), np.inf),
            np.zeros(nodes, dtype=np.int64),
            np.zeros((depths, executors)),
            now,
            np.zeros((depths, 2), dtype=np.int64),
            self.found,
            np.zeros((depths, options, 2), dtype=np.int64),
            np.zeros((depths, options, 2)),
            option_counts,
        )
        self._times, self._sent = times, sent

    def step(self, budget: int) -> bool:
        """Go on with the search; whether it is over."""
        return exact_kernel.explore(budget, *self._arguments) == exact_kernel.DONE

    def schedule(self) -> Schedule:
        """The best schedule found."""
        instance, times, sent = self.instance, self._times, self._sent
        parent_start, parent, _ = instance.parents
        free_s = np.zeros(times.shape[1])
        finish_s = np.full(times.shape, np.inf)
        copies = self.found[1 : 1 + self.found[0, 0]].tolist()
        starts, finishes = [], []
        for node, executor in copies:
            start_s = max(float(free_s[executor]), float(instance.arrival_s[node]))
            for edge in range(parent_start[node], parent_start[node + 1]):
                there = finish_s[parent[edge]] + sent[edge, :, executor]
                there[executor] = finish_s[parent[edge], executor]
                start_s = max(start_s, float(there.min()))
            starts.append(start_s)
            finishes.append(start_s + times[node, executor])
            free_s[executor] = finish_s[node, executor] = finishes[-1]
        return Schedule(instance, [node for node, _ in copies], [each for _, each in copies], starts, finishes)


def _twins(times: np.ndarray, uniform: bool) -> np.ndarray:
    """For each executor a lower one that is the same in everything, or -1."""
    twins = np.full(times.shape[1], -1)
    for executor in range(times.shape[1] if uniform else 0):
        for other in range(executor):
            if np.array_equal(times[:, executor], times[:, other]):
                twins[executor] = other
    return twins
