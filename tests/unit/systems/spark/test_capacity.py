"""Sweeps over sizes of a cluster: times by hand, choices, and parts that add up."""

import math
import re
from dataclasses import replace

import numpy as np
import pandas
import pytest

from decima.core.errors import ConfigError
from decima.core.grammar import read_fields
from decima.systems.spark import capacity
from decima.systems.spark.capacity import Plan, Recording, Target
from decima.systems.spark.schedulers import make_scheduler
from decima.systems.spark.settings import ELASTIC, ELASTIC_SWITCHES, Settings, cluster_settings
from tests.toy_jobs import job, one_stage, stage, workload

FIFO = {"fifo": make_scheduler("fifo")}


def recording(*jobs, driver=0.0, contention=0.0, slots=5):
    jobs = workload(*jobs)
    stages = int(jobs.first_stage[-1])
    return Recording("log", jobs, np.full(stages, driver), np.ones(len(jobs)), slots, np.full(stages, contention))


# 1 s of the driver, 12 tasks of 1 s, 1 s of the driver, one task of 4 s.
WIDE = recording(job(stage("a", 12, 1.0), stage("b", 1, 4.0, 0)), driver=1000.0)


def points(**columns):
    frame = pandas.DataFrame({"scheduler": "fifo", "load": 1.0, **columns})
    return frame if "cost" in frame else frame.assign(cost=math.nan)


def test_times_hours_cost_and_use_by_hand():
    draws = capacity.sweep([WIDE], FIFO, Plan((1, 4, 12), draws=2), price=lambda executors: 3.6 * executors)
    table = capacity.summarize(draws)
    assert table.executors.tolist() == [1, 4, 12]
    assert table.run_s.tolist() == [18.0, 9.0, 7.0]
    assert table.p95_s.tolist() == table.run_s_low.tolist() == table.run_s_high.tolist() == table.run_s.tolist()
    assert table.executor_hours.tolist() == pytest.approx([18 / 3600, 36 / 3600, 84 / 3600])
    assert table.cost.tolist() == pytest.approx([0.018, 0.036, 0.084])
    assert table.utilization.tolist() == pytest.approx([16 / 18, 16 / 36, 16 / 84])


def test_cores_are_slots_of_an_executor():
    table = capacity.summarize(capacity.sweep([WIDE], FIFO, Plan((1, 3), cores=4, draws=1)))
    assert table.run_s.tolist() == [9.0, 7.0]
    assert table.executor_hours.tolist() == pytest.approx([9 / 3600, 21 / 3600])
    assert math.isnan(table.run_s_low[0])  # of one draw nothing is known about the others
    assert table.cost.isna().all()


def test_load_makes_arrivals_more_frequent():
    jobs = recording(one_stage(1, 2.0), one_stage(1, 2.0, at_s=4.0, name="late"))
    table = capacity.summarize(capacity.sweep([jobs], FIFO, Plan((1,), loads=(1.0, 4.0), draws=1)))
    assert table.run_s.tolist() == [6.0, 4.0]
    assert table.mean_s.tolist() == [2.0, 2.5]


def test_contention_lengthens_tasks():
    # Measured with 5 executors; 0.2 of the CPU time per executor: 1 + 0.2 * 1 over 1 + 0.2 * 5.
    shared = recording(one_stage(5, 1.0), contention=0.2)
    table = capacity.summarize(capacity.sweep([shared], FIFO, Plan((1, 5), draws=1)))
    assert table.run_s.tolist() == pytest.approx([5 * 0.6, 1.0])


FRAME = points(executors=[1, 2, 4, 8], run_s=[16.0, 8.0, 4.0, 3.5], mean_s=[16.0, 8.0, 4.0, 3.5], cost=[4.0, 4, 5, 9])


@pytest.mark.parametrize(
    ("target", "budget", "executors"),
    [("run<9s", None, 2), ("run<4s", None, 8), ("mean < 0.1 min", None, 4), (None, 5.0, 4), ("run<9s", 4.5, 2)],
)
def test_the_smallest_cluster_that_meets_target_and_budget(target, budget, executors):
    wanted = None if target is None else capacity.read_target(target)
    assert capacity.choose_point(FRAME, "run_s", wanted, budget).executors == executors


