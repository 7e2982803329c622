"""Tables from the event log of an application; its slots are the paper's executors."""

from __future__ import annotations

import heapq
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas

from decima.connect.eventlog.events import METRICS, TASK_TEXTS, EventRecords, ExecutorRecord, integer
from decima.connect.eventlog.queries import QueryRun
from decima.connect.eventlog.report import USED
from decima.workload.profile import WAVES

SIZES = ("input_bytes", "shuffle_read_bytes", "shuffle_write_bytes", "output_bytes", "spill_bytes")
_NOT_SUCCESSFUL = "task failed or was killed"


FRESH, FIRST, REST = range(len(WAVES))
AGAIN = "task had succeeded before"  # why a copy or a repetition is in no profile


@dataclass(frozen=True)
class Placement:
    """Slot and wave of every task, in the order of the tasks."""

    slot: np.ndarray  # int64 [tasks], slot of its executor
    wave: np.ndarray  # int8 [tasks], index of the wave in `WAVES`
    first_of_query: np.ndarray  # bool [tasks], the slot's first task of the query


def assign_slots(
    executor: np.ndarray,
    launch_ms: np.ndarray,
    finish_ms: np.ndarray,
    task_id: np.ndarray,
    query: np.ndarray,
    stage: np.ndarray,
    slots: Sequence[int],
    width: Sequence[int] | None = None,
) -> Placement:
    """Give every task a slot of its executor and a wave.

    An executor of the paper runs one task at a time; a Spark executor with room for several tasks at once counts as
    that many, its *slots*. A task takes the slot that became free first, else a new one. The driver stamps the end of
    a task after its core was given to the next one (up to some tens of milliseconds), so tasks can seem to be more
    than there are slots: such a task takes the slot that will be free next.

    Waves (§6.2): `fresh` is the first task of a slot since its executor started, `first` its first task of a stage,
    `rest` all later ones. Failed and killed tasks count, they warm the executor up as others do.

    Args:
        executor: int [tasks], executor as a number from 0.
        launch_ms: [tasks].
        finish_ms: [tasks].
        task_id: int [tasks], decides among equal launch times.
        query: int [tasks], number of the query; -1 is none.
        stage: int [tasks], number of the merged stage, unique over all queries.
        slots: per executor, how many tasks it runs at once.
        width: int [tasks], slots that a task takes; 1 without it. The table has the first of them.
    """
    count = len(executor)
    slot, wave, new_query = np.zeros(count, np.int64), np.full(count, REST, np.int8), np.zeros(count, bool)
    busy: list[list[tuple[float, int]]] = [[] for _ in slots]  # per executor, heap of (finish, slot)
    opened = [0] * len(slots)
    known_stages: set[tuple[int, int, int]] = set()
    known_queries: set[tuple[int, int, int]] = set()
    wide = np.ones(count, np.int64) if width is None else np.asarray(width, np.int64)
    columns = [column.tolist() for column in (executor, launch_ms, finish_ms, query, stage, wide)]
    for row in np.lexsort((task_id, launch_ms)).tolist():
        process, launch, finish, of_query, of_stage, takes = (column[row] for column in columns)
        heap = busy[process]
        taken = []
        for _ in range(min(takes, slots[process])):
            if heap and (heap[0][0] <= launch or opened[process] >= slots[process]):
                taken.append(heapq.heappop(heap)[1])
                fresh = False
            else:
                taken.append(opened[process])
                opened[process] += 1
                fresh = True
            if len(taken) > 1:
                continue
            slot[row] = number = taken[0]
            wave[row] = FRESH if fresh else REST if (process, number, of_stage) in known_stages else FIRST
            new_query[row] = (process, number, of_query) not in known_queries
        for number in taken:
            heapq.heappush(heap, (finish, number))
            known_stages.add((process, number, of_stage))
            known_queries.add((process, number, of_query))
    return Placement(slot, wave, new_query)


