"""Batches of the experiment on real Spark as workloads of the simulator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from decima.core.errors import WorkloadError
from decima.workload import arrivals
from decima.workload.jobs import Job, Workload
from decima.workload.measured import LABEL, measured_profiles
from decima.workload.profile import JobProfile
from decima.workload.sources import TRAINING_SEED
from measure.fidelity.variants import at_level
from measure.plan import Plan


def plan_profiles(plan: Plan) -> dict[str, JobProfile]:
    """Measured profiles by name, with durations at the plan's number of executors.

    Raises:
        WorkloadError: nothing was measured at this scale or with so many executors.
    """
    profiles = measured_profiles(f"{plan.scale:g}g")
    return {profile.name: at_level(profile, plan.executors) for profile in profiles}


def batch_workload(
    plan: Plan, number: int, profiles: Mapping[str, JobProfile], arrivals_ms: Sequence[float]
) -> Workload:
    """Jobs of a batch in its order.

    Args:
        plan: the experiment.
        number: which batch.
        profiles: by name.
        arrivals_ms: of the jobs, float64 [queries].

    Raises:
        WorkloadError: a profile is missing.
    """
    names = [plan.profile(query) for query in plan.batch(number)]
    if missing := [name for name in names if name not in profiles]:
        raise WorkloadError(f"there is no profile {missing[0]} for batch {number}")
    jobs = tuple(Job(profiles[name], arrival_ms) for name, arrival_ms in zip(names, arrivals_ms, strict=True))
    return Workload(jobs, LABEL, tuple(profiles.values()))


def training_workloads(plan: Plan, count: int) -> list[Workload]:
    """Batches to tune on, from the same queries with seeds of training.

    Raises:
        WorkloadError: nothing was measured at this scale or with so many executors.
    """
    profiles = tuple(plan_profiles(plan).values())
    seeds = range(TRAINING_SEED, TRAINING_SEED + count)
    return [arrivals.batch(profiles, plan.queries, seed, label=LABEL) for seed in seeds]
