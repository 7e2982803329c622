"""Queries of a log: their Spark jobs, whether these are complete, and the merged DAG."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from decima.connect.eventlog.events import EventRecords, JobRecord, integer
from decima.connect.eventlog.lineage import MergedStage, merge_jobs

QUERY, PROFILE, EXECUTORS = "decima.query", "decima.profile", "decima.executors"
_ROOT, _EXECUTION = "spark.sql.execution.root.id", "spark.sql.execution.id"
_GROUP, _DESCRIPTION = "spark.jobGroup.id", "spark.job.description"
_STREAM = "sql.streaming.queryId"


@dataclass(frozen=True)
class QueryRun:
    """Run of a query: its Spark jobs and its merged DAG."""

    query: str  # unique in the log: the property `decima.query`, else `execution-`, `group-` or `job-` and an id
    # What runs of the same query share: the property `decima.profile`, else `decima.query` up to its `#`, else Spark's
    # job description, else the application's id and `query`.
    name: str
    named: bool  # whether people gave the name, so that runs of it are runs of one query
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
    ran = set(np.unique(stage_ids).tolist())
    result_stages = set(np.unique(stage_ids[codes == types.get("ResultTask", -1)]).tolist())
    runs = [_run(group, jobs, records, app_id, ran, result_stages) for group, jobs in groups.items()]
    return sorted(runs, key=lambda run: (run.submit_ms, run.jobs[0].job_id))


def _group(job: JobRecord) -> tuple[str, str]:
    for name in (QUERY, _ROOT, _EXECUTION, _GROUP):
        value = job.properties.get(name)
        if value:
            # Both ids of an execution come from one counter; the root's own jobs may lack the root id in old versions.
            return (_EXECUTION if name == _ROOT else name), value
    return "job", str(job.job_id)


_WORDS = {_EXECUTION: "execution-", _GROUP: "group-", "job": "job-", QUERY: ""}


def _run(group, jobs: list[JobRecord], records: EventRecords, app_id: str, ran, result_stages) -> QueryRun:
    grouped_by, value = group
    query = f"{_WORDS[grouped_by]}{value}"
    properties = {name: text for job in reversed(jobs) for name, text in job.properties.items() if text}
    name = properties.get(PROFILE)
    if not name and grouped_by == QUERY:
        name = value.partition("#")[0]
    name = name or properties.get(_DESCRIPTION, "").strip()
    used, skipped = _usable_jobs(jobs, records)
    stages: list[MergedStage] = []
    if not skipped:
        stages = merge_jobs(used, records.stages, ran, result_stages)
        if not stages:
            skipped = "no task of it in the log, or its stages form a cycle"
    ends = [job.finish_ms for job in jobs]
    return QueryRun(
        query,
        name or f"{app_id}/{query}",
        bool(name),
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
    if any(job.broken for job in jobs):
        return [], "a stage of a job could not be read"
    failed = [job for job in jobs if not job.succeeded]
    if not failed:
        return jobs, ""
    # Adaptive execution cancels jobs whose result turned out not to be needed; the query itself succeeds.
    executions = {job.properties.get(_ROOT) or job.properties.get(_EXECUTION) for job in jobs}
    succeeded = all(execution and records.executions.get(execution) for execution in executions)
    if succeeded and len(failed) < len(jobs):
        return [job for job in jobs if job.succeeded], ""
    return [], "a job failed or was cancelled"
