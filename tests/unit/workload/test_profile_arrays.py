import json

import numpy as np
import pytest

from decima.core.errors import DataUnavailableError, WorkloadError
from decima.workload.parquet import read_profiles, write_profiles
from decima.workload.profile_arrays import read_arrays, read_notes, write_arrays
from tests.profiles import make_profile, make_stage


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


def test_notes_come_back(path):
    assert read_notes(path) == {"note": "made for a test"}


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
