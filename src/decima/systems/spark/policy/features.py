"""Features of stages, the numbers that the policy sees: each is one entry here.

An architecture names a tuple of entries (:attr:`.Architecture.stage_features`); widths, the
layout of the compiled policy and the descriptions in notebooks follow from it. A new feature is a compiled function and
an entry in :data:`FEATURES`; ``Architecture(more_features=("its name",))`` uses it.

Source: §6.1 (set ``paper``), the published code (set ``released``); §7.3 for requests, in the set ``classes``.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import log, log1p, sqrt

from decima.core.jit import njit
from decima.systems.spark.fields import ACTIVE, NONE
from decima.systems.spark.policy.fields import policy_of
from decima.systems.spark.rules.choices import (
    entry_cost_ms,
    job_allocation,
    job_held,
    remaining_work_ms,
    work_at_level_ms,
)

# What ``since_smaller`` looks at: the last so many arrivals; and its largest value.
ARRIVALS_SEEN = 64
LONGEST_SINCE_MS = 1e6
# Executors on which ``level_work`` is counted, as in the rule ``entry_srw``.
WORK_LEVEL = 5


@dataclass(frozen=True)
class Feature:
    """One number that is known of an unfinished stage."""

    name: str  # name by which architectures choose it
    scale: float  # what the computed value is multiplied with, so that it comes near 1
    doc: str  # meaning and unit of the value before that
    compute: Callable  # compiled function (state, stage) -> number
    # Compiled function (state, job) -> number, the same for all stages of a job; ``compute`` has it as third argument.
    of_job: Callable | None = None


@njit
def _same(state, stage, of_job):
    return of_job


@njit
def _tasks_unfinished(state, stage):
    return float(state.stage_tasks[stage] - state.stage_finished_tasks[stage])


@njit
def _log_tasks(state, stage):
    return log1p(_tasks_unfinished(state, stage))


@njit
def _tasks_to_launch(state, stage):
    return float(state.stage_tasks[stage] - state.stage_next[stage])


@njit
def _duration_ms(state, stage):
    return state.row_nominal_ms[state.stage_row[stage]]


@njit
def _log_duration(state, stage):
    return log1p(_duration_ms(state, stage) * 0.1)


@njit
def _work_to_launch_ms(state, stage):
    """Work not launched. Differs: the published code takes the last task's duration."""
    return _tasks_to_launch(state, stage) * _duration_ms(state, stage)


@njit
def _stage_executors(state, stage):
    return float(state.stage_executors[stage] + state.stage_moving[stage] + state.stage_commit[stage])


@njit
def _job_executors(state, job):
    return float(job_held(state, job))


@njit
def _offered(state, job):
    return float(state.num_source)


@njit
def _from_its_job(state, job):
    return 1.0 if job == state.source_job and state.job_state[job] == ACTIVE else -1.0


@njit
def _interarrival_ms(state, job):
    return policy_of(state).net_hint_ms


@njit
def _runnable(state, stage):
    return float(state.stage_runnable[stage])


@njit
def _hidden(state, stage):
    return 0.0


@njit
def _delayed(state, stage):
    return 1.0 if state.stage_slot[stage] else 0.0


@njit
def _executor_share(state, stage):
    return _stage_executors(state, stage) / state.num_executors


@njit
def _offered_share(state, job):
    return float(state.num_source) / state.num_executors


@njit
def _log_executors(state, stage):
    return log1p(_stage_executors(state, stage))


@njit
def _log_job_executors(state, job):
    return log1p(_job_executors(state, job))


@njit
def _log_job_work(state, job):
    return log1p(remaining_work_ms(state, job) * 0.001)


@njit
def _log_per_job(state, job):
    return log1p(float(state.num_executors) / state.num_active)


@njit
def of_largest(state, asked, sizes):
    """Request over size of the largest class; 0 where one class fits everything."""
    most = 0.0
    for executor_class in range(state.num_classes):
        most = max(most, sizes[executor_class])
    return asked / most


