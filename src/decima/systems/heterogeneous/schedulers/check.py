"""Check whether a scheduler keeps to the interface and to the rules of the model."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from decima.core.errors import SchedulerError
from decima.core.random import without_global_chance
from decima.systems.heterogeneous.cluster import Cluster
from decima.systems.heterogeneous.generators import canonical, random_dag
from decima.systems.heterogeneous.result import Schedule, validate
from decima.systems.heterogeneous.schedulers.registry import PlanScheduler, make_scheduler, schedule_with
from decima.systems.heterogeneous.workload import Instance, Job


@dataclass(frozen=True)
class CheckReport:
    """What was tried."""

    name: str  # name of the scheduler
    instances: int
    copies: int  # of nodes, in all schedules

    def __str__(self) -> str:
        return f"{self.name} keeps to the rules: {self.instances} instances, {self.copies} executions of nodes"


def check_scheduler(
    scheduler: str | PlanScheduler, *, instances: Mapping[str, Instance] | None = None, seed: int = 0
) -> CheckReport:
    """Try a scheduler on small instances and raise on the first mistake.

    Its schedules must keep the rules of :func:`decima.systems.heterogeneous.validate`, be the same for the same seed,
    and leave the global generators of NumPy and ``random`` alone.

    Args:
        scheduler: Registered name, ``file.py:NAME``, or an object with ``name`` and ``schedule(instance, seed)``.
        instances: Instances by name; omitted: one of every kind (speeds, matrix of costs, a rate for each pair, jobs
            that arrive later, a single executor, nodes without work).
        seed: Random seed of the scheduler, 0 or more.

    Raises:
        SchedulerError: It fails, returns no schedule, or decides otherwise for the same seed.
        InvalidScheduleError: A schedule breaks a rule; the message names the first breach.

    Example:
        >>> from decima.systems.heterogeneous import check_scheduler
        >>> print(check_scheduler("heft"))
        heft keeps to the rules: 6 instances, 39 executions of nodes
    """
    tested = make_scheduler(scheduler)
    instances = small_instances() if instances is None else instances
    copies = 0
    for label, instance in instances.items():
        where = f"scheduler {tested.name!r}, instance {label!r}"
        with without_global_chance(lambda message, where=where: SchedulerError(f"{where}: {message}")):
            first, second = (schedule_with(tested, instance, seed) for _ in range(2))
        validate(instance, first)
        if not _same(first, second):
            raise SchedulerError(
                f"{where}: two schedules of seed {seed} differ; expected the same: chance from a generator made of the "
                "seed, and nothing kept between calls"
            )
        copies += len(first)
    return CheckReport(tested.name, len(instances), copies)


def small_instances() -> dict[str, Instance]:
    """Small instances that differ in what clusters and jobs have."""
    fork = Job("fork", [4.0, 2.0, 0.0, 3.0], [(0, 1), (0, 2), (1, 3), (2, 3)], [6.0, 0.0, 1.0, 2.0])
    late = replace(fork, name="late", arrival_s=3.0)
    rates = [[1.0, 2.0], [4.0, 1.0]]
    return {
        "matrix of costs": canonical(),
        "random matrix": random_dag(nodes=11, executors=3, seed=1, ccr=2.0),
        "speeds": Instance([fork], Cluster([1.0, 2.5], 2.0, 0.5)),
        "rates of pairs, later arrival": Instance([fork, late], Cluster([1.0, 2.0], rates)),
        "one executor": Instance([fork], Cluster([2.0])),
        "no work": Instance([Job("empty", [0.0, 0.0], [(1, 0)], [0.0])], Cluster([1.0, 1.0], 1.0)),
    }


def _same(first: Schedule, second: Schedule) -> bool:
    columns = ("node", "executor", "start_s", "finish_s")
    return all(np.array_equal(getattr(first, name), getattr(second, name)) for name in columns)
