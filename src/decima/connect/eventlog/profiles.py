"""Job profiles from event logs: runs of a query at several executor counts are merged."""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import astuple, dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from decima.connect.eventlog.application import Application, EventLogs, read_event_logs
from decima.connect.eventlog.report import USED, ApplicationKey, LogReport, Notice, join_reports
from decima.connect.eventlog.tables import SIZES
from decima.core.errors import EventLogError, WorkloadError
from decima.workload.jobs import Job, Workload
from decima.workload.profile import WAVES, JobProfile, Stage

if TYPE_CHECKING:
    import pandas

SOURCE = "spark"
#: Settings of the simulated cluster: queries of one SparkContext pay neither a moving delay nor the start of a JVM.
LOG_SETTINGS = {"moving_delay_ms": 0.0, "startup": False}
LATER = " (later runs)"
_NUMBER, _DIGITS = re.compile(r" \(\d+\)$|^AQEShuffleRead$"), re.compile(r"\d+|^AQEShuffleRead$")


@dataclass(frozen=True, eq=False)
class LogProfiles:
    """Job profiles of event logs with stage sizes, the runs behind them and a report."""

    profiles: list[JobProfile]  # one per query and structure, in the order in which they first appear
    # One row per stage of a profile: `job`, `stage_index`, `stage`, `operators`, `runs`, `num_tasks`, and the mean over
    # the runs of the bytes of all its tasks.
    sizes: pandas.DataFrame
    # One row per run of a query: `app_id`, `attempt` and `start_ms` (the key of its application), `query`, `job` (empty
    # when it is in no profile), `level`, `duration_ms`.
    runs: pandas.DataFrame
    report: LogReport  # that of the applications, and notes on the merging

    def jobs_of(self, key: ApplicationKey) -> dict[str, str]:
        """Profile of each query of an application that is in one."""
        runs = self.runs[(self.runs["job"] != "") & (self.runs.app_id == key.app_id)]
        runs = runs[(runs.attempt == key.attempt) & (runs.start_ms == key.start_ms)]
        return dict(zip(runs["query"], runs["job"], strict=True))


@dataclass
class _Run:
    application: Application
    query: str
    level: int
    duration_ms: float
    parents: tuple[tuple[int, ...], ...]
    num_tasks: list[int]
    operators: list[str]
    sizes: np.ndarray  # bytes [stages, SIZES]
    stage: np.ndarray  # [tasks used], as the next two
    wave: np.ndarray
    task_ms: np.ndarray
    again: bool = False  # whether a run of its name had been before in the application
    plan: tuple = ()  # what runs of its name must share to be runs of one query


@dataclass(frozen=True, repr=False)
class LogWorkload(Workload):
    """Workload of the queries of event logs, with the report on the logs."""

    report: LogReport = field(default_factory=LogReport, compare=False)


def from_logs(*paths: str | os.PathLike, anyway: bool = False) -> LogWorkload:
    """Read the queries of Spark event logs as jobs that arrive together.

    Example:
        >>> jobs = from_logs("data/spark/events/sf0.25-e1-r0-a0.jsonl.zstd")
        >>> len(jobs)
        24

    Args:
        paths: event logs, `eventlog_v2_` folders, or folders of these.
        anyway: also use logs of which less than half is usable.

    Returns:
        The workload; its `report` lists used and unused logs. Its `settings` are defaults of its runs: queries
        of one SparkContext pay neither a moving delay nor the start of a JVM.

    Raises:
        DataUnavailableError: a path holds no log.
        EventLogError: no query in the logs is complete, or less than half of the logs is usable.
    """
    collected = collect_profiles(read_event_logs(paths))
    report = collected.report
    if not collected.profiles:
        raise EventLogError(f"no complete query in {', '.join(map(str, paths)) or 'no event log'}{report.why}")
    report.check(anyway)
    jobs = tuple(map(Job, collected.profiles))
    return LogWorkload(jobs, "queries of event logs", report=report, settings=LOG_SETTINGS)


