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

from decima.connect.eventlog.application import Application, EventLogs
from decima.connect.eventlog.profiles import LATER, LogProfiles, collect_profiles
from decima.connect.eventlog.queries import NOTHING
from decima.connect.eventlog.report import USED, LogReport
from decima.connect.eventlog.tables import AGAIN
from decima.core.checks import LARGEST_MS, is_number
from decima.core.errors import ConfigError, EventLogError
from decima.systems.spark.capacity import Plan, Recording, elastic_of
from decima.systems.spark.settings import ELASTIC_SWITCHES
from decima.workload.jobs import Job, Workload
from decima.workload.profile import MAX_LEVEL, WAVES, JobProfile, Stage

UNITS = ("auto", "application", "query")
HOSTS = ("auto", "one", "many")
LABEL = "event logs"


@dataclass(frozen=True, eq=False)
class LogRecordings:
    """Recordings of some logs, and what of the logs is not in them."""

    recordings: list[Recording]
    # The same without the time between queries, in which nothing depends on the cluster: for the comparison of recorded
    # and simulated times, which have the same work in them.
    compared: list[Recording]
    unit: str  # `application`, each of them a job on a cluster of its own, or `query`, all on one cluster
    sizes: tuple[int, ...]  # slots of the applications, ascending
    cores: int  # slots of an executor, the most frequent number
    task_cpus: int  # cores of a task, the most frequent number
    used: int  # queries
    left_out: int  # queries that no profile could be made of
    report: LogReport  # that of the applications, and notes on the merging
    total_s: float  # run time of the applications, from their start to the end of their last used query
    left_out_s: float  # of it, only queries that are not used held the cluster
    unexplained_s: float  # of it, no query ran and the log does not say why; it is in the recordings, on every size
    executor_hours: float  # of the recorded executors within it
    late: int  # executors that came after the first query began
    warmup_s: float  # what the first task of a slot took beyond later ones of its stage, on average
    interval_s: float  # least median time between micro-batches of a stream; NaN without a stream
    streams: tuple[str, ...]  # a sentence on each

    @property
    def dynamic(self) -> bool:
        """Whether a recording had dynamic allocation."""
        return any(each.plan is not None and each.plan.dynamic is not None for each in self.recordings)


