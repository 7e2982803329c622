"""Durations of a profile at one number of executors, measured or between."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from decima.core.errors import WorkloadError
from decima.workload.profile import WAVES, JobProfile, Stage


def at_level(profile: JobProfile, executors: int) -> JobProfile:
    """Copy of a profile with the durations of one level only.

    Raises:
        WorkloadError: a stage was not measured at that level.
    """
    stages = []
    for stage in profile.stages:
        if executors not in stage.levels:
            raise WorkloadError(f"{profile.name!r}, {stage.name}: no durations with {executors} executors")
        at = stage.levels.index(executors)
        lists = {wave: (getattr(stage, wave)[at],) for wave in WAVES}
        stages.append(replace(stage, levels=(executors,), **lists))
    return replace(profile, stages=tuple(stages))


def mean_ratio(stage: Stage, wave: str, level: int, base: int) -> float:
    """Ratio of the mean task durations at two levels, in a common wave.

    Waves are never taken together, since their shares differ with the number of executors.
    """
    for name in (wave, "rest", "first"):
        here, there = getattr(stage, name)[level], getattr(stage, name)[base]
        if len(here) and len(there) and there.mean() > 0.0:
            return float(here.mean() / there.mean())
    return 1.0


def at_sizes(profile: JobProfile, sizes: Sequence[int], contention: Sequence[float] | None = None) -> JobProfile:
    """Copy of a profile with durations of several sizes of the cluster as levels.

    Durations of the nearest measured level, in the ratio of the executors, are scaled: between two levels so that their
    mean lies on the line between both, over the logarithm of the executors; outside, and where there is one level only,
    by (1 + c n) / (1 + c m) from m to n executors, where c is the contention of the stage and no more executors count
    than it has tasks.

    Args:
        profile: The profile.
        sizes: Executors of each cluster, ascending.
        contention: Float64 [stages], what an executor adds to the time of a task, as a share of its CPU time; 0
            without it, where executors do not disturb each other.
    """
    stages = []
    for stage, share in zip(profile.stages, contention or [0.0] * len(profile.stages), strict=True):
        lists = {wave: tuple(_scaled(stage, wave, size, share) for size in sizes) for wave in WAVES}
        stages.append(replace(stage, levels=tuple(sizes), **lists))
    return replace(profile, stages=tuple(stages))


def _scaled(stage: Stage, wave: str, executors: int, contention: float) -> np.ndarray:
    """Durations of the nearest level of a wave, scaled to another number of executors."""
    levels = stage.levels
    base = min(range(len(levels)), key=lambda index: (abs(math.log(levels[index] / executors)), levels[index]))
    durations = getattr(stage, wave)[base]
    if not levels[0] < executors < levels[-1]:
        before, now = (min(count, stage.num_tasks) for count in (levels[base], executors))
        return durations * ((1.0 + contention * now) / (1.0 + contention * before))
    if levels[base] == executors:
        return durations
    other = base + 1 if levels[base] < executors else base - 1
    share = math.log(executors / levels[base]) / math.log(levels[other] / levels[base])
    return durations * (1.0 + share * (mean_ratio(stage, wave, other, base) - 1.0))
