"""`decima doctor`: what is on this machine, and what is missing for what."""

import numpy as np
import pytest

import decima
from decima.commands import doctor
from tests.unit.commands.calls import run


@pytest.fixture
def bare(monkeypatch, tmp_path):
    """A machine without Java, data and checkout."""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("DECIMA_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.delenv("DECIMA_DATA_MIRROR", raising=False)
    monkeypatch.chdir(tmp_path)


def report(result):
    return dict(line.split(maxsplit=1) for line in result.stdout.splitlines() if not line.startswith("missing"))


def missing(result):
    lines = [
        line.partition(": ")[2] for line in result.stdout.splitlines() if line.startswith(("missing: ", "optional: "))
    ]
    return dict(line.split(": ", 1) for line in lines)


def test_versions_cores_data_and_caches():
    result = run("doctor")
    assert result.exit_code == 0, result.stderr
    found = report(result)
    assert found["decima-sched"] == decima.__version__
    assert found["numpy"] == np.__version__
    assert int(found["cores"]) >= 1
    assert int(found["stored"].split()[1].rstrip(",")) > 10
    assert "tpch_spark_embedded.npz" in result.stdout
    assert "kernels" not in missing(result)
    assert result.stderr == ""


def test_what_is_missing_for_what(bare):
    result = run("doctor")
    assert result.exit_code == 0, result.stderr
    lacks = missing(result)
    assert "decima data fetch tpch" in lacks["TPC-H profiles"]
    assert "needed for the commands 'decima spark'" in lacks["Java"]
    assert "decima spark plugin" in lacks["Java compiler"]
    assert "experiments, notebooks and the pipeline" in lacks["checkout"]
    assert result.stdout.splitlines()[-1].endswith(" optional parts are missing")


def test_a_missing_or_old_requirement_is_an_error(monkeypatch):
    stated = ["no-such-package>=2", "numpy>=99", "pandas>=2", 'ray>=99; extra == "ray"']
    monkeypatch.setattr(doctor, "requires", lambda name: stated)
    result = run("doctor")
    assert result.exit_code == 2
    lacks = missing(result)
    assert lacks["packages"] == (
        f"needed for everything: no-such-package, numpy {np.__version__} (>=99 expected); "
        "pip install . in your clone of decima-sched"
    )
    assert "ray" in lacks["packages [ray]"]
    assert result.stderr.startswith("error: decima cannot work here: packages; ")
    assert result.stderr.count("\n") == 1
