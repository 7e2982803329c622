"""States that clients report of their jobs: checked and written into the mirror."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from operator import attrgetter

from decima.connect.service import scheduler_pb2 as protocol
from decima.connect.service.errors import invalid, out_of_step
from decima.connect.service.graphs import JobGraph
from decima.connect.service.job_memory import Slot
from decima.connect.service.limits import Limits
from decima.connect.service.mirror import Mirror
from decima.connect.service.wire import JOB_FIELDS, checked_number
from decima.core.checks import LARGEST_MS
from decima.systems.spark.fields import NONE, OVER, WITHHELD

# What changed when stages were written: which are finished, which are saturated, their durations.
_FINISHED, _SATURATION, _DURATIONS = 1, 2, 4
_stage_numbers = attrgetter(
    "stage", "launched", "finished", "executors", "moving", "committed", "measured_tasks", "measured_ms"
)
_job_numbers = attrgetter(*JOB_FIELDS)


def put_states(mirror: Mirror, prefix: Hashable, messages: Sequence[protocol.JobState], limits: Limits) -> None:
    """Write the reported states of jobs, whose keys begin with a prefix, into the mirror.

    Raises:
        RefusalError: A number is out of range, or a job or stage is unknown. A job is then half written.
    """
    slots, views, most, knows_running = mirror.slots, mirror.views, limits.executors, mirror.knows_running
    saturated_stages = views.stage_saturated
    for message in messages:
        slot = slots.get((prefix, message.job))
        if slot is None:
            raise out_of_step(f"job {message.job!r:.60} has a state, but its graph is not known")
        graph, first, size, changed = slot.graph, slot.first, slot.size, 0
        stages, runnable, schedulable = message.stages, message.runnable, message.schedulable
        if len(stages) > size or len(runnable) > size or len(schedulable) > size:
            counts = zip((stages, runnable, schedulable), ("stages", "runnable", "schedulable"), strict=True)
            entries = ", ".join(f"{len(values)} in {name}" for values, name in counts)
            raise invalid(f"job {graph.label!r:.60} has {size} stages, but entries: {entries}")
        for stage in stages:
            name, launched, finished, executors, moving, committed, measured, measured_ms = _stage_numbers(stage)
            index = _index(graph, name)
            at = first + index
            tasks = views.stage_tasks[at]
            if not finished <= launched <= tasks:
                raise invalid(
                    f"{_where(graph, name)}: launched is {launched} and finished {finished} of {tasks} tasks; "
                    "expected finished <= launched <= tasks"
                )
            if executors > most or moving > most or committed > most:
                raise invalid(f"{_where(graph, name)}: more than {most} executors, moving or committed")
            views.job_unexhausted[slot.job] += (launched < tasks) - (views.stage_next[at] < tasks)
            views.stage_next[at] = launched
            views.stage_executors[at] = executors
            views.stage_moving[at] = moving
            views.stage_commit[at] = committed
            if (tasks <= launched + moving + committed) != saturated_stages[at]:
                mirror.put_room(slot, index)
                changed |= _SATURATION
            if (finished == tasks) != (graph.finished[index] == tasks):
                changed |= _FINISHED
            graph.finished[index] = finished
            if finished < tasks:
                views.stage_finished_tasks[at] = finished
            if knows_running:
                _put_running(graph, index, stage, most)
            if (measured or measured_ms) and _measure(graph, index, stage):
                changed |= _DURATIONS
        if changed & _FINISHED:
            mirror.put_finished(slot)
        _put_job_numbers(mirror, slot, message, most)
        # Most states say only that a task has ended: the lists are as they were.
        if graph.runnable_ids != runnable:
            _put_runnable(mirror, slot, runnable)
        if changed & _SATURATION or graph.schedulable_ids != schedulable or not mirror.all_have_room(slot):
            _put_frontier(mirror, slot, schedulable)
        if message.delayed:
            _put_delayed(mirror, slot, message.delayed)
        if changed & _DURATIONS:
            mirror.put_durations(slot)


def _put_job_numbers(mirror: Mirror, slot: Slot, message: protocol.JobState, most: int) -> None:
    """Write what a state says of the executors of the job."""
    views, job = mirror.views, slot.job
    values = attached, moving, committed, outgoing = _job_numbers(message)
    if max(values) > most:
        name, value = next(item for item in zip(JOB_FIELDS, values, strict=True) if item[1] > most)
        raise invalid(f"job {slot.graph.label!r:.60}: {name} is {value}; expected 0 to {most}")
    views.job_attached[job] = attached
    views.job_moving[job] = moving
    views.job_commit[job] = committed
    views.job_outgoing[job] = outgoing
    if outgoing and (held := mirror.allocation(slot, None, 0)) < 0:
        raise invalid(f"job {slot.graph.label!r:.60} holds {held} executors apart from those promised to others")


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
