import json

import numpy as np
import pytest

from decima.core.errors import DataUnavailableError, DecimaError, WorkloadError
from decima.workload.measured import read_arrays
from decima.workload.parquet import read_profiles, write_profiles
from decima.workload.profile import JobProfile, Stage, at_level, at_sizes, mean_ratio
from measure.scaling_model import write_arrays
from tests.profiles import make_profile, make_stage

NAN, INF = float("nan"), float("inf")


def diamond():
    """a -> b, c -> d with mean durations 1, 2, 3, 4 s and 1, 1, 2, 1 tasks."""
    flat = {"fresh": [[]], "first": [[]]}
    return make_profile(
        make_stage("a", 1, (), rest=[[1000]], **flat),
        make_stage("b", 1, (0,), rest=[[1500, 2500]], **flat),
        make_stage("c", 2, (0,), rest=[[3000]], **flat),
        make_stage("d", 1, (1, 2), rest=[[4000]], **flat),
    )


def test_derived_values_of_a_diamond():
    profile = diamond()
    assert profile.children == ((1, 2), (3,), (3,), ())
    assert profile.topological_order == (0, 1, 2, 3)
    assert profile.num_tasks == 5
    assert profile.work_ms == 1000 + 2000 + 6000 + 4000
    assert profile.critical_path_ms == 1000 + 3000 + 4000
    assert profile.downstream_work_ms.tolist() == [11000, 6000, 10000, 4000]


def test_mean_pools_all_waves_and_levels():
    stage = make_stage(levels=(5, 10), fresh=[[9], []], first=[[], [1]], rest=[[1, 1], [3]])
    assert stage.mean_duration_ms == (9 + 1 + 1 + 1 + 3) / 5


def test_mean_of_whole_numbers_is_exact():
    values = [2**40 + 1, 1, 3, 7]
    assert make_stage(rest=[values], fresh=[[]], first=[[]]).mean_duration_ms == sum(values) / 4


def test_durations_are_copied_and_read_only():
    values = np.array([1.0, 2.0])
    stage = make_stage(rest=[values])
    values[0] = 99.0
    assert stage.rest[0].tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="read-only"):
        stage.rest[0][0] = 5.0


def test_views_that_are_read_only_are_copied_while_others_can_write():
    values = np.array([1.0, 2.0, 3.0])
    view = values[:2]
    view.setflags(write=False)
    stage = make_stage(rest=[view])
    assert stage.rest[0] is not view
    values[:] = 99.0
    assert stage.rest[0].tolist() == [1.0, 2.0]
    values.setflags(write=False)
    assert make_stage(rest=[view]).rest[0] is view  # nobody can write to it


BAD_STAGES = {
    "zero tasks": (make_stage("s", tasks=0), "num_tasks is 0; expected an integer from 1"),
    "negative tasks": (make_stage("s", tasks=-3), "num_tasks is -3"),
    "fractional tasks": (make_stage("s", tasks=2.5), "num_tasks is 2.5"),
    "whole float tasks": (make_stage("s", tasks=2.0), "num_tasks is 2.0"),
    "boolean tasks": (make_stage("s", tasks=True), "num_tasks is True"),
    "no tasks": (make_stage("s", tasks=None), "num_tasks is None"),
    "too many tasks": (make_stage("s", tasks=2**31), "num_tasks is 2147483648"),
    "nan": (make_stage("s", rest=[[1, NAN]]), "rest duration nan ms at level 5"),
    "infinite": (make_stage("s", first=[[INF]]), "first duration inf ms at level 5"),
    "negative": (make_stage("s", fresh=[[-1]]), "fresh duration -1.0 ms at level 5"),
    "no level": (make_stage("s", levels=()), "no profile level"),
    "level twice": (make_stage("s", levels=(5, 5)), "level 5 is given twice"),
    "levels descend": (make_stage("s", levels=(10, 5)), "not ascending"),
    "level zero": (make_stage("s", levels=(0, 5)), "profile level 0; expected an executor count from 1"),
    "level too high": (make_stage("s", levels=(10**8,)), "level 100000000; expected an executor count from 1 to 10000"),
    "too long": (make_stage("s", rest=[[1e308]]), "duration 1e+308 ms at level 5; expected a number from 0 to 1e+15"),
    "half a surrogate pair": (make_stage("\ud800"), "must be a non-empty Unicode text"),
    "level not whole": (make_stage("s", levels=(2.5,)), "profile level 2.5"),
    "missing level": (
        make_stage("s", levels=(5, 10), fresh=[[1], []], first=[[1], []], rest=[[1], []]),
        "level 10 is missing: no duration in any wave",
    ),
    "too few lists": (make_stage("s", levels=(5, 10), rest=[[1]]), "1 lists of rest durations for 2 profile"),
    "dangling parent": (make_stage("s", parents=(7,)), "parent 7 does not exist; expected 0 to 1"),
    "negative parent": (make_stage("s", parents=(-1,)), "parent -1 does not exist"),
    "own parent": (make_stage("s", parents=(1,)), "is its own parent"),
    "parent twice": (make_stage("s", parents=(0, 0)), "listed twice"),
    "same name": (make_stage("ok"), "unique inside the job"),
}


@pytest.mark.parametrize(("stage", "message"), BAD_STAGES.values(), ids=BAD_STAGES)
def test_bad_stage_is_refused_by_job_and_stage_name(stage, message):
    with pytest.raises(WorkloadError) as caught:
        make_profile(make_stage("ok"), stage, name="etl")
    assert str(caught.value).startswith(f"job 'etl', stage {stage.name!r}")
    assert message in str(caught.value)
    assert isinstance(caught.value, DecimaError)