@njit
def _memory(state, stage):
    return of_largest(state, state.stage_memory[stage], state.class_memory)


@njit
def _cpu(state, stage):
    return of_largest(state, state.stage_cpu[stage], state.class_cpu)


@njit
def _remaining_ms(state, stage):
    """Mean time that its running tasks still take if they take their nominal duration."""
    if state.stage_next[stage] == state.stage_finished_tasks[stage]:
        return 0.0
    return max(0.0, _duration_ms(state, stage) - _running_age_ms(state, stage))


@njit
def _running_age_ms(state, stage):
    if state.stage_next[stage] == state.stage_finished_tasks[stage]:
        return 0.0
    ended = state.free_executors[0] if state.num_free > 0 and state.source == stage else NONE
    count = 0
    total = 0.0
    for executor in range(state.num_executors):
        if state.executor_stage[executor] == stage and executor != ended:
            count += 1
            total += state.now_ms - state.executor_start_ms[executor]
    return total / count if count > 0 else 0.0


@njit
def _entry_cost_ms(state, stage):
    """What an executor from elsewhere would pay."""
    return entry_cost_ms(state, stage, job_allocation(state, state.stage_job[stage]) + 1)


@njit
def _level_work_ms(state, job):
    return work_at_level_ms(state, job, WORK_LEVEL)


@njit
def _entry_room(state, stage, level_work_ms):
    """Executors up to which coming pays, less those of the job."""
    worth = level_work_ms * state.num_executors / state.num_active
    most = sqrt(worth / max(1.0, _entry_cost_ms(state, stage)))
    return most - job_allocation(state, state.stage_job[stage])


@njit
def _slope(state, job):
    """0 where twice the executors halve the time; log 2 where they gain nothing."""
    held = max(1, job_allocation(state, job))
    now = work_at_level_ms(state, job, held)
    return log(work_at_level_ms(state, job, 2 * held) / now) if now > 0.0 else 0.0


@njit
def _since_smaller_ms(state, job):
    work = state.job_work_ms[job]
    since = state.now_ms
    for index in range(state.next_arrival - 1, max(state.next_arrival - 1 - ARRIVALS_SEEN, -1), -1):
        other = state.arrival_order[index]
        since = state.now_ms - state.job_arrival_ms[other]
        if state.job_work_ms[other] < work:
            return min(since, LONGEST_SINCE_MS)
    return min(since if state.next_arrival > ARRIVALS_SEEN else state.now_ms, LONGEST_SINCE_MS)


@njit
def _job_path_ms(state, job):
    return policy_of(state).net_shape_ms[2 * job]


@njit
def _job_width(state, job):
    return policy_of(state).net_shape_ms[2 * job + 1]