def test_what_no_cluster_meets_names_the_nearest_and_why():
    with pytest.raises(ConfigError) as caught:
        capacity.choose_point(FRAME, "run_s", Target("run_s", 1.0), floors={"run_s": 3.25})
    assert str(caught.value) == (
        "no cluster of 1 to 8 executors meets run<1s: the nearest is 8 executors with fifo, run 3.5 s; "
        "the critical path with the driver takes 3.25 s"
    )
    with pytest.raises(ConfigError, match=r"meets a cost of 3: the cheapest is 1 executor with fifo, cost 4$"):
        capacity.choose_point(FRAME, "run_s", budget=3.0)
    with pytest.raises(ConfigError, match="meets run<4s with a cost of 5: the nearest is 4 executors"):
        capacity.choose_point(FRAME, "run_s", Target("run_s", 4.0), 5.0)


@pytest.mark.parametrize("text", ["p95", "p95<", "p99<1s", "p95>3s", "run<1 day", "run<-1s", "run<nan", "run<0s"])
def test_texts_that_are_no_target(text):
    with pytest.raises(ConfigError, match="expected run, mean, p50 or p95"):
        capacity.read_target(text)


def test_targets_with_units():
    seconds = [capacity.read_target(f"p95<{text}").seconds for text in ("90", "90s", "1.5min", "1.5m", "2h", "500ms")]
    assert seconds == pytest.approx([90.0, 90.0, 90.0, 90.0, 7200.0, 0.5])
    assert str(capacity.read_target("p95<1.5min")) == "p95<90s"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"executors": (0,)}, "executors is 0"),
        ({"executors": (1.5,)}, "executors is 1.5"),
        ({"executors": ()}, "at least one size"),
        ({"executors": (1,), "loads": (0.0,)}, "load is 0.0"),
        ({"executors": (1,), "draws": 0}, "draws must be"),
        ({"executors": (2,), "cores": 600_000}, "1,000,000 slots"),
    ],
)
def test_plans_that_cannot_be(values, message):
    with pytest.raises(ConfigError, match=message):
        Plan(**values)


def test_critical_path_has_the_driver():
    assert WIDE.critical_path_s.tolist() == [7.0]
    late = recording(one_stage(1, 2.0, at_s=8.0))
    assert capacity.floors_of([WIDE, late], load=2.0) == {"run_s": 13.0, "mean_s": 4.5, "p50_s": 4.5, "p95_s": 6.75}


def parts_at(recorded, slots):
    result = capacity.run_recording(recorded, FIFO["fifo"], slots)
    return result, capacity.time_parts(recorded, result)


def test_parts_by_hand():
    result, parts = parts_at(WIDE, 8)
    # a: 12 s of work on 8 slots, 2 waves of which the second is half full; b: one task of 4 s.
    assert parts.stage.tolist() == ["b", "a"]
    assert parts.work_s.tolist() == [0.5, 1.5]
    assert parts.few_tasks_s.tolist() == [3.5, 0.5]
    assert parts.uneven_tasks_s.tolist() == [0.0, 0.0]
    assert parts.driver_s.tolist() == [1.0, 1.0]
    assert parts.waiting_s.tolist() == [0.0, 0.0]
    assert capacity.limit_of(parts) == "few_tasks"
    assert result.makespan_s == 8.0


@pytest.mark.parametrize("seed", range(10))
def test_parts_add_up_to_the_time_of_every_job(seed):
    rng = np.random.default_rng(seed)
    jobs = []
    for number in range(3):
        stages = [
            stage(f"s{index}", int(rng.integers(1, 9)), float(rng.uniform(0.1, 2.0)), *range(index))
            for index in range(3)
        ]
        jobs.append(job(*stages, at_s=float(rng.uniform(0.0, 3.0)), name=f"job{number}"))
    recorded = recording(*jobs, driver=float(rng.uniform(0.0, 500.0)))
    result, parts = parts_at(recorded, int(rng.integers(1, 7)))
    columns = [f"{part}_s" for part in capacity.PARTS]
    assert (parts[columns] >= -1e-9).all(axis=None)
    sums = parts.groupby("job")[columns].sum().sum(axis=1).to_numpy()
    assert sums == pytest.approx(result.jct_ms / 1000.0)


# A value that is not the default, of every setting of executors that come, go and fail.
VALUES = {
    "dynamic": True,
    "min_executors": 1,
    "initial_executors": 3,
    "backlog_timeout_ms": 250.0,
    "sustained_timeout_ms": 4000.0,
    "idle_timeout_ms": 5500.0,
    "executor_cores": 4,
    "executor_startup_ms": 100.0,
    "shuffle_service": True,
    "loss_rate": 2.5,
    "loss_times_ms": (5000.0, 9000.0),
    "replacement_delay_ms": 30.0,
    "straggler_share": 0.1,
    "straggler_shape": 3.0,
    "speculation": True,
    "speculation_quantile": 0.5,
    "speculation_multiplier": 2.0,
    "speculation_interval_ms": 50.0,
    "speculation_min_runtime_ms": 20.0,
}


