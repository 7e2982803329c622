"""Event logs as recordings: jobs, their arrivals or order, and the driver's time.

    recordings = read_recordings(read_event_logs(["/var/spark-events"]))
    recordings.recordings[0].driver_ms.sum()

Rules and assumptions are in `docs/capacity.md`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from decima.connect.eventlog.application import Application
from decima.connect.eventlog.profiles import collect_profiles
from decima.connect.eventlog.report import USED
from decima.core.checks import is_number
from decima.core.errors import ConfigError, EventLogError
from decima.systems.spark.capacity import Recording
from decima.workload.jobs import Job, Workload
from decima.workload.profile import MAX_LEVEL, WAVES, JobProfile, Stage

UNITS = ("auto", "application", "query")
HOSTS = ("auto", "one", "many")
LABEL = "event logs"


@dataclass(frozen=True, eq=False)
class LogRecordings:
    """Recordings of some logs, and what was left out."""

    recordings: list[Recording]
    unit: str  # `application`, each of them a job on a cluster of its own, or `query`, all on one cluster
    sizes: tuple[int, ...]  # slots of the applications, ascending
    cores: int  # slots of an executor, the most frequent number
    used: int  # queries
    left_out: int  # queries that no profile could be made of


@dataclass(frozen=True, eq=False)
class QueryRecord:
    """Run of a query in an application."""

    query: str
    profile: JobProfile  # with the task counts of this run
    submit_ms: float
    finish_ms: float
    driver_ms: np.ndarray  # float64 [stages], after the parents or the submission
    end_ms: float  # end of its last task
    contention: float  # what a slot adds to the time of its tasks, see `decima.workload.levels.at_sizes`


def read_recordings(
    applications: Sequence[Application], *, unit: str = "auto", data: float = 1.0, hosts: str = "auto"
) -> LogRecordings:
    """Make recordings of applications.

    As an *application*, the queries of a log are one job: a query begins after all queries that had ended when it was
    submitted, and after the driver's time between. As *queries*, those of all logs arrive at one cluster as recorded.
    ``auto`` takes applications unless queries of one overlap.

    Args:
        applications: What was read, each log once.
        unit: One of :data:`UNITS`.
        data: Factor on the input: stages that read files have so many times the tasks, rounded up; tasks of stages that
            read shuffles take so many times as long; stages that read nothing, and the driver, stay as they are.
        hosts: ``one``: all executors share a host, so that what a task takes beyond its CPU time grows with their
            number; ``many``: more executors bring more hosts, and tasks take as long as recorded; ``auto``: one where
            the log has one.

    Raises:
        ConfigError: A word is unknown, or the factor is not above 0.
        EventLogError: No application has a complete query.
    """
    if unit not in UNITS:
        raise ConfigError(f"unit is {unit!r}; expected one of {', '.join(UNITS)}")
    if hosts not in HOSTS:
        raise ConfigError(f"hosts is {hosts!r}; expected one of {', '.join(HOSTS)}")
    if not is_number(data) or not 0.0 < data < math.inf:
        raise ConfigError(f"data is {data!r}; expected a factor above 0")
    applications = [stated_size(application) for application in applications]
    records = query_records(applications, data, hosts)
    used = [(application, queries) for application, queries in zip(applications, records, strict=True) if queries]
    if not used:
        raise EventLogError("no application in the event logs has a complete query; nothing can be simulated")
    if unit == "auto":
        alone = all(bool(application.queries.alone.all()) for application, _ in used)
        unit = "application" if alone else "query"
    if unit == "application":
        recordings = [_application(application, queries) for application, queries in used]
    else:
        recordings = [_shared(used)]
    cores = np.concatenate([application.executors.slots.to_numpy(np.int64) for application, _ in used])
    return LogRecordings(
        recordings,
        unit,
        tuple(sorted({cluster_slots(application) for application, _ in used})),
        int(np.bincount(cores).argmax()),
        sum(len(queries) for queries in records),
        sum(len(application.queries) for application in applications) - sum(len(queries) for queries in records),
    )


def cluster_slots(application: Application) -> int:
    """Slots of an application's cluster while its queries ran, rounded mean, at least 1."""
    queries = application.queries[application.queries.skipped == ""]
    weight = queries.duration_ms.to_numpy(float)
    if not weight.sum() > 0.0:
        return max(1, int(application.executors.slots.sum()))
    return min(MAX_LEVEL, max(1, round(float(np.average(queries.executors, weights=weight)))))


