"""The cluster state as arrays of fixed shape, for learners that want every observation alike.

``LAYOUT`` is the one home of names, shapes, types, ranges and padding; the Gymnasium space and the arrays are made from
it. Rows: the jobs in the system in order of arrival, and their stages by index, finished ones included; both start over
at 0 in every observation. An edge goes parent -> child.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from decima.core.checks import check_whole
from decima.core.errors import ConfigError
from decima.systems.spark.fields import WITHHELD
from decima.systems.spark.rules.choices import kept_executors
from decima.systems.spark.rules.delays import delay_refusal
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


LAYOUT = (
    Part("stages", ("stages", len(STAGE_FEATURES)), np.float32, 0, _MOST, 0, "columns STAGE_FEATURES"),
    Part("stage_job", ("stages",), np.int32, -1, "last_job", -1, "row of the stage's job; -1: padding"),
    Part("edges", ("edges", 2), np.int32, -1, "last_stage", -1, "rows of parent and child; -1: padding"),
    Part("stage_mask", ("slots",), np.int8, 0, 1, 0, "1: the stage may be chosen; the last entry stands for idling"),
    Part("jobs", ("jobs", len(JOB_FEATURES)), np.float32, 0, _MOST, 0, "columns JOB_FEATURES"),
    Part("job_allocation", ("jobs",), np.int32, 0, "executors", 0, "executors it keeps, without those being offered"),
    Part("job_min_limit", ("jobs",), np.int32, 0, "executors", 0, "least valid limit; 0: padding"),
    Part("source_job", (1,), np.int32, -1, "last_job", -1, "row of the job the offered executors are with, -1: none"),
    Part("free_executors", (1,), np.int32, 0, "executors", 0, "executors offered"),
    Part("time_s", (1,), np.float32, 0, _MOST, 0, "simulated time"),
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

    def empty(self) -> dict[str, np.ndarray]:
        """An observation of nothing but padding."""
        return {part.name: np.full([self.size(n) for n in part.shape], part.fill, part.dtype) for part in self.layout}


def _ranges(first: np.ndarray, count: np.ndarray) -> np.ndarray:
    """``first[i], first[i] + 1, ...``, ``count[i]`` of them, one after the other."""
    before = np.cumsum(count) - count
    return np.repeat(first - before, count) + np.arange(int(count.sum()))


class PaddedView:
    """Reads a state into padded arrays.

    Attributes:
        job_ids: int [jobs in the system], job of each row of the last observation.
        stage_ids: int [their stages], stage id of each row.
    """

    def __init__(self, state: ClusterState, padding: Padding) -> None:
        self._state = state
        self._padding = padding
        self.job_ids = np.zeros(0, dtype=np.int64)
        self.stage_ids = np.zeros(0, dtype=np.int64)

    def observe(self, idle: bool) -> dict[str, np.ndarray]:
        """The state as it is; ``idle`` says whether idling may be chosen.

        Raises:
            ConfigError: More jobs, stages or edges are in the system than the padding has room for.
        """
        state, padding = self._state, self._padding
        parts = padding.empty()
        jobs = state.active[: state.num_active].astype(np.int64)
        first = state.job_first_stage[jobs].astype(np.int64)
        count = state.job_first_stage[jobs + 1] - first
        stages = _ranges(first, count)
        rows = state.stage_row[stages]
        first_edge = state.child_offset[rows]
        num_edges = state.child_offset[rows + 1] - first_edge
        children = state.child[_ranges(first_edge, num_edges)]
        self.job_ids, self.stage_ids = jobs, stages
        self._require_room(len(jobs), len(stages), len(children))
        unfinished = state.stage_tasks[stages] - state.stage_finished_tasks[stages]
        parts["stages"][: len(stages)] = np.stack(
            [
                state.stage_tasks[stages],
                state.stage_tasks[stages] - state.stage_next[stages],
                unfinished,
                state.row_nominal_ms[rows] / 1000.0,
                state.row_path_work_ms[rows] / 1000.0,
                state.stage_executors[stages],
                state.stage_commit[stages] + state.stage_moving[stages],
                state.stage_runnable[stages],
            ],
            axis=1,
        )
        job_row = np.repeat(np.arange(len(jobs)), count)
        parts["stage_job"][: len(stages)] = job_row
        first_row = (np.cumsum(count) - count)[job_row]
        parts["edges"][: len(children), 0] = np.repeat(np.arange(len(stages)), num_edges)
        parts["edges"][: len(children), 1] = np.repeat(first_row, num_edges) + children

        parts["jobs"][: len(jobs), 0] = (state.now_ms - state.job_arrival_ms[jobs]) / 1000.0
        parts["jobs"][: len(jobs), 1] = state.job_work_ms[jobs] / 1000.0
        remaining = unfinished * state.row_nominal_ms[rows]
        parts["jobs"][: len(jobs), 2] = np.bincount(job_row, remaining, minlength=len(jobs)) / 1000.0
        offered = state.num_source
        allocation = kept_executors(state, jobs) - np.where(jobs == state.source_job, offered, 0)
        parts["job_allocation"][: len(jobs)] = allocation
        parts["job_min_limit"][: len(jobs)] = allocation + 1 if state.job_limit else 1
        if offered:  # a round is open
            parts["stage_mask"][: len(stages)] = state.stage_in_frontier[stages]
            parts["stage_mask"][-1] = idle
            parts["source_job"][0] = next(iter(np.flatnonzero(jobs == state.source_job)), -1)
        if padding.delay_steps:
            slot = state.stage_slot[stages]
            left_ms = np.where(slot == WITHHELD, state.slot_end_ms[stages] - state.now_ms, 0.0)
            parts["stage_delayed"][: len(stages)] = slot != 0
            parts["slot_left_s"][: len(stages)] = left_ms / 1000.0
            for row in np.flatnonzero(parts["stage_mask"][: len(stages)]):
                parts["delay_mask"][row] = delay_refusal(state, stages[row]) == 0
        if padding.classes > 1:
            parts["requests"][: len(stages)] = np.stack([state.stage_memory[stages], state.stage_cpu[stages]], axis=1)
            parts["class_sizes"][:] = np.stack([state.class_memory, state.class_cpu], axis=1)
            parts["class_offers"][:] = state.class_offers
            fits = state.group_fits[state.stage_group[stages]][:, None] >> np.arange(padding.classes) & 1
            chosen = parts["stage_mask"][: len(stages), None] & (state.class_offers > 0)
            parts["class_mask"][: len(stages)] = fits & chosen
        parts["free_executors"][0] = offered
        parts["time_s"][0] = state.now_ms / 1000.0
        return parts

    def _require_room(self, *present: int) -> None:
        room = (self._padding.jobs, self._padding.stages, self._padding.edges)
        for name, number, most in zip(("jobs", "stages", "edges"), present, room, strict=True):
            if number > most:
                raise ConfigError(
                    f"{number} {name} are in the system at {self._state.now_ms / 1000:.1f} s, more than the {most} "
                    f"the observation has room for; make the environment with max_{name} of at least {number}"
                )
