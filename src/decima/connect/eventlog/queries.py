"""Queries of a log: their Spark jobs, whether these are complete, and the merged DAG."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, replace

import numpy as np

from decima.connect.eventlog.events import EventRecords, JobRecord, integer
from decima.connect.eventlog.lineage import MergedStage, merge_jobs

QUERY, PROFILE, EXECUTORS = "decima.query", "decima.profile", "decima.executors"
_ROOT, _EXECUTION = "spark.sql.execution.root.id", "spark.sql.execution.id"
_GROUP, _DESCRIPTION = "spark.jobGroup.id", "spark.job.description"
_STREAM = "sql.streaming.queryId"
NOTHING = "it had no task to run"


@dataclass(frozen=True)
class QueryRun:
    """Run of a query: its Spark jobs and its merged DAG."""

    query: str  # unique in the log: the property `decima.query`, else `execution-`, `group-` or `job-` and an id
    # What runs of the same query share: the property `decima.profile`, else `decima.query` up to its `#`, else the name
    # of the stream, the description of the SQL execution or that of a job, as far as people wrote them; else the line
    # of the program that asked for the job, or the application and `query`.
    name: str
    named: bool  # whether a person gave the name
    same: str  # what runs of the name share to be runs of one query: `edges`, also `operators`, also `tasks`
    stream: str  # Spark's id of the streaming query of which it is a micro-batch; else empty
    grouped_by: str  # the property that made it one query, or `job`
    jobs: tuple[JobRecord, ...]  # its Spark jobs by submission
    stages: tuple[MergedStage, ...]  # the merged DAG; empty when nothing of it ran
    submit_ms: int  # submission of the first job
    finish_ms: int | None  # end of the last job; None while one runs
    executors: int | None  # the executor count that the property `decima.executors` states; None without it
    skipped: str  # why the run cannot be part of a profile; empty when it can


def find_runs(records: EventRecords, app_id: str) -> list[QueryRun]:
    """Find the queries of a log, in the order of their submission.

    Jobs belong together that share, in this order, the property `decima.query`, the root SQL execution, the SQL
    execution, or the job group; any other job is a query of its own.
    """
    groups: dict[tuple[str, str], list[JobRecord]] = defaultdict(list)
    for job in sorted(records.jobs.values(), key=lambda job: (job.submit_ms, job.job_id)):
        groups[_group(job)].append(job)
    stage_ids = np.array(records.tasks.numbers["spark_stage_id"], np.int64)
    types = records.tasks.texts["task_type"]
    codes = np.array(records.tasks.codes["task_type"], np.int64)
    # A stage that completed ran, even where all its tasks are lost.
    ran = records.spans.keys() | {each for each, tasks in records.completed.items() if tasks}
    # So did the last stage of a job that succeeded and ran any: where its output was there before, none runs.
    ends = [job.stage_ids[-1] for job in records.jobs.values() if job.succeeded and ran & set(job.stage_ids)]
    ran |= {each for each in ends if records.stages[each].num_tasks}
    result_stages = set(np.unique(stage_ids[codes == types.get("ResultTask", -1)]).tolist())
    _infer_parents(records)
    runs = [_run(group, jobs, records, app_id, ran, result_stages) for group, jobs in groups.items()]
    return sorted(runs, key=lambda run: (run.submit_ms, run.jobs[0].job_id))


def _infer_parents(records: EventRecords) -> None:
    """Infer the parents of stages whose log has none.

    A stage waits for those of its job that had ended before its first launch.
    """
    never = (0, 0)
    for job in records.jobs.values():
        if all(records.stages[each].parent_ids is not None for each in job.stage_ids):
            continue
        ended: list[tuple[int, int, int]] = []  # last end, first launch, stage
        for stage_id in job.stage_ids:  # parents have smaller ids
            launch, finish = records.spans.get(stage_id, never)
            if records.stages[stage_id].parent_ids is None:
                parents, latest = [], 0
                for last, first, each in reversed(ended):
                    # What ended before the launch of a later one that this one waits for is an ancestor by that.
                    if latest < last <= launch:
                        parents.append(each)
                    if last <= launch:
                        latest = max(latest, first)
                stage = replace(records.stages[stage_id], parent_ids=tuple(sorted(parents)))
                records.stages[stage_id] = stage
            if finish:
                ended.append((finish, launch, stage_id))


def _group(job: JobRecord) -> tuple[str, str]:
    for name in (QUERY, _ROOT, _EXECUTION, _GROUP):
        value = job.properties.get(name)
        if value:
            # Both ids of an execution come from one counter; the root's own jobs may lack the root id in old versions.
            return (_EXECUTION if name == _ROOT else name), value
    return "job", str(job.job_id)


_WORDS = {_EXECUTION: "execution-", _GROUP: "group-", "job": "job-", QUERY: ""}


# Texts of Spark and of platforms that stand where people write names: call sites, broadcasts, statistics of files.
_NO_NAME = re.compile(
    r"\S+ at \S+:-?\d+|(native )?broadcast exchange \(runId .*|Listing leaf files and directories .*|Delta: .*"
)
_STREAM_IDS = re.compile(r"(?:<br/>|\s)*\bid = \S+(?:<br/>|\s)+runId = .*", re.DOTALL)
_LONGEST = 500
_CUT = ("...", "\N{HORIZONTAL ELLIPSIS}")


def _text(value: str) -> str:
    """Name of a description in one line; empty where Spark or a platform wrote it."""
    value = " ".join(_STREAM_IDS.sub("", value[: 2 * _LONGEST]).split())
    if _NO_NAME.fullmatch(value):
        return ""
    return value if len(value) <= _LONGEST else value[:_LONGEST] + _CUT[0]


def _name(group, jobs: list[JobRecord], properties, records: EventRecords) -> tuple[str, bool, str]:
    """Name of a query, whether a person gave it, and what runs of it share."""
    grouped_by, value = group
    name = properties.get(PROFILE) or (value.partition("#")[0] if grouped_by == QUERY else "")
    if name:
        return name, True, "edges"
    executions = [value] if grouped_by == _EXECUTION else []
    executions += [job.properties[_EXECUTION] for job in jobs if job.properties.get(_EXECUTION)]
    texts = [records.descriptions.get(each, "") for each in executions]
    texts += [job.properties.get(_DESCRIPTION, "") for job in jobs]
    name = next(filter(None, map(_text, texts)), "")
    if stream := properties.get(_STREAM):
        return name or f"stream {stream}", bool(name), "edges"
    if name:
        # A text that a platform cut may be the beginning of many.
        return name, True, "tasks" if name.endswith(_CUT) else "operators"
    sites = [records.stages[job.stage_ids[-1]].name for job in jobs if job.stage_ids]
    return (sites[0] if grouped_by == "job" and sites else ""), False, "tasks"


def _run(group, jobs: list[JobRecord], records: EventRecords, app_id: str, ran, result_stages) -> QueryRun:
    grouped_by, value = group
    query = f"{_WORDS[grouped_by]}{value}"
    properties = {name: text for job in reversed(jobs) for name, text in job.properties.items() if text}
    name, named, same = _name(group, jobs, properties, records)
    used, skipped = _usable_jobs(jobs, records)
    stages: list[MergedStage] = []
    if not skipped:
        stages = merge_jobs(used, records.stages, ran, result_stages)
        if not stages:
            tasks = any(records.stages[each].num_tasks for job in used for each in job.stage_ids)
            skipped = "no task of it in the log, or its stages form a cycle" if tasks else NOTHING
    ends = [job.finish_ms for job in jobs]
    return QueryRun(
        query,
        name or f"{app_id}/{query}",
        named,
        same,
        properties.get(_STREAM, ""),
        grouped_by,
        tuple(jobs),
        tuple(stages),
        jobs[0].submit_ms,
        None if None in ends else max(ends),
        integer(properties.get(EXECUTORS), 1, 2**31 - 1),
        skipped,
    )


def _usable_jobs(jobs: list[JobRecord], records: EventRecords) -> tuple[list[JobRecord], str]:
    """Jobs that make up the DAG, and the reason if there are none."""
    if any(job.succeeded is None for job in jobs):
        return [], "a job did not end in the log"
    empty = (each for job in jobs for each in job.stage_ids if not records.stages[each].num_tasks)
    if any(job.broken for job in jobs) or any(each in records.spans for each in empty):
        return [], "a stage of a job could not be read"
    executions = {job.properties.get(_ROOT) or job.properties.get(_EXECUTION) for job in jobs}
    ends = {each: records.executions[each] for each in executions if each in records.executions}
    if False in ends.values():
        return [], "the SQL execution failed or was cancelled"
    if records.end_ms is None and any(each in records.descriptions and each not in ends for each in executions):
        return [], "the SQL execution did not end in the log"
    failed = [job for job in jobs if not job.succeeded]
    if not failed:
        return jobs, ""
    # Adaptive execution cancels jobs whose result turned out not to be needed; the query itself succeeds. Where its end
    # does not say so, it did if jobs succeeded after that: of a job that failed, jobs that were submitted later.
    succeeded = [job for job in jobs if job.succeeded]
    last_end = max((job.finish_ms for job in succeeded), default=0)
    last_submit = max((job.submit_ms for job in succeeded), default=0)
    overcome = all((last_end if job.cancelled else last_submit) >= job.finish_ms for job in failed)
    if succeeded and len(ends) == len(executions) and (overcome or None not in ends.values()):
        return succeeded, ""
    return [], "a job failed or was cancelled"