def stated_size(application: Application) -> Application:
    """Copy in which queries without a stated number of executors have the cluster's."""
    stated = application.queries.stated_executors.fillna(float(cluster_slots(application)))
    return replace(application, queries=application.queries.assign(stated_executors=stated))


def query_records(
    applications: Sequence[Application], data: float = 1.0, hosts: str = "auto"
) -> list[list[QueryRecord]]:
    """Complete queries of each application, with profiles merged over runs of a name."""
    collected = collect_profiles(applications) if applications else None
    profiles = {profile.name: profile for profile in collected.profiles} if collected else {}
    shared: dict[tuple, JobProfile] = {}
    of_all = []
    for application in applications:
        job_of = collected.jobs_of(application.key)
        free_ms = _free_time(application)
        stages = dict(list(application.stages.groupby("query", sort=False)))
        contention = _contention(application) if shares_host(application, hosts) else {}
        records = []
        for row in application.queries[application.queries["query"].isin(job_of)].itertuples():
            table = stages[row.query]
            profile = profiles[job_of[row.query]]
            key = (profile, tuple(table.num_tasks), data != 1.0 and row.query)
            if key not in shared:
                shared[key] = _of_run(profile, table, data)
            driver, end = _driver_ms(table, row.submit_ms, free_ms)
            times = (row.submit_ms, row.finish_ms, driver, end)
            records.append(QueryRecord(row.query, shared[key], *times, contention.get(row.query, 0.0)))
        of_all.append(records)
    return of_all


def shares_host(application: Application, hosts: str = "auto") -> bool:
    """Whether all executors are taken to share one host, see :func:`read_recordings`."""
    return hosts == "one" or (hosts == "auto" and application.executors.host.nunique() == 1)


def _contention(application: Application) -> dict[str, float]:
    """By query: time of tasks beyond CPU time, as a share of that, per slot."""
    tasks = application.tasks[application.tasks.use == USED]
    sums = tasks.groupby("query", observed=True)[["duration_ms", "cpu_ms"]].sum(min_count=1)
    waiting = (sums.duration_ms - sums.cpu_ms).clip(lower=0.0) / sums.cpu_ms.where(sums.cpu_ms > 0.0)
    return (waiting.fillna(0.0) / cluster_slots(application)).to_dict()


def _of_run(profile: JobProfile, table, data: float) -> JobProfile:
    """Profile with the task counts of a run, and a factor on its input."""
    stages = []
    for stage, row in zip(profile.stages, table.itertuples(), strict=True):
        tasks, times = int(row.num_tasks), 1.0
        if data != 1.0 and row.input_bytes > 0.0:
            tasks = math.ceil(tasks * data)
        elif data != 1.0 and row.shuffle_read_bytes > 0.0:
            times = data
        lists = {wave: tuple(values * times for values in getattr(stage, wave)) for wave in WAVES}
        stages.append(replace(stage, num_tasks=tasks, **(lists if times != 1.0 else {})))
    return JobProfile(profile.name, tuple(stages), profile.source)


