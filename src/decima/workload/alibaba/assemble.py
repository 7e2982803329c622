"""Assembly of a :class:`Trace` from rows of stages and tasks; anomalies are resolved here.

Names of tasks say the DAG: ``J4_2_3`` and ``J4_2_3_Stg1`` are task 4 with parents 2 and 3. A task of the trace is a
stage here, an instance a task.

Source: GitHub ``alibaba/clusterdata``, ``cluster-trace-v2018/schema.md``.
"""

import heapq
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from decima.core.errors import WorkloadError
from decima.workload.alibaba.trace import Trace, TraceReport

LONGEST = 50  # characters after which the trace cuts names
_DAG = re.compile(r"[A-Za-z]+(\d+)((?:_\d+)*)((?:_[A-Za-z]+\d+)*)_?")
_CUT = re.compile(r"[A-Za-z]+(\d+)((?:_\d+)*)((?:_[A-Za-z]+\d*)*)_?")


@dataclass(frozen=True)
class TaskName:
    """What a name says."""

    number: int  # of the task in its job, from 1
    parents: tuple[int, ...]  # numbers of the parents that are surely complete, in the order of the name, each once
    cut: bool  # whether the name was cut, so that parents are missing
    repeated: bool  # whether the name gives a parent twice


def parse_name(name: str) -> TaskName | None:
    """Read the name of a task.

    Of a name that was cut the last number may have lost digits; it is left out.

    Returns:
        What it says; None for an independent task, whose name has no number of this form.
    """
    match = (_CUT if len(name) >= LONGEST else _DAG).fullmatch(name)
    if match is None:
        return None
    cut = len(name) >= LONGEST and not match[3]  # the end of a suffix says nothing about parents
    numbers = [int(each) for each in match[2].split("_")[1:]]
    if cut:
        numbers = numbers[:-1]
    parents = tuple(dict.fromkeys(numbers))
    return TaskName(int(match[1]), parents, cut, len(parents) < len(numbers))


ZERO_MS = 500.0  # what a recorded duration of 0 whole seconds is taken as
_CORE = 100.0  # plan_cpu of one core


@dataclass(frozen=True)
class StageRows:
    """Rows of stages in any order, column by column; all of one length."""

    job: list[str]  # name of the job
    task: list[str]  # name of the stage
    submit_s: np.ndarray  # float64, arrival of the job
    length_s: np.ndarray  # float64, end less start of the stage
    instances: np.ndarray  # float64, tasks; NaN where missing
    plan_cpu: np.ndarray  # float64, 100 is a core; NaN where missing
    plan_mem: np.ndarray  # float64, 1 is the largest executor; NaN where missing
    finished: np.ndarray  # bool, whether it ended as it should


def assemble(
    rows: StageRows,
    instance_row: np.ndarray,
    instance_s: np.ndarray,
    *,
    label: str,
    source: str,
    length_s: float,
    report: TraceReport,
) -> Trace:
    """Make a trace of rows.

    Args:
        rows: One row per stage.
        instance_row: Row of every recorded task, int64 [instances], in the order of the file.
        instance_s: Its duration, float64 [instances], whole seconds.
        label: For titles.
        source: For profiles.
        length_s: Time between the first and the last possible arrival.
        report: Numbers found so far; completed in place.

    Raises:
        WorkloadError: No job is left.
    """
    parsed = [parse_name(name) for name in rows.task]
    members: dict[str, list[int]] = {}
    for row, job in enumerate(rows.job):
        members.setdefault(job, []).append(row)
    submit = {job: min(rows.submit_s[each].tolist()) for job, each in members.items()}
    order: list[int] = []  # rows that are kept, parents first
    parents: list[tuple[int, ...]] = []
    jobs: list[tuple[str, int]] = []  # name and first place in ``order``
    for job in sorted(members, key=submit.__getitem__):  # stable: ties stay in the order of the file
        if (reason := _fault(members[job], rows, parsed)) is not None:
            report.leave_out(reason, job)
            continue
        jobs.append((job, len(order)))
        for row, above in _sorted_stages(members[job], parsed, report):
            order.append(row)
            parents.append(above)
    left_out = report.left_out()
    if not jobs:
        raise WorkloadError(
            f"{label}: no job is left to simulate; expected at least one whole job with a DAG"
            + (f"; left out: {left_out}" if left_out else "")
        )
    if left_out:
        warnings.warn(f"{label}: {len(jobs):,} of {len(members):,} jobs are read; left out: {left_out}", stacklevel=2)
    kept = np.array(order, dtype=np.int64)
    offset, duration_ms = _durations(kept, rows, instance_row, instance_s, report)
    report.requests_above_one = int(np.count_nonzero(rows.plan_mem[kept] > 1.0))
    report.cpu_above_one = int(np.count_nonzero(rows.plan_cpu[kept] > _CORE))
    report.jobs, report.stages, report.edges = len(jobs), len(order), sum(map(len, parents))
    tasks = rows.instances[kept].astype(np.int64)
    report.tasks = int(tasks.sum())
    return Trace(
        label=label,
        source=source,
        length_s=length_s,
        job_names=tuple(name for name, _ in jobs),
        arrival_s=np.array([submit[name] for name, _ in jobs], dtype=np.float64),
        first_stage=np.array([*(first for _, first in jobs), len(order)], dtype=np.int64),
        stage_names=tuple(rows.task[row] for row in order),
        num_tasks=tasks,
        memory=np.minimum(rows.plan_mem[kept], 1.0),
        parent_offset=np.cumsum([0, *map(len, parents)], dtype=np.int64),
        parent=np.array([each for above in parents for each in above], dtype=np.int64),
        duration_offset=offset,
        duration_ms=duration_ms,
        report=report,
    )


