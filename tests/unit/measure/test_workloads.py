"""The files in the package are what the committed logs give."""

import json
from pathlib import Path

import numpy as np
import pytest

from decima.core.errors import DataUnavailableError
from decima.workload import embedded, measured
from decima.workload.profile_arrays import read_arrays
from measure.workloads import measured_from, quantiles
from tests.unit.commands.calls import refuse, succeed

LOGS = Path(__file__).parents[3] / "data" / "spark"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Folder and last line of the command that made the files of the package."""
    folder = tmp_path_factory.mktemp("model")
    notes = [f"{key}={measured.conditions()[key]}" for key in ("machine", "java")]
    return folder, succeed("spark", "model", LOGS, "--out", folder, "--note", notes[0], "--note", notes[1])


def test_measured_profiles_are_those_of_the_logs(made):
    folder, _ = made
    profiles = read_arrays(folder / measured.PATH.name)
    assert len(profiles) == 44
    for one, stored in zip(profiles, measured.measured_profiles(), strict=True):
        assert one.equals(stored)
    assert (folder / measured.PATH.name).read_bytes() == measured.PATH.read_bytes()


def test_the_model_is_the_fit_to_them(made):
    folder, line = made
    new, stored = (json.loads(path.read_text()) for path in (folder / embedded.MODEL_PATH.name, embedded.MODEL_PATH))
    for wave, one in stored["parallelism"].items():
        for key in ("mean", "low", "high", "spread", "noise"):
            assert new["parallelism"][wave][key] == pytest.approx(one[key], abs=2e-4)
    assert new["overhead_ms"] == stored["overhead_ms"]
    assert line == f"overhead of a task: {stored['overhead_ms']:.1f} ms; wrote {folder}"


def test_extrapolated_profiles_are_those_of_the_model(made):
    folder, _ = made
    for one, stored in zip(read_arrays(folder / embedded.PATH.name), embedded.embedded_profiles(), strict=True):
        assert one.name == stored.name
        np.testing.assert_allclose(one.work_ms, stored.work_ms, rtol=1e-3)


def test_long_lists_become_quantiles():
    np.testing.assert_array_equal(quantiles([3.0, 1.0, 2.0], 3), [1.0, 2.0, 3.0])
    kept = quantiles(np.arange(1001.0), 10)
    np.testing.assert_array_equal(kept, np.arange(50.0, 1000.0, 100.0))


def test_folders_without_runs_and_malformed_notes_are_refused(tmp_path):
    with pytest.raises(DataUnavailableError, match="holds no run"):
        measured_from(tmp_path, 60)
    assert "holds no run" in refuse("spark", "model", tmp_path, "--out", tmp_path / "out")
    assert "expected KEY=TEXT" in refuse("spark", "model", LOGS, "--out", tmp_path / "out", "--note", "machine")
