"""Times for which tasks keep an executor, counted from when the executor was free and the stage runnable.

The duration of a task runs from its launch to its end. What lies before the launch (the driver notices that a stage has
ended, makes the tasks of the next one and sends them out; between two Spark jobs of one query it plans the second one)
takes no time in the simulator. Adding it to the task that waited for it keeps the total time of every executor right.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from decima.connect.eventlog.application import Application


def with_slot_times(application: Application) -> Application:
    """Copy of the application in which `duration_ms` of a task counts from the moment it could have begun.

    That is the later of two: the end of the task before on the same slot, and the end of the stage's last parent (for
    a stage without parents the submission of the query). Where the driver stamped that end after the launch, the time
    is shorter than the duration. Tasks of no query keep their duration.
    """
    tasks = application.tasks
    if not len(tasks):
        return application
    could_begin = np.fmax(_runnable_ms(application), _slot_free_ms(application))
    time_ms = tasks.finish_ms.to_numpy(float) - np.where(np.isnan(could_begin), tasks.launch_ms, could_begin)
    return replace(application, tasks=tasks.assign(duration_ms=np.maximum(time_ms, 0.0)))


def _runnable_ms(application: Application) -> np.ndarray:
    """Time at which the stage of each task became runnable; NaN for tasks that belong to no query."""
    submitted = dict(zip(application.queries["query"], application.queries.submit_ms, strict=True))
    finish = {}
    ready = {}
    for row in application.stages[application.stages["query"].isin(submitted)].itertuples():  # parents come first
        finish[row.query, row.stage] = row.last_finish_ms
        before = [finish[row.query, parent] for parent in row.parents]
        ready[row.query, row.stage] = max([submitted[row.query], *before])
    tasks = application.tasks
    keys = zip(tasks["query"].astype(object), tasks.stage, strict=True)
    return np.array([ready.get(key, np.nan) for key in keys], float)


def _slot_free_ms(application: Application) -> np.ndarray:
    """Time at which the previous task on the slot of each task ended; NaN for the first."""
    tasks = application.tasks
    ordered = tasks.sort_values(["launch_ms", "task_id"], kind="stable")
    before = ordered.groupby(["executor", "slot"], observed=True).finish_ms.shift()
    return before.reindex(tasks.index).to_numpy(float)
