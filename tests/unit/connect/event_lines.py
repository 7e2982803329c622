"""Lines of event logs made by hand, as short as the reader allows."""

import json
from pathlib import Path

LOGS = Path(__file__).parent / "logs"
T0 = 1_700_000_000_000


def line(event, **fields):
    return json.dumps({"Event": event, **fields}, separators=(",", ":")).encode() + b"\n"


def application_start(app_id="app-1", at=0, attempt=None, name="nightly"):
    fields = {"App Name": name, "App ID": app_id, "Timestamp": T0 + at}
    return line("SparkListenerApplicationStart", **fields | ({} if attempt is None else {"App Attempt ID": attempt}))


def application_end(at):
    return line("SparkListenerApplicationEnd", Timestamp=T0 + at)


def stage(stage_id, tasks=1, parents=(), rdd=None, name="scan"):
    info = {"Stage ID": stage_id, "Stage Attempt ID": 0, "Number of Tasks": tasks, "Parent IDs": list(parents)}
    if rdd is not None:
        info["RDD Info"] = [{"RDD ID": rdd, "Name": name, "Parent IDs": []}]
    return info


def job_start(job, stages, at=0, **properties):
    return line(
        "SparkListenerJobStart",
        **{"Job ID": job, "Submission Time": T0 + at, "Stage Infos": stages, "Properties": properties},
    )


def job_end(job, at, result="JobSucceeded"):
    return line("SparkListenerJobEnd", **{"Job ID": job, "Completion Time": T0 + at, "Job Result": {"Result": result}})


def executor_added(name="1", at=0, cores=1, **info):
    fields = {"Timestamp": T0 + at, "Executor ID": name, "Executor Info": {"Host": "h", "Total Cores": cores, **info}}
    return line("SparkListenerExecutorAdded", **fields)


def executor_removed(name, at, reason="gone"):
    return line("SparkListenerExecutorRemoved", **{"Timestamp": T0 + at, "Executor ID": name, "Removed Reason": reason})


def task_end(task, stage_id, begin, end, index=0, executor="1", reason="Success", kind="ResultTask", info=(), **fields):
    task_info = {
        "Task ID": task,
        "Index": index,
        "Attempt": 0,
        "Launch Time": T0 + begin,
        "Executor ID": executor,
        "Host": "h",
        "Finish Time": T0 + end,
        "Failed": reason not in ("Success", "TaskKilled", "Resubmitted"),
        "Killed": reason == "TaskKilled",
        **dict(info),
    }
    event = {
        "Stage ID": stage_id,
        "Stage Attempt ID": 0,
        "Task Type": kind,
        "Task End Reason": {"Reason": reason},
        "Task Info": task_info,
        "Task Metrics": {"Executor Run Time": end - begin, "Executor CPU Time": 1_000_000},
    }
    return line("SparkListenerTaskEnd", **(event | fields))


def small_log(executors=1, query="q#0", at=0, factor=1, first_id=0, **properties):
    """Two stages, scan with 2 tasks and sum with 1; one-core executors."""
    properties = {"decima.query": query, **properties}
    lines = [executor_added(str(number + 1), at) for number in range(executors)]
    job, scan, total = first_id, 10 * first_id + 1, 10 * first_id + 2
    stages = [stage(scan, 2, (), 100 + scan), stage(total, 1, (scan,), 100 + total, "sum")]
    lines.append(job_start(job, stages, at, **properties))
    other = "2" if executors > 1 else "1"
    begin = at if executors > 1 else at + 400 * factor
    lines += [
        task_end(3 * job, scan, at, at + 400 * factor, 0, "1", kind="ShuffleMapTask"),
        task_end(3 * job + 1, scan, begin, begin + 300 * factor, 1, other, kind="ShuffleMapTask"),
        task_end(3 * job + 2, total, at + 700 * factor, at + 800 * factor, 0, "1"),
        job_end(job, at + 800 * factor),
    ]
    return lines


def write(path, lines):
    path.write_bytes(b"".join(lines))
    return path
