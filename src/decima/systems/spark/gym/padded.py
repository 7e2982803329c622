"""The cluster state as arrays of fixed shape, for learners that want every observation alike.

``LAYOUT`` is the one home of names, shapes, types, ranges and padding; the Gymnasium space and the arrays are made from
it. Rows: the jobs in the system in order of arrival, and their stages by index, finished ones included; both start over
at 0 in every observation. An edge goes parent -> child.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from decima.core.checks import check_whole
from decima.systems.spark.gym import kernel
from decima.systems.spark.gym.kernel import FLAGS, FLOATS, INTS, MASKS, F
from decima.systems.spark.settings import Settings
from decima.systems.spark.state import ClusterState
from decima.workload.jobs import Workload

STAGE_FEATURES = (
    "num_tasks",
    "tasks_to_launch",
    "tasks_unfinished",
    "mean_duration_s",
    "path_work_s",  # work along the heaviest path to the sink (§5.1, footnote 5)
    "executors",  # working on it
    "executors_coming",  # promised to it or moving to it
    "runnable",  # 1: parents finished, tasks waiting
)
JOB_FEATURES = ("age_s", "work_s", "remaining_work_s")

_MOST = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class Part:
    """One array of the observation; extents and bounds name sizes of :class:`Padding`."""

    name: str
    shape: tuple[str | int, ...]
    dtype: type
    low: float
    high: str | float
    fill: int
    doc: str

    def length(self, padding: Padding) -> int:
        """Number of entries."""
        return math.prod(padding.size(extent) for extent in self.shape)


LAYOUT = (
    Part("stages", ("stages", len(STAGE_FEATURES)), np.float32, 0, _MOST, 0, "columns STAGE_FEATURES"),
    Part("stage_job", ("stages",), np.int32, -1, "last_job", -1, "row of the stage's job; -1: padding"),
    Part("edges", ("edges", 2), np.int32, -1, "last_stage", -1, "rows of parent and child; -1: padding"),
    Part("stage_mask", ("slots",), np.int8, 0, 1, 0, "1: the stage may be chosen; the last entry stands for idling"),
    Part("jobs", ("jobs", len(JOB_FEATURES)), np.float32, 0, _MOST, 0, "columns JOB_FEATURES"),
    Part("job_allocation", ("jobs",), np.int32, 0, "executors", 0, "executors it keeps, without those being offered"),
    Part("source_job", (1,), np.int32, -1, "last_job", -1, "row of the job the offered executors are with, -1: none"),
    Part("free_executors", (1,), np.int32, 0, "executors", 0, "executors offered"),
    Part("time_s", (1,), np.float32, 0, _MOST, 0, "simulated time"),
)

# What is shown beside the observation.
PRIVATE = (
    Part("job_ids", ("jobs",), np.int32, -1, "last_job", -1, "job of every row; -1: padding"),
    Part("stage_ids", ("stages",), np.int32, -1, "last_stage", -1, "stage id of every row; -1: padding"),
    Part("executors_mask", ("executors",), np.int8, 0, 1, 0, "1: this number of executors and one more may be given"),
)

# Further arrays of environments in which stages can be delayed.
DELAY_LAYOUT = (
    Part("delay_mask", ("stages",), np.int8, 0, 1, 0, "1: the stage may be delayed"),
    Part("stage_delayed", ("stages",), np.int8, 0, 1, 0, "1: the stage was delayed, whether or not its slot has ended"),
    Part("slot_left_s", ("stages",), np.float32, 0, _MOST, 0, "time until the slot ends that withholds the stage"),
)

# Further arrays of environments with several classes of executors.
CLASS_LAYOUT = (
    Part("requests", ("stages", 2), np.float32, 0, _MOST, 0, "memory and CPUs that a task asks for"),
    Part("class_sizes", ("classes", 2), np.float32, 0, _MOST, 0, "memory and CPUs of an executor of each class"),
    Part("class_offers", ("classes",), np.int32, 0, "executors", 0, "executors of each class offered"),
    Part("class_mask", ("stages", "classes"), np.int8, 0, 1, 0, "1: offered executors of the class fit the stage"),
)


@dataclass(frozen=True)
class Padding:
    """Numbers of rows: jobs, stages and edges at one time, executors, classes, delays."""

    jobs: int
    stages: int
    edges: int
    executors: int
    delay_steps: int
    classes: int

    @classmethod
    def for_workload(
        cls,
        workload: Workload,
        settings: Settings,
        *,
        varies: bool,
        jobs: int | None,
        stages: int | None,
        edges: int | None,
        delay_steps: int,
    ) -> Padding:
        """Room for exactly one workload, or for any jobs of its universe.

        Args:
            workload: The workload, or an example of those to come.
            settings: The cluster.
            varies: There will be others: as many jobs as this one, drawn from the same universe.
            jobs: Most jobs in the system at one time.
            stages: Most stages of these jobs.
            edges: Most edges of these jobs.
            delay_steps: Steps in which a stage may be delayed; 0: stages cannot be delayed.
        """
        for name, value in (("max_jobs", jobs), ("max_stages", stages), ("max_edges", edges)):
            if value is not None:
                check_whole(name, value, least=1)
        profiles = workload.universe if varies else [job.profile for job in workload.jobs]
        count = len(workload.jobs) if jobs is None else int(jobs)
        sizes = sorted((len(profile.stages) for profile in profiles), reverse=True)
        links = sorted((sum(map(len, profile.children)) for profile in profiles), reverse=True)

        def most(values: list[int]) -> int:
            return max(1, count * values[0] if varies else sum(values[:count]))

        return cls(
            jobs=count,
            stages=most(sizes) if stages is None else int(stages),
            edges=most(links) if edges is None else int(edges),
            executors=settings.executors,
            delay_steps=int(delay_steps),
            classes=max(1, len(settings.classes)),
        )

    @property
    def slots(self) -> int:
        """Choices of a stage, idling included."""
        return self.stages + 1

    @property
    def delays(self) -> int:
        """Choices of a delay, none included."""
        return self.delay_steps + 1

    @property
    def layout(self) -> tuple[Part, ...]:
        """Arrays of an observation."""
        return LAYOUT + (DELAY_LAYOUT if self.delay_steps else ()) + (CLASS_LAYOUT if self.classes > 1 else ())

    @property
    def class_choices(self) -> int:
        """Choices of a class, best fit included; 1 where there is one class."""
        return self.classes + 1 if self.classes > 1 else 1

    @property
    def last_job(self) -> int:
        """Last row of the jobs."""
        return self.jobs - 1

    @property
    def last_stage(self) -> int:
        """Last row of the stages."""
        return self.stages - 1

    def size(self, extent: str | int | float) -> float:
        """A number, or the size of that name."""
        return getattr(self, extent) if isinstance(extent, str) else extent


class Memory:
    """Observations and masks of N clusters in arrays that are allocated once.

    Written by :mod:`decima.systems.spark.gym.kernel`.

    Args:
        padding: Sizes.
        rows: Number N of clusters.
        parts: Numbers of an action.
        objective: What costs are, see :data:`.kernel.SIZES`.

    Attributes:
        states: State of every row, None before its first episode.
        actions: int64 [N, parts].
        facts: int64 [N, columns], columns :data:`.kernel.FACTS`.
        amounts: float64 [N, columns], columns :data:`.kernel.AMOUNTS`.
    """

    def __init__(self, padding: Padding, rows: int, parts: int, objective: int) -> None:
        self.padding, self.objective = padding, objective
        self.states: list[ClusterState | None] = [None] * rows
        lengths = dict.fromkeys((*FLOATS, *INTS, *FLAGS), 0) | {part.name: part.length(padding) for part in PRIVATE}
        lengths |= {part.name: part.length(padding) for part in padding.layout}
        lengths |= {"delays_mask": padding.delays} if padding.delay_steps else {}
        lengths |= {"classes_mask": padding.class_choices} if padding.classes > 1 else {}
        fills = {part.name: part.fill for part in (*LAYOUT, *PRIVATE)}
        self._places: dict[str, tuple[np.ndarray, slice]] = {}
        blocks = []
        for names, dtype in ((FLOATS, np.float32), (INTS, np.int32), (FLAGS, np.int8)):
            block = [np.full(lengths[name], fills.get(name, 0), dtype) for name in names]
            blocks.append(np.tile(np.concatenate(block), (rows, 1)))
            ends = np.cumsum([len(each) for each in block]).tolist()
            for name, end in zip(names, ends, strict=True):
                self._places[name] = (blocks[-1], slice(end - lengths[name], end))
        sizes = padding.jobs, padding.stages, padding.edges, padding.delay_steps, padding.classes, objective
        self.facts = np.zeros((rows, len(kernel.FACTS)), dtype=np.int64)
        self.amounts = np.zeros((rows, len(kernel.AMOUNTS)))
        self.actions = np.zeros((rows, parts), dtype=np.int64)
        self._addresses = np.zeros(rows, dtype=np.int64)
        self._arrays = (*blocks, self.facts, self.amounts)
        self._shared = np.array(sizes), np.array([where.start for _, where in self._places.values()])
        self._taken = (self._addresses, self.actions, *self._arrays, *self._shared)

    def array(self, name: str) -> np.ndarray:
        """All rows of an array, a view [N, entries]."""
        block, where = self._places[name]
        return block[:, where]

    def views(self) -> dict[str, np.ndarray]:
        """The arrays of the observation, [N, ...]."""
        padding = self.padding
        return {
            part.name: self.array(part.name).reshape(-1, *(padding.size(extent) for extent in part.shape))
            for part in padding.layout
        }

    def masks(self) -> np.ndarray:
        """The masks of all parts of an action in one row, int8 [N, choices]."""
        block, last = self._places[MASKS[-1]]
        return block[:, : last.stop]

    def row(self, row: int) -> tuple[np.ndarray, ...]:
        """What :func:`.kernel.observe_cluster` takes about a row."""
        return (*(array[row] for array in self._arrays), *self._shared)

    def hold(self, row: int, state: ClusterState) -> None:
        """Let a row show a state."""
        self.states[row], self._addresses[row] = state, state.address

    def copy_row(self, row: int, other: Memory, other_row: int) -> None:
        """Copy a row into one of another memory of the same sizes."""
        for mine, theirs in zip((*self._arrays, self.actions), (*other._arrays, other.actions), strict=True):
            theirs[other_row] = mine[row]
        if self.states[row] is not None:
            other.hold(other_row, self.states[row])

    def run(self, first: int, last: int, strict: bool) -> int:
        """Let some rows do what they are about to do.

        Returns:
            Row of an invalid action that stopped them, below 0 if none did.

        Raises:
            WorkerError: This thread was stopped.
        """
        advance = kernel.advance_address()
        while (answer := kernel.step_clusters(first, last, strict, advance, *self._taken)) == kernel.UNFINISHED:
            for row in range(first, last):
                if self.facts[row, F.doing] != kernel.WAITS:
                    self.states[row].heed(int(self.facts[row, F.code]))
        return answer
