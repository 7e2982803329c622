"""References of the tasks: tuned rules, lower bounds, and the best of offline searches.

``python -m decima.bench.references`` computes them anew, which takes ten minutes, and writes the file that the package
has. Rules are tuned on training seeds with a stated number of candidates; bounds and searches are of the test seeds.
"""

from __future__ import annotations

import json
import sys
from functools import cache
from typing import Any

import numpy as np

from decima.bench.tasks import FOLDER, SUITE, Instance, Task, document, tasks
from decima.core.files import atomic_write_text, read_json
from decima.evaluation.grid import grid_search
from decima.evaluation.run import score_matrix
from decima.evaluation.tuning import tune

FILE = FOLDER / f"{SUITE}.references.json"
PRICE_ROUNDS = 10  # of bounds of embedded batches; any number is valid, and on TPC-H it adds nothing
# Schedules tried per instance, and the objective of the search.
_SEARCHES = {"spark": (100, "avg_jct"), "heterogeneous": (40, "makespan")}
_LONGEST = 50  # jobs of instances that are searched


@cache
def references() -> dict[str, dict[str, Any]]:
    """References by task: ``tuned`` (text), ``bound`` and ``best`` (by test instance, or None)."""
    return read_json(FILE) if FILE.is_file() else {}


def tuned_rule(task: Task) -> str:
    """Text of the tuned rule of a task; before tuning, the rule itself."""
    return references().get(task.name, {}).get("tuned", task.rule)


def reference_scores(task: Task, name: str, *, quick: bool = False) -> list[float | None]:
    """Bounds (``bound``) or best known scores (``best``) of test instances."""
    instances = task.instances()
    known = references().get(task.name, {}).get(name) or [None] * len(instances)
    by_instance = dict(zip(instances, known, strict=True))
    return [by_instance[each] for each in task.instances(quick=quick)]


def tune_rule(task: Task) -> str:
    """Tune the rule of a task on its training seeds, or choose one."""
    instances = task.instances("training")
    jobs, seeds = [task.workload(each) for each in instances], [each.seed for each in instances]
    work = {"train_seeds": seeds, "metric": task.metric}
    if task.choices:
        schedulers = [task.runs_on.make_scheduler(text) for text in task.choices]
        means = score_matrix(jobs, schedulers, task.settings, seeds=seeds, metric=task.metric).mean(axis=1)
        return task.choices[int(np.argmin(task.objective.loss(means)))]
    name, _, fixed = task.rule.partition(":")
    values = {key: float(value) for key, value in (pair.split("=") for pair in fixed.split(",") if pair)}
    if task.system == "heterogeneous":
        grid = {"discount": [step / 10.0 for step in range(11)]}
        parameters = grid_search(name, jobs, task.settings, grid, **work).parameters
    else:
        budget = document()["tuning"]["budget"]
        parameters = tune(name, jobs, task.settings, budget=budget, seed=0, fixed=values, **work).parameters
    return f"{name}:" + ",".join(f"{key}={value:.6g}" for key, value in parameters.items())


def bound(task: Task, instance: Instance) -> float:
    """Score that no scheduler passes on an instance, offline ones included.

    Of the Spark cluster the bounds of :mod:`decima.systems.spark.optimum.bounds`; the makespan is at least the longest
    path and the work over the executors, and a quantile of JCTs that of the paths.
    """
    workload, settings = task.workload(instance), task.settings
    if task.system == "heterogeneous":
        return task.runs_on.tables(workload, settings).bound_s
    if task.system == "cloud":
        from decima.systems.cloud.optimum.search import Problem

        return Problem.of(workload, settings).work_bound()
    from decima.systems.spark.optimum.bounds import lower_bound
    from decima.systems.spark.optimum.pieces import Pieces

    if task.metric == "avg_jct":
        rounds = PRICE_ROUNDS if len(workload) <= _LONGEST and not task.data else 0
        return lower_bound(workload, settings, price_rounds=rounds).avg_jct_s
    pieces = Pieces(workload, settings)
    if task.metric == "makespan":
        work_ms = float(pieces.job_work_ms.sum()) / settings.executors
        return max(work_ms, float((pieces.arrival_ms + pieces.job_path_ms).max())) / 1000.0
    return float(np.quantile(pieces.job_path_ms, float(task.metric[1:3]) / 100.0)) / 1000.0


def best(task: Task, instance: Instance) -> float | None:
    """Score of the best schedule of an offline search, which knows durations; or None."""
    workload = task.workload(instance)
    budget, metric = _SEARCHES.get(task.system, (0, ""))
    if task.metric != metric or task.durations_hidden or len(workload.arrival_ms) > _LONGEST:
        return None
    if task.system == "heterogeneous":
        from decima.systems.heterogeneous.optimum.exact import search

        return float(search(workload, budget, instance.seed).schedule.makespan_s)
    from decima.systems.spark.optimum.schedule_search import search_schedule

    return search_schedule(workload, task.settings, budget, seed=instance.seed).avg_jct_s


def compute(names: list[str]) -> dict[str, dict[str, Any]]:
    """References of tasks; those of others stay as they are."""
    content = dict(references())
    for task in (tasks()[name] for name in names or tasks()):
        instances = task.instances()
        content[task.name] = {
            "tuned": tune_rule(task),
            "bound": [float(f"{bound(task, each):.7g}") for each in instances],
            "best": [value and float(f"{value:.7g}") for value in (best(task, each) for each in instances)],
        }
        lines = (f"{json.dumps(name)}: {json.dumps(content[name])}" for name in tasks() if name in content)
        atomic_write_text(FILE, "{\n" + ",\n".join(lines) + "\n}\n")
    return content


if __name__ == "__main__":
    compute(sys.argv[1:])
