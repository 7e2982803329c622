import json

import numpy as np
import pytest

from decima.core.errors import WorkloadError
from decima.workload import embedded, embedded_profiles, measured, measured_profiles, sources
from decima.workload.measured import parse_name, profile_name, scales
from decima.workload.profile import JobProfile, Stage
from measure import scaling_model
from measure.scaling_model import FIXED, GROWING, Pooled, ScalingModel, thin


def test_every_query_at_every_scale_on_one_to_four_executors():
    profiles = measured_profiles()
    assert len(profiles) == 22 * len(scales())
    assert len(scales()) >= 2
    assert {profile.source for profile in profiles} == {"spark"}
    for profile in profiles:
        for stage in profile.stages:
            assert set(stage.levels) <= {1, 2, 3, 4}
        assert set(profile.stages[0].levels) == {1, 2, 3, 4}


def test_a_query_has_the_same_graph_at_every_scale():
    for query in sources.QUERIES:
        graphs = {tuple(stage.parents for stage in one.stages) for one in measured_profiles("all", [query])}
        assert len(graphs) == 1


def work_of_later_tasks_ms(profile):
    """Of stages with several tasks; new executors, which the smallest scale alone has, are left out."""
    return sum(stage.num_tasks * stage.rest[-1].mean() for stage in profile.stages if len(stage.rest[-1]))


def test_more_input_makes_more_tasks_and_more_work():
    smallest, largest = (measured_profiles(f"{scale:g}g") for scale in (scales()[0], scales()[-1]))
    ratio = scales()[-1] / scales()[0]
    for below, above in zip(smallest, largest, strict=True):
        assert below.num_tasks < above.num_tasks <= ratio * below.num_tasks
    pairs = zip(smallest, largest, strict=True)
    growth = [work_of_later_tasks_ms(above) / work_of_later_tasks_ms(below) for below, above in pairs]
    assert 0.8 * ratio < np.median(growth) < 1.2 * ratio


def test_new_executors_were_measured_at_the_smallest_scale():
    for profile in measured_profiles(f"{scales()[0]:g}g"):
        fresh = sum(len(values) for stage in profile.stages for values in stage.fresh)
        assert 1 <= fresh <= 4
        first = [stage.first[-1].mean() for stage in profile.stages if len(stage.fresh[-1]) and len(stage.first[-1])]
        cold = [stage.fresh[-1].mean() for stage in profile.stages if len(stage.fresh[-1]) and len(stage.first[-1])]
        assert np.mean(cold) > 2.0 * np.mean(first)


def test_where_it_comes_from_is_in_the_file():
    conditions = measured.conditions()
    assert {"machine", "spark", "java", "date", "load", "settings"} <= set(conditions)
    assert "format" not in conditions


@pytest.mark.parametrize(("name", "parts"), [("q9-1g", (9, 1.0)), ("q22-0.25g", (22, 0.25))])
def test_names_say_query_and_scale(name, parts):
    assert parse_name(name) == parts
    assert profile_name(*parts) == name


def test_sizes_select_profiles():
    size = f"{scales()[0]:g}g"
    assert measured_profiles(size, [3])[0] is measured_profiles("paper", [3])[0]
    bad = [("100g", [1], "measured size '100g' is unknown"), ([], [1], "no measured size"), ("all", [23], "query 23")]
    for sizes, queries, message in bad:
        with pytest.raises(WorkloadError, match=message):
            measured_profiles(sizes, queries)


def test_stored_profiles_are_what_measurements_and_model_give():
    made = scaling_model.extrapolated_profiles(scaling_model.read_model(scaling_model.MODEL_PATH))
    assert len(made) == len(embedded_profiles()) == 154
    for new, stored in zip(made, embedded_profiles(), strict=True):
        assert (new.name, new.source) == (stored.name, stored.source)
        for mine, other in zip(new.stages, stored.stages, strict=True):
            assert (mine.num_tasks, mine.parents, mine.levels) == (other.num_tasks, other.parents, other.levels)
            for wave in ("fresh", "first", "rest"):
                for one, two in zip(getattr(mine, wave), getattr(other, wave), strict=True):
                    # Mathematical libraries differ in the last digit, which a tenth of a millisecond can show.
                    np.testing.assert_allclose(one, two, atol=0.11)


def test_work_and_tasks_grow_with_the_size():
    sizes = embedded.RELEASED_SIZES
    for query in sources.QUERIES:
        profiles = [embedded.embedded_profile(size, query) for size in sizes]
        assert all(np.diff([one.num_tasks for one in profiles]) >= 0)
        work = np.array([one.work_ms for one in profiles])
        assert all(np.diff(work) > 0)
        assert 20 < work[-1] / work[0] < 120  # input: 50 times


def test_tasks_get_slower_with_executors():
    slower = []
    for profile in embedded_profiles("100g"):
        for stage in profile.stages:
            few, many = stage.first[stage.levels.index(5)], stage.first[stage.levels.index(100)]
            if len(few) and len(many) and stage.num_tasks > 100:
                slower.append(many.mean() / few.mean())
    assert len(slower) > 50
    assert 1.0 < np.median(slower) < 3.0  # the authors' profiles: 1.8


def test_work_is_near_that_of_the_papers_jobs():
    work = np.sort([profile.work_ms / 1000.0 for profile in embedded_profiles("paper")])[::-1]
    assert len(work) == 132
    assert 300 < work.mean() < 1500  # TPC-H of the authors: 757
    assert 0.6 < work[: round(0.23 * len(work))].sum() / work.sum() < 0.85  # 0.63; the paper states 0.82
    tasks = [stage.num_tasks for profile in embedded_profiles() for stage in profile.stages]
    assert 30 < np.mean(tasks) < 250  # 126


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
