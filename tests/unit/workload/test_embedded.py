import time

import numpy as np
import pytest

from decima.core.errors import WorkloadError
from decima.workload import embedded, embedded_profiles, measured_profiles, scaling_model, sources


def test_stored_profiles_are_what_measurements_and_model_give():
    made = embedded.extrapolated_profiles(scaling_model.read_model(embedded.MODEL_PATH))
    assert len(made) == len(embedded_profiles()) == 154
    for new, stored in zip(made, embedded_profiles(), strict=True):
        assert (new.name, new.source) == (stored.name, stored.source)
        for mine, other in zip(new.stages, stored.stages, strict=True):
            assert (mine.num_tasks, mine.parents, mine.levels) == (other.num_tasks, other.parents, other.levels)
            for wave in ("fresh", "first", "rest"):
                for one, two in zip(getattr(mine, wave), getattr(other, wave), strict=True):
                    # Mathematical libraries differ in the last digit, which a tenth of a millisecond can show.
                    np.testing.assert_allclose(one, two, atol=0.11)


def test_they_are_read_quickly():
    embedded_profiles()  # imports
    embedded._table.cache_clear()
    begin = time.process_time()
    embedded_profiles()
    assert time.process_time() - begin < 4.0  # 0.2 s alone on a machine


def test_graphs_are_the_measured_ones():
    for query, profile in enumerate(embedded_profiles("100g"), 1):
        graph = [stage.parents for stage in measured_profiles("all", [query])[0].stages]
        assert [stage.parents for stage in profile.stages] == graph
        assert profile.name == f"q{query}-100g"


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


def test_sizes_select_profiles():
    assert "extrapolated" in embedded.LABEL
    assert not any(profile.name.endswith("-80g") for profile in embedded_profiles("paper"))
    assert embedded_profiles("10g")[8] is embedded.embedded_profile("10g", 9)
    bad = [("1g", [1], "embedded size '1g' is unknown"), ([], [1], "no embedded size"), ("2g", [0], "query 0")]
    for sizes, queries, message in bad:
        with pytest.raises(WorkloadError, match=message):
            embedded_profiles(sizes, queries)
