import json

import numpy as np
import pytest

from decima.core.errors import WorkloadError
from decima.workload import scaling_model
from decima.workload.profile import JobProfile, Stage
from decima.workload.scaling_model import FIXED, GROWING, Pooled, ScalingModel, thin


def model(fresh=0.0, first=0.0, rest=0.0, growing=0.0, fixed=0.0, overhead_ms=0.0):
    def pooled(mean):
        return Pooled(mean, mean - 0.1, mean + 0.1, 0.0, 0.1, {2: mean + 1.0})

    parallelism = {"fresh": pooled(fresh), "first": pooled(first), "rest": pooled(rest)}
    return ScalingModel(parallelism, {GROWING: pooled(growing), FIXED: pooled(fixed)}, overhead_ms)


def base():
    scan = Stage("scan", 8, (), (2,), ([900.0],), ([100.0, 120.0],), ([80.0, 90.0, 70.0, 80.0],))
    last = Stage("last", 1, (0,), (2,), ([],), ([30.0],), ([],))
    return JobProfile("q1-1g", (scan, last), "spark")


def extrapolate(of, scale=4.0, partition=1, levels=(1, 4), most=100, query=1):
    return scaling_model.extrapolate(
        [base()], of, name="new", source="test", query=query, base_scale=1.0, scale=scale, kinds=(GROWING, FIXED),
        partition=partition, levels=levels, most_samples=most,
    )  # fmt: skip


def test_growing_stages_get_more_tasks_and_others_keep_theirs():
    assert [stage.num_tasks for stage in extrapolate(model()).stages] == [32, 1]
    assert [stage.num_tasks for stage in extrapolate(model(), partition=8).stages] == [4, 1]
    assert [stage.num_tasks for stage in extrapolate(model(), scale=0.1, partition=8).stages] == [1, 1]


def test_durations_follow_the_exponents():
    scan, last = extrapolate(model(first=0.5, rest=1.0, growing=0.25, fixed=0.5), levels=(1, 2, 8)).stages
    np.testing.assert_allclose(np.mean(scan.rest[2]), 80.0 * 4.0, rtol=1e-3)  # 2 executors to 8
    np.testing.assert_allclose(np.mean(scan.first[0]), 110.0 / 2**0.5, rtol=1e-3)
    np.testing.assert_allclose(scan.fresh[1], 900.0)
    np.testing.assert_allclose(last.first[1], 30.0)


def test_a_query_has_its_own_exponent():
    usual, special = (extrapolate(model(rest=0.5), scale=1.0, levels=(4,), query=query) for query in (1, 2))
    np.testing.assert_allclose(np.mean(special.stages[0].rest[0]), 2.0 * np.mean(usual.stages[0].rest[0]), rtol=1e-2)


def test_wide_tasks_do_the_work_of_several_less_the_cost_of_starting_them():
    scan, last = extrapolate(model(overhead_ms=20.0), scale=16.0, partition=4, levels=(2,)).stages
    assert scan.num_tasks == 32
    np.testing.assert_allclose(np.mean(scan.rest[0]), 80.0 + 3 * 60.0)
    np.testing.assert_allclose(scan.fresh[0], 900.0 + 3 * 60.0)
    np.testing.assert_allclose(np.std(scan.rest[0]), 2.0 * np.std([80.0, 90.0, 70.0, 80.0]), rtol=1e-2)
    assert last.first[0] == [30.0]


def test_a_wave_that_was_not_measured_comes_from_the_next_scale():
    bare = Stage("scan", 8, (), (2,), ([],), ([100.0],), ([80.0],))
    large = JobProfile("q1-2g", (bare, base().stages[1]), "spark")
    new = scaling_model.extrapolate(
        [large, base()], model(), name="new", source="test", query=1, base_scale=2.0, scale=2.0,
        kinds=(GROWING, FIXED), partition=1, levels=(1,), most_samples=9,
    )  # fmt: skip
    assert new.stages[0].fresh[0] == [900.0]
    assert new.stages[0].first[0] == [100.0]
    assert len(new.stages[1].fresh[0]) == 0


def test_overhead_is_never_more_than_the_quickest_task():
    waves = {"fresh": np.empty(0), "first": np.array([50.0]), "rest": np.array([10.0, 20.0])}
    wide = scaling_model.widen(waves, 3, 1000.0)
    np.testing.assert_allclose(wide["first"], 50.0 + 2 * (15.0 - 10.0))
    assert len(wide["fresh"]) == 0


def test_waves_are_as_long_as_a_run_would_record():
    scan, last = extrapolate(model(), levels=(1, 2, 40), scale=0.5).stages  # 4 tasks
    assert [len(values) for values in scan.first] == [1, 2, 2]
    assert [len(values) for values in scan.rest] == [3, 2, 0]
    assert [len(values) for values in last.first] == [1, 1, 1]


def test_samples_are_in_proportion_and_no_level_is_empty():
    assert scaling_model.samples(1000, 10, 16, (50, 50, 50)) == (1, 1, 16)
    assert scaling_model.samples(1000, 500, 16, (50, 50, 50)) == (16, 16, 16)
    assert scaling_model.samples(5, 10, 16, (0, 0, 7)) == (0, 0, 1)  # all tasks are first ones, none was measured
    assert scaling_model.samples(3, 1, 16, (1, 0, 0)) == (1, 0, 0)


@pytest.mark.parametrize("count", [1, 2, 3, 7, 10])
def test_thinning_keeps_mean_and_order(count):
    values = np.sort(np.random.default_rng(0).exponential(size=10))
    kept = thin(values, count)
    assert len(kept) == count
    assert np.all(np.diff(kept) >= 0)
    np.testing.assert_allclose(kept.mean(), values.mean())
    assert values[0] <= kept[0]
    assert kept[-1] <= values[-1]


def test_kinds_by_task_counts():
    def profile(*counts):
        stages = (Stage(str(number), count, (), (1,), ([],), ([1.0],), ([],)) for number, count in enumerate(counts))
        return JobProfile("x", tuple(stages), "x")

    assert scaling_model.stage_kinds(profile(4, 1, 1), profile(8, 1, 2)) == (GROWING, FIXED, GROWING)


def test_models_are_written_and_read(tmp_path):
    path = tmp_path / "model.json"
    scaling_model.write_model(model(rest=0.123456, overhead_ms=12.0), path)
    read = scaling_model.read_model(path)
    assert read.parallelism["rest"].mean == 0.1235
    assert read.parallelism["rest"].value(2) == 1.1235
    assert read.overhead_ms == 12.0
    assert read.factor(1, "rest", 1) == 1.0


@pytest.mark.parametrize(
    "text", ["", "[]", '{"parallelism": {}}', json.dumps({"parallelism": 1, "size": {}, "overhead_ms": 1})]
)
def test_a_damaged_model_is_one_clear_error(tmp_path, text):
    path = tmp_path / "model.json"
    path.write_text(text)
    with pytest.raises(WorkloadError, match="is not a scaling model"):
        scaling_model.read_model(path)
