"""Features of stages, the numbers that the policy sees: each is one entry here.

An architecture names a tuple of entries (:attr:`decima.policy.architecture.Architecture.stage_features`); widths, the
layout of the compiled policy and the descriptions in notebooks follow from it. A new feature is a compiled function and
an entry in :data:`FEATURES`; ``Architecture(more_features=("its name",))`` uses it.

Source: §6.1 (set ``paper``) and the published code (set ``released``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import log1p

from numba import njit

from decima.policy.fields import policy_of
from decima.simulator.fields import ACTIVE
from decima.simulator.rules.choices import job_held


@dataclass(frozen=True)
class Feature:
    """One number that is known of an unfinished stage.

    Attributes:
        name: Name by which architectures choose it.
        scale: What the computed value is multiplied with, so that it comes near 1.
        doc: Meaning and unit of the value before that.
        compute: Compiled function (state, stage) -> number.
    """

    name: str
    scale: float
    doc: str
    compute: Callable


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
    """Work that is not launched. Differs: the published code takes the duration of the stage's last task."""
    return _tasks_to_launch(state, stage) * _duration_ms(state, stage)


@njit
def _stage_executors(state, stage):
    return float(state.stage_executors[stage] + state.stage_moving[stage] + state.stage_commit[stage])


@njit
def _job_executors(state, stage):
    return float(job_held(state, state.stage_job[stage]))


@njit
def _offered(state, stage):
    return float(state.num_source)


@njit
def _offered_own(state, stage):
    job = state.stage_job[stage]
    return 1.0 if job == state.source_job and state.job_state[job] == ACTIVE else -1.0


@njit
def _interarrival_ms(state, stage):
    return policy_of(state).net_hint_ms


@njit
def _runnable(state, stage):
    return float(state.stage_runnable[stage])


@njit
def _hidden(state, stage):
    return 0.0


FEATURES = (
    Feature("tasks", 1 / 200, "tasks not finished", _tasks_unfinished),
    Feature("duration", 1 / 10_000, "nominal task duration, ms", _duration_ms),
    Feature("executors", 1 / 20, "executors at the stage, on their way or promised", _stage_executors),
    Feature("offered", 1 / 20, "executors on offer", _offered),
    Feature("own", 1.0, "1 if the executors on offer are the job's, else −1", _offered_own),
    Feature("job_executors", 1 / 20, "executors that the job holds", _job_executors),
    Feature("own_twice", 2.0, "1 if the executors on offer are the job's, else −1", _offered_own),
    Feature("work", 1 / 100_000, "work not launched, ms", _work_to_launch_ms),
    Feature("tasks_to_launch", 1 / 200, "tasks not launched", _tasks_to_launch),
    Feature("log_tasks", 1 / 4, "log(1 + tasks not finished)", _log_tasks),
    Feature("log_duration", 1 / 4, "log(1 + nominal task duration / 10 ms)", _log_duration),
    Feature("hidden", 1.0, "nothing: 0 in place of what depends on durations", _hidden),
    Feature("interarrival", 1 / 50_000, "mean interarrival time, ms", _interarrival_ms),
    Feature("runnable", 1.0, "1 if all parents have finished", _runnable),
)
# Place of every entry, by its name.
CODES = {feature.name: code for code, feature in enumerate(FEATURES)}

SETS = {
    "paper": ("tasks", "duration", "executors", "offered", "own"),
    "released": ("job_executors", "own_twice", "offered", "work", "tasks_to_launch"),
}
# What takes the place of features whose values are to be logarithms, or hidden because they depend on durations.
AS_LOGARITHMS = {"tasks": "log_tasks", "duration": "log_duration"}
WITHOUT_DURATIONS = {"duration": "hidden", "log_duration": "hidden", "work": "hidden"}
# So many features at the beginning of the set ``released`` are the same for all stages of a job.
JOB_FEATURES = 3
