"""Changes of job profiles for a simulation: levels, and one task per stage."""

from __future__ import annotations

from dataclasses import replace

from decima.workload.profile import WAVES, JobProfile, Stage, mean_ratio


def with_levels(profile: JobProfile, other: JobProfile) -> JobProfile:
    """Extend a profile of one level to the levels of another one.

    Args:
        profile: profile of one level.
        other: The same query measured at that level and at others; means are per stage and wave.
    """
    stages = []
    for stage, measured in zip(profile.stages, other.stages, strict=True):
        base, places = measured.levels.index(stage.levels[0]), range(len(measured.levels))
        lists = {
            wave: tuple(getattr(stage, wave)[0] * mean_ratio(measured, wave, index, base) for index in places)
            for wave in WAVES
        }
        stages.append(replace(stage, levels=measured.levels, **lists))
    return JobProfile(profile.name, tuple(stages), profile.source)


def comparable(profile: JobProfile, other: JobProfile | None, executors: int) -> bool:
    """Whether another profile shows how durations change with the level."""
    if other is None or len(other.stages) != len(profile.stages):
        return False
    common = set.intersection(*(set(stage.levels) for stage in other.stages))
    return executors in common and all(stage.levels == other.stages[0].levels for stage in other.stages)


def fill_first_waves(profile: JobProfile, warm: JobProfile | None) -> JobProfile:
    """Complete a profile of runs on new executors with warm first waves.

    On new executors a stage without parents has a fresh wave instead of a first one. Only other runs show the time of
    its first wave on executors that are there already, which is needed when start-up is switched off.
    """
    if warm is None or len(warm.stages) != len(profile.stages):
        return profile
    stages = []
    for stage, other in zip(profile.stages, warm.stages, strict=True):
        known = dict(zip(other.levels, other.first, strict=True))
        first = tuple(
            values if len(values) else known.get(level, values)
            for level, values in zip(stage.levels, stage.first, strict=True)
        )
        stages.append(replace(stage, first=first))
    return JobProfile(profile.name, tuple(stages), profile.source)


def one_task_per_stage(profile: JobProfile, executors: int) -> tuple[JobProfile, list[int]]:
    """Split a job into stages of one task each.

    In the simulator, as in the paper, an executor works on a stage until that has no task left. Unmodified Spark
    decides anew after every task. The first tasks of a stage, one per executor, take durations of its
    first wave, all others of its later waves.

    Returns:
        The job, and for each of its stages the index of the stage it is a task of.
    """
    stages: list[Stage] = []
    origin: list[int] = []
    tasks: dict[int, tuple[int, ...]] = {}
    for index in profile.topological_order:
        stage = profile.stages[index]
        parents = tuple(task for parent in stage.parents for task in tasks[parent])
        tasks[index] = tuple(range(len(stages), len(stages) + stage.num_tasks))
        later = tuple(
            rest if len(rest) else first if len(first) else fresh
            for fresh, first, rest in zip(stage.fresh, stage.first, stage.rest, strict=True)
        )
        for number in range(stage.num_tasks):
            task = replace(stage, name=f"{stage.name}/{number}", num_tasks=1, parents=parents)
            stages.append(task if number < executors else replace(task, first=later, rest=later))
            origin.append(index)
    return JobProfile(profile.name, tuple(stages), profile.source), origin
