"""Plain records from the lines of an event log, with missing fields and any types."""

from __future__ import annotations

import json
from array import array
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

MAX_PROFILE = 10_000  # largest number of a resource profile
MAX_MS = 2**53  # largest integer a float64 holds exactly; stamps beyond are damage
_SQL = "org.apache.spark.sql.execution.ui."
SQL_START = f"{_SQL}SparkListenerSQLExecutionStart"
_PLAN = b',"physicalPlanDescription":'
_PREFIX = b'{"Event":"'
_ACCUMULABLES = b'"Accumulables":['
_AFTER_ACCUMULABLES = (b']},"Task Executor Metrics":{', b']},"Task Metrics":{')


class Field(NamedTuple):
    """Field of an event log."""

    event: str
    name: str
    since: str  # first version of Spark that writes it
    conclusion: str  # what is concluded where it is missing
    noted: bool = True  # whether the report says so; not where nothing is guessed


# Fields that some versions of Spark do not write; `docs/event-logs.md` has this table, and tests try every row.
FIELDS = (
    Field("ApplicationStart", "App ID", "1.2", "the name of the log stands for it"),
    Field("ApplicationStart", "App Attempt ID", "1.4", "the start tells attempts apart", False),
    Field("JobStart", "Submission Time", "1.3", "the first launch of its tasks stands for it"),
    Field("JobEnd", "Completion Time", "1.3", "the last end of its tasks stands for it"),
    Field("JobStart", "Parent IDs", "1.4", "a stage waits for those of its job that had ended before its first launch"),
    Field("JobStart", "Scope", "1.4", "operators have the names of RDDs", False),
    Field("JobStart", "Resource Profile Id", "3.1", "the default profile", False),
    Field("TaskEnd", "Executor CPU Time", "2.1", "CPU times are unknown", False),
    Field("TaskEnd", "Killed", "2.2", "the reason of the end tells", False),
    Field("TaskEnd", "Partition ID", "3.3", "the index of the task, which differs in repeated stages", False),
    Field("ExecutorAdded", "Total Cores", "1.3", "the maximum number of its tasks at once"),
    Field("SQLExecutionEnd", "errorMessage", "3.4", "its jobs tell whether the query succeeded"),
    Field("SQLExecutionStart", "rootExecutionId", "3.4", "every SQL execution is a query", False),
)

# column of the task table -> path inside "Task Metrics" and what one unit of the log is in the column's unit
METRICS: dict[str, tuple[tuple[tuple[str, ...], ...], float]] = {
    "run_ms": ((("Executor Run Time",),), 1.0),
    "cpu_ms": ((("Executor CPU Time",),), 1e-6),
    "gc_ms": ((("JVM GC Time",),), 1.0),
    "deserialize_ms": ((("Executor Deserialize Time",),), 1.0),
    "result_serialize_ms": ((("Result Serialization Time",),), 1.0),
    "fetch_wait_ms": ((("Shuffle Read Metrics", "Fetch Wait Time"),), 1.0),
    "input_bytes": ((("Input Metrics", "Bytes Read"),), 1.0),
    "shuffle_read_bytes": (
        (("Shuffle Read Metrics", "Remote Bytes Read"), ("Shuffle Read Metrics", "Local Bytes Read")),
        1.0,
    ),
    "shuffle_write_bytes": ((("Shuffle Write Metrics", "Shuffle Bytes Written"),), 1.0),
    "output_bytes": ((("Output Metrics", "Bytes Written"),), 1.0),
    "spill_bytes": ((("Disk Bytes Spilled",),), 1.0),
    "result_bytes": ((("Result Size",),), 1.0),
}
# column of the task table -> what messages call it
TASK_NUMBERS = {
    "task_id": "task id", "spark_stage_id": "stage id", "stage_attempt": "stage attempt", "partition": "task index",
    "attempt": "task attempt", "launch_ms": "launch time", "finish_ms": "finish time",
}  # fmt: skip
JOB_PROPERTIES = frozenset({
    "decima.query", "decima.profile", "decima.executors", "spark.sql.execution.id", "spark.sql.execution.root.id",
    "spark.jobGroup.id", "spark.job.description", "spark.sql.adaptive.enabled", "sql.streaming.queryId",
})  # fmt: skip
SETTINGS = frozenset({
    "spark.master", "spark.executor.cores", "spark.task.cpus", "spark.sql.adaptive.enabled",
    "spark.dynamicAllocation.enabled", "spark.dynamicAllocation.minExecutors", "spark.dynamicAllocation.maxExecutors",
    "spark.dynamicAllocation.initialExecutors", "spark.dynamicAllocation.executorIdleTimeout",
    "spark.dynamicAllocation.schedulerBacklogTimeout", "spark.dynamicAllocation.sustainedSchedulerBacklogTimeout",
    "spark.shuffle.service.enabled", "spark.executor.instances",
})  # fmt: skip
TASK_TEXTS = ("executor", "host", "status", "end_reason", "task_type")