def test_cycle_is_refused_and_spelled_out():
    with pytest.raises(WorkloadError, match=r"job 'etl': stages form a cycle: .*'[bc]' -> '[bc]' -> '[bc]'"):
        make_profile(make_stage("a"), make_stage("b", parents=(0, 2)), make_stage("c", parents=(1,)), name="etl")


@pytest.mark.parametrize("values", [["5"], [None], [True], [[1, 2], [3, 4]], [1, "x"], [10**400], [[1], [2, 3]]])
def test_durations_must_be_flat_numbers(values):
    with pytest.raises(WorkloadError, match="stage 's': rest durations"):
        Stage("s", 1, (), (5,), ([],), ([],), (values,))


def test_job_needs_name_and_stages():
    with pytest.raises(WorkloadError, match=r"name is '\\ud800'; expected a non-empty Unicode text"):
        make_profile(name="\ud800")
    with pytest.raises(WorkloadError, match="name is ''"):
        make_profile(name="")
    with pytest.raises(WorkloadError, match="job 'none' has no stages"):
        type(make_profile())("none", (), "test")


@pytest.fixture
def path(profiles, tmp_path):
    write_arrays(profiles, tmp_path / "profiles.npz", {"note": "made for a test"})
    return tmp_path / "profiles.npz"


FORMATS = {
    ".npz": (write_arrays, read_arrays, "is truncated, damaged or no file of profiles"),
    ".parquet": (write_profiles, read_profiles, "truncated, damaged or not a parquet file"),
}


@pytest.mark.parametrize("suffix", FORMATS)
def test_both_formats(suffix, profiles, tmp_path):
    write, read, damaged = FORMATS[suffix]
    path, again = tmp_path / f"profiles{suffix}", tmp_path / f"again{suffix}"
    for file in (path, again):
        write(profiles, file, {"note": "made for a test"})
    content = path.read_bytes()
    assert again.read_bytes() == content
    found = read(path)
    assert len(found) == len(profiles)
    assert all(got.equals(expected) for got, expected in zip(found, profiles, strict=True))
    assert [profile.source for profile in found] == ["test"] * 3
    with pytest.raises(ValueError, match="read-only"):
        found[0].stages[0].first[0][0] = 1.0
    for size in (0, 3, 100, 700, -1):
        path.write_bytes(content[:size])
        with pytest.raises(WorkloadError, match=damaged):
            read(path)
    with pytest.raises(DataUnavailableError, match=r"no profile file at .*none\."):
        read(tmp_path / f"none{suffix}")


def test_requests_have_no_place(tmp_path):
    asking = make_profile(make_stage("a"))
    asking = type(asking)(asking.name, (asking.stages[0].__class__(**vars(asking.stages[0]) | {"cpu": 2.0}),), "test")
    with pytest.raises(WorkloadError, match="has requests or sizes"):
        write_arrays([asking], tmp_path / "profiles.npz", {})


def rewrite(path, **changes):
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    card = json.loads(arrays["card"].tobytes()) | changes
    np.savez(path, card=np.frombuffer(json.dumps(card).encode(), np.uint8), durations_ms=arrays["durations_ms"])


def test_another_version_is_refused(path):
    rewrite(path, format="decima-profile-arrays 2")
    with pytest.raises(WorkloadError, match=r"has format 'decima-profile-arrays 2'; this release reads"):
        read_arrays(path)


def test_left_over_durations_are_refused(path):
    with np.load(path) as file:
        card = json.loads(file["card"].tobytes())
    rewrite(path, profiles=card["profiles"][:1])
    with pytest.raises(WorkloadError, match=r"profiles\.npz: \d+ durations, expected 6"):
        read_arrays(path)


def profile(levels, tasks=8):
    """Rest tasks of 100 ms per level executor, first ones of 200 and 400 ms."""
    rest = tuple(np.array([100.0 * level]) for level in levels)
    first = tuple(np.array([200.0 * level, 400.0 * level]) for level in levels)
    fresh = tuple(np.zeros(0) for _ in levels)
    return JobProfile("q", (Stage("a", tasks, (), tuple(levels), fresh, first, rest),), "test")


def test_between_levels_the_mean_is_on_the_line_over_the_logarithm():
    between = at_sizes(profile([1, 4]), [2]).stages[0]
    assert between.levels == (2,)
    assert between.rest[0].tolist() == pytest.approx([250.0])  # 100 at 1, 400 at 4
    assert between.first[0].tolist() == pytest.approx([500.0, 1000.0])


def test_a_measured_level_is_taken_as_it_is():
    assert at_sizes(profile([1, 4]), [4]).equals(at_level(profile([1, 4]), 4))


@pytest.mark.parametrize(("executors", "factor"), [(1, 1.5 / 3.0), (4, 1.0), (6, 4.0 / 3.0), (100, 5.0 / 3.0)])
def test_outside_contention_counts_up_to_the_number_of_tasks(executors, factor):
    assert at_sizes(profile([4]), [executors]).stages[0].rest[0].tolist() == [400.0]
    shared = at_sizes(profile([4]), [executors], (0.5,)).stages[0]
    assert shared.rest[0].tolist() == pytest.approx([400.0 * factor])


def test_ratio_is_of_a_common_wave():
    stage = profile([1, 4]).stages[0]
    assert mean_ratio(stage, "rest", 1, 0) == 4.0
    assert mean_ratio(stage, "fresh", 1, 0) == 4.0  # not measured: that of later tasks


def test_a_level_that_was_not_measured_is_refused():
    with pytest.raises(WorkloadError, match="no durations with 3 executors"):
        at_level(profile([1, 4]), 3)
