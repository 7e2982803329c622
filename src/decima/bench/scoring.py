"""Scores of rules from files, in a worker process with a limit on time."""

from __future__ import annotations

import gc
import hashlib
import multiprocessing
import resource
import signal
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from statistics import mean
from time import perf_counter
from typing import Any

import numpy as np

from decima.bench.references import tuned_rule
from decima.bench.rules import Rule, read_rule
from decima.bench.run import score, sentence
from decima.bench.tasks import Instance, Task, task_named
from decima.core.errors import ConfigError, SchedulerError
from decima.evaluation.statistics import paired_change

MEMORY = 4 * 1024**3  # bytes that a rule may write to


class RuleScorer:
    """A process that scores rules on the instances of one task.

    Args:
        task: The task, of the Spark cluster.
        use: Whose seeds: ``validation``, ``training`` or ``test``.
        limit_s: Time in seconds that one rule may take.

    Raises:
        ConfigError: The task is of another system, or its data is missing.
    """

    def __init__(self, task: Task, use: str = "validation", limit_s: float = 30.0) -> None:
        if task.system != "spark":
            raise ConfigError(f"task {task.name} is of system {task.system}; rules are scored on tasks of spark")
        if missing := task.missing():
            raise ConfigError(f"task {task.name}: {missing}")
        self._about = {"task": task.name, "seeds": use}
        self.limit_s = limit_s
        self._pool: Any = None

    def score(self, path: Path) -> dict[str, Any]:
        """JSON-ready line about the rule of a file.

        Returns:
            ``file``, ``sha256``, ``task``, ``seeds``, and either ``score`` (the mean), ``change_percent`` (against the
            tuned rule, paired, with ``change_low`` and ``change_high``), ``compiled`` and ``scores``, or ``error``;
            last ``seconds``, the only entry that differs from run to run.
        """
        begin = perf_counter()
        line = {"file": str(path), "sha256": _digest(path)} | self._about
        if self._pool is None:
            # Ctrl-C is for this process, which then ends the other one.
            self._pool = multiprocessing.get_context("spawn").Pool(1, signal.signal, (signal.SIGINT, signal.SIG_IGN))
            self._pool.apply(_begin, tuple(self._about.values()))
        try:
            line |= self._pool.apply_async(_line, (*self._about.values(), path)).get(self.limit_s)
        except multiprocessing.TimeoutError:
            self.close()
            line["error"] = f"the rule took more than {self.limit_s:g} s"
        return line | {"seconds": round(perf_counter() - begin, 3)}

    def score_all(self, paths: Iterable[Path]) -> Iterator[dict[str, Any]]:
        """Lines about the rules of files."""
        return map(self.score, paths)

    def close(self) -> None:
        """End the process."""
        if self._pool is not None:
            self._pool.terminate()
        self._pool = None

    def __enter__(self) -> RuleScorer:
        return self

    def __exit__(self, *_) -> None:
        self.close()


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


def _first_come(job_order):
    return job_order


@cache
def _shared(name: str, use: str) -> tuple[Task, list[tuple[Instance, Any]], np.ndarray]:
    """What all rules share: task, jobs, scores of the tuned rule; compiles the rest."""
    task = task_named(name)
    jobs = [(instance, task.workload(instance)) for instance in task.instances(use)]
    rule = task.runs_on.make_scheduler(tuned_rule(task))
    tuned = np.array([score(task, rule, *each).value for each in jobs])
    score(task, Rule(_first_come, False), *jobs[0])
    gc.freeze()  # which no collection has to visit again
    return task, jobs, tuned


def _begin(name: str, use: str) -> None:
    """Make the worker ready, and limit its memory to what one rule may need."""
    _shared(name, use)
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))


def _line(name: str, use: str, path: Path) -> dict[str, Any]:
    """What the line of a rule says beside its file."""
    try:
        return _scores(*_shared(name, use), path)
    except Exception as error:
        return {"error": sentence(error)}


def _scores(task: Task, jobs: list[tuple[Instance, Any]], tuned: np.ndarray, path: Path) -> dict[str, Any]:
    rule = read_rule(path)
    values = []
    for row in (score(task, rule, *each) for each in jobs):
        if rule.error is not None:
            ours = isinstance(rule.error, SchedulerError)
            raise rule.error if ours else SchedulerError(f"the rule raised {type(rule.error).__name__}: {rule.error}")
        if rule.row.failed:
            raise SchedulerError("the heuristic did not answer with a finite number")
        if row.failure:
            raise SchedulerError(row.failure)
        values.append(row.value)
    names = ("change_percent", "change_low", "change_high")
    change = dict(zip(names, paired_change(np.array(values), tuned), strict=True))
    return {"score": mean(values), **change, "compiled": rule.compiled, "scores": values}