def test_every_setting_that_was_simulated_is_written_and_read_again():
    assert VALUES.keys() == {*ELASTIC, *ELASTIC_SWITCHES}
    settings = cluster_settings(32, **VALUES)
    text = capacity.spark_options(8, 4, settings)
    read = capacity.elastic_of(dict(line.split(" ") for line in text.splitlines() if line.startswith("spark.")))
    of_world = dict(re.findall(r"^# settings\.(\w+)=(\S+)", text, re.MULTILINE))
    read |= read_fields(of_world, Settings, "")
    assert cluster_settings(**read) == settings
    assert "spark.dynamicAllocation.shuffleTracking.enabled false\n" in text
    assert "whole seconds.\nspark.dynamicAllocation.schedulerBacklogTimeout 250ms\n" in text


@pytest.mark.parametrize("name", VALUES)
def test_nothing_is_written_that_was_not_simulated(name):
    kept = {each: value for each, value in VALUES.items() if each == name or each == "dynamic"}
    if name not in ("dynamic", *ELASTIC) and "dynamic" not in ELASTIC_SWITCHES[name]:
        kept |= {each: VALUES[each] for each in ELASTIC_SWITCHES[name]}
    settings = cluster_settings(32, **kept)
    text = capacity.spark_options(8, settings.executor_cores, settings)
    for other in VALUES.keys() - {each for each in VALUES if any(map(kept.get, ELASTIC_SWITCHES.get(each, (each,))))}:
        assert capacity.SPARK_NAMES.get(other, (f"settings.{other}=",))[0] + " " not in text
    assert "dynamic allocation" not in capacity.spark_options(8, 4).lower()


def test_a_fixed_size_has_a_line_for_each_master():
    lines = capacity.spark_options(8, 4, task_cpus=2).splitlines()
    assert lines[1].endswith("--executor-cores 8 --conf spark.task.cpus=2 --num-executors 8")
    assert lines[3].endswith("--executor-cores 8 --conf spark.task.cpus=2 --total-executor-cores 64")
    assert "YARN and Kubernetes" in lines[0]
    assert "standalone" in lines[2]


DYNAMIC = "spark.dynamicAllocation"


@pytest.mark.parametrize(
    ("stated", "settings"),
    [
        ({f"{DYNAMIC}.executorIdleTimeout": "2min"}, {"idle_timeout_ms": 120_000.0}),
        ({f"{DYNAMIC}.schedulerBacklogTimeout": "3"}, {"backlog_timeout_ms": 3000.0}),
        ({"spark.speculation.interval": "250"}, {"speculation_interval_ms": 250.0}),
        ({"spark.executor.cores": "4", "spark.task.cpus": "2"}, {"executor_cores": 2}),
        ({"spark.executor.cores": "4", f"{DYNAMIC}.maxExecutors": "5"}, {"executor_cores": 4, "executors": 20}),
        ({f"{DYNAMIC}.maxExecutors": "2147483647"}, {}),
        ({"spark.dynamicAllocation.enabled": "maybe", "spark.dynamicAllocation.executorIdleTimeout": "soon"}, {}),
    ],
)
def test_a_configuration_of_spark_is_read(stated, settings):
    assert capacity.elastic_of(stated) == settings


@pytest.mark.parametrize(
    ("rate", "why"), [(1e9, "a task takes up to 4 s and would hardly ever end"), (4000.0, "a run does not end within")]
)
def test_executors_that_are_lost_too_often_are_refused(rate, why):
    plan = Plan((2,), draws=1, lose=rate, changes={"executor_startup_ms": 0.0})
    with pytest.raises(ConfigError, match=why):
        capacity.sweep([recording(job(stage("a", 400, 4.0), stage("b", 400, 4.0, 0)))], FIFO, plan)


def test_time_that_no_record_explains_is_a_part_of_its_own():
    known = recording(one_stage(1, 2.0), driver=3000.0)
    split = replace(known, unexplained_ms=np.array([2000.0]))
    (row,) = parts_at(split, 1)[1].to_dict("records")
    assert [row[f"{part}_s"] for part in ("work", "driver", "waiting", "unexplained")] == [2.0, 1.0, 0.0, 2.0]
