"""Search for good priorities of one instance: the gain that node order allows."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from decima.core.checks import check_whole
from decima.core.progress import progress_bar
from decima.systems.heterogeneous.engine import Planner
from decima.systems.heterogeneous.optimum.bounds import lower_bound
from decima.systems.heterogeneous.result import Schedule
from decima.systems.heterogeneous.schedulers.priorities import TRANSFER_PARTS, rank_up
from decima.systems.heterogeneous.settings import Rules
from decima.systems.heterogeneous.workload import Instance

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
