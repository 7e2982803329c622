"""Scaling model of measured profiles to other executor counts and input sizes.

A task that took d on n0 executors is expected to take d (n / n0)^p on n executors; p belongs to the query and the
wave. More input makes more tasks of the same duration: task counts that grow do so in proportion to the scale factor,
others stay. With partitions k times as large there are k times fewer tasks, and each does the work of k tasks. This is
one as measured, and k - 1 later ones without the fixed cost of a task.

Everything here is arithmetic on profiles; `measure.scaling_fit` estimates the parameters, `docs/measured-workload.md`
tests them.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

from decima.core.errors import WorkloadError
from decima.core.files import atomic_write_bytes, atomic_write_text, read_json
from decima.workload import embedded
from decima.workload.measured import FORMAT, measured_profiles, parse_name
from decima.workload.profile import WAVES, JobProfile, Stage, check_writable
from decima.workload.sources import QUERIES
from decima.workload.tpch.profiles import RELEASED_SIZES

MODEL_PATH = embedded.PATH.with_name("tpch_spark_scaling.json")
MOST_SAMPLES = 16
# Partitions are so many times as large as the measured ones: 32 MiB of parquet per scan task, about as much as 128 MiB
# of text.
PARTITION = 8
GROWING, FIXED = "growing", "fixed"
KINDS = (GROWING, FIXED)


@dataclass(frozen=True)
class Pooled:
    """Exponents of one effect, partially pooled over queries."""

    mean: float  # of the population of queries
    low: float  # end of the 95 % confidence interval of the mean
    high: float  # its other end
    spread: float  # standard deviation between queries, noise taken out
    noise: float  # residual standard deviation of the log duration
    # Exponent of each query, shrunk towards the mean; a query that is not there has the mean.
    of_query: Mapping[int, float] = field(default_factory=dict)

    def value(self, query: int) -> float:
        """Exponent for a query."""
        return self.of_query.get(query, self.mean)


@dataclass(frozen=True)
class ScalingModel:
    """Exponents of all effects, and the fixed cost of a task."""

    parallelism: Mapping[str, Pooled]  # by wave, of the number of executors
    # By kind of stage, of the scale factor. For the report alone: measured over a factor of two, it is not applied over
    # one of two hundred.
    size: Mapping[str, Pooled]
    overhead_ms: float  # what a task costs whatever it does

    def factor(self, query: int, wave: str, executors: float) -> float:
        """Expected duration of a task over that on one executor.

        Args:
            query: 1 to 22.
            wave: one of `WAVES`.
            executors: at least 1.
        """
        return executors ** self.parallelism[wave].value(query)


def write_model(model: ScalingModel, path: Path) -> None:
    """Write a model as JSON, atomically; numbers are rounded to four places."""
    atomic_write_text(path, json.dumps(_rounded(asdict(model)), indent=1) + "\n")


def read_model(path: Path) -> ScalingModel:
    """Read a model that `write_model` wrote.

    Raises:
        WorkloadError: the file is missing or not such a model.
    """
    try:
        parts = read_json(path)
        return ScalingModel(
            **{
                effect: {
                    name: Pooled(**{**values, "of_query": {int(key): one for key, one in values["of_query"].items()}})
                    for name, values in parts[effect].items()
                }
                for effect in ("parallelism", "size")
            },
            overhead_ms=parts["overhead_ms"],
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise WorkloadError(f"{path} is not a scaling model: {error}") from error


def stage_kinds(small: JobProfile, large: JobProfile) -> tuple[str, ...]:
    """Whether each stage's task count grows with the input, from two scales."""
    return tuple(
        GROWING if before.num_tasks < after.num_tasks else FIXED
        for before, after in zip(small.stages, large.stages, strict=True)
    )


def extrapolate(
    bases: Sequence[JobProfile],
    model: ScalingModel,
    *,
    name: str,
    source: str,
    query: int,
    base_scale: float,
    scale: float,
    kinds: Sequence[str],
    partition: int,
    levels: Sequence[int],
    most_samples: int,
) -> JobProfile:
    """Make a profile at another scale and other levels, durations in tenths of a millisecond.

    Every level has the durations of all levels of the base, taken to that level by the model. Each wave keeps the
    number of samples that a run with that number of executors would record, in proportion above `most_samples`.

    Args:
        bases: what was measured of the query, largest scale first; a wave that was not measured there is taken from the
            next.
        model: the exponents.
        name: name of the new profile.
        source: source of the new profile.
        query: 1 to 22.
        base_scale: scale factor of the first base.
        scale: scale factor of the new profile.
        kinds: per stage.
        partition: size of the new partitions over that of the base, at least 1.
        levels: executor counts of the new profile, ascending.
        most_samples: longest list of durations.
    """
    stages = []
    for stage, growth, *others in zip(bases[0].stages, kinds, *(base.stages for base in bases[1:]), strict=True):
        tasks = stage.num_tasks
        if growth == GROWING:
            tasks = max(1, round(tasks * (scale / base_scale) / partition))
        lists: dict[str, list[np.ndarray]] = {wave: [] for wave in WAVES}
        at_one = {}
        for wave in WAVES:
            measured_in = next((one for one in (stage, *others) if any(map(len, getattr(one, wave)))), stage)
            measured = zip(measured_in.levels, getattr(measured_in, wave), strict=True)
            at_one[wave] = np.concatenate([values / model.factor(query, wave, level) for level, values in measured])
        if growth == GROWING:
            at_one = widen(at_one, partition, model.overhead_ms)
        at_one = {wave: np.sort(values) for wave, values in at_one.items()}
        for level in levels:
            counts = samples(tasks, level, most_samples, [len(at_one[wave]) for wave in WAVES])
            for wave, count in zip(WAVES, counts, strict=True):
                slower = model.factor(query, wave, level)
                lists[wave].append(np.maximum(np.rint(10.0 * slower * thin(at_one[wave], count)), 1.0) / 10.0)
        stages.append(Stage(stage.name, tasks, stage.parents, tuple(levels), *lists.values()))
    return JobProfile(name, tuple(stages), source)


