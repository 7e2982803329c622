"""Random runs whose executors come, go and fail, under the checker; and proof that it sees faults in one of them."""

import copy

import numpy as np
import pytest

import decima
from decima.core.errors import DeadlockError
from decima.systems.spark.schedulers import make_scheduler
from decima.systems.spark.settings import Settings
from tests.knobs import ELASTIC_RUNS, FIRST_SEED
from tests.random_clusters import random_settings, random_units, random_workload
from tests.reliability.spark_checker import read_run, violations
from tests.reliability.systems import _files, _library

SCHEDULERS = ("fair", "fifo", "random")


def test_random_runs_keep_all_rules(tmp_path, tally):
    tally("random runs with executors that come, go and fail", runs=ELASTIC_RUNS)
    lost = removed = copies = 0
    for seed in range(FIRST_SEED, FIRST_SEED + ELASTIC_RUNS):
        rng, files = np.random.default_rng(seed), _files(tmp_path)
        workload = random_workload(rng, max_jobs=6, max_tasks=9)
        cluster = random_units(rng, random_settings(rng).replace(reoffer=True))
        decima.workload.save(workload, files[0])
        try:
            _library(workload, cluster, make_scheduler(SCHEDULERS[seed % 3]), seed, files)
        except DeadlockError as error:
            raise AssertionError(f"seed {seed}: {error}") from error  # none of them idles for ever
        run = read_run(*files)
        assert violations(run) == [], f"repeat with DECIMA_FIRST_SEED={seed} DECIMA_ELASTIC_RUNS=1"
        lost += run.result["losses"]["executors"] if run.changes else 0
        copies += run.result.get("losses", {}).get("copies", 0)
        removed += sum(end is not None and not lost for _, _, end, lost in run.result.get("registrations", ()))
    if ELASTIC_RUNS >= 60:
        assert min(lost, removed, copies) > ELASTIC_RUNS // 10


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """A run with removals, losses, tasks that run again and outputs that are computed again."""
    workload = random_workload(np.random.default_rng(12), max_jobs=6, kind="real", max_tasks=9)
    values = {"executor_cores": 2, "dynamic": True, "initial_executors": 4, "idle_timeout_ms": 1500.0}
    values |= {"speculation": True, "speculation_quantile": 0.5, "speculation_multiplier": 1.0}
    files = _files(tmp_path_factory.mktemp("good"))
    decima.workload.save(workload, files[0])
    cluster = Settings(executors=8, **values, loss_times_ms=(8e3, 12e3, 16e3))
    _library(workload, cluster, make_scheduler("fair"), 4, files)
    run = read_run(*files)
    assert violations(run) == []
    assert min(run.result["losses"].values()) > 0
    assert any(task.killed for task in run.tasks)
    assert any(end is not None and not lost for _, _, end, lost in run.result["registrations"])
    return run


def removal(run):
    return next(row for row in run.result["registrations"] if row[2] is not None and not row[3])


def killed(run):
    return next(task for task in run.tasks if task.killed)


def loss(run):
    return next(row for row in run.result["registrations"] if row[3])


def an_output_that_comes_later(run):
    number, _, _, stage = next(found for found in run.stages() if found[3].parents and run.of_stage[found[:2]])
    next(task for task in run.of_stage[number, stage.parents[0]] if not task.lost).finish_s += 1000.0


@pytest.mark.parametrize(
    ("rule", "change"),
    [
        ("task_counts", lambda run: next(task for task in run.tasks if task.lost).__setattr__("lost", False)),
        ("task_counts", lambda run: run.result["losses"].__setitem__("outputs", 0)),
        ("parents_first", an_output_that_comes_later),
        ("registrations", lambda run: loss(run).__setitem__(2, loss(run)[2] - 1.0)),
        ("registrations", lambda run: loss(run).__setitem__(3, 0)),
        ("registrations", lambda run: run.settings.update(min_executors=4)),
        ("registrations", lambda run: run.settings.update(idle_timeout_ms=1e6)),
        ("registrations", lambda run: run.result["registrations"].append([0, 0.0, None, 0])),
        ("totals", lambda run: run.result.update(executor_hours=run.result["executor_hours"] + 0.001)),
        ("copies", lambda run: run.settings.update(speculation_multiplier=10.0)),
        ("copies", lambda run: run.result["losses"].update(copies=0)),
        ("copies", lambda run: killed(run).__setattr__("finish_s", killed(run).finish_s - 0.1)),
        ("task_counts", lambda run: killed(run).__setattr__("killed", False)),
    ],
)
def test_a_broken_rule_is_found(rule, change, good):
    run = copy.deepcopy(good)
    change(run)
    assert any(text.startswith(f"{rule}: ") for text in violations(run.anew()))