def collect_profiles(
    applications: Sequence[Application], *, named_only: bool = False, cold_apart: bool = False
) -> LogProfiles:
    """Merge all runs of the same name into job profiles.

    Runs of a name that differ in structure become further profiles, `name~2`, `name~3`, the most frequent structure
    keeping the plain name. Structure are the edges of the stages; where Spark's description gave the name, also the
    operators; where no person gave it or a platform cut it, also the task counts. SQL executions without any name are
    merged by structure alone. The level of a run is the executor count it states, else the
    time-weighted number of executor slots during the run; of a run among others, the most tasks it ran at once. Where
    runs differ in the task count of a stage, the most frequent one is taken, among equals that of the lowest level.

    Args:
        applications: what was read; each log once.
        named_only: leave out queries that have no name of their own (no `decima.` property, no job description), such
            as the jobs with which Spark looks into files.
        cold_apart: keep the first run of a query in its application, for which code is loaded and compiled, apart from
            the later ones, whose profile has :data:`LATER` after its name.
    """
    import pandas

    grouped: dict[str, list[_Run]] = defaultdict(list)
    notes: list[Notice] = []
    plans: dict[tuple, str] = {}
    for application in applications:
        parts = _parts(application)
        for row in application.queries[application.queries.skipped == ""].itertuples():
            if named_only and not row.named:
                notes.append(_note("query without a name", row.query, application))
                continue
            run = _Run(application, row.query, level(row), row.duration_ms, *parts(row.Index))
            run.plan, run.again = _plan(run, row.same), row.again
            name = row.name
            if not row.named and row.query.startswith("execution-") and any(run.operators):
                name = plans.setdefault(run.plan, name)
            if name != row.name:
                merged = f"{row.query} with {name}"
                notes.append(_note("same plan as another query", merged, application))
            grouped[name].append(run)
    profiles: list[JobProfile] = []
    sizes: list[tuple] = []
    runs: list[tuple] = []
    for name, members in grouped.items():
        structures = Counter(run.plan for run in members)
        for number, (structure, count) in enumerate(structures.most_common()):
            job = name if number == 0 else f"{name}~{number + 1}"
            alike = [run for run in members if run.plan == structure]
            if number:
                which = f"{job}: {count} of {len(members)} runs, {', '.join(run.query for run in alike[:10])}"
                notes.append(_note("runs of one name with another DAG: made another profile", which))
            for name_, mine in _by_warmth(job, alike).items() if cold_apart else [(job, alike)]:
                job = name_
                try:
                    profile = _profile(job, mine)
                except WorkloadError as error:
                    why = "no task of a stage was used"
                    notes += [_note(why, f"{run.query}: {error}", run.application) for run in mine]
                    job = ""
                else:
                    profiles.append(profile)
                    sizes += _sizes(profile, mine)
                    notes += _different_counts(profile, mine)
                runs += [(*astuple(run.application.key), run.query, job, run.level, run.duration_ms) for run in mine]
    # The report on several logs also has copies and attempts that were left out.
    whole = isinstance(applications, EventLogs)
    read = applications.report if whole else join_reports([each.report for each in applications])
    columns = ["job", "stage_index", "stage", "operators", "runs", "num_tasks", *SIZES]
    return LogProfiles(
        profiles,
        pandas.DataFrame(sizes, columns=columns),
        pandas.DataFrame(runs, columns=["app_id", "attempt", "start_ms", "query", "job", "level", "duration_ms"]),
        read.with_notices(notes),
    )


def _by_warmth(job: str, runs: Sequence[_Run]) -> dict[str, list[_Run]]:
    """First runs under the job's name, later ones with :data:`LATER` after it."""
    parts: dict[str, list[_Run]] = defaultdict(list)
    begun: set[ApplicationKey] = set()
    for run in runs:
        parts[job + LATER if run.again or run.application.key in begun else job].append(run)
        begun.add(run.application.key)
    return parts


def profiles_of(applications: Iterable[Application], chosen: Iterable[Collection[str]]) -> dict[str, JobProfile]:
    """Job profiles by name, from a selection of queries.

    Args:
        applications: what was read.
        chosen: for each application, the ids of its queries that are to be used.
    """
    parts = [application.only(ids) for application, ids in zip(applications, chosen, strict=True)]
    used = [part for part in parts if (part.queries.skipped == "").any()]
    return {profile.name: profile for profile in collect_profiles(used).profiles}