def mean_slots(begin_ms: float, end_ms: float, added_ms: Sequence[float], removed_ms: Sequence[float], slots) -> float:
    """Time-weighted number of slots of registered executors between two times.

    Args:
        begin_ms: start of the span.
        end_ms: end of the span; when not later than the start, the slots present at the start are counted.
        added_ms: per executor.
        removed_ms: per executor; infinite while it was not removed.
        slots: per executor.
    """
    span = end_ms - begin_ms
    if span <= 0:
        return float(sum(s for a, r, s in zip(added_ms, removed_ms, slots, strict=True) if a <= begin_ms < r))
    overlap = [
        max(0.0, min(end_ms, removed) - max(begin_ms, added)) * count
        for added, removed, count in zip(added_ms, removed_ms, slots, strict=True)
    ]
    return sum(overlap) / span


def task_table(records: EventRecords, runs: Sequence[QueryRun], executors: pandas.DataFrame) -> pandas.DataFrame:
    """Make the table of ended tasks by launch time; `docs/event-log-tables.md` lists the columns."""
    columns = records.tasks
    table = pandas.DataFrame({name: np.array(values, np.int64) for name, values in columns.numbers.items()})
    named, process = processes(records)
    table["executor"] = pandas.Categorical.from_codes(process, list(named))
    for name in TASK_TEXTS[1:]:
        table[name] = pandas.Categorical.from_codes(np.array(columns.codes[name]), list(columns.texts[name]))
    table["speculative"] = np.array(columns.speculative, bool)
    table["duration_ms"] = (table.finish_ms - table.launch_ms).astype(float)
    for name in METRICS:
        table[name] = np.array(columns.metrics[name], float)
    table["getting_result_ms"] = np.array(columns.getting_result_ms, float)
    accounted = table.run_ms + table.deserialize_ms + table.result_serialize_ms + table.getting_result_ms
    table["scheduler_delay_ms"] = (table.duration_ms - accounted).clip(lower=0.0)
    _assign(table, runs)
    table["slots"] = _task_slots(records, table, executors, named, process)
    _add_slots(table, executors, process)
    return table.sort_values(["launch_ms", "task_id"], kind="stable", ignore_index=True)


def _assign(table: pandas.DataFrame, runs: Sequence[QueryRun]) -> None:
    """Add columns: each task's query, merged stage and Spark job, and its use for profiles."""
    places = {id_: index for run in runs for index, stage in enumerate(run.stages) for id_ in stage.stage_ids}
    job_of: dict[int, tuple[int, int]] = {}
    for number, run in enumerate(runs):
        for job in run.jobs:
            for stage_id in job.stage_ids:
                job_of.setdefault(stage_id, (number, job.job_id))
    ids, inverse = np.unique(table.spark_stage_id.to_numpy(), return_inverse=True)
    owner = np.array([job_of.get(int(id_), (-1, -1)) for id_ in ids], np.int64).reshape(-1, 2)[inverse]
    stage = np.array([places.get(int(id_), -1) for id_ in ids], np.int64)[inverse]
    query = owner[:, 0]
    table["query"] = pandas.Categorical.from_codes(query, [run.query for run in runs])
    names: dict[str, int] = {}
    codes = np.array([*(names.setdefault(run.name, len(names)) for run in runs), -1], np.int64)
    table["name"] = pandas.Categorical.from_codes(codes[query], list(names))
    table["query_number"] = query
    table["job_id"] = owner[:, 1]
    table["stage"] = stage
    reason = np.full(len(table), USED, dtype=object)
    skipped = np.array([bool(run.skipped) for run in runs] + [False])[query]
    reason[stage < 0] = "stage of a job that was cancelled"
    reason[skipped] = "query not used"
    reason[query < 0] = "job of the stage is not in the log"
    reason[(table.status != "success").to_numpy() & (reason == USED)] = _NOT_SUCCESSFUL
    # Of speculative copies and repeated stage attempts, the first end counts: it is what the stage waited for.
    ranked = table[reason == USED].sort_values(["finish_ms", "task_id"], kind="stable")
    again = ranked.index[ranked.duplicated(["query_number", "stage", "partition"])]
    reason[again] = AGAIN
    table["use"] = pandas.Categorical(reason)


