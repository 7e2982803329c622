"""Profiles of jobs: DAGs of stages with profiled task durations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from decima.core.checks import LARGEST_MS, is_name, is_number, is_whole
from decima.core.errors import WorkloadError

if TYPE_CHECKING:
    import networkx

WAVES = ("fresh", "first", "rest")
MAX_TASKS = 2**31 - 1
LARGEST_MB = 1e15
MAX_LEVEL = 10_000  # the simulator keeps an entry for every executor count up to the highest level


@dataclass(frozen=True, eq=False)
class Stage:
    """Stage of a job, checked by its `JobProfile`."""

    name: str  # unique inside the job
    num_tasks: int
    parents: tuple[int, ...]  # indices, inside the job, of the stages that must finish first
    levels: tuple[int, ...]  # executor counts the job was profiled with, ascending
    # Durations per level, float64 ms. Any may be empty, but every level has one in one of the three waves at least.
    fresh: tuple[np.ndarray, ...]  # of tasks that ran first on an executor new to the job
    first: tuple[np.ndarray, ...]  # of the first task of an executor in this stage if not fresh
    rest: tuple[np.ndarray, ...]  # of later tasks of an executor in this stage
    # What a task asks for, unless its job says otherwise: memory in the unit of the classes of executors (None:
    # nothing), and CPUs.
    memory: float | None = None
    cpu: float = 1.0
    # Megabytes that each parent sends, in the order of `parents`; None: not known. The Spark simulator ignores them.
    data_mb: tuple[float, ...] | None = None
    # Duration of a task in ms that schedulers observe, where that is not the mean of its durations. Files of
    # workloads do not hold it.
    reported_ms: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "parents", tuple(self.parents))
        object.__setattr__(self, "levels", tuple(self.levels))
        if self.data_mb is not None:
            object.__setattr__(self, "data_mb", tuple(self.data_mb))
        for wave in WAVES:
            lists = getattr(self, wave)
            object.__setattr__(self, wave, tuple(_durations(self.name, wave, values) for values in lists))

    @property
    def request(self) -> tuple[float, float]:
        """Memory, 0 where none is asked for, and CPUs of a task."""
        return (0.0 if self.memory is None else float(self.memory)), float(self.cpu)

    @property
    def all_durations_ms(self) -> np.ndarray:
        """Recorded durations of all waves and levels in one array, float64 ms."""
        return np.concatenate([*self.fresh, *self.first, *self.rest])

    @cached_property
    def mean_duration_ms(self) -> float:
        """Nominal task duration in ms: the reported one, else the mean over all durations."""
        if self.reported_ms is not None:
            return float(self.reported_ms)
        pooled = self.all_durations_ms
        return math.fsum(pooled.tolist()) / len(pooled)  # fsum: exact, the same on every platform

    @property
    def work_ms(self) -> float:
        """Nominal executor time in ms: tasks times mean duration."""
        return self.num_tasks * self.mean_duration_ms

    def equals(self, other: Stage) -> bool:
        """True when all fields, durations included, are the same."""
        fields = ("name", "num_tasks", "parents", "levels", "memory", "cpu", "data_mb", "reported_ms")
        return all(getattr(self, field) == getattr(other, field) for field in fields) and all(
            np.array_equal(durations, others)
            for wave in WAVES
            for durations, others in zip(getattr(self, wave), getattr(other, wave), strict=True)
        )


@dataclass(frozen=True, eq=False)
class JobProfile:
    """DAG of stages; several jobs of a workload may share one.

    Raises:
        WorkloadError: a stage is malformed or the parents do not form a DAG; names job and stage.
    """

    name: str  # shown in tables and errors
    stages: tuple[Stage, ...]  # in any order; an edge goes parent -> child
    source: str  # where it comes from: `tpch`, `spark`, `extrapolated`, `synthetic`, `json`, ...

    def __repr__(self) -> str:
        return f"JobProfile({self.name!r}, {len(self.stages)} stages, {self.num_tasks} tasks, {self.source!r})"

    def __post_init__(self) -> None:
        object.__setattr__(self, "stages", tuple(self.stages))
        for field in ("name", "source"):
            value = getattr(self, field)
            if not is_name(value):
                raise WorkloadError(f"job {self.name!r}: {field} is {value!r}; expected a non-empty Unicode text")
        if not self.stages:
            raise WorkloadError(f"job {self.name!r} has no stages; expected at least one")
        seen: set[str] = set()
        for stage in self.stages:
            where = f"job {self.name!r}, stage {stage.name!r}"
            if not is_name(stage.name) or stage.name in seen:
                raise WorkloadError(f"{where}: the stage name must be a non-empty Unicode text, unique inside the job")
            seen.add(stage.name)
            if not is_whole(stage.num_tasks) or not 1 <= stage.num_tasks <= MAX_TASKS:
                raise WorkloadError(
                    f"{where}: num_tasks is {stage.num_tasks!r}; expected an integer from 1 to {MAX_TASKS}"
                )
            if stage.memory is not None:
                check_request(where, "memory", stage.memory)
            check_request(where, "cpu", stage.cpu)
            if stage.reported_ms is not None:
                check_request(where, "reported_ms", stage.reported_ms)
            _check_data(where, stage)
            _check_levels(where, stage)
            _check_durations(where, stage)
        _check_dag(self)

    @cached_property
    def graph(self) -> networkx.DiGraph:
        """DAG over stage indices; an edge goes parent -> child."""
        import networkx

        graph = networkx.DiGraph()
        graph.add_nodes_from(range(len(self.stages)))
        graph.add_edges_from((parent, child) for child, stage in enumerate(self.stages) for parent in stage.parents)
        return graph

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """Indices of the children of each stage, ascending."""
        children: list[list[int]] = [[] for _ in self.stages]
        for index, stage in enumerate(self.stages):
            for parent in stage.parents:
                children[parent].append(index)
        return tuple(map(tuple, children))

    @cached_property
    def topological_order(self) -> tuple[int, ...]:
        """Indices of the stages, parents before children; the smallest index first among equals."""
        if _parents_come_first(self.stages):
            return tuple(range(len(self.stages)))
        import networkx

        return tuple(networkx.lexicographical_topological_sort(self.graph))

    @cached_property
    def num_tasks(self) -> int:
        """Number of tasks of all stages."""
        return sum(stage.num_tasks for stage in self.stages)

    @cached_property
    def work_ms(self) -> float:
        """Nominal executor time of all stages in ms."""
        return math.fsum(stage.work_ms for stage in self.stages)

    @cached_property
    def critical_path_ms(self) -> float:
        """Critical path in ms with one mean task duration per stage."""
        return float(self.downstream_path_ms.max())

    @cached_property
    def downstream_path_ms(self) -> np.ndarray:
        """Critical path from each stage down, float64 ms [stages]."""
        return frozen(self.longest_path_down([stage.mean_duration_ms for stage in self.stages]))

    @cached_property
    def downstream_work_ms(self) -> np.ndarray:
        """Work on the heaviest path from each stage down, itself included, float64 ms [stages].

        Source: §5.1, footnote 5.
        """
        return frozen(self.longest_path_down([stage.work_ms for stage in self.stages]))

    def equals(self, other: JobProfile) -> bool:
        """True when all fields, durations included, are the same."""
        if (self.name, self.source, len(self.stages)) != (other.name, other.source, len(other.stages)):
            return False
        return all(stage.equals(counterpart) for stage, counterpart in zip(self.stages, other.stages, strict=True))

    def longest_path_down(self, weight: Sequence[float]) -> np.ndarray:
        """Largest sum of weights on a path down from each stage, float64 [stages]."""
        length = np.zeros(len(self.stages))
        for index in reversed(self.topological_order):
            length[index] = weight[index] + max((length[child] for child in self.children[index]), default=0.0)
        return length


def with_tasks(name: str, stages: Sequence[Stage], source: str) -> JobProfile:
    """Profile without stages that have no tasks.

    Such a stage passes its parents on to its children.

    Args:
        name: Of the job.
        stages: All stages; the durations of one without tasks do not matter.
        source: Where the profile comes from.

    Raises:
        WorkloadError: As :class:`JobProfile`, or no stage has tasks.
    """
    idle = [is_whole(stage.num_tasks) and stage.num_tasks == 0 for stage in stages]
    if not any(idle):
        return JobProfile(name, tuple(stages), source)
    nothing = {"num_tasks": 1, "levels": (1,)} | dict.fromkeys(WAVES, (np.zeros(1),))
    timed = [replace(stage, **nothing) if none else stage for stage, none in zip(stages, idle, strict=True)]
    checked = JobProfile(name, tuple(timed), source)
    if all(idle):
        raise WorkloadError(f"job {name!r} has no tasks; expected at least one")
    sent: list[dict[int, float]] = [{} for _ in stages]  # by parents that stay, MB
    for index in checked.topological_order:
        stage = checked.stages[index]
        for parent, size in zip(stage.parents, stage.data_mb or (0.0,) * len(stage.parents), strict=True):
            for above, passed in ((parent, size),) if not idle[parent] else ((each, 0.0) for each in sent[parent]):
                sent[index][above] = sent[index].get(above, 0.0) + passed
    number = {index: position for position, index in enumerate(i for i, none in enumerate(idle) if not none)}
    kept = [
        replace(
            stages[index],
            parents=tuple(number[parent] for parent in sent[index]),
            data_mb=None if stages[index].data_mb is None else tuple(sent[index].values()),
        )
        for index in number
    ]
    return JobProfile(name, tuple(kept), source)


def check_writable(profile: JobProfile) -> None:
    """Check that a file can hold a profile.

    Raises:
        WorkloadError: Schedulers are given other durations than the mean.
    """
    for stage in profile.stages:
        if stage.reported_ms is not None:
            raise WorkloadError(
                f"job {profile.name!r}, stage {stage.name!r}: reported_ms is set, which files of workloads do not hold"
            )


def check_request(where: str, name: str, value) -> None:
    """Check that a number which a stage gives is one.

    Raises:
        WorkloadError: It is not a finite number above 0.
    """
    if not is_number(value) or not 0.0 < value < math.inf:
        raise WorkloadError(f"{where}: {name} is {value!r:.60}; expected a finite number above 0")


def _check_data(where: str, stage: Stage) -> None:
    if stage.data_mb is None:
        return
    if len(stage.data_mb) != len(stage.parents):
        raise WorkloadError(
            f"{where}: data_mb has {len(stage.data_mb)} sizes for {len(stage.parents)} parents; expected one for each"
        )
    for size in stage.data_mb:
        if not is_number(size) or not 0.0 <= size <= LARGEST_MB:
            raise WorkloadError(f"{where}: data_mb is {size!r:.60}; expected a number from 0 to {LARGEST_MB:g}")


def _durations(stage: str, wave: str, values) -> np.ndarray:
    try:
        array = np.asarray(values)
    except ValueError as error:  # lists of different lengths
        raise WorkloadError(f"stage {stage!r}: {wave} durations are nested ({error})") from error
    if array.size and array.dtype.kind not in "iuf":  # numpy would take "5", True and None for numbers
        raise WorkloadError(f"stage {stage!r}: {wave} durations are not all numbers: {values!r:.60}")
    if array.ndim != 1:
        raise WorkloadError(
            f"stage {stage!r}: {wave} durations have {array.ndim} dimensions; expected one list per level"
        )
    return array if array.dtype == np.float64 and _is_frozen(array) else frozen(array.astype(np.float64))


def _is_frozen(array: np.ndarray | None) -> bool:
    while isinstance(array, np.ndarray) and not array.flags.writeable:
        array = array.base
    return array is None or isinstance(array, bytes)


def frozen(array: np.ndarray) -> np.ndarray:
    """Make an array read-only, and return it."""
    array.setflags(write=False)
    return array


def _check_levels(where: str, stage: Stage) -> None:
    levels = stage.levels
    if not levels:
        raise WorkloadError(f"{where} has no profile level; expected durations at one executor count at least")
    for level in levels:
        if not is_whole(level) or not 1 <= level <= MAX_LEVEL:
            raise WorkloadError(f"{where}: profile level {level!r}; expected an executor count from 1 to {MAX_LEVEL}")
    for lower, upper in pairwise(levels):
        if lower == upper:
            raise WorkloadError(f"{where}: profile level {lower} is given twice")
        if lower > upper:
            raise WorkloadError(f"{where}: profile levels {list(levels)} are not ascending")
    for wave in WAVES:
        if len(getattr(stage, wave)) != len(levels):
            raise WorkloadError(
                f"{where}: {len(getattr(stage, wave))} lists of {wave} durations "
                f"for {len(levels)} profile levels; expected one per level"
            )
    for level, *lists in zip(levels, stage.fresh, stage.first, stage.rest, strict=True):
        if not any(map(len, lists)):
            raise WorkloadError(f"{where}: profile level {level} is missing: no duration in any wave")


def _check_durations(where: str, stage: Stage) -> None:
    pooled = stage.all_durations_ms
    if pooled.min() >= 0.0 and pooled.max() <= LARGEST_MS:  # NaN fails both
        return
    for wave in WAVES:
        for level, values in zip(stage.levels, getattr(stage, wave), strict=True):
            bad = values[~((values >= 0.0) & (values <= LARGEST_MS))]
            if len(bad):
                raise WorkloadError(
                    f"{where}: {wave} duration {float(bad[0])} ms at level {level}; "
                    f"expected a number from 0 to {LARGEST_MS:g}"
                )


def _check_dag(profile: JobProfile) -> None:
    stages = profile.stages
    for index, stage in enumerate(stages):
        where = f"job {profile.name!r}, stage {stage.name!r}"
        for parent in stage.parents:
            if not is_whole(parent) or not 0 <= parent < len(stages):
                raise WorkloadError(f"{where}: parent {parent!r} does not exist; expected 0 to {len(stages) - 1}")
            if parent == index:
                raise WorkloadError(f"{where} is its own parent")
        if len(set(stage.parents)) != len(stage.parents):
            raise WorkloadError(f"{where}: a parent is listed twice in {list(stage.parents)}")
    if _parents_come_first(stages):
        return
    import networkx

    if not networkx.is_directed_acyclic_graph(profile.graph):
        cycle = [edge[0] for edge in networkx.find_cycle(profile.graph)]
        path = " -> ".join(repr(stages[index].name) for index in [*cycle, cycle[0]])
        raise WorkloadError(f"job {profile.name!r}: stages form a cycle: {path}; expected a DAG")


def _parents_come_first(stages: tuple[Stage, ...]) -> bool:
    # Such an order rules a cycle out, and spares most readers the import of networkx.
    return all(parent < index for index, stage in enumerate(stages) for parent in stage.parents)


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
