import json

import numpy as np
import pytest

from decima.core.errors import DataUnavailableError, WorkloadError
from decima.workload.profile_arrays import read_arrays, read_notes, write_arrays
from tests.profiles import make_profile, make_stage


@pytest.fixture
def profiles():
    return [
        make_profile(
            make_stage("scan", 7, (), (5, 20), [[], [1.5]], [[2, 0], [3]], [[4], []]),
            make_stage("join", 1, (0,), (1,), [[]], [[0.1]], [[]]),
            name="etl",
        ),
        make_profile(make_stage("last", parents=(1,)), make_stage("start"), name="ünï"),
    ]


@pytest.fixture
def path(profiles, tmp_path):
    write_arrays(profiles, tmp_path / "profiles.npz", {"note": "made for a test"})
    return tmp_path / "profiles.npz"


def test_round_trip_is_exact(path, profiles):
    read = read_arrays(path)
    assert len(read) == len(profiles)
    assert all(got.equals(expected) for got, expected in zip(read, profiles, strict=True))
    assert [profile.source for profile in read] == ["test"] * 2
    assert read_notes(path) == {"note": "made for a test"}


def test_same_profiles_give_the_same_bytes(path, profiles, tmp_path):
    write_arrays(profiles, tmp_path / "again.npz", {"note": "made for a test"})
    assert (tmp_path / "again.npz").read_bytes() == path.read_bytes()


def test_durations_are_read_only(path):
    with pytest.raises(ValueError, match="read-only"):
        read_arrays(path)[0].stages[0].first[0][0] = 1.0


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


@pytest.mark.parametrize("size", [0, 100, 700])
def test_a_truncated_file_is_refused(path, size):
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(WorkloadError, match="is truncated, damaged or no file of profiles"):
        read_arrays(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(DataUnavailableError, match=r"no profile file at .*none\.npz"):
        read_arrays(tmp_path / "none.npz")
