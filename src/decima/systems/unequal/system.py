"""Plans from jobs and a cluster, and schedulers side by side."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

from decima.core.errors import ConfigError
from decima.core.progress import progress_bar
from decima.evaluation.workers import make_workers
from decima.systems.unequal.cluster import Cluster
from decima.systems.unequal.objectives import metrics
from decima.systems.unequal.result import Schedule
from decima.systems.unequal.schedulers.registry import PlanScheduler, make_scheduler
from decima.systems.unequal.workload import Instance, Job

if TYPE_CHECKING:
    import pandas


def plan(
    jobs: Instance | Iterable[Job],
    cluster: Cluster | None = None,
    scheduler: str | PlanScheduler = "heft",
    *,
    seed: int = 0,
    **settings: Any,
) -> Schedule:
    """Schedule jobs on a cluster.

    Args:
        jobs: Jobs, or an instance, which has its cluster.
        cluster: The cluster; omitted for an instance.
        scheduler: A name with settings such as ``"high_rank_up_deft:slots=insertion"``, or a scheduler.
        seed: Source of all chance, 0 or more.
        **settings: Settings of the scheduler by name.

    Raises:
        WorkloadError: Jobs or cluster are not as expected.
        UnknownSchedulerError: No scheduler has that name.
        ConfigError: A setting is unknown or out of range.
    """
    if isinstance(jobs, Instance):
        if cluster is not None:
            raise ConfigError("an instance has its cluster; expected jobs, or no cluster beside it")
        instance = jobs
    else:
        instance = Instance([jobs] if isinstance(jobs, Job) else list(jobs), cluster)
    return make_scheduler(scheduler, **settings).schedule(instance, seed)


def compare(
    schedulers: Sequence[str],
    instances: Sequence[Instance],
    *,
    seed: int = 0,
    floor: bool = True,
    budget: int = 0,
    workers: int | None = None,
    backend: str | None = None,
    progress: str | None = None,
) -> pandas.DataFrame:
    """Schedule instances with several schedulers each.

    Args:
        schedulers: Texts as for :func:`plan`.
        instances: What to schedule.
        seed: Source of chance of the first instance; the next has the next one.
        budget: Schedules that a search over priorities tries on each instance (``search``); no search for 0.
        workers: Workers, all cores by default. The result does not depend on it.
        backend: Where workers are, see :func:`decima.evaluation.workers.make_workers`.
        progress: Label of a progress bar; none without.
        floor: Whether rows of the scheduler ``lower_bound`` are added, which have a makespan only.

    Returns:
        One row per instance and scheduler: instance (number), scheduler, the fields of
        :class:`decima.systems.unequal.objectives.Metrics`, bound_s (no schedule is shorter), above_bound (makespan over
        it).
    """
    import pandas

    runs = _Runs([make_scheduler(text) for text in schedulers], seed, floor, budget)
    pool = make_workers(runs, backend, workers)
    try:
        with progress_bar(progress, len(instances), "instance") as bar:
            rows = pool.map(list(enumerate(instances)), lambda _: bar.update())
    finally:
        pool.close()
    table = pandas.DataFrame(list(chain.from_iterable(rows)))
    table["above_bound"] = table["makespan_s"] / table["bound_s"]
    return table


@dataclass(frozen=True)
class _Runs:
    """Function from (number, instance) to the rows of :func:`compare` about it."""

    schedulers: Sequence[PlanScheduler]
    seed: int
    floor: bool
    budget: int

    def __call__(self, item: tuple[int, Instance]) -> list[dict[str, Any]]:
        from decima.systems.unequal.optimum.bounds import lower_bound
        from decima.systems.unequal.optimum.priority_search import search

        number, instance = item
        bound_s, seed = lower_bound(instance), self.seed + number
        schedules = [(scheduler.name, scheduler.schedule(instance, seed)) for scheduler in self.schedulers]
        if self.budget > 0:
            schedules.append(("search", search(instance, self.budget, seed).schedule))
        judged = [(name, asdict(metrics(schedule))) for name, schedule in schedules]
        judged += [("lower_bound", {"makespan_s": bound_s})] if self.floor else []
        return [{"instance": number, "scheduler": name, **each, "bound_s": bound_s} for name, each in judged]
