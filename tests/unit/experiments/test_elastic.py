"""Parts of the experiments about capacity: paired changes, one batch of a log, choices."""

import numpy as np
import pandas
import pytest

from decima.systems.spark.capacity import Recording
from decima.workload.jobs import Job, Workload
from experiments.capacity import s60_capacity as capacity
from experiments.capacity import s61_elastic as elastic
from tests.toy_jobs import one_stage


def test_changes_are_against_the_same_scheduler_on_the_fixed_cluster_and_on_that_of_equal_hours():
    growing = "dynamic, 5 s"
    scale = {(cluster, scheduler): 10.0 for cluster in elastic.CLUSTERS for scheduler in ("fifo", "fair")}
    scale |= {("fixed", "fifo"): 1.0, (growing, "fifo"): 1.5, (f"fixed, hours of {growing}", "fifo"): 3.0}
    scale |= {(growing, "fair"): 5.0, ("losses", "fair"): 20.0}
    rows = [
        {"cluster": cluster, "scheduler": scheduler, "seed": seed}
        | {"avg_jct_s": factor * (1.0 + seed), "p95_jct_s": factor, "executor_hours": 2.0}
        for (cluster, scheduler), factor in scale.items()
        for seed in (0, 1)
    ]
    changes = elastic._changes(pandas.DataFrame(rows))
    jct = changes[changes["measure"] == "avg_jct_s"].set_index(["against", "cluster", "scheduler"])["change_percent"]
    changed = {key: change for key, change in jct.items() if change not in (0.0, 900.0)}
    assert changed == {
        ("all executors", growing, "fifo"): pytest.approx(50.0),
        ("equal hours", growing, "fifo"): pytest.approx(-50.0),
        ("all executors", growing, "fair"): pytest.approx(-50.0),
        ("all executors", "losses", "fair"): pytest.approx(100.0),
    }


def test_the_first_batch_of_a_recording():
    jobs = tuple(Job(one_stage(tasks, 1.0).profile, 100.0 * index) for index, tasks in enumerate((1, 2, 3)))
    times = np.array([1.0, 2.0, 3.0])
    whole = Recording("log", Workload(jobs, "log"), times, 10.0 * times, 4, times / 10.0)
    first = capacity._first(whole, 2)
    assert len(first.workload) == 2
    assert first.driver_ms.tolist() == [1.0, 2.0]
    assert first.recorded_ms.tolist() == [10.0, 20.0]
    assert first.contention.tolist() == [0.1, 0.2]


def test_a_target_that_no_size_meets_is_left_out():
    columns = {"p95_s": [9.0, 5.0], "executor_hours": 1.0, "cost": 1.0, "utilization": 1.0}
    points = pandas.DataFrame({"scheduler": "fifo", "executors": [1, 2], "mean_s": [8.0, 4.0]} | columns)
    job = Workload((Job(one_stage(1, 1.0).profile),), "log")
    recording = Recording("log", job, np.zeros(1), np.ones(1), 1, np.zeros(1))
    rows = {row["choice"]: row["executors"] for row in capacity._choices(points, [recording], "p95<6s", "one")}
    assert rows == {"knee": 2, "p95<6s": 2}
    assert [row["choice"] for row in capacity._choices(points, [recording], "p95<1s", "one")] == ["knee"]