def _fault(members: list[int], rows: StageRows, parsed: list[TaskName | None]) -> str | None:
    """Field of the report that counts why a job is left out, or None."""
    named = [parsed[row] for row in members if parsed[row] is not None]
    if not named:
        return "jobs_of_independent_tasks"
    numbers = {name.number for name in named}
    if len(numbers) < len(named):
        return "jobs_with_repeated_stage"
    finished = rows.finished[members] & (rows.instances[members] >= 1.0) & (rows.length_s[members] >= 0.0)
    if not finished.all():
        return "unfinished_jobs"
    if not (rows.plan_mem[members] > 0.0).all():  # false for NaN
        return "jobs_without_plan"
    if any(parent not in numbers for name in named for parent in name.parents):
        return "jobs_with_missing_parents"
    return "jobs_with_cycles" if len(_order({name.number: name.parents for name in named})) < len(named) else None


def _order(parents: Mapping[int, Sequence[int]]) -> dict[int, int]:
    """Topological position of each number that is not in or below a cycle."""
    children: dict[int, list[int]] = {number: [] for number in parents}
    for number, above in parents.items():
        for parent in above:
            children[parent].append(number)
    waiting = {number: len(above) for number, above in parents.items()}
    ready = sorted(number for number, count in waiting.items() if count == 0)
    position: dict[int, int] = {}
    while ready:
        number = heapq.heappop(ready)
        position[number] = len(position)
        for child in children[number]:
            waiting[child] -= 1
            if waiting[child] == 0:
                heapq.heappush(ready, child)
    return position


def _sorted_stages(
    members: list[int], parsed: list[TaskName | None], report: TraceReport
) -> list[tuple[int, tuple[int, ...]]]:
    """Rows of a job in topological order, with the positions of their parents."""
    last = max(parsed[row].number for row in members if parsed[row] is not None)
    number_of, row_of = {}, {}
    cut = False
    for row in members:
        name = parsed[row]
        if name is None:
            last += 1
            report.independent_stages += 1
            number_of[row] = last
        else:
            number_of[row] = name.number
            report.cut_names += name.cut
            report.repeated_parents += name.repeated
            cut = cut or name.cut
        row_of[number_of[row]] = row
    report.jobs_with_cut_names += cut
    numbers = [number_of[row] for row in members]
    report.jobs_out_of_order += numbers != sorted(numbers)
    above = {number_of[row]: () if parsed[row] is None else parsed[row].parents for row in members}
    position = _order(above)
    return [(row_of[number], tuple(position[parent] for parent in above[number])) for number in position]


def _durations(
    kept: np.ndarray, rows: StageRows, instance_row: np.ndarray, instance_s: np.ndarray, report: TraceReport
) -> tuple[np.ndarray, np.ndarray]:
    """Offsets int64 [stages + 1] and durations in ms of the kept rows."""
    count = np.bincount(instance_row, minlength=len(rows.job))
    begin = np.cumsum(count) - count
    by_row = np.argsort(instance_row, kind="stable")
    sizes = np.maximum(count[kept], 1)
    offset = np.concatenate([[0], np.cumsum(sizes)])
    missing = np.flatnonzero(count[kept] == 0)
    # Place in the file of every duration of a kept row, stage by stage; of those without any, whatever comes next.
    source = np.repeat(begin[kept] - offset[:-1], sizes) + np.arange(offset[-1])
    ends = np.concatenate([instance_s[by_row], [0.0]])
    seconds = ends[np.minimum(source, len(by_row))]
    seconds[offset[missing]] = rows.length_s[kept[missing]]
    report.stages_without_durations = len(missing)
    zero = seconds <= 0.0
    report.zero_durations = int(np.count_nonzero(zero))
    return offset, np.where(zero, ZERO_MS, 1000.0 * seconds)
