"""Workloads as flat arrays for the compiled core: stages, DAG edges and duration lists.

A *row* is a stage of a profile. Each row has, for every profiled level, three lists of durations, one per situation
of a launch (fresh, first, rest), with all fallbacks and switched-off effects already resolved.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from decima.core.errors import WorkloadError
from decima.systems.spark.rules.durations import FIRST, FRESH, REST
from decima.systems.spark.settings import ExecutorClass, Settings
from decima.workload.jobs import Workload
from decima.workload.profile import JobProfile, Stage

# Executor counts between which the released simulator interpolates; level 2 of the profiles is not one.
RELEASED_POINTS = (5, 10, 20, 40, 50, 60, 80, 100)
_MAX_CELLS = 2**26  # of the tables between levels, 16 bytes each


def _offsets(lengths) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(np.asarray(lengths, dtype=np.int64))]).astype(np.int32)


def stage_levels(profile: JobProfile) -> list[int]:
    """Edges on the longest path from each stage down to one without children."""
    level = [0] * len(profile.stages)
    for stage in reversed(profile.topological_order):
        level[stage] = max((level[child] + 1 for child in profile.children[stage]), default=0)
    return level


def level_grid(levels: tuple[int, ...], rule: str, width: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Level indices left and right of executor counts, probability of the right one.

    Args:
        levels: Profiled executor counts of a stage, ascending.
        rule: One of :data:`decima.systems.spark.settings.LEVEL_RULES`.
        width: Number of entries.

    Returns:
        (left int32, right int32, weight float64), each of length ``width``; left == right where one level is certain.

    Source: §6.2, effect 3. Differs: all rules but ``interpolate`` follow the released code, with its own fixed points
    and the largest level where a point was not profiled.
    """
    points = np.asarray(levels if rule == "interpolate" else RELEASED_POINTS)
    known = {level: index for index, level in enumerate(levels)}
    to_index = np.array([known.get(int(point), len(levels) - 1) for point in points])
    counts = np.arange(width)
    right = np.clip(np.searchsorted(points, counts), 0, len(points) - 1)
    exact = (points[right] == counts) | (counts <= points[0]) | (counts >= points[-1])
    left = np.where(exact, right, right - 1)
    gap = np.where(exact, 1, points[right] - points[left])
    weight = np.where(exact, 0.0, (counts - points[left]) / gap)
    if rule == "inverted":
        weight = np.where(exact, 0.0, 1.0 - weight)
    if rule == "left":
        right = left
    elif rule == "right":
        left = right
    return to_index[left].astype(np.int32), to_index[right].astype(np.int32), weight


def _situations(stage: Stage, level: int, settings: Settings) -> list[tuple[np.ndarray, float]]:
    """(values, added ms) of fresh, first and rest launches at one level."""
    fresh, first, rest = stage.fresh[level], stage.first[level], stage.rest[level]
    warmup = settings.warmup_delay_ms
    cold = (fresh, 0.0) if len(fresh) else ((first, warmup) if len(first) else (rest, warmup))
    wave = (first, 0.0) if len(first) else ((fresh, 0.0) if len(fresh) else (rest, 0.0))
    later = (rest, 0.0) if len(rest) else wave
    if not settings.first_wave:
        wave = later
    if not settings.startup:
        cold = wave
    resolved: list = [None, None, None]
    resolved[FRESH], resolved[FIRST], resolved[REST] = cold, wave, later
    return resolved


class ProfileTables:
    """Arrays of a set of profiles under the settings that shape durations.

    Attributes:
        arrays: Given fields of the cluster state by name.
        extents: Their lengths by extent.
        first_row: Row of the first stage of each profile.
    """

    def __init__(self, profiles: tuple[JobProfile, ...], settings: Settings) -> None:
        stages = [stage for profile in profiles for stage in profile.stages]
        self.first_row = _offsets([len(profile.stages) for profile in profiles])[:-1]
        top = max(max(stage.levels) for stage in stages)
        width = max(top, RELEASED_POINTS[-1]) + 1
        grids: dict[tuple[int, ...], int] = {}
        row_grid = []
        row_list = []
        values: list[np.ndarray] = []
        added: list[float] = []
        for stage in stages:
            levels = stage.levels if settings.inflation else stage.levels[:1]
            row_grid.append(grids.setdefault(levels, len(grids)))
            row_list.append(len(values))
            for level in range(len(levels)):
                for samples, extra in _situations(stage, level, settings):
                    values.append(samples)
                    added.append(extra)
        if len(grids) * width > _MAX_CELLS:
            raise WorkloadError(
                f"{len(grids)} different lists of profile levels up to {top} executors need {len(grids) * width:,} "
                f"table entries; expected at most {_MAX_CELLS:,}: let stages share levels, or profile fewer executors"
            )
        lengths = np.array([len(samples) for samples in values], dtype=np.int32)
        columns = [level_grid(levels, settings.level_rule, width) for levels in grids]
        children = [profile.children for profile in profiles]
        self.width = width
        self.extents = {
            "row": len(stages),
            "row + 1": len(stages) + 1,
            "edge": sum(len(stage.parents) for stage in stages),
            "grid cell": len(grids) * width,
            "duration list": len(values),
            "duration": int(lengths.sum()),
        }
        self.arrays = {
            "child_offset": _offsets([len(kids) for profile in children for kids in profile]),
            "child": np.array([kid for profile in children for kids in profile for kid in kids], dtype=np.int32),
            "parent_offset": _offsets([len(stage.parents) for stage in stages]),
            "parent": np.array([parent for stage in stages for parent in stage.parents], dtype=np.int32),
            "row_grid": np.array(row_grid, dtype=np.int32),
            "row_list": np.array(row_list, dtype=np.int32),
            "row_level": np.concatenate([stage_levels(profile) for profile in profiles]).astype(np.int32),
            "grid_left": np.concatenate([left for left, _, _ in columns]),
            "grid_right": np.concatenate([right for _, right, _ in columns]),
            "grid_weight": np.concatenate([weight for _, _, weight in columns]),
            "list_offset": _offsets(lengths)[:-1],
            "list_length": lengths,
            "list_add_ms": np.array(added),
            "list_mean_ms": np.array(
                [
                    math.fsum(samples.tolist()) / len(samples) + extra
                    for samples, extra in zip(values, added, strict=True)
                ]
            ),
            "values_ms": np.concatenate(values),
            "row_nominal_ms": np.array([stage.mean_duration_ms for stage in stages]),
            "row_path_work_ms": np.concatenate([profile.downstream_work_ms for profile in profiles]),
            "row_path_ms": np.concatenate([profile.downstream_path_ms for profile in profiles]),
        }


