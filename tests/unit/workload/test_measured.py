import numpy as np
import pytest

from decima.core.errors import WorkloadError
from decima.workload import measured, measured_profiles, sources
from decima.workload.measured import parse_name, profile_name, scales


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


def test_other_names_are_refused():
    with pytest.raises(WorkloadError, match="expected a name like"):
        parse_name("etl")


def test_sizes_select_profiles():
    size = f"{scales()[0]:g}g"
    assert measured_profiles(size, [3])[0] is measured_profiles("paper", [3])[0]
    bad = [("100g", [1], "measured size '100g' is unknown"), ([], [1], "no measured size"), ("all", [23], "query 23")]
    for sizes, queries, message in bad:
        with pytest.raises(WorkloadError, match=message):
            measured_profiles(sizes, queries)