@dataclass(frozen=True, eq=False)
class QueryRecord:
    """Run of a query in an application."""

    query: str
    again: bool  # whether it is merged with later runs of applications, see :func:`query_records`
    profile: JobProfile  # with the task counts of this run
    submit_ms: float
    finish_ms: float
    driver_ms: np.ndarray  # float64 [stages], after the parents or the submission
    end_ms: float  # end of its last task
    contention: float  # what a slot adds to the time of its tasks, see `decima.workload.profile.at_sizes`


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
        data: Factor on the input: stages that read files have that multiple of tasks, rounded up; tasks of stages that
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
    collected, records = query_records(applications, data, hosts)
    warmup = Warmup(collected.profiles if collected else ())
    used = [(application, queries) for application, queries in zip(applications, records, strict=True) if queries]
    report = collected.report if collected else LogReport()
    if not used:
        raise EventLogError(
            f"no application in the event logs has a complete query; nothing can be simulated{report.why}"
        )
    streams = [row for application, _ in used for row in application.streams.itertuples()]
    if unit == "auto":
        alone = not streams and all(bool(application.queries.alone.all()) for application, _ in used)
        unit = "application" if alone else "query"
    elif unit == "application" and streams:
        raise ConfigError("the logs have a stream, whose micro-batches wait for their trigger; expected --unit query")
    if unit == "application":
        cold = [[replace(each, profile=warmup.fill(each.profile)) for each in queries] for _, queries in used]
        pairs = [_application(each, queries, warmup.time_ms) for (each, _), queries in zip(used, cold, strict=True)]
        recordings, compared = [whole for whole, _ in pairs], [queries for _, queries in pairs]
    else:
        recordings, compared = [_shared(used)], [_shared(used, worked=True)]
    executors = [application.executors for application, _ in used]
    slots = np.concatenate([each.slots.to_numpy(np.int64) for each in executors])
    cpus = np.concatenate([each.cores.to_numpy(np.int64) // each.slots.to_numpy(np.int64) for each in executors])
    count = sum(len(queries) for queries in records)
    times = np.array([_times_s(application, queries) for application, queries in used]).sum(axis=0).tolist()
    intervals = [row.interval_ms / 1000.0 for row in streams if row.interval_ms > 0.0]
    return LogRecordings(
        recordings,
        compared,
        unit,
        tuple(sorted({cluster_slots(application) for application, _ in used})),
        int(np.bincount(slots).argmax()),
        max(1, int(np.bincount(cpus).argmax())),
        count,
        sum(len(application.queries) for application in applications) - count,
        report,
        *times,
        sum(int((each.executors.added_ms > queries[0].submit_ms).sum()) for each, queries in used),
        warmup.time_ms / 1000.0,
        min(intervals, default=math.nan),
        tuple(
            f"stream {row.name}: {row.batches} micro-batches"
            + (f", one every {row.interval_ms / 1000.0:.4g} s" if row.interval_ms > 0.0 else "")
            for row in streams
        ),
    )


def is_dynamic(application: Application) -> bool:
    """Whether executors of an application came and went as its work did."""
    idle = application.executors.removed_reason.str.contains(_IDLE, na=False)
    return application.dynamic or bool(idle.any())


# Reasons for which Spark removes executors that have nothing to do.
_IDLE = r"(?i)\bidle\b|killed by driver"


def _slots_over_time(application: Application) -> tuple[np.ndarray, np.ndarray]:
    """Slots of the cluster between its changes, and time of tasks meanwhile, float64 ms."""
    executors, tasks = application.executors, application.tasks
    gone = executors.removed_ms.notna().to_numpy()
    slots = executors.slots.to_numpy(float)
    times = np.concatenate([executors.added_ms.to_numpy(float), executors.removed_ms.to_numpy(float)[gone]])
    steps = np.concatenate([slots, -slots[gone]])
    order = np.argsort(times, kind="stable")
    launch, finish = (np.sort(tasks[name].to_numpy(float)) for name in ("launch_ms", "finish_ms"))
    times = np.append(times[order], max(times.max(initial=0.0), finish.max(initial=0.0)))

    def until(each: np.ndarray) -> np.ndarray:
        """Time of tasks until each time: that since the launches less that since the ends."""
        sums = np.zeros(len(each))
        for sign, ends in ((1.0, launch), (-1.0, finish)):
            before = np.searchsorted(ends, each)
            sums += sign * (before * each - np.concatenate([[0.0], np.cumsum(ends)])[before])
        return sums

    return np.cumsum(steps[order]), np.diff(until(times))


def cluster_slots(application: Application) -> int:
    """Slots of an application's cluster while it worked, at least 1.

    They are those at which most of the time of its tasks passed, the more of equals; of dynamic allocation the most.
    """
    slots, weight = _slots_over_time(application)
    if not weight.sum() > 0.0:
        return min(MAX_LEVEL, max(1, int(application.executors.slots.sum())))
    if is_dynamic(application):
        return min(MAX_LEVEL, max(1, int(slots[weight > 0.0].max())))
    sizes, inverse = np.unique(slots, return_inverse=True)
    times = np.bincount(inverse, weight)
    return min(MAX_LEVEL, max(1, int(sizes[times >= times.max() * (1.0 - 1e-9)][-1])))


def _level(application: Application) -> int:
    """Slots that durations of tasks stand for; of dynamic allocation the mean over tasks."""
    if not is_dynamic(application):
        return cluster_slots(application)
    slots, weight = _slots_over_time(application)
    return max(1, round(float(np.average(slots, weights=weight)))) if weight.sum() > 0.0 else cluster_slots(application)


def stated_size(application: Application) -> Application:
    """Copy in which queries without a stated number of executors have the cluster's."""
    stated = application.queries.stated_executors.fillna(float(_level(application)))
    return replace(application, queries=application.queries.assign(stated_executors=stated))


def query_records(
    applications: Sequence[Application], data: float = 1.0, hosts: str = "auto"
) -> tuple[LogProfiles | None, list[list[QueryRecord]]]:
    """Complete queries of each application, with profiles merged over runs of a name, and these.

    The first run of a query in its application loads and compiles its code; it is merged with other first runs only.
    """
    stated = [stated_size(application) for application in applications]
    if isinstance(applications, EventLogs):
        stated = replace(applications, applications=tuple(stated))
    collected = collect_profiles(stated, cold_apart=True) if stated else None
    profiles = {profile.name: profile for profile in collected.profiles} if collected else {}
    shared: dict[tuple, JobProfile] = {}
    of_all = []
    for application in stated:
        job_of = collected.jobs_of(application.key)
        free_ms = _free_time(application)
        stages = dict(list(application.stages.groupby("query", sort=False)))
        contention = _contention(application) if shares_host(application, hosts) else {}
        records = []
        for row in application.queries[application.queries["query"].isin(job_of)].itertuples():
            table = stages[row.query]
            profile = profiles[job_of[row.query]]
            key = (profile, tuple(table.num_tasks), tuple(table.task_slots), data != 1.0 and row.query)
            if key not in shared:
                shared[key] = _of_run(profile, table, data)
            driver, end = _driver_ms(table, row.submit_ms, free_ms)
            times = (row.submit_ms, row.finish_ms, driver, end)
            again = profile.name.endswith(LATER)
            records.append(QueryRecord(row.query, again, shared[key], *times, contention.get(row.query, 0.0)))
        of_all.append(records)
    return collected, of_all


def shares_host(application: Application, hosts: str = "auto") -> bool:
    """Whether all executors are taken to share one host, see :func:`read_recordings`."""
    return hosts == "one" or (hosts == "auto" and application.executors.host.nunique() == 1)


def _contention(application: Application) -> dict[str, float]:
    """By query: time of tasks beyond CPU time, as a share of that, per slot.

    What the first task of a slot waits for is its JVM; it counts only where a query has no other tasks.
    """
    tasks = application.tasks[application.tasks.use == USED]
    cold = tasks.wave == WAVES[0]
    tasks = tasks[~cold | ~tasks["query"].isin(tasks["query"][~cold])]
    sums = tasks.groupby("query", observed=True)[["duration_ms", "cpu_ms"]].sum(min_count=1)
    waiting = (sums.duration_ms - sums.cpu_ms).clip(lower=0.0) / sums.cpu_ms.where(sums.cpu_ms > 0.0)
    return (waiting.fillna(0.0) / _level(application)).to_dict()


def _of_run(profile: JobProfile, table, data: float) -> JobProfile:
    """Profile with the task counts of a run, and a factor on its input.

    A task that takes n slots is n tasks here: they need as much of the cluster.
    """
    stages = []
    for stage, row in zip(profile.stages, table.itertuples(), strict=True):
        tasks, times = int(row.num_tasks), 1.0
        if data != 1.0 and row.input_bytes > 0.0:
            tasks = math.ceil(tasks * data)
        elif data != 1.0 and row.shuffle_read_bytes > 0.0:
            times = data
        tasks = math.ceil(tasks * row.task_slots - 1e-9)
        lists = {wave: tuple(values * times for values in getattr(stage, wave)) for wave in WAVES}
        stages.append(replace(stage, num_tasks=tasks, **(lists if times != 1.0 else {})))
    return JobProfile(profile.name.removesuffix(LATER), tuple(stages), profile.source)


class Warmup:
    """What the first task of a slot takes beyond later ones of its stage.

    The JVM loads classes and compiles code then: once for an application, not once for a query. It is measured on the
    stages with both kinds of tasks, weighted by the first ones.

    Args:
        profiles: Profiles of logs, first and later runs apart, see
            :func:`decima.connect.eventlog.profiles.collect_profiles`.
    """

    def __init__(self, profiles: Sequence[JobProfile]) -> None:
        self._later = {profile.name: profile.stages for profile in profiles}
        count = cold_ms = warm_ms = 0.0
        for profile in profiles:
            for index, stage in enumerate(profile.stages):
                for level, cold in enumerate(stage.fresh):
                    if len(cold) and len(warm := self._warm(profile.name, index, stage, level)):
                        count += len(cold)
                        cold_ms += float(cold.sum())
                        warm_ms += len(cold) * float(warm.mean())
        excess_ms = max(0.0, cold_ms - warm_ms)
        self.time_ms = excess_ms / count if count else 0.0
        self._share = 1.0 - excess_ms / cold_ms if excess_ms else 1.0  # of a later task's time in that of a first one

    def _warm(self, name: str, index: int, stage: Stage, level: int) -> np.ndarray:
        """Durations of other than first tasks, best of the same run; empty without any."""
        kinds = [stage.first[level], stage.rest[level]]
        if (later := self._later.get(name + LATER)) and stage.levels[level] in later[index].levels:
            at = later[index].levels.index(stage.levels[level])
            kinds += [later[index].first[at], later[index].rest[at]]
        return next((each for each in kinds if len(each)), kinds[0])

    def fill(self, profile: JobProfile) -> JobProfile:
        """Profile whose stages can run on slots that are not new."""
        stages = []
        for index, stage in enumerate(profile.stages):
            first = list(stage.first)
            for level, cold in enumerate(stage.fresh):
                if len(cold) and not len(first[level]):
                    warm = self._warm(profile.name, index, stage, level)
                    estimated = np.maximum(cold - self.time_ms, self._share * cold)
                    first[level] = warm if len(warm) else estimated
            stages.append(replace(stage, first=tuple(first)))
        return replace(profile, stages=tuple(stages))


def _held(application: Application) -> np.ndarray:
    """Spans in which queries that are not used held the cluster, float64 ms [queries, 2]."""
    left_out = application.left_out
    return left_out.loc[left_out.reason != NOTHING, ["submit_ms", "end_ms"]].to_numpy(float)


def _explained(application: Application, first_ms: float) -> np.ndarray:
    """Spans without tasks that the log explains: start of the application, and queries without tasks."""
    left_out = application.left_out
    empty = left_out.loc[left_out.reason == NOTHING, ["submit_ms", "end_ms"]].to_numpy(float)
    started = min(first_ms, application.executors.added_ms.min())
    return np.vstack([empty, [(application.start_ms, max(started, application.start_ms))]])


def _measure(*holds: tuple[np.ndarray, np.ndarray]):
    """Make a function of two times: how long all conditions held between them, ms.

    A condition is times, float64 ms, and the steps of a number, which is above 0 while it holds.
    """
    times = np.unique(np.concatenate([np.zeros(1), *(each for each, _ in holds)]))
    all_hold = np.ones(len(times), bool)
    for each, steps in holds:
        order = np.argsort(each, kind="stable")
        counts = np.concatenate([[0.0], np.cumsum(steps[order])])
        all_hold &= counts[np.searchsorted(each[order], times, side="right")] > 0.0
    until = np.concatenate([[0.0], np.cumsum(np.where(all_hold[:-1], np.diff(times), 0.0))])

    def measure_ms(begin_ms: float, end_ms: float) -> float:
        first, last = np.interp([begin_ms, end_ms], times, until)
        return max(0.0, float(last - first))

    return measure_ms


def _within(*spans: np.ndarray):
    """Like :func:`_measure`, of time within one of the spans, float64 ms [spans, 2]."""
    joined = np.concatenate([each.reshape(-1, 2) for each in spans])
    steps = np.repeat([1.0, -1.0], len(joined))
    return _measure((np.concatenate([joined[:, 0], joined[:, 1]]), steps))


def _worked(application: Application, spans: np.ndarray):
    """Like :func:`_measure`, of time within a span in which the cluster had an executor.

    With dynamic allocation a cluster may well have none; then only the spans count.
    """
    if is_dynamic(application):
        return _within(spans)
    executors = application.executors
    lives = np.concatenate([executors.added_ms, executors.removed_ms.fillna(np.inf)]).astype(float)
    steps = np.repeat([1.0, -1.0], len(executors))
    here = np.isfinite(lives)
    inside = np.concatenate([spans[:, 0], spans[:, 1]]), np.repeat([1.0, -1.0], len(spans))
    return _measure(inside, (lives[here], steps[here]))


def _free_time(application: Application):
    """Like :func:`_measure`, of time with a free slot and no left-out query."""
    tasks, executors = application.tasks, application.executors
    launch, finish = tasks.launch_ms.to_numpy(float), tasks.finish_ms.to_numpy(float)
    slots = executors.slots.to_numpy(float)
    gone = executors.removed_ms.notna().to_numpy()
    times = np.concatenate([launch, finish, executors.added_ms, executors.removed_ms.to_numpy(float)[gone]])
    taken = tasks.slots.to_numpy(float)
    steps = np.concatenate([-taken, taken, slots, -slots[gone]])
    held = _held(application)
    # Steps of 1 less the queries that are not used: above 0 without any.
    begins = np.concatenate([[-1.0], held[:, 0], held[:, 1]])
    return _measure((times, steps), (begins, np.concatenate([[1.0], np.repeat([-1.0, 1.0], len(held))])))


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


def _application(application: Application, records: list[QueryRecord], warmup_ms: float) -> tuple[Recording, Recording]:
    """An application as one job, with the time between its queries and without it."""
    submit = np.array([record.submit_ms for record in records])
    finish = np.array([record.finish_ms for record in records])
    start = float(min(application.start_ms, submit[0]))
    held_ms, known_ms = _within(_held(application)), _within(_held(application), _explained(application, submit[0]))
    stages: list[Stage] = []
    driver: list[tuple[float, float, float]] = []  # within the query, between queries, and of this unexplained
    contention: list[float] = []
    sinks: list[list[int]] = []  # of each query
    for number, record in enumerate(records):
        before = _directly_before(number, submit, finish)
        end = max([records[each].end_ms for each in before], default=start)
        since = max([records[each].finish_ms for each in before], default=start)
        between = max(0.0, record.submit_ms - since)
        unexplained = between - known_ms(since, record.submit_ms)
        between -= held_ms(since, record.submit_ms)
        after = sorted(sink for each in before for sink in sinks[each])
        offset = len(stages)
        inner = {parent for stage in record.profile.stages for parent in stage.parents}
        for stage, driver_ms in zip(record.profile.stages, record.driver_ms.tolist(), strict=True):
            parents = tuple(offset + parent for parent in stage.parents) or tuple(after)
            stages.append(replace(stage, name=f"{record.query}/{stage.name}", parents=parents))
            # What a query takes after its last task is the driver's.
            first = (driver_ms + max(0.0, since - end), between, max(0.0, min(between, unexplained)))
            driver.append((driver_ms, 0.0, 0.0) if stage.parents else first)
            contention.append(record.contention)
        sinks.append([offset + index for index in range(len(record.profile.stages)) if index not in inner])
    profile = JobProfile(application.name or str(application.key), tuple(stages), "spark")
    name, workload = str(application.key), Workload((Job(profile),), LABEL)
    spans = np.stack([submit, finish], axis=1)
    held = _within(spans, _held(application))(start, finish.max()) - _within(spans)(start, finish.max())
    # What the driver does after the last task has no stage that would wait for it.
    of_queries = np.array([_worked(application, spans)(start, max(record.end_ms for record in records))])
    within, between_ms, unexplained_ms = np.array(driver).T
    slots, contended = cluster_slots(application), np.array(contention)
    plan = recorded_plan(application) or _plan_with_losses(application, spans, start)
    total = np.array([finish.max() - start - held])
    whole = Recording(name, workload, within + between_ms, total, slots, contended, unexplained_ms, plan, warmup_ms)
    # Recorded durations are those of the recorded cluster, however many executors it had when.
    none = np.zeros(len(stages))
    return whole, replace(whole, driver_ms=within, recorded_ms=of_queries, unexplained_ms=None, contention=none)


def _times_s(application: Application, records: list[QueryRecord]) -> tuple[float, float, float, float]:
    """Run time in s, what of it is left out and unexplained, and executor hours."""
    spans = np.array([(record.submit_ms, record.finish_ms) for record in records])
    start, end = float(min(application.start_ms, spans[:, 0].min())), float(spans[:, 1].max())
    held, explained = _held(application), _explained(application, spans[:, 0].min())
    ran = _within(spans)(start, end)
    left_out = _within(spans, held)(start, end) - ran
    known = _within(spans, held, explained)(start, end)
    executors = application.executors
    added = executors.added_ms.clip(lower=start)
    lived = (executors.removed_ms.fillna(end).clip(upper=end) - added).clip(lower=0.0).sum()
    waiting = len(application.streams) > 0  # between micro-batches a stream waits for its trigger
    unexplained = 0.0 if waiting else end - start - known
    return (end - start) / 1000.0, left_out / 1000.0, unexplained / 1000.0, float(lived) / 3.6e6


def recorded_plan(application: Application) -> Plan | None:
    """The recorded cluster with its settings of dynamic allocation; None where its size was fixed."""
    if not is_dynamic(application):
        return None
    executors = application.executors
    cores = int(np.bincount(executors.slots.to_numpy(np.int64)).argmax())
    most = max(1, math.ceil(cluster_slots(application) / cores))
    stated = elastic_of(application.settings)
    instances = elastic_of({"spark.dynamicAllocation.minExecutors": application.settings.get(_INSTANCES, "")})
    least = min(most, stated.get("min_executors", 0))
    # Spark begins with the most of the three.
    first = max(least, stated.get("initial_executors", 0), instances.get("min_executors", 0))
    changes = {name: value for name, value in stated.items() if ELASTIC_SWITCHES.get(name) == ("dynamic",)}
    changes = {**changes, "initial_executors": min(most, first)}
    changes["shuffle_service"] = stated.get("shuffle_service", False)
    delays = executors.start_delay_ms[executors.start_delay_ms >= 0.0]
    if len(delays):
        changes["executor_startup_ms"] = float(delays.median())
    changes.pop("min_executors", None)
    return Plan((most,), cores, dynamic=least, changes=changes)


_INSTANCES = "spark.executor.instances"


def _plan_with_losses(application: Application, spans: np.ndarray, start_ms: float) -> Plan | None:
    """The recorded cluster with executors that were lost with a task; None without any.

    Args:
        application: What ran.
        spans: Begin and end of its queries, float64 ms [queries, 2]; losses are at times without those between.
        start_ms: Begin of the recording.
    """
    executors = application.executors
    tasks = application.tasks.sort_values("finish_ms", kind="stable")
    last = tasks.groupby("executor", observed=True).status.last()
    cut = executors.executor.map(last).astype(object).isin(["failed", "killed"])
    lost = executors[cut & (executors.removed_ms >= spans.min()) & (executors.removed_ms < spans[:, 1].max())]
    if not len(lost):
        return None
    cores = int(np.bincount(executors.slots.to_numpy(np.int64)).argmax())
    worked_ms = _worked(application, spans)
    at_ms, come_ms = (np.sort(each.to_numpy(float)) for each in (lost.removed_ms, executors.added_ms))
    # The n-th executor that comes after the first loss stands for the n-th lost one; without any, none comes back.
    pairs = list(zip(at_ms, come_ms[come_ms > at_ms[0]], strict=False))
    count = max(1, round(cluster_slots(application) / cores))
    if not pairs and len(at_ms) >= count:
        return None
    delays = [worked_ms(*pair) for pair in pairs]
    changes = {
        "loss_times_ms": tuple(worked_ms(start_ms, each) for each in at_ms.tolist()),
        "executor_startup_ms": 0.0,
        "replacement_delay_ms": float(np.mean(delays)) if delays else LARGEST_MS,
        "shuffle_service": not bool((application.tasks.use == AGAIN).any()),
    }
    return Plan((count,), cores, changes=changes)


def _directly_before(number: int, submit: np.ndarray, finish: np.ndarray) -> list[int]:
    """Queries that had ended when one was submitted, the latest of each chain."""
    ended = np.flatnonzero(finish <= submit[number])
    ended = ended[ended != number]
    if not len(ended):
        return []
    latest = submit[ended].max()
    return [int(each) for each in ended if finish[each] > latest or submit[each] == latest]


def _shared(used: Sequence[tuple[Application, list[QueryRecord]]], worked: bool = False) -> Recording:
    """Queries of all applications as jobs of one cluster.

    ``worked``: recorded times to the end of the last task, without those in which the cluster had no executor yet.
    """
    pairs = [(record, application) for application, queries in used for record in queries]
    pairs.sort(key=lambda pair: pair[0].submit_ms)
    records = [record for record, _ in pairs]
    begin = records[0].submit_ms
    profiles = {record.profile: pooled(record.profile) for record in records}
    jobs = tuple(Job(profiles[record.profile], record.submit_ms - begin, name=record.query) for record in records)
    recorded = np.array([record.finish_ms - record.submit_ms for record in records])
    if worked:
        spans = [np.array([(record.submit_ms, record.end_ms)]) for record in records]
        recorded = np.array([_worked(pair[1], span)(*span[0]) for pair, span in zip(pairs, spans, strict=True)])
    slots = max(cluster_slots(application) for application, _ in used)
    driver = np.concatenate([record.driver_ms for record in records])
    contention = np.repeat([record.contention for record in records], [len(record.driver_ms) for record in records])
    plans = [plan for application, _ in used if (plan := recorded_plan(application))]
    plan = max(plans, key=lambda each: each.executors[0] * each.cores) if plans else None
    return Recording(LABEL, Workload(jobs, LABEL), driver, recorded, slots, contention, plan=plan)


def pooled(profile: JobProfile) -> JobProfile:
    """Profile for a cluster that is not new: all first tasks count alike."""
    stages = [
        replace(
            stage, fresh=tuple(each[:0] for each in stage.fresh), first=tuple(map(_joined, stage.fresh, stage.first))
        )
        for stage in profile.stages
    ]
    return replace(profile, stages=tuple(stages))


def _joined(*durations: np.ndarray) -> np.ndarray:
    return np.concatenate(durations)