def widen(waves: Mapping[str, np.ndarray], partition: int, overhead_ms: float) -> dict[str, np.ndarray]:
    """Estimate durations of tasks with larger partitions.

    Later tasks differ from each other by the square root of `partition` more than measured ones do, as sums of
    independent tasks would. Fresh and first ones differ by as much as measured, since what sets them apart occurs once.

    Args:
        waves: durations by wave, float64 ms.
        partition: how many measured tasks one of them stands for.
        overhead_ms: what a task costs whatever it does; never more than the quickest task.
    """
    later = waves["rest"] if len(waves["rest"]) else waves["first"] if len(waves["first"]) else waves["fresh"]
    mean = later.mean()
    more = (partition - 1) * (mean - min(overhead_ms, later.min()))
    wide = {wave: values + more for wave, values in waves.items()}
    spread = np.sqrt(partition) * (waves["rest"] - mean) + mean + more
    return wide | {"rest": np.maximum(spread, waves["rest"])}


def samples(num_tasks: int, level: int, most: int, available: Sequence[int]) -> tuple[int, int, int]:
    """Numbers of durations to keep of the waves fresh, first and rest.

    There is a fresh or first task for each executor of the stage, the rest are later ones; so there is no rest where
    every task has an executor of its own. A wave without any measured duration gets none, and the others are kept then,
    so that no level is empty.

    Args:
        num_tasks: tasks of the stage.
        level: number of executors.
        most: length of the longest list.
        available: measured durations per wave.
    """
    at_once = min(level, num_tasks)
    wanted = np.array([at_once, at_once, num_tasks - at_once], dtype=float)
    wanted *= min(1.0, most / wanted.max())
    counts = np.minimum(np.ceil(wanted), available).astype(int)
    if not counts.any():
        counts[np.flatnonzero(available)[-1]] = 1
    return tuple(int(count) for count in counts)


def thin(values: np.ndarray, count: int) -> np.ndarray:
    """Reduce values to `count` means of stretches of the sorted values.

    Args:
        values: float64, ascending.
        count: at most the number of all.
    """
    if count in (0, len(values)):
        return values[:count]
    bounds = np.linspace(0.0, len(values), count + 1)
    total = np.concatenate([[0.0], np.cumsum(values)])
    at = np.interp(bounds, np.arange(len(values) + 1), total)
    return np.diff(at) / np.diff(bounds)


def _rounded(value):
    if isinstance(value, dict):
        return {key: _rounded(one) for key, one in value.items()}
    return round(value, 4) if isinstance(value, float) else value


def extrapolated_profiles(model: ScalingModel, profiles: Sequence[JobProfile] | None = None) -> list[JobProfile]:
    """Rebuild all profiles from the largest measured scale and the scaling model.

    Args:
        model: the exponents.
        profiles: measured profiles; those of the package when omitted.
    """
    profiles = measured_profiles() if profiles is None else profiles
    table = {parse_name(profile.name): profile for profile in profiles}
    scales = sorted({scale for _, scale in table})
    small, large = ([table[query, scale] for query in QUERIES] for scale in (scales[0], scales[-1]))
    return [
        extrapolate(
            (large_profile, small_profile),
            model,
            name=f"q{query}-{size}",
            source=embedded.ORIGIN,
            query=query,
            base_scale=scales[-1],
            scale=float(size.removesuffix("g")),
            kinds=stage_kinds(small_profile, large_profile),
            partition=PARTITION,
            levels=embedded.LEVELS,
            most_samples=MOST_SAMPLES,
        )
        for size in RELEASED_SIZES
        for query, small_profile, large_profile in zip(QUERIES, small, large, strict=True)
    ]


def write_arrays(profiles: Iterable[JobProfile], path: str | os.PathLike, metadata: Mapping[str, str]) -> None:
    """Write profiles to a file, atomically.

    Args:
        profiles: Without requests for memory or CPUs and without sizes of what parents send.
        path: The file.
        metadata: Further text to keep in the file.

    Raises:
        WorkloadError: A profile holds what the file has no place for.
    """
    profiles = list(profiles)
    for profile in profiles:
        check_writable(profile)
        if any((stage.memory, stage.cpu, stage.data_mb) != (None, 1.0, None) for stage in profile.stages):
            raise WorkloadError(f"profile {profile.name!r} has requests or sizes; such files cannot hold them")
    lists = [
        values for profile in profiles for stage in profile.stages for wave in WAVES for values in getattr(stage, wave)
    ]
    card = {
        "format": FORMAT,
        "metadata": dict(metadata),
        "profiles": [
            [profile.name, profile.source, [_stage_card(stage) for stage in profile.stages]] for profile in profiles
        ],
    }
    text = json.dumps(card, separators=(",", ":"), allow_nan=False).encode()
    content = io.BytesIO()
    np.savez(content, card=np.frombuffer(text, np.uint8), durations_ms=np.concatenate(lists))
    atomic_write_bytes(Path(path), content.getvalue())


def _stage_card(stage: Stage) -> list:
    """All of a stage but its durations, and their number by wave and level."""
    counts = [[len(values) for values in getattr(stage, wave)] for wave in WAVES]
    parents, levels = ([int(value) for value in values] for values in (stage.parents, stage.levels))
    return [stage.name, int(stage.num_tasks), parents, levels, *counts]