def _free_time(application: Application):
    """Make a function of two times: how long a slot was free, ms."""
    tasks, executors = application.tasks, application.executors
    launch, finish = tasks.launch_ms.to_numpy(float), tasks.finish_ms.to_numpy(float)
    slots = executors.slots.to_numpy(float)
    gone = executors.removed_ms.notna().to_numpy()
    times = np.concatenate([launch, finish, executors.added_ms, executors.removed_ms.to_numpy(float)[gone]])
    steps = np.concatenate([np.full(len(launch), -1.0), np.ones(len(finish)), slots, -slots[gone]])
    order = np.argsort(times, kind="stable")
    times, free = times[order], np.cumsum(steps[order]) > 0.0
    until = np.concatenate([[0.0], np.cumsum(np.where(free[:-1], np.diff(times), 0.0))])

    def free_ms(begin_ms: float, end_ms: float) -> float:
        first, last = np.interp([begin_ms, end_ms], times, until)
        return float(last - first)

    return free_ms


def _driver_ms(table, submit_ms: float, free_ms) -> tuple[np.ndarray, float]:
    """Driver time before each stage, float64 ms [stages], and the last end.

    It is how long a slot was free between the end of the stage's last parent (without parents: the submission) and its
    first launch. A stage of which the run has no task has none.
    """
    finish: list[float] = []
    driver = []
    for row in table.itertuples():  # parents come first
        ready = max([submit_ms, *(finish[parent] for parent in row.parents)])
        known = row.first_launch_ms == row.first_launch_ms
        driver.append(max(0.0, free_ms(ready, row.first_launch_ms)) if known else 0.0)
        finish.append(row.last_finish_ms if known else ready)
    return np.array(driver), max(finish)


def _application(application: Application, records: list[QueryRecord]) -> Recording:
    """An application as one job."""
    submit = np.array([record.submit_ms for record in records])
    finish = np.array([record.finish_ms for record in records])
    stages: list[Stage] = []
    driver: list[float] = []
    contention: list[float] = []
    sinks: list[list[int]] = []  # of each query
    for number, record in enumerate(records):
        before = _directly_before(number, submit, finish)
        ends = [records[each].end_ms for each in before]
        since = max(ends) if ends else float(min(application.start_ms, record.submit_ms))
        after = sorted(sink for each in before for sink in sinks[each])
        offset = len(stages)
        inner = {parent for stage in record.profile.stages for parent in stage.parents}
        for stage, driver_ms in zip(record.profile.stages, record.driver_ms.tolist(), strict=True):
            parents = tuple(offset + parent for parent in stage.parents) or tuple(after)
            stages.append(replace(stage, name=f"{record.query}/{stage.name}", parents=parents))
            driver.append(driver_ms if stage.parents else driver_ms + max(0.0, record.submit_ms - since))
            contention.append(record.contention)
        sinks.append([offset + index for index in range(len(record.profile.stages)) if index not in inner])
    profile = JobProfile(application.name or str(application.key), tuple(stages), "spark")
    start = float(min(application.start_ms, submit[0]))
    recorded = np.array([finish.max() - start])
    workload = Workload((Job(profile),), LABEL)
    slots = cluster_slots(application)
    return Recording(str(application.key), workload, np.array(driver), recorded, slots, np.array(contention))


def _directly_before(number: int, submit: np.ndarray, finish: np.ndarray) -> list[int]:
    """Queries that had ended when one was submitted, the latest of each chain."""
    ended = np.flatnonzero(finish <= submit[number])
    ended = ended[ended != number]
    if not len(ended):
        return []
    latest = submit[ended].max()
    return [int(each) for each in ended if finish[each] > latest or submit[each] == latest]


def _shared(used: Sequence[tuple[Application, list[QueryRecord]]]) -> Recording:
    """Queries of all applications as jobs of one cluster."""
    records = sorted((record for _, queries in used for record in queries), key=lambda record: record.submit_ms)
    begin = records[0].submit_ms
    jobs = tuple(Job(record.profile, record.submit_ms - begin, name=record.query) for record in records)
    recorded = np.array([record.finish_ms - record.submit_ms for record in records])
    slots = max(cluster_slots(application) for application, _ in used)
    driver = np.concatenate([record.driver_ms for record in records])
    contention = np.repeat([record.contention for record in records], [len(record.driver_ms) for record in records])
    return Recording(LABEL, Workload(jobs, LABEL), driver, recorded, slots, contention)