FEATURES = (
    Feature("tasks", 1 / 200, "tasks not finished", _tasks_unfinished),
    Feature("duration", 1 / 10_000, "nominal task duration, ms", _duration_ms),
    Feature("executors", 1 / 20, "executors at the stage, on their way or promised", _stage_executors),
    Feature("offered", 1 / 20, "executors on offer", _same, _offered),
    Feature("own", 1.0, "1 if the executors on offer are the job's, else −1", _same, _from_its_job),
    Feature("job_executors", 1 / 20, "executors that the job holds", _same, _job_executors),
    Feature("own_twice", 2.0, "1 if the executors on offer are the job's, else −1", _same, _from_its_job),
    Feature("work", 1 / 100_000, "work not launched, ms", _work_to_launch_ms),
    Feature("tasks_to_launch", 1 / 200, "tasks not launched", _tasks_to_launch),
    Feature("log_tasks", 1 / 4, "log(1 + tasks not finished)", _log_tasks),
    Feature("log_duration", 1 / 4, "log(1 + nominal task duration / 10 ms)", _log_duration),
    Feature("hidden", 1.0, "always 0, in place of features that depend on durations", _hidden),
    Feature("interarrival", 1 / 50_000, "mean interarrival time, ms", _same, _interarrival_ms),
    Feature("runnable", 1.0, "1 if all parents have finished", _runnable),
    Feature("delayed", 1.0, "1 if the stage was delayed", _delayed),
    Feature("running_age", 1 / 100_000, "mean time since its running tasks began, ms", _running_age_ms),
    Feature("remaining", 1 / 100_000, "mean nominal time that its running tasks still take, ms", _remaining_ms),
    Feature("executor_share", 1.0, "executors at the stage, on their way or promised, of all", _executor_share),
    Feature("offered_share", 1.0, "executors on offer, of all", _same, _offered_share),
    Feature("since_smaller", 1 / 100_000, "time since a job with less work arrived, ms", _same, _since_smaller_ms),
    Feature("job_path", 1 / 100_000, "critical path of the whole job, one task per stage, ms", _same, _job_path_ms),
    Feature("job_width", 1 / 20, "average width of the whole job: work over critical path", _same, _job_width),
    Feature("memory", 1.0, "memory that a task asks for, of the largest class's", _memory),
    Feature("cpu", 1.0, "CPUs that a task asks for, of the largest class's", _cpu),
    Feature("log_executors", 1 / 4, "log(1 + executors at the stage, on their way or promised)", _log_executors),
    Feature("log_job_executors", 1 / 4, "log(1 + executors that the job holds)", _same, _log_job_executors),
    Feature(
        "log_job_work", 1 / 4, "log(1 + unfinished tasks times nominal duration of the job, s)", _same, _log_job_work
    ),
    Feature("executors_per_job", 1 / 4, "log(1 + executors of the cluster / jobs in it)", _same, _log_per_job),
    Feature(
        "entry_cost", 1 / 20_000, "moving delay plus mean first-wave duration: executor-entry cost, ms", _entry_cost_ms
    ),
    Feature(
        "entry_room", 1 / 20, "sqrt(W E / (m c)) less the job's executors, as in entry_srw", _entry_room, _level_work_ms
    ),
    Feature(
        "level_work", 1 / 1e6, "work of the job on 5 executors, slow first tasks included, ms", _same, _level_work_ms
    ),
    Feature("slope", 1.0, "log(work of the job on twice its executors / on those it has)", _same, _slope),
)
# Fields of the state that say something of running tasks or of arrivals.
OF_RUNNING = frozenset(
    {
        *("executor_stage", "executor_pool", "executor_moving", "executor_start_ms", "free_executors", "num_free"),
        *("source", "next_arrival", "arrival_order"),
    }
)
# Features that say how many executors are on offer: one number for all stages, which changes with every round.
OFFER_FEATURES = ("offered", "offered_share")
# Features that change only with tasks of the job launched and finished, executors that it keeps and active jobs.
STILL = ("entry_cost", "entry_room", "level_work", "slope")
# Place of every entry, by its name.
CODES = {feature.name: code for code, feature in enumerate(FEATURES)}

SETS = {
    "paper": ("tasks", "duration", "executors", "offered", "own"),
    "released": ("job_executors", "own_twice", "offered", "work", "tasks_to_launch"),
    # Clusters of any size: logarithms, and nothing that changes for all jobs whenever executors are offered.
    "classes": (
        "log_tasks",
        "log_duration",
        "log_executors",
        "own",
        "runnable",
        "memory",
        "log_job_executors",
        "log_job_work",
        "executors_per_job",
    ),
}
# What takes the place of features whose values are to be logarithms, or hidden because they depend on durations.
AS_LOGARITHMS = {"tasks": "log_tasks", "duration": "log_duration"}
WITHOUT_DURATIONS = {"duration": "hidden", "log_duration": "hidden", "work": "hidden", "log_job_work": "hidden"}
# So many features at the beginning of the set ``released`` are the same for all stages of a job.
JOB_FEATURES = 3
