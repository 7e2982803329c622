"""The shortest schedule of a small instance, with and without task duplication."""

import time
from dataclasses import dataclass, replace

import numpy as np

from decima.core.checks import check_whole, is_number
from decima.core.errors import ConfigError, DecimaError
from decima.core.extras import require
from decima.core.progress import progress_bar
from decima.systems.heterogeneous.engine import Planner
from decima.systems.heterogeneous.optimum import cp_sat
from decima.systems.heterogeneous.optimum.bounds import lower_bound, whole_bound_s
from decima.systems.heterogeneous.result import Schedule
from decima.systems.heterogeneous.schedulers.priorities import TRANSFER_PARTS, rank_up
from decima.systems.heterogeneous.schedulers.registry import list_schedulers, make_scheduler
from decima.systems.heterogeneous.settings import SLOTS, Rules
from decima.systems.heterogeneous.workload import Instance

MOST_NODES = 64
_TRIES = 40  # for each node, of the search for the schedule that it begins with


class NotProvedError(DecimaError, RuntimeError):
    """Time was up before the optimum was proved."""


@dataclass(frozen=True)
class Optimum:
    """A schedule that is proved to be the shortest."""

    schedule: Schedule
    makespan_s: float
    bound_s: float  # no schedule is shorter; the makespan, or up to a millionth of it less
    explored: int  # branches of CP-SAT
    elapsed_s: float


def optimum(
    instance: Instance, *, duplicate: bool = True, time_limit_s: float = 60.0, progress: str | None = None
) -> Optimum:
    """Shortest schedule with a proof that none is shorter, by CP-SAT of OR-Tools.

    The proof leaves a millionth of the makespan open where no unit makes all times whole numbers below 10¹¹
    (:func:`~decima.systems.heterogeneous.optimum.bounds.unit_s`).

    Args:
        instance: Jobs and cluster, at most 64 nodes; 10 nodes on 3 executors are proved within a second, 20 on 4 within
            half a minute.
        duplicate: Whether nodes may be copied; the proof holds for any number of copies.
        time_limit_s: Seconds after which to give up.
        progress: Label of a line of progress; none without.

    Raises:
        ConfigError: The instance is too large, or the time limit is not above 0.
        MissingExtraError: OR-Tools is not installed.
        NotProvedError: Time was up; the message has the best schedule and the bound.
    """
    if len(instance) > MOST_NODES:
        raise ConfigError(
            f"the instance has {len(instance)} nodes; the search for the optimum takes {MOST_NODES} at most"
        )
    if not is_number(time_limit_s) or not time_limit_s > 0.0:
        raise ConfigError(f"time_limit_s is {time_limit_s!r}; expected a number above 0")
    require("exact")
    begin = time.monotonic()
    known = _start(instance, duplicate)
    floor_s = whole_bound_s(instance, lower_bound(instance, duplicate=duplicate))
    explored, done = 0, known.makespan_s <= floor_s * (1.0 + 1e-12)
    if not done:
        with progress_bar(progress, 1.0, share=True) as bar:
            answer = cp_sat.solve(
                instance,
                duplicate=duplicate,
                most_s=known.makespan_s,
                time_limit_s=max(0.0, begin + time_limit_s - time.monotonic()),
                tick=lambda: bar.update(min(1.0, (time.monotonic() - begin) / time_limit_s) - bar.n),
            )
        done, explored = answer.proved, answer.branches
        floor_s = max(floor_s, whole_bound_s(instance, answer.bound_s))
        if answer.copies:
            known = min(known, Schedule.in_order(instance, answer.copies), key=lambda schedule: schedule.makespan_s)
        done = done or known.makespan_s <= floor_s * (1.0 + 1e-12)
    if not done:
        raise NotProvedError(
            f"no proof within {time_limit_s:g} s: the best schedule found takes {known.makespan_s:g} s, and none "
            f"takes less than {floor_s:g} s"
        )
    known = replace(known, scheduler="optimum", settings={"duplicate": duplicate})
    floor_s = min(floor_s, known.makespan_s)  # which may be one rounding below a bound that is reached
    return Optimum(known, known.makespan_s, floor_s, explored, time.monotonic() - begin)


