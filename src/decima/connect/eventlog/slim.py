"""Small copies of event logs that keep only what is read from them here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import cramjam

from decima.connect.eventlog.events import JOB_PROPERTIES, METRICS, SQL_START, mapping
from decima.connect.eventlog.files import Damage, LogFiles, find_logs, read_lines
from decima.core.errors import EventLogError
from decima.core.files import atomic_write_bytes

LEVEL = 19  # of zstd
_SQL_END = "org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd"
_TASK = (
    *("Task ID", "Index", "Attempt", "Partition ID", "Launch Time", "Executor ID", "Host", "Speculative"),
    *("Getting Result Time", "Finish Time", "Failed", "Killed"),
)
_COMPLETED = (
    "Stage ID",
    "Stage Attempt ID",
    "Number of Tasks",
    "Submission Time",
    "Completion Time",
    "Failure Reason",
)
_STAGE = (*_COMPLETED, "Stage Name", "Parent IDs", "Resource Profile Id")
# Which events stay, and which of their fields; None: all.
_EVENTS: dict[str, tuple[str, ...] | None] = {
    "SparkListenerLogStart": None,
    "SparkListenerApplicationStart": ("App Name", "App ID", "App Attempt ID", "Timestamp"),
    "SparkListenerApplicationEnd": None,
    "SparkListenerEnvironmentUpdate": ("Spark Properties",),
    "SparkListenerJobStart": ("Job ID", "Submission Time", "Stage Infos", "Properties"),
    "SparkListenerJobEnd": None,
    "SparkListenerStageCompleted": ("Stage Info",),
    "SparkListenerExecutorAdded": ("Timestamp", "Executor ID", "Executor Info"),
    "SparkListenerExecutorRemoved": None,
    "SparkListenerTaskEnd": (
        *("Stage ID", "Stage Attempt ID", "Task Type", "Task End Reason"),
        *("Task Info", "Task Metrics"),
    ),
    "SparkListenerResourceProfileAdded": None,
    SQL_START: ("executionId", "rootExecutionId", "description", "time"),
    _SQL_END: ("executionId", "time", "errorMessage"),
}
# Settings that name folders, hosts or ports of one machine, or are long.
_PRIVATE = ("dir", "host", "address", "port", "path", "jars", "master", "java")


def slim_log(path: str | Path, out: str | Path) -> int:
    """Write an equivalent zstd-compressed copy of an event log, about a hundredth as large.

    Left out are metrics and settings that the reader does not use, query plans, names of call sites, and paths of the
    machine. The copy is a valid event log of Spark.

    Args:
        path: an event log as the reader takes it.
        out: file to write; `.zstd` as the end of its name is what Spark itself would give it.

    Returns:
        Size of the copy in bytes.

    Raises:
        DataUnavailableError: there is no log.
        EventLogError: the log is damaged.
    """
    (log,) = find_logs([path])
    content = cramjam.zstd.compress("".join(_slim_lines(log)).encode(), level=LEVEL)
    atomic_write_bytes(out, bytes(content))
    return len(content)


def _slim_lines(log: LogFiles):
    damage = Damage()
    for line in read_lines(log, damage):
        try:
            event = json.loads(line)
        except ValueError:
            raise EventLogError(f"{log.path} is damaged: a line is not JSON") from None
        slim = _slim(event)
        if slim is not None:
            yield json.dumps(slim, separators=(",", ":"), ensure_ascii=False) + "\n"
    if damage != Damage():
        raise EventLogError(f"{log.path} is damaged: {damage}")


def _slim(event: dict[str, Any]) -> dict[str, Any] | None:
    name = event.get("Event")
    if name not in _EVENTS:
        return None
    fields = _EVENTS[name]
    slim = event if fields is None else _keep(event, ("Event", *fields))
    if name == "SparkListenerTaskEnd":
        slim["Task End Reason"] = _keep(mapping(slim.get("Task End Reason")), ("Reason",))
        slim["Task Info"] = _keep(mapping(slim.get("Task Info")), _TASK)
        if "Task Metrics" in slim:
            slim["Task Metrics"] = _metrics(mapping(slim["Task Metrics"]))
    elif name == "SparkListenerJobStart":
        slim["Properties"] = _keep(mapping(slim.get("Properties")), JOB_PROPERTIES)
        slim["Stage Infos"] = [_stage(info) for info in slim.get("Stage Infos", [])]
        slim["Stage IDs"] = [info["Stage ID"] for info in slim["Stage Infos"]]
    elif name == "SparkListenerStageCompleted":
        slim["Stage Info"] = _keep(mapping(slim.get("Stage Info")), _COMPLETED)
    elif name == "SparkListenerEnvironmentUpdate":
        slim["Spark Properties"] = _settings(slim.get("Spark Properties"))
    elif name == "SparkListenerExecutorAdded":
        info = ("Host", "Total Cores", "Request Time", "Registration Time", "Resource Profile Id")
        slim["Executor Info"] = _keep(mapping(slim.get("Executor Info")), info)
    return slim


def _metrics(metrics: dict[str, Any]) -> dict[str, Any]:
    slim: dict[str, Any] = {}
    for paths, _ in METRICS.values():
        for *outer, name in paths:
            source, target = metrics, slim
            for key in outer:
                source, target = mapping(source.get(key)), target.setdefault(key, {})
            if name in source:
                target[name] = source[name]
    return slim


def _stage(info: dict[str, Any]) -> dict[str, Any]:
    slim = _keep(info, _STAGE)
    slim["RDD Info"] = [_keep(rdd, ("RDD ID", "Name", "Scope")) for rdd in info.get("RDD Info", [])]
    for rdd in slim["RDD Info"]:
        # The names of data source RDDs hold paths; the operator's name is in the scope.
        if "Scope" in rdd:
            rdd["Scope"] = json.dumps(_keep(json.loads(rdd["Scope"]), ("id", "name")), separators=(",", ":"))
            rdd["Name"] = ""
    return slim


def _settings(settings: Any) -> dict[str, str] | list:
    pairs = settings.items() if isinstance(settings, dict) else settings if isinstance(settings, list) else ()
    kept = [
        (key, value)
        for key, value in pairs
        if "/" not in value and (not _is_private(key) or (key == "spark.master" and value.startswith("local")))
    ]
    return dict(kept) if isinstance(settings, dict) else [list(pair) for pair in kept]


def _is_private(key: str) -> bool:
    return any(part in key.lower() for part in _PRIVATE)


def _keep(mapping_: dict[str, Any], names) -> dict[str, Any]:
    return {name: mapping_[name] for name in names if name in mapping_}