def _task_slots(records, table, executors, named, process) -> np.ndarray:
    """Slots that each task takes by its resource profile, float64 [tasks]."""
    if len({stage.resources for stage in records.stages.values()}) < 2:
        return np.ones(len(table))
    of_stage = {stage.stage_id: stage.resources for stage in records.stages.values()}
    homes, cores, slots = list(named.values()), executors.cores.tolist(), executors.slots.tolist()
    known: dict[tuple[int, int], float] = {}
    for number, id_ in set(zip(process.tolist(), table.spark_stage_id.tolist(), strict=True)):
        at_once = _at_once(records, homes[number].resources, cores[number], of_stage.get(id_, 0))
        known[number, id_] = slots[number] / at_once
    return np.array([known[key] for key in zip(process.tolist(), table.spark_stage_id.tolist(), strict=True)])


def _at_once(records: EventRecords, executor_profile: int, cores: int, task_profile: int) -> int:
    """Tasks of a resource profile that an executor runs at once."""
    return max(1, min(cores // records.task_cpus(task_profile), _limit(records, executor_profile, task_profile)))


def _add_slots(table: pandas.DataFrame, executors: pandas.DataFrame, process: np.ndarray) -> None:
    # Spark's own stage id tells stages apart that no query owns.
    stage = np.where(table.stage >= 0, table.query_number * 2**32 + table.stage, -1 - table.spark_stage_id)
    placement = assign_slots(
        process,
        table.launch_ms.to_numpy(),
        table.finish_ms.to_numpy(),
        table.task_id.to_numpy(),
        table.query_number.to_numpy(),
        stage,
        executors.slots.tolist(),
        table.slots.round().clip(lower=1),
    )
    table["slot"] = placement.slot
    table["wave"] = pandas.Categorical.from_codes(placement.wave, WAVES)
    table["first_of_query"] = placement.first_of_query


def processes(records: EventRecords) -> tuple[dict[str, ExecutorRecord], np.ndarray]:
    """Executor processes by name, and that of each task.

    Returns:
        The processes, in which those that came back under their id have a number after it; and the index of the process
        of each task, int64 [tasks].
    """
    named: dict[str, ExecutorRecord] = {}
    first: dict[str, int] = {}
    for name, lives in records.lives.items():
        first[name] = len(named)
        named.update({f"{name}~{number + 1}" if number else name: life for number, life in enumerate(lives)})
    codes, launch = np.array(records.tasks.codes["executor"], np.int64), records.tasks.numbers["launch_ms"]
    numbers = np.array([first[name] for name in records.tasks.texts["executor"]] or [0], np.int64)[codes]
    for code, name in enumerate(records.tasks.texts["executor"]):
        if len(lives := records.lives[name]) > 1:
            mine = codes == code
            began = np.searchsorted([life.added_ms for life in lives], launch[mine], side="right")
            numbers[mine] += np.maximum(0, began - 1)
    return named, numbers


def executor_table(records: EventRecords) -> pandas.DataFrame:
    """Make the table of executor processes; cores that the log does not announce are inferred."""
    named, process = processes(records)
    numbers = records.tasks.numbers
    launch, finish = numbers["launch_ms"], numbers["finish_ms"]
    # The driver stamps an end late, but what the executor measured of a task ends before its core is taken again.
    run, *others = (np.array(records.tasks.metrics[name], float) for name in _ON_CORE)
    left = np.fmin(finish, launch + run + sum(map(np.nan_to_num, others)))
    of_stage = {stage.stage_id: stage.resources for stage in records.stages.values()}
    profile = np.array([of_stage.get(each, 0) for each in numbers["spark_stage_id"].tolist()], np.int64)
    order = np.argsort(process, kind="stable")
    begins = np.searchsorted(process[order], np.arange(len(named) + 1))
    rows = []
    for number, (name, executor) in enumerate(named.items()):
        mine = order[begins[number] : begins[number + 1]]
        times = np.bincount(profile[mine], weights=finish[mine] - launch[mine]) if len(mine) else np.zeros(1)
        main = int(times.argmax()) if times.any() else executor.resources
        cpus = records.task_cpus(main)
        cores = executor.cores or max(_stated_cores(records, executor), cpus * _peak(launch[mine], left[mine]))
        added = executor.added_ms if executor.added_ms is not None else launch[mine].min()
        times = executor.requested_ms, executor.removed_ms
        requested, removed = (np.nan if time_ms is None else float(time_ms) for time_ms in times)
        rows.append({
            "executor": name, "host": executor.host, "cores": cores,
            "slots": _at_once(records, executor.resources, cores, main),
            "requested_ms": requested, "added_ms": float(added), "removed_ms": removed,
            "removed_reason": executor.removed_reason, "start_delay_ms": float(added) - requested,
            "first_task_ms": float(launch[mine].min()) if len(mine) else np.nan,
            "last_task_ms": float(finish[mine].max()) if len(mine) else np.nan,
            "inferred": executor.added_ms is None or executor.cores is None,
        })  # fmt: skip
    names = (
        "executor host cores slots requested_ms added_ms removed_ms removed_reason start_delay_ms first_task_ms "
        "last_task_ms inferred"
    )
    return pandas.DataFrame(rows, columns=names.split())


_ON_CORE = ("run_ms", "deserialize_ms", "result_serialize_ms")
_LOCAL = re.compile(r"local\[(\d+)|local-cluster\[\s*\d+\s*,\s*(\d+)")


def _stated_cores(records: EventRecords, executor: ExecutorRecord) -> int:
    """Cores of an executor by the settings, at least 1."""
    local = _LOCAL.match(records.settings.get("spark.master", ""))
    if local:
        return integer(local[1] or local[2], 1, 2**20) or 1
    stated = records.resources.get(executor.resources, ({}, {}))[0].get("cores")
    stated = stated or integer(records.settings.get("spark.executor.cores"), 1, 2**20)
    return int(stated) if stated and executor.executor not in ("driver", "<driver>") else 1


def _limit(records: EventRecords, executor_profile: int, task_profile: int) -> int:
    """Most tasks at once that resources other than cores, such as GPUs, allow."""
    has = records.resources.get(executor_profile, ({}, {}))[0]
    takes = records.resources.get(task_profile, ({}, {}))[1]
    # Less than one of a resource: so many tasks share each.
    return min(
        (
            int(has[name] // amount) if amount >= 1.0 else int(has[name]) * int(1.0 / amount)
            for name, amount in takes.items()
            if name in has and name != "cpus"
        ),
        default=2**31,
    )


def query_table(runs: Sequence[QueryRun], tasks: pandas.DataFrame, executors: pandas.DataFrame) -> pandas.DataFrame:
    """Make the table of queries in the order of their submission."""
    spans = [(run.submit_ms, np.inf if run.finish_ms is None else run.finish_ms) for run in runs]
    # A slot runs one task at a time: the late stamp of an end must not count as a second one.
    following = tasks.groupby(["executor", "slot"], observed=True).launch_ms.shift(-1)
    order = np.argsort(tasks.query_number.to_numpy(), kind="stable")
    launch = tasks.launch_ms.to_numpy()[order]
    left = np.fmin(tasks.finish_ms, following).to_numpy()[order]
    first = np.searchsorted(tasks.query_number.to_numpy()[order], np.arange(len(runs) + 1))
    alone = _alone(np.array(spans, float).reshape(-1, 2))
    added, removed = executors.added_ms.to_numpy(), executors.removed_ms.fillna(np.inf).to_numpy()
    rows = []
    known: set[str] = set()
    for number, (run, (begin, end)) in enumerate(zip(runs, spans, strict=True)):
        mine = slice(first[number], first[number + 1])
        stop = end if np.isfinite(end) else max(begin, left[mine].max(initial=begin))
        finish = float(end) if np.isfinite(end) else np.nan
        rows.append({
            "query": run.query, "name": run.name, "named": run.named, "same": run.same, "stream": run.stream,
            "grouped_by": run.grouped_by,
            "job_ids": tuple(job.job_id for job in run.jobs),
            "submit_ms": float(begin), "finish_ms": finish, "duration_ms": finish - begin,
            "stages": len(run.stages), "tasks": sum(stage.num_tasks for stage in run.stages),
            "executors": mean_slots(begin, stop, added, removed, executors.slots.to_numpy()),
            "stated_executors": np.nan if run.executors is None else float(run.executors),
            "busy": _busy_ms(launch[mine], left[mine], begin, stop) / (stop - begin) if stop > begin else 0.0,
            "peak_tasks": _peak(launch[mine], left[mine]), "alone": bool(alone[number]), "skipped": run.skipped,
            "again": run.name in known,
        })  # fmt: skip
        known.add(run.name)
    names = (
        "query name named same stream grouped_by job_ids submit_ms finish_ms duration_ms stages tasks executors "
        "stated_executors busy peak_tasks alone skipped again"
    )
    return pandas.DataFrame(rows, columns=names.split())


def stage_table(runs: Sequence[QueryRun], tasks: pandas.DataFrame) -> pandas.DataFrame:
    """Table of merged stages, per query in DAG order; sizes sum tasks that profiles use."""
    used = tasks[tasks.use == USED].groupby(["query_number", "stage"], observed=True)
    sums = used[list(SIZES)].sum().to_dict("index")
    spans = used.agg(
        tasks_seen=("partition", "size"), launch=("launch_ms", "min"), finish=("finish_ms", "max"),
        slots=("slots", "mean"),
    )  # fmt: skip
    spans = spans.to_dict("index")
    rows = []
    for number, run in enumerate(runs):
        for index, stage in enumerate(run.stages):
            span = spans.get((number, index))
            rows.append({
                "query": run.query, "name": run.name, "stage": index, "num_tasks": stage.num_tasks,
                "tasks_seen": span["tasks_seen"] if span else 0, "parents": stage.parents,
                "task_slots": float(span["slots"]) if span else 1.0,
                "spark_stage_ids": stage.stage_ids, "kind": stage.role, "operators": ", ".join(stage.operators),
                "first_launch_ms": float(span["launch"]) if span else np.nan,
                "last_finish_ms": float(span["finish"]) if span else np.nan,
                **(sums.get((number, index)) or dict.fromkeys(SIZES, 0.0)),
            })  # fmt: skip
    names = (
        "query name stage num_tasks tasks_seen parents task_slots spark_stage_ids kind operators first_launch_ms "
        "last_finish_ms"
    )
    return pandas.DataFrame(rows, columns=[*names.split(), *SIZES])


def _busy_ms(launch: np.ndarray, left: np.ndarray, begin: float, end: float) -> float:
    """Total busy time of slots within a span; killed copies may outlive their query."""
    return float((np.clip(left, begin, end) - np.clip(launch, begin, end)).sum())


def _alone(spans: np.ndarray) -> np.ndarray:
    """Whether each query ran alone, bool [queries]; spans (begin, end), float64 [queries, 2], ascend."""
    latest_before = np.concatenate([[-np.inf], np.maximum.accumulate(spans[:, 1])[:-1]])
    next_begin = np.concatenate([spans[1:, 0], [np.inf]])
    return (latest_before <= spans[:, 0]) & (next_begin >= spans[:, 1])


def _peak(launch: np.ndarray, left: np.ndarray) -> int:
    """Largest number of slots busy at once; an end precedes a simultaneous launch."""
    if not len(launch):
        return 0
    times = np.concatenate([launch, left])
    steps = np.repeat([1, -1], len(launch))
    return int(np.cumsum(steps[np.lexsort((steps, times))]).max())
