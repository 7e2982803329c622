"""Plans from jobs and a cluster, and schedulers side by side."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from decima.core.errors import ConfigError
from decima.core.progress import progress_bar
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
    progress: str | None = None,
) -> pandas.DataFrame:
    """Schedule instances with several schedulers each.

    Args:
        schedulers: Texts as for :func:`plan`.
        instances: What to schedule.
        seed: Source of chance of the first instance; the next has the next one.
        budget: Schedules that a search over priorities tries on each instance (``search``); no search for 0.
        progress: Label of a progress bar; none without.
        floor: Whether rows of the scheduler ``lower_bound`` are added, which have a makespan only.

    Returns:
        One row per instance and scheduler: instance (number), scheduler, the fields of
        :class:`decima.systems.unequal.objectives.Metrics`, bound_s (no schedule is shorter), above_bound (makespan over
        it).
    """
    import pandas

    from decima.systems.unequal.optimum.bounds import lower_bound
    from decima.systems.unequal.optimum.priority_search import search

    made = [make_scheduler(text) for text in schedulers]
    rows = []
    bar = progress_bar(progress, len(instances), "instance")
    for number, instance in enumerate(instances):
        bound_s = lower_bound(instance)
        for scheduler in made:
            judged = asdict(metrics(scheduler.schedule(instance, seed + number)))
            rows.append({"instance": number, "scheduler": scheduler.name, **judged, "bound_s": bound_s})
        if budget > 0:
            found = search(instance, budget, seed + number)
            judged = asdict(metrics(found.schedule))
            rows.append({"instance": number, "scheduler": "search", **judged, "bound_s": bound_s})
        if floor:
            rows.append({"instance": number, "scheduler": "lower_bound", "makespan_s": bound_s, "bound_s": bound_s})
        bar.update()
    bar.close()
    table = pandas.DataFrame(rows)
    table["above_bound"] = table["makespan_s"] / table["bound_s"]
    return table