@dataclass
class JobRecord:
    """Spark job: one action or, with adaptive execution, one shuffle stage."""

    job_id: int
    submit_ms: int | None  # None until the records are complete, where the log does not have it
    stage_ids: tuple[int, ...]
    properties: dict[str, str]
    broken: bool = False  # a stage of it could not be read from the event
    finish_ms: int | None = None
    succeeded: bool | None = None
    cancelled: bool = False  # Spark's message of its failure says so


@dataclass(frozen=True)
class StageRecord:
    """Spark stage as announced at the start of its job."""

    stage_id: int
    num_tasks: int
    parent_ids: tuple[int, ...] | None  # None where the log does not have them
    rdd_id: int | None
    operators: tuple[str, ...]
    name: str = ""  # the line of the program that asked for it
    resources: int = 0  # number of its resource profile


@dataclass
class ExecutorRecord:
    """Executor process; one that returns under its id is another."""

    executor: str
    host: str
    added_ms: int | None  # None where the log does not tell
    cores: int | None
    requested_ms: int | None = None
    removed_ms: int | None = None
    removed_reason: str = ""
    resources: int = 0  # number of its resource profile


class TaskColumns:
    """Columns of the ended tasks in compact arrays, for logs of a million tasks."""

    def __init__(self) -> None:
        self.numbers = {name: array("q") for name in TASK_NUMBERS}
        self.speculative = array("b")
        self.getting_result_ms = array("d")
        self.metrics = {name: array("d") for name in METRICS}
        self.codes = {name: array("i") for name in TASK_TEXTS}
        self.texts: dict[str, dict[str, int]] = {name: {} for name in TASK_TEXTS}

    def __len__(self) -> int:
        return len(self.speculative)

    def drop_repeated(self) -> int:
        """Drop tasks whose line the log has before, and return their number.

        The columns are NumPy arrays from then on.
        """
        self.numbers = {name: np.array(values, np.int64) for name, values in self.numbers.items()}
        stamps = np.stack(list(self.numbers.values()), axis=1)
        if len(np.unique(self.numbers["task_id"])) == len(self):
            return 0
        rows = np.sort(np.unique(stamps, axis=0, return_index=True)[1])
        dropped = len(self) - len(rows)
        self.speculative, self.getting_result_ms = (
            np.array(each)[rows] for each in (self.speculative, self.getting_result_ms)
        )
        for columns in (self.numbers, self.metrics, self.codes):
            columns.update({name: np.array(values)[rows] for name, values in columns.items()})
        return dropped

    def text(self, column: str, value: str) -> None:
        """Append a text, stored once for all tasks that share it."""
        known = self.texts[column]
        self.codes[column].append(known.setdefault(value, len(known)))


