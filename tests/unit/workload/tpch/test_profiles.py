"""The prepared TPC-H profiles: sizes, preparing, caching; and the real data with all its oddities."""

from collections import Counter

import numpy as np
import pytest

from decima.core import config
from decima.core.errors import DataUnavailableError, WorkloadError
from decima.workload import parquet, sources, tpch_batch, tpch_poisson, tpch_profile, tpch_profiles
from decima.workload.tpch import profiles as tpch
from decima.workload.tpch import raw as tpch_raw

LEVELS = (2, 5, 10, 20, 40, 50, 60, 80, 100)


@pytest.fixture
def nothing(tmp_path, monkeypatch):
    monkeypatch.setenv(config.DATA_DIR_VARIABLE, str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("sizes", ["3g", ["2g", "x"], []])
def test_unknown_size(sizes):
    with pytest.raises(WorkloadError, match="2g"):
        tpch_batch(sizes=sizes)


@pytest.mark.parametrize("query", [0, 23, True, "9", None, 9.5])
def test_unknown_query(query):
    with pytest.raises(WorkloadError, match="expected 1 to 22"):
        tpch_profile("2g", query)


def test_no_data_is_one_error_that_names_both_ways(nothing):
    assert not tpch.tpch_available()
    with pytest.raises(DataUnavailableError) as caught:
        tpch_profile("2g", 1)
    for part in ("decima data fetch tpch", "DECIMA_DATA_MIRROR", "network", "embedded workload"):
        assert part in str(caught.value)
    assert list(nothing.iterdir()) == []


def test_profiles_fetched_outside_of_the_checkout_are_named(tmp_path, monkeypatch):
    monkeypatch.setattr(tpch.config, "data_root", lambda: tmp_path / "checkout" / "data")
    monkeypatch.setattr(tpch.config, "user_data_root", lambda: tmp_path / "user")
    with pytest.raises(DataUnavailableError) as caught:
        tpch_profile("2g", 1)
    assert str(caught.value).endswith("embedded workload (--jobs embedded:n=20)")
    (tmp_path / "user" / "raw" / "tpch").mkdir(parents=True)
    with pytest.raises(DataUnavailableError, match=f"are read with DECIMA_DATA_DIR={tmp_path / 'user'}$"):
        tpch_profile("2g", 1)


def test_incomplete_raw_data_writes_nothing(nothing):
    (nothing / "raw" / "tpch").mkdir(parents=True)
    with pytest.raises(DataUnavailableError, match=r"2g/adj_mat_1\.npy is missing"):
        tpch_profile("2g", 1)
    assert not (nothing / "workloads").exists()


@pytest.fixture
def raw(tpch_data):
    raw = tpch_data / "raw" / "tpch"
    if not raw.is_dir():
        pytest.skip("only the prepared TPC-H profiles are here, not the raw files")
    return raw


def test_prepared_profiles_equal_the_raw_ones(raw, tpch_data):
    prepared = tpch_profiles()
    assert len(prepared) == 154
    for profile in prepared:
        query, size = profile.name[1:].split("-")
        assert profile.equals(tpch_raw.read_raw_profile(raw, size, int(query)))


def test_preparing_twice_gives_the_same_bytes(raw, tmp_path):
    one, two = (tpch.prepare_tpch(raw, tmp_path / "one.parquet"), tpch.prepare_tpch(raw, tmp_path / "two.parquet"))
    assert one.read_bytes() == two.read_bytes()
    assert one.stat().st_size < 4_000_000


def test_profiles_of_other_raw_files_are_prepared_anew(raw, nothing):
    (nothing / "raw").mkdir()
    (nothing / "raw" / "tpch").symlink_to(raw)
    path = nothing / "workloads" / "tpch.parquet"
    one = tpch_raw.read_raw_profile(raw, "2g", 1)
    parquet.write_profiles([one], path, {"raw_sha256": "of an older list"})
    assert tpch_profile("100g", 22).name == "q22-100g"
    assert len(parquet.read_profiles(path)) == 154


def test_figures_of_the_data_set(tpch_data):
    profiles = tpch_profiles()
    stages = [stage for profile in profiles for stage in profile.stages]
    assert len(stages) == 1414
    nodes = [4, 18, 6, 6, 14, 2, 13, 18, 14, 9, 11, 6, 7, 4, 7, 9, 6, 8, 4, 12, 16, 8]
    for position, profile in enumerate(profiles):
        assert profile.name == f"q{position % 22 + 1}-{tpch.RELEASED_SIZES[position // 22]}"
        assert len(profile.stages) == nodes[position % 22]
        assert [profile.children[index] for index in range(len(profile.stages))].count(()) == 1
        assert all(parent < index for index, stage in enumerate(profile.stages) for parent in stage.parents)
    tasks = np.array([stage.num_tasks for stage in stages])
    assert (tasks.min(), np.median(tasks), tasks.max()) == (1, 200, 593)
    assert round(tasks.mean(), 1) == 125.8
    assert max(stage.all_durations_ms.max() for stage in stages) == pytest.approx(39_600, abs=50)
    assert min(stage.all_durations_ms.min() for stage in stages) > 0
    assert sum(stage.levels == LEVELS for stage in stages) == 1408


def test_dag_of_a_query_is_the_same_at_all_sizes(tpch_data):
    for query in sources.QUERIES:
        dags = {tuple(stage.parents for stage in tpch_profile(size, query).stages) for size in tpch.RELEASED_SIZES}
        assert len(dags) == 1


def test_query_6_has_its_own_levels_at_small_sizes(tpch_data):
    expected = {
        "2g": (2, 5, 10, 12, 13),
        "5g": (2, 5, 10, 20, 29, 30),
        "10g": (2, 5, 10, 20, 40, 50, 58, 59),
        "20g": LEVELS,
    }
    for size, levels in expected.items():
        assert [stage.levels for stage in tpch_profile(size, 6).stages] == [levels, levels]


def test_cleaning_keeps_every_duration_or_inherits(raw, tpch_data):
    """Counted anew per level: what was stored equals fresh plus cleaned, unless all of it was fresh."""
    inherited = empty = 0
    for size, query in [("2g", 6), ("100g", 8), ("10g", 15), ("50g", 21)]:
        path = raw / size / f"task_duration_{query}.npy"
        tables = tpch_raw.load_restricted(path.read_bytes(), path)
        for index, stage in enumerate(tpch_profile(size, query).stages):
            for position, level in enumerate(stage.levels):
                stored, fresh = tables[index]["first_wave"][level], tables[index]["fresh_durations"][level]
                assert stage.fresh[position].tolist() == fresh
                assert stage.rest[position].tolist() == tables[index]["rest_wave"][level]
                left = Counter(stored) - Counter(fresh)
                if left:
                    assert Counter(stage.first[position].tolist()) == left
                elif position == 0:
                    assert len(stage.first[0]) == 0
                    empty += 1
                else:
                    assert stage.first[position].tolist() == stage.first[position - 1].tolist()
                    inherited += 1
    assert inherited > 0
    assert empty > 0


def test_work_grows_with_the_input(tpch_data):
    work_s = [np.mean([p.work_ms for p in tpch_profiles([size])]) / 1000 for size in tpch.RELEASED_SIZES]
    assert work_s == sorted(work_s)
    # Smaller than the means over the stored lists, where fresh durations count twice.
    assert np.round(work_s).tolist() == [173, 240, 349, 545, 1095, 1680, 2141]


def test_batches_and_streams(tpch_data):
    batch, stream = tpch_batch(20, seed=0), tpch_poisson(19, 25.0, seed=0)
    assert batch.label == stream.label == "TPC-H"
    assert [job.name for job in batch.jobs] == [job.name for job in stream.jobs]
    assert not any("80g" in job.name for job in batch.jobs)
    released = {job.name for job in tpch_batch(500, seed=0, sizes="released").jobs}
    assert any("80g" in name for name in released)
