"""Small workloads on which ``check_scheduler`` tries a scheduler."""

from __future__ import annotations

import functools

import numpy as np

from decima.workload.jobs import Job, Workload
from decima.workload.profile import JobProfile
from decima.workload.synthetic import SyntheticParameters, synthetic_profiles

# Classes of executors for the workload whose stages ask for memory.
CLASSES = ((0.4, 2), (0.7, 1), (1.0, 2))
_FEW_TASKS = {"median_tasks": 6.0, "task_spread": 0.8, "max_tasks": 20, "max_samples": 6, "levels": (2, 5, 10, 50)}


def _profiles(count: int, stages: int, depth: float) -> tuple[JobProfile, ...]:
    shape = SyntheticParameters(
        min_stages=max(1, stages - 2), max_stages=stages, mean_stages=stages, depth_ratio=depth, **_FEW_TASKS
    )
    return synthetic_profiles(count, 0, shape)


@functools.cache
def small_workloads() -> dict[str, Workload]:
    """Workloads by name; the same in every process."""
    mixed = _profiles(7, 8, 0.6)
    single = _profiles(1, 1, 1.0)[0]
    # The first jobs of the stream come together, the last ones find an empty cluster.
    times_ms = (0.0, 5_000.0, 5_000.0, 12_500.0, 60_000.0, 10_000_000.0, 10_000_000.0)
    rng = np.random.default_rng(0)
    asking = [
        Job(profile, at, initial=False, requests=1.0 - rng.random(len(profile.stages)))
        for profile, at in zip(mixed, times_ms, strict=True)
    ]
    cases = {
        "memory": asking,
        "batch": [Job(profile) for profile in mixed],
        "stream": [Job(profile, at, initial=False) for profile, at in zip(mixed, times_ms, strict=True)],
        "single job": [Job(mixed[3])],
        "one stage": [Job(single)],
        "identical jobs": [Job(mixed[2])] * 5,
        "wide DAG": [Job(profile) for profile in _profiles(2, 24, 0.05)],
        "deep DAG": [Job(profile) for profile in _profiles(2, 18, 1.0)],
    }
    return {name: Workload(tuple(jobs), name) for name, jobs in cases.items()}