def _start(instance: Instance, duplicate: bool) -> Schedule:
    """The best schedule of all schedulers and of a short search."""
    schedules = [
        search(instance, _TRIES * len(instance), rules=Rules(slots=slots, duplicate=duplicate)).schedule
        for slots in SLOTS
    ]
    for name in list_schedulers(bare=True):
        heuristic = make_scheduler(name)
        if duplicate or not heuristic.rules.duplicate:
            schedules.append(heuristic.schedule(instance))
        elif "duplicate" in heuristic.entry.open:
            schedules.append(make_scheduler(name, duplicate=False).schedule(instance))
    return min(schedules, key=lambda schedule: schedule.makespan_s)


_SHARES = (0.02, 0.05, 0.15, 0.5)  # of the nodes that one try changes
_SPREADS = (0.02, 0.1, 0.4)  # standard deviation of what a logarithm changes by


@dataclass(frozen=True)
class SearchResult:
    """The best schedule of a search."""

    schedule: Schedule
    priority: np.ndarray  # float64 [nodes]; the largest goes first
    makespan_s: float
    start_s: float  # makespan of the best rank that the search began with
    tries: int  # schedules made


def search(
    instance: Instance, budget: int = 4000, seed: int = 0, *, rules: Rules | None = None, progress: str | None = None
) -> SearchResult:
    """Search priorities with a short schedule by randomly changing the best known ones.

    Begins with upward ranks whose transfers count fully, in part or not at all. A try multiplies the priorities of some
    nodes, or of all nodes of a job, by log-normal factors; it is kept if the schedule is no longer. The search ends
    early where the lower bound is reached.

    Args:
        instance: Jobs and cluster.
        budget: Schedules to make.
        seed: 0 or more.
        rules: How nodes are placed; planned, with copies and insertion, when omitted.
        progress: Label of a progress bar; none without.

    Raises:
        ConfigError: ``budget`` or ``seed`` is out of range.
    """
    check_whole("budget", budget, least=1)
    check_whole("seed", seed, least=0)
    rng = np.random.default_rng(seed)
    planner = Planner(instance, Rules(slots="insertion") if rules is None else rules)
    floor_s = lower_bound(instance) * (1.0 + 1e-12)
    starts = [rank_up(instance, transfers=discount) for discount in TRANSFER_PARTS][:budget]
    lengths = [planner.run(priority) for priority in starts]
    tries = len(starts)
    best = int(np.argmin(lengths))
    priority, makespan_s = starts[best], lengths[best]
    start_s = makespan_s
    with progress_bar(progress, budget, "schedule", done=tries) as bar:
        while tries < budget and makespan_s > floor_s:
            changed = priority * _factors(instance, rng)
            length_s = planner.run(changed)
            if length_s <= makespan_s:
                priority, makespan_s = changed, length_s
            tries += 1
            bar.update()
    planner.run(priority)
    settings = {"budget": budget, "seed": seed}
    schedule = replace(planner.schedule(), scheduler="search", settings=settings)
    return SearchResult(schedule, priority, makespan_s, start_s, tries)


@dataclass(frozen=True)
class PrioritySearch:
    """Scheduler that searches priorities for every instance; too slow for a running cluster."""

    budget: int  # schedules to make on an instance
    name: str = "search"
    concurrent = True
    draws = True

    def schedule(self, instance: Instance, seed: int = 0) -> Schedule:
        """Best known schedule; see :func:`search`."""
        return search(instance, self.budget, seed).schedule


def _factors(instance: Instance, rng: np.random.Generator) -> np.ndarray:
    """Log-normal factors for some nodes or one job, else 1, float64 [nodes]."""
    spread = rng.choice(_SPREADS)
    if rng.random() < 0.25:
        job = int(rng.integers(len(instance.jobs)))
        factors = np.ones(len(instance))
        factors[instance.first_node[job] : instance.first_node[job + 1]] = np.exp(rng.normal(0.0, spread))
        return factors
    chosen = rng.random(len(instance)) < max(rng.choice(_SHARES), 1.0 / len(instance))
    return np.where(chosen, np.exp(rng.normal(0.0, spread, len(instance))), 1.0)
