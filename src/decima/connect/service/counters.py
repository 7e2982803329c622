"""States that clients report of their jobs: checked and written into the mirror."""

from __future__ import annotations

from operator import attrgetter

from decima.connect.service import scheduler_pb2 as protocol
from decima.connect.service.errors import invalid
from decima.connect.service.graphs import JobGraph
from decima.connect.service.job_memory import Slot
from decima.connect.service.limits import Limits
from decima.connect.service.mirror import Mirror
from decima.connect.service.steps import PAUSE, Steps
from decima.connect.service.wire import JOB_FIELDS, checked_number
from decima.core.checks import LARGEST_MS
from decima.systems.spark.fields import NONE, OVER, WITHHELD

_LISTS = ("stages", "runnable", "schedulable")
_stage_numbers = attrgetter("stage", "launched", "finished", "executors", "moving", "committed")
_job_numbers = attrgetter(*JOB_FIELDS)


def put_state(mirror: Mirror, slot: Slot, message: protocol.JobState, limits: Limits) -> Steps[None]:
    """Write a job's reported state into the mirror.

    Raises:
        RefusalError: A number is out of range, or a stage is unknown. The job is then half written.
    """
    views, graph, most = mirror.views, slot.graph, limits.executors
    durations_changed = finished_stages = saturation_changed = False
    stages, runnable, schedulable = message.stages, message.runnable, message.schedulable
    if len(stages) > slot.size or len(runnable) > slot.size or len(schedulable) > slot.size:
        lists = stages, runnable, schedulable
        counts = [f"{len(values)} in {name}" for name, values in zip(_LISTS, lists, strict=True)]
        raise invalid(f"job {graph.label!r:.60} has {slot.size} stages, but entries: {', '.join(counts)}")
    for number, stage in enumerate(stages, start=1):
        name, launched, finished, executors, moving, committed = _stage_numbers(stage)
        index = _index(graph, name)
        at = slot.first + index
        tasks = views.stage_tasks[at]
        if not finished <= launched <= tasks:
            raise invalid(
                f"{_where(graph, name)}: launched is {launched} and finished {finished} of {tasks} tasks; "
                "expected finished <= launched <= tasks"
            )
        if executors > most or moving > most or committed > most:
            raise invalid(f"{_where(graph, name)}: more than {most} executors, moving or committed")
        views.stage_next[at] = launched
        views.stage_executors[at] = executors
        views.stage_moving[at] = moving
        views.stage_commit[at] = committed
        saturation_changed |= mirror.put_room(slot, index)
        finished_stages |= (finished == tasks) != (graph.finished[index] == tasks)
        graph.finished[index] = finished
        if finished < tasks:
            views.stage_finished_tasks[at] = finished
        if mirror.knows_running:
            _put_running(graph, index, stage, most)
        if stage.measured_tasks or stage.measured_ms:
            durations_changed |= _measure(graph, index, stage)
        if number % PAUSE == 0:
            yield
    if finished_stages:
        mirror.put_finished(slot)
    values = _job_numbers(message)
    if max(values) > most:
        name, value = next(item for item in zip(JOB_FIELDS, values, strict=True) if item[1] > most)
        raise invalid(f"job {graph.label!r:.60}: {name} is {value}; expected 0 to {most}")
    for view, value in zip(mirror.job_views, values, strict=True):
        view[slot.job] = value
    held = mirror.allocation(slot, None, 0)
    if held < 0:
        raise invalid(f"job {graph.label!r:.60} holds {held} executors apart from those promised to others")
    # Most states say only that a task has ended: the lists are as they were.
    if graph.runnable_ids != runnable:
        _put_runnable(mirror, slot, runnable)
    if saturation_changed or graph.schedulable_ids != schedulable or not mirror.all_have_room(slot):
        _put_frontier(mirror, slot, schedulable)
    if message.delayed:
        _put_delayed(mirror, slot, message.delayed)
    if durations_changed:
        mirror.put_durations(slot)


def _measure(graph: JobGraph, index: int, stage: protocol.StageState) -> bool:
    if stage.measured_tasks > stage.finished:
        where = _where(graph, stage.stage)
        raise invalid(f"{where}: {stage.measured_tasks} tasks were measured, but {stage.finished} are finished")
    total_ms = checked_number(_where(graph, stage.stage), "measured_ms", stage.measured_ms)
    return graph.durations.measure(index, stage.measured_tasks, total_ms if stage.measured_tasks else 0.0)


def _put_running(graph: JobGraph, index: int, stage: protocol.StageState, most: int) -> None:
    """Note when the running tasks of a stage began."""
    begins = stage.running_since_ms
    if len(begins) > most:
        raise invalid(f"{_where(graph, stage.stage)}: {len(begins)} running tasks; expected at most {most}")
    for begin in begins:
        checked_number(_where(graph, stage.stage), "running_since_ms", begin, low=-LARGEST_MS)
    graph.running_since_ms.pop(index, None)
    if begins:
        graph.running_since_ms[index] = list(begins)


def _put_runnable(mirror: Mirror, slot: Slot, stages) -> None:
    """Write the list of runnable stages, in its order."""
    views, graph = mirror.views, slot.graph
    graph.runnable_ids = None
    indices = [_index(graph, stage) for stage in stages]
    if len(set(indices)) < len(indices):
        raise invalid(f"job {graph.label!r:.60}: a stage is twice among the runnable ones")
    views.stage_runnable[slot.first : slot.first + slot.size] = bytes(slot.size)
    before = NONE
    for index in indices:
        stage = slot.first + index
        views.stage_runnable[stage] = 1
        views.runnable_prev[stage] = before
        views.runnable_next[stage] = NONE
        if before != NONE:
            views.runnable_next[before] = stage
        before = stage
    views.runnable_head[slot.job] = slot.first + indices[0] if indices else NONE
    views.runnable_tail[slot.job] = before
    graph.runnable_ids = list(stages)


def _put_delayed(mirror: Mirror, slot: Slot, stages) -> None:
    """Write delayed stages and when their slots end; withheld ones are neither runnable nor schedulable."""
    state, graph = mirror.state, slot.graph
    if len(stages) > slot.size:
        raise invalid(f"job {graph.label!r:.60} has {slot.size} stages, but entries: {len(stages)} in delayed")
    for entry in stages:
        at = slot.first + _index(graph, entry.stage)
        where = _where(graph, entry.stage)
        if entry.withheld and (state.stage_runnable[at] or state.stage_in_frontier[at]):
            raise invalid(f"{where} is withheld, but runnable or schedulable")
        state.slot_end_ms[at] = checked_number(where, "end_ms", entry.end_ms, low=-LARGEST_MS)
        state.stage_slot[at] = WITHHELD if entry.withheld else OVER


def _put_frontier(mirror: Mirror, slot: Slot, stages) -> None:
    """Write which stages may be chosen; each must have room for an executor."""
    graph = slot.graph
    indices = {_index(graph, stage): stage for stage in stages}
    for index, stage in indices.items():
        if mirror.views.stage_saturated[slot.first + index]:
            raise invalid(
                f"{_where(graph, stage)} is schedulable, but all its tasks are launched or have an executor coming"
            )
    graph.schedulable, graph.schedulable_ids = list(indices), list(stages)
    mirror.put_frontier(slot)


def _index(graph: JobGraph, stage: int) -> int:
    try:
        return graph.index[stage]
    except KeyError:
        raise invalid(f"{_where(graph, stage)}: there is no such stage") from None


def _where(graph: JobGraph, stage: int) -> str:
    return f"job {graph.label!r:.60}, stage {stage}"