@dataclass
class EventRecords:
    """Records of one log, in the order of its lines."""

    spark_version: str = ""
    app_id: str = ""
    attempt: str = ""
    app_name: str = ""
    start_ms: int | None = None
    end_ms: int | None = None
    settings: dict[str, str] = field(default_factory=dict)
    # Resource profile -> what an executor has and what a task takes, each by the name of the resource.
    resources: dict[int, tuple[dict[str, float], dict[str, float]]] = field(default_factory=dict)
    # All lines, and how many of them were read, of which kind, or why not: these add up.
    lines: Counter = field(default_factory=Counter)
    events: Counter = field(default_factory=Counter)
    skipped_tasks: Counter = field(default_factory=Counter)  # why ended tasks are not in `tasks`, counted
    skipped_events: Counter = field(default_factory=Counter)
    missing: Counter = field(default_factory=Counter)  # fields of `fields.FIELDS` that events lack
    early: int = 0  # ends that came before their starts
    jobs: dict[int, JobRecord] = field(default_factory=dict)
    job_ends: list[tuple[int, int | None, bool, bool]] = field(default_factory=list)  # job, time, succeeded, cancelled
    stages: dict[int, StageRecord] = field(default_factory=dict)
    stage_failures: dict[tuple[int, int], str] = field(default_factory=dict)
    completed: dict[int, int] = field(default_factory=dict)  # stage that completed -> its tasks
    executors: dict[tuple[str, int | None], ExecutorRecord] = field(default_factory=dict)  # by id and start
    spans: dict[int, tuple[int, int]] = field(default_factory=dict)  # stage -> first launch, last end; when complete
    lives: dict[str, list[ExecutorRecord]] = field(default_factory=dict)  # executor -> processes; when complete
    removals: list[tuple[str, int, str]] = field(default_factory=list)  # executor, time, reason
    descriptions: dict[str, str] = field(default_factory=dict)  # SQL execution that started -> its description
    # SQL execution -> whether it succeeded, for those that ended; None where only its jobs tell.
    executions: dict[str, bool | None] = field(default_factory=dict)
    tasks: TaskColumns = field(default_factory=TaskColumns)
    last_ms: int = 0

    def read(self, line: bytes) -> None:
        """Read one line; whatever is wrong with it is counted, never raised."""
        self.lines["all"] += 1
        if line.startswith(_PREFIX):
            end = line.find(b'"', len(_PREFIX))
            name = line[len(_PREFIX) : end].decode("utf-8", "replace")
            if end > 0 and name not in _HANDLERS and line.endswith(b"\n"):
                # Most bytes of a log are in events that nothing is taken from: not worth parsing.
                self.events[name] += 1
                self.lines["not needed"] += 1
                return
            if name == "SparkListenerTaskEnd":
                line = _without_accumulables(line)
            elif name == SQL_START and (end := line.find(_PLAN)) > 0:
                line = line[:end] + b"}"
        elif not line.strip():
            self.lines["empty"] += 1
            return
        try:
            event = json.loads(line)
            name = event["Event"]
            handler = _HANDLERS.get(name)
        except (ValueError, TypeError, KeyError, RecursionError):
            self.lines["not a JSON event"] += 1
            return
        self.events[text(name)] += 1
        if handler is None:
            self.lines["not needed"] += 1
            return
        reason = handler(self, event)
        self.lines["read"] += 1
        if reason:
            self._unfit(name, reason)
            if name == "SparkListenerTaskEnd":
                self.skipped_tasks[reason] += 1

    def _unfit(self, name: str, reason: str) -> None:
        self.skipped_events[f"{name}: {reason}"] += 1
        self.lines["read"] -= 1
        self.lines["without a needed field"] += 1

    def complete(self) -> None:
        """Join starts and ends when all lines were read, whatever their order was."""
        if repeated := self.tasks.drop_repeated():
            self.skipped_tasks["the log has its end before"] += repeated
        stage_id, launch, finish = (self.tasks.numbers[name] for name in ("spark_stage_id", "launch_ms", "finish_ms"))
        order = np.argsort(stage_id, kind="stable")
        ids, begins = np.unique(stage_id[order], return_index=True)
        if len(ids):
            first, last = np.minimum.reduceat(launch[order], begins), np.maximum.reduceat(finish[order], begins)
            self.spans = dict(zip(ids.tolist(), zip(first.tolist(), last.tolist(), strict=True), strict=True))
        spans = self.spans
        for job in self.jobs.values():
            times = [spans[each] for each in job.stage_ids if each in spans]
            if job.submit_ms is None:
                job.submit_ms = min((first for first, _ in times), default=self.start_ms or 0)
        for job_id, finish_ms, succeeded, cancelled in self.job_ends:
            job = self.jobs.get(job_id)
            if job is None:
                self._unfit("SparkListenerJobEnd", "no start of that job")
                continue
            if finish_ms is None:
                times = [spans[each][1] for each in job.stage_ids if each in spans]
                finish_ms = max(times, default=job.submit_ms)
            if finish_ms < job.submit_ms:
                self._unfit("SparkListenerJobEnd", "no completion time after the submission")
            elif job.succeeded is not None:
                self._unfit("SparkListenerJobEnd", "the job ended before")
            else:
                job.finish_ms, job.succeeded, job.cancelled = finish_ms, succeeded, cancelled
        self._complete_executors()

    def _complete_executors(self) -> None:
        lives: dict[str, list[ExecutorRecord]] = {}
        for executor in sorted(self.executors.values(), key=lambda each: each.added_ms):
            mine = lives.setdefault(executor.executor, [])
            if mine and mine[-1].removed_ms is None:
                mine[-1].removed_ms = executor.added_ms
            mine.append(executor)
        for name in self.tasks.texts["executor"]:
            if name not in lives:
                lives[name] = [ExecutorRecord(name, "", None, None)]
        for name, removed_ms, reason in sorted(self.removals, key=lambda each: each[1]):
            mine = lives.get(name, ())
            before = [each for each in mine if each.added_ms is None or each.added_ms <= removed_ms]
            if not before:
                why = "no time after the executor was added" if mine else "the executor was never added"
                self._unfit("SparkListenerExecutorRemoved", why)
            elif not before[-1].removed_reason:
                before[-1].removed_ms, before[-1].removed_reason = removed_ms, reason or "no reason"
        self.lives = lives

    @property
    def adaptive(self) -> bool | None:
        """Whether adaptive execution was switched on; None where the log does not have the setting."""
        value = self.settings.get("spark.sql.adaptive.enabled")
        return None if value is None else value.lower() == "true"

    def task_cpus(self, profile: int = 0) -> int:
        """Cores that a task of a resource profile takes."""
        cpus = self.resources.get(profile, ({}, {}))[1].get("cpus")
        return max(1, int(cpus)) if cpus else integer(self.settings.get("spark.task.cpus"), 1, 2**31) or 1

    def seen(self, time_ms: int | None) -> None:
        """Remember the latest time; a log without an end event ends there."""
        if time_ms is not None and time_ms > self.last_ms:
            self.last_ms = time_ms