def level(query) -> int:
    """Executor count that a row of the query table stands for, at least 1."""
    if query.stated_executors == query.stated_executors:  # not NaN
        return int(query.stated_executors)
    return max(1, round(query.executors) if query.alone else query.peak_tasks)


def _plan(run: _Run, same: str) -> tuple:
    """What a run shares with those of the same query.

    Numbers differ between runs, in operators (of code generation) and in names of RDDs (of paths).
    """
    strip = _DIGITS if same == "operators" else _NUMBER
    operators = tuple(frozenset(strip.sub("", each) for each in text.split(", ")) for text in run.operators)
    parts = {"edges": (), "operators": (operators,), "tasks": (operators, tuple(run.num_tasks))}
    return run.parents, *parts[same]


def _parts(application: Application):
    """Make a function from a query's row in the table to its stages and tasks."""
    stages, tasks = application.stages, application.tasks
    tasks = tasks[tasks.use == USED].sort_values("query_number", kind="stable")
    stage, wave, duration = tasks.stage.to_numpy(), tasks.wave.cat.codes.to_numpy(), tasks.duration_ms.to_numpy()
    count = len(application.queries)
    first_task = np.searchsorted(tasks.query_number.to_numpy(), np.arange(count + 1))
    # The rows of a query are together, in the order of the query table.
    first_stage = np.concatenate([[0], np.cumsum(application.queries.stages.to_numpy(np.int64))])
    parents, num_tasks, operators = (stages[name].tolist() for name in ("parents", "num_tasks", "operators"))
    sizes = stages[list(SIZES)].to_numpy(float)

    def of(row: int):
        stages_of_row = slice(first_stage[row], first_stage[row + 1])
        tasks_of_row = slice(first_task[row], first_task[row + 1])
        return (
            *(tuple(parents[stages_of_row]), num_tasks[stages_of_row], operators[stages_of_row], sizes[stages_of_row]),
            *(stage[tasks_of_row], wave[tasks_of_row], duration[tasks_of_row]),
        )

    return of


def _profile(name: str, runs: Sequence[_Run]) -> JobProfile:
    durations: dict[tuple[int, int, str], list[np.ndarray]] = defaultdict(list)
    for run in runs:
        for index in range(len(run.parents)):
            mine = run.stage == index
            for code, wave in enumerate(WAVES):
                if (chosen := mine & (run.wave == code)).any():
                    durations[index, run.level, wave].append(run.task_ms[chosen])
    stages = []
    for index, parents in enumerate(runs[0].parents):
        levels = sorted({of for stage, of, _ in durations if stage == index})
        lists = {
            wave: tuple(np.concatenate(durations.get((index, of, wave), [np.empty(0)])) for of in levels)
            for wave in WAVES
        }
        counts = [(run.level, run.num_tasks[index]) for run in sorted(runs, key=lambda run: run.level)]
        num_tasks = Counter(count for _, count in counts).most_common(1)[0][0]
        stages.append(Stage(f"stage-{index}", num_tasks, parents, tuple(levels), **lists))
    return JobProfile(name, tuple(stages), SOURCE)


def _sizes(profile: JobProfile, runs: Sequence[_Run]) -> list[tuple]:
    mean = sum(run.sizes for run in runs) / len(runs)
    return [
        (profile.name, index, stage.name, runs[0].operators[index], len(runs), stage.num_tasks, *mean[index].tolist())
        for index, stage in enumerate(profile.stages)
    ]


def _different_counts(profile: JobProfile, runs: Sequence[_Run]) -> list[Notice]:
    notes = []
    for index, stage in enumerate(profile.stages):
        counts = Counter(run.num_tasks[index] for run in runs)
        if len(counts) > 1:
            seen = ", ".join(f"{tasks} tasks in {times} runs" for tasks, times in sorted(counts.items()))
            which = f"{profile.name}, {stage.name}: {seen}"
            notes.append(_note("task count of a stage differs: the most frequent kept", which))
    return notes


def _note(reason: str, detail: str, application: Application | None = None) -> Notice:
    return Notice("note profile", reason, 1, detail, "" if application is None else str(application.key))
