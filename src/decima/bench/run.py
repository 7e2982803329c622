"""Runs of an entry on tasks, and the document that says what came out."""

from __future__ import annotations

import math
import os
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from decima import __version__
from decima.bench.entries import PYTHON, Entry
from decima.bench.tasks import SUITE, Instance, Task
from decima.core.errors import DecimaError, InvalidDecisionError
from decima.core.progress import progress_bar
from decima.core.system import SystemScheduler, SystemWorkload
from decima.evaluation.workers import make_workers

SCHEMA = 1
LONGEST = 300  # characters of an error that are kept
#: Decisions of a state that has run, by system: offers, nodes, placed executors and waits.
_DECISIONS: dict[str, Callable[[Any], int]] = {
    "spark": lambda state: state.num_decisions,
    "heterogeneous": lambda state: len(state.tables.instance),
    "cloud": lambda episode: episode.state.steps,
}


@dataclass(frozen=True)
class Score:
    """Outcome of an entry on one instance."""

    value: float | None  # by the objective of the task; None where it failed
    decisions: int = 0
    seconds: float = 0.0  # of the run, the simulation included
    failure: str = ""  # why it failed


def score(task: Task, scheduler: SystemScheduler, instance: Instance, workload: SystemWorkload | None = None) -> Score:
    """Run a scheduler on an instance; whatever it does wrong is a failure.

    Args:
        task: The task.
        scheduler: The scheduler.
        instance: The instance.
        workload: Its jobs; drawn when omitted.
    """
    system, settings = task.runs_on, task.settings
    workload = task.workload(instance) if workload is None else workload
    state = system.state(system.tables(workload, settings), settings)
    begin = perf_counter()
    try:
        system.run(state, scheduler, instance.seed)
        seconds, outcome = perf_counter() - begin, system.outcome(state)
        if outcome.num_unfinished:
            return Score(None, failure=f"{outcome.num_unfinished} of {len(outcome.arrival_ms)} jobs are unfinished")
        value = float(task.objective.measure(outcome))
    except Exception as error:
        code = getattr(state, "error", 0)
        more = f" (code {code})" if isinstance(error, InvalidDecisionError) and code else ""
        return Score(None, failure=sentence(error) + more)
    if not math.isfinite(value):
        return Score(None, failure=f"the score is {value}")
    return Score(value, int(_DECISIONS[task.system](state)), seconds)


def scores(
    task: Task,
    scheduler: SystemScheduler,
    instances: Sequence[Instance],
    *,
    workers: int | None = None,
    advance: Callable[[Score], object] | None = None,
) -> list[Score]:
    """Score a scheduler on instances, compiled ones at the same time."""
    workers = workers if getattr(scheduler, "concurrent", False) else 1
    return make_workers(partial(score, task, scheduler), None, workers).map(instances, advance)


def run(
    entry: Entry,
    chosen: Sequence[Task],
    skipped: Sequence[Task] = (),
    *,
    quick: bool = False,
    workers: int | None = None,
    progress: str | None = None,
) -> dict[str, Any]:
    """Document of an entry's results.

    Args:
        entry: The entry.
        chosen: Tasks to run.
        skipped: Tasks that nobody asked for; the document says so.
        quick: Only the first seeds of every task.
        workers: Workers for compiled entries, all cores by default; no score depends on it.
        progress: Label of a progress bar; None for no bar.

    Returns:
        JSON values; everything outside of ``times`` is the same in every run of a deterministic entry.
    """
    not_run = {task.name: "not asked for" for task in skipped}
    results: dict[str, Any] = {}
    times: dict[str, Any] = {}
    runnable = [task for task in chosen if not (why := entry.not_for(task)) or not_run.update({task.name: why})]
    total = sum(len(task.instances(quick=quick)) for task in runnable)
    begin = perf_counter()
    with progress_bar(progress, total, "run") as bar:
        for task in runnable:
            bar.set_postfix_str(task.name, refresh=False)
            start, instances = perf_counter(), task.instances(quick=quick)
            rows = scores(task, entry.scheduler(task), instances, workers=workers, advance=lambda _: bar.update())
            if entry.form == PYTHON:
                rows = [_in_time(row, task.limit_s) for row in rows]
            results[task.name] = _result(task, instances, rows, quick)
            each = [1e6 * row.seconds / row.decisions for row in rows if row.decisions]
            times[task.name] = {
                "seconds": round(perf_counter() - start, 3),
                "decision_us": round(median(each), 3) if each else None,
            }
    return {
        "schema": SCHEMA,
        "suite": SUITE,
        "entry": entry.text,
        "form": entry.form,
        "learned": entry.learned,
        "sha256": entry.sha256,
        "quick": quick,
        "packages": versions(),
        "tasks": results,
        "not_run": not_run,
        "times": {"cpu": cpu_model(), "cores": os.cpu_count(), "seconds": round(perf_counter() - begin, 3)} | times,
    }


def _in_time(row: Score, limit_s: float) -> Score:
    """The score, or a failure where the run took longer than the limit."""
    return Score(None, failure=f"the entry took more than {limit_s:g} s") if row.seconds > limit_s else row


def sentence(error: BaseException) -> str:
    """First line of an error, with its type unless it is one of the package."""
    text = " ".join(str(error).split())[:LONGEST]
    return text if isinstance(error, DecimaError) else f"{type(error).__name__}: {text}".rstrip(": ")


def _result(task: Task, instances: Sequence[Instance], rows: Sequence[Score], quick: bool) -> dict[str, Any]:
    failures = {
        f"{instance.variant} seed {instance.seed}": row.failure
        for instance, row in zip(instances, rows, strict=True)
        if row.failure
    }
    return {
        "hash": task.digest,
        "objective": task.objective.column,
        "seeds": [instance.seed for instance in instances],
        "variants": [task.jobs.index(instance.variant) for instance in instances],
        "scores": [row.value for row in rows],
        "decisions": [row.decisions for row in rows],
        "failures": failures,
    }


def versions() -> dict[str, str]:
    """Versions of what results depend on, by name."""
    packages = {name: version(name) for name in ("numpy", "numba")}
    return {"decima-sched": __version__, "python": platform.python_version()} | packages


def cpu_model() -> str:
    """Name of the processor."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