def integer(value: Any, low: int = 0, high: int = MAX_MS) -> int | None:
    """Integer of a JSON field (integer, whole float or text); None if outside the range."""
    if isinstance(value, str):
        try:
            value = int(value)
        except ValueError:
            return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if type(value) is not int or not low <= value <= high:
        return None
    return value


def mapping(value: Any) -> dict:
    """Object of a JSON field; an empty one if it holds anything else."""
    return value if isinstance(value, dict) else {}


def text(value: Any) -> str:
    """Text of a JSON string or integer, else empty; characters UTF-8 cannot hold are replaced."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    return str(value) if type(value) is int else ""


def _without_accumulables(line: bytes) -> bytes:
    """Empty the list of accumulables, half of a line, if fields are in usual order.

    Quotes inside JSON texts are escaped, so the searched byte sequences can only be what they look like.
    """
    begin = line.find(_ACCUMULABLES)
    if begin > 0:
        begin += len(_ACCUMULABLES)
        for after in _AFTER_ACCUMULABLES:
            end = line.find(after, begin)
            if end > 0:
                return line[:begin] + line[end:]
    return line


def _log_start(log: EventRecords, event: dict) -> None:
    log.spark_version = text(event.get("Spark Version"))


def _application_start(log: EventRecords, event: dict) -> None:
    log.app_id = text(event.get("App ID"))
    log.attempt = text(event.get("App Attempt ID"))
    log.app_name = text(event.get("App Name"))
    log.missing["App ID"] += not log.app_id
    log.start_ms = integer(event.get("Timestamp"))


def _application_end(log: EventRecords, event: dict) -> None:
    log.end_ms = integer(event.get("Timestamp"))


def _environment(log: EventRecords, event: dict) -> None:
    settings = event.get("Spark Properties")
    pairs = settings.items() if isinstance(settings, dict) else settings if isinstance(settings, list) else ()
    for pair in pairs:
        if isinstance(pair, list | tuple) and len(pair) == 2 and pair[0] in SETTINGS:
            log.settings[pair[0]] = text(pair[1])


def _resource_profile(log: EventRecords, event: dict) -> str | None:
    number = integer(event.get("Resource Profile Id"))
    if number is None:
        return "no resource profile id"
    log.resources[number] = tuple(
        {name: amount for name, request in mapping(event.get(side)).items() if (amount := _amount(request)) > 0.0}
        for side in ("Executor Resource Requests", "Task Resource Requests")
    )
    return None


def _amount(request: Any) -> float:
    amount = mapping(request).get("Amount")
    return float(amount) if type(amount) in (int, float) and 0.0 < amount < 2**31 else 0.0


def _job_start(log: EventRecords, event: dict) -> str | None:
    job_id, submit_ms = integer(event.get("Job ID")), integer(event.get("Submission Time"))
    if job_id is None:
        return "no job id"
    if job_id in log.jobs:
        return "the job started before"
    infos = event.get("Stage Infos")
    infos = infos if isinstance(infos, list) else []
    stages = [stage for info in infos if (stage := _stage(info))]
    for stage in stages:
        log.stages.setdefault(stage.stage_id, stage)
    log.missing["Submission Time"] += submit_ms is None
    log.missing["Parent IDs"] += sum(stage.parent_ids is None for stage in stages)
    properties = {
        name: text(value) for name, value in mapping(event.get("Properties")).items() if name in JOB_PROPERTIES
    }
    stage_ids = tuple(sorted({stage.stage_id for stage in stages}))
    log.jobs[job_id] = JobRecord(job_id, submit_ms, stage_ids, properties, len(stage_ids) != len(infos))
    log.seen(submit_ms)
    return None


def _stage(info: Any) -> StageRecord | None:
    info = mapping(info)
    stage_id, tasks = integer(info.get("Stage ID")), integer(info.get("Number of Tasks"), 0, 2**31 - 1)
    if stage_id is None or tasks is None:
        return None
    parents = info.get("Parent IDs")
    parent_ids = {integer(parent) for parent in parents} if isinstance(parents, list) else None
    rdds = info.get("RDD Info")
    rdds = [mapping(rdd) for rdd in rdds] if isinstance(rdds, list) else []
    # The first RDD is the one the stage computes, the others are its narrow ancestors in no fixed order.
    operators = sorted({name for rdd in rdds if (name := _operator(rdd))})
    return StageRecord(
        stage_id,
        tasks,
        None if parent_ids is None else tuple(sorted(parent_ids - {None, stage_id})),
        integer(rdds[0].get("RDD ID")) if rdds else None,
        tuple(operators),
        text(info.get("Stage Name")),
        integer(info.get("Resource Profile Id"), 0, MAX_PROFILE) or 0,
    )


def _operator(rdd: dict) -> str:
    """Name of the SQL operator an RDD belongs to, else of the RDD."""
    scope = rdd.get("Scope")
    if isinstance(scope, str):
        try:
            return text(mapping(json.loads(scope)).get("name")).strip()
        except (ValueError, RecursionError):
            pass
    return text(rdd.get("Name"))


def _job_end(log: EventRecords, event: dict) -> str | None:
    job_id, finish_ms = integer(event.get("Job ID")), integer(event.get("Completion Time"))
    if job_id is None:
        return "no job id"
    result = mapping(event.get("Job Result"))
    if "Result" not in result:
        return "no result of the job"
    message = text(mapping(result.get("Exception")).get("Message"))
    # A job that is aborted names the failure of a stage; Spark's words for all that are cancelled have this one.
    cancelled = "cancel" in message.lower() and not message.startswith("Job aborted")
    log.job_ends.append((job_id, finish_ms, result.get("Result") == "JobSucceeded", cancelled))
    log.missing["Completion Time"] += finish_ms is None
    log.early += job_id not in log.jobs
    log.seen(finish_ms)
    return None


def _stage_completed(log: EventRecords, event: dict) -> str | None:
    info = mapping(event.get("Stage Info"))
    key = integer(info.get("Stage ID")), integer(info.get("Stage Attempt ID"))
    if None in key:
        return "no stage id or attempt"
    if "Failure Reason" in info:
        log.stage_failures[key] = text(info["Failure Reason"])
    else:
        log.completed[key[0]] = integer(info.get("Number of Tasks"), 0, 2**31 - 1) or 0
    return None


def _executor_added(log: EventRecords, event: dict) -> str | None:
    name, added_ms = text(event.get("Executor ID")), integer(event.get("Timestamp"))
    if not name or added_ms is None:
        return "no executor id or time"
    info = mapping(event.get("Executor Info"))
    cores = integer(info.get("Total Cores"), 1, 2**20)
    requested_ms = integer(info.get("Request Time"), 0, added_ms)
    resources = integer(info.get("Resource Profile Id"), 0, MAX_PROFILE) or 0
    executor = ExecutorRecord(name, text(info.get("Host")), added_ms, cores, requested_ms, resources=resources)
    if (name, added_ms) in log.executors:
        return "the executor was added before"
    log.missing["Total Cores"] += cores is None
    log.executors[name, added_ms] = executor
    log.seen(added_ms)
    return None


def _executor_removed(log: EventRecords, event: dict) -> str | None:
    name, removed_ms = text(event.get("Executor ID")), integer(event.get("Timestamp"))
    if not name or removed_ms is None:
        return "no executor id or time"
    log.removals.append((name, removed_ms, text(event.get("Removed Reason"))))
    log.seen(removed_ms)
    return None


def _execution_start(log: EventRecords, event: dict) -> str | None:
    execution = integer(event.get("executionId"))
    if execution is None:
        return "no execution id"
    log.descriptions[str(execution)] = text(event.get("description"))
    return None


def _execution_end(log: EventRecords, event: dict) -> str | None:
    execution, message = integer(event.get("executionId")), event.get("errorMessage")
    if execution is None:
        return "no execution id"
    log.executions[str(execution)] = None if message is None else not message
    log.missing["errorMessage"] += message is None
    return None


def _task_end(log: EventRecords, event: dict) -> str | None:
    info = mapping(event.get("Task Info"))
    reason = text(mapping(event.get("Task End Reason")).get("Reason"))
    if reason == "Resubmitted":
        # Sent a second time for a finished task whose output was lost; its new run is a task of its own.
        return "output lost, the task is run again"
    values = (
        integer(info.get("Task ID")),
        integer(event.get("Stage ID")),
        integer(event.get("Stage Attempt ID", 0)),
        partition if (partition := integer(info.get("Partition ID"))) is not None else integer(info.get("Index")),
        integer(info.get("Attempt", 0)),
        integer(info.get("Launch Time"), 1),
        integer(info.get("Finish Time"), 1),
    )
    executor = text(info.get("Executor ID"))
    for words, value in zip(TASK_NUMBERS.values(), values, strict=True):
        if value is None:
            return f"no valid {words}"
    if not executor:
        return "no executor id"
    if values[-1] < values[-2]:
        return "finished before its launch"
    tasks = log.tasks
    for name, value in zip(TASK_NUMBERS, values, strict=True):
        tasks.numbers[name].append(value)
    tasks.speculative.append(info.get("Speculative") is True)
    getting = integer(info.get("Getting Result Time"), 1)
    tasks.getting_result_ms.append(float(max(0, values[-1] - getting)) if getting else 0.0)
    metrics = mapping(event.get("Task Metrics"))
    for name, (paths, unit) in METRICS.items():
        tasks.metrics[name].append(_metric(metrics, paths, unit))
    tasks.text("executor", executor)
    tasks.text("host", text(info.get("Host")))
    tasks.text("status", _status(info, reason))
    tasks.text("end_reason", reason or "unknown")
    tasks.text("task_type", text(event.get("Task Type")))
    log.seen(values[-1])
    return None


def _status(info: dict, reason: str) -> str:
    if info.get("Killed") is True or reason == "TaskKilled":
        return "killed"
    if reason == "Success" and info.get("Failed") is not True:
        return "success"
    return "failed"


def _metric(metrics: dict, paths: tuple[tuple[str, ...], ...], unit: float) -> float:
    """Sum of the fields in the column's unit; NaN if the log has none."""
    total, any_read = 0, False
    for path in paths:
        value: Any = metrics
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        number = integer(value)
        if number is not None:
            total, any_read = total + number, True
    return total * unit if any_read else float("nan")


_HANDLERS: dict[str, Callable[[EventRecords, dict], str | None]] = {
    "SparkListenerLogStart": _log_start,
    "SparkListenerApplicationStart": _application_start,
    "SparkListenerApplicationEnd": _application_end,
    "SparkListenerEnvironmentUpdate": _environment,
    "SparkListenerJobStart": _job_start,
    "SparkListenerJobEnd": _job_end,
    "SparkListenerStageCompleted": _stage_completed,
    "SparkListenerExecutorAdded": _executor_added,
    "SparkListenerExecutorRemoved": _executor_removed,
    "SparkListenerTaskEnd": _task_end,
    "SparkListenerResourceProfileAdded": _resource_profile,
    SQL_START: _execution_start,
    f"{_SQL}SparkListenerSQLExecutionEnd": _execution_end,
}