@lru_cache(maxsize=16)
def profile_tables(profiles: tuple[JobProfile, ...], settings: Settings) -> ProfileTables:
    """Tables of these profiles; recent ones are kept, since many runs share them."""
    return ProfileTables(profiles, settings)


def class_tables(workload: Workload, settings: Settings) -> dict[str, np.ndarray]:
    """Fields of the cluster state about classes of executors and requests.

    Without classes there is one, which every stage fits.

    Raises:
        WorkloadError: A stage fits no class; names job, stage, request and the largest class.
    """
    memory, cpu = np.ascontiguousarray(workload.requests.T)
    classes = settings.classes or (ExecutorClass(1.0, settings.executors),)
    fits = np.zeros(len(memory), dtype=np.int32)
    for index, each in enumerate(classes):
        fitting = (memory <= each.memory) & (cpu <= each.cpu) if settings.classes else np.ones(len(memory), dtype=bool)
        fits |= fitting.astype(np.int32) << index
    if not fits.all():
        stage = int(np.flatnonzero(fits == 0)[0])
        job = int(np.searchsorted(workload.first_stage, stage, side="right")) - 1
        name = workload.jobs[job].profile.stages[stage - workload.first_stage[job]].name
        largest = classes[-1]
        raise WorkloadError(
            f"job {workload.jobs[job].name!r}, stage {name!r} asks for memory {memory[stage]:g}, {cpu[stage]:g} CPUs: "
            f"it fits no class of executors; the largest has memory {largest.memory:g} and {largest.cpu:g} CPUs"
        )
    groups, group = np.unique(fits, return_inverse=True)
    return {
        "stage_memory": memory,
        "stage_cpu": cpu,
        "stage_group": group.astype(np.int32),
        "group_fits": groups.astype(np.int32),
        "class_memory": np.array([each.memory for each in classes]),
        "class_cpu": np.array([each.cpu for each in classes]),
        "class_executors": np.array([each.executors for each in classes], dtype=np.int32),
    }


class WorkloadTables:
    """Static arrays of one workload under some settings; shared by all runs.

    Jobs keep the order of the workload; ``arrival_order`` lists the later ones by time, ties in workload order.
    """

    def __init__(self, workload: Workload, settings: Settings) -> None:
        self.workload = workload
        self._settings = settings
        profiles = workload.universe
        shape = Settings(
            mode="tables",
            level_rule=settings.level_rule,
            warmup_delay_ms=settings.warmup_delay_ms,
            first_wave=settings.first_wave,
            startup=settings.startup,
            inflation=settings.inflation,
        )
        tables = profile_tables(profiles, shape)
        of_job = workload.profile_index
        sizes = np.array([len(profile.stages) for profile in profiles])[of_job]
        first_stage = _offsets(sizes)
        self.num_jobs = len(of_job)
        self.num_stages = int(first_stage[-1])
        self.num_tasks = int(sum(job.profile.num_tasks for job in workload.jobs))
        self.grid_width = tables.width
        rows_before = np.repeat(tables.first_row[of_job] - first_stage[:-1], sizes)
        stage_row = (rows_before + np.arange(self.num_stages)).astype(np.int32)
        tasks_of_row = np.array([stage.num_tasks for profile in profiles for stage in profile.stages], dtype=np.int32)
        later = np.flatnonzero(~workload.initial)
        order = later[np.argsort(workload.arrival_ms[later], kind="stable")]
        classes = class_tables(workload, settings)
        self.arrays = (
            tables.arrays
            | classes
            | {
                "stage_job": np.repeat(np.arange(self.num_jobs), sizes).astype(np.int32),
                "stage_tasks": tasks_of_row[stage_row],
                "stage_row": stage_row,
                "job_first_stage": first_stage,
                "arrival_order": order.astype(np.int32),
                "job_initial": workload.initial.astype(np.uint8),
                "job_arrival_ms": np.where(workload.initial, 0.0, workload.arrival_ms),
                "job_work_ms": np.array([profile.work_ms for profile in profiles])[of_job],
            }
        )
        self.extents = tables.extents | {
            "job": self.num_jobs,
            "job + 1": self.num_jobs + 1,
            "stage": self.num_stages,
            "arrival": int(np.count_nonzero(~workload.initial)),
            "class": len(classes["class_memory"]),
            "group": len(classes["group_fits"]),
        }
        for array in self.arrays.values():
            array.setflags(write=False)

    def __deepcopy__(self, memo: dict) -> WorkloadTables:
        return self

    def __reduce__(self) -> tuple:
        return WorkloadTables, (self.workload, self._settings)
