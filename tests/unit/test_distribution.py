"""What an installed package consists of."""

import tarfile
import zipfile
from pathlib import Path

import pytest
from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Names of the files in the wheel."""
    (path,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path_factory.mktemp("wheel")), versions=["standard"])
    with zipfile.ZipFile(path) as archive:
        return set(archive.namelist())


def test_wheel_holds_the_package_and_its_data(wheel):
    sources = ROOT / "src" / "decima"
    expected = {f"decima/{path.relative_to(sources).as_posix()}" for path in sources.rglob("*.py")}
    assert expected <= wheel
    assert "decima/workload/tpch/tpch.sha256" in wheel
    assert "decima/workload/data/tpch_spark_measured.parquet" in wheel
    assert "decima/workload/data/tpch_spark_embedded.parquet" in wheel


def test_wheel_holds_the_trained_policies(wheel):
    models = [path for path in (ROOT / "models").rglob("*") if path.is_file()]
    assert {f"decima/models/{path.relative_to(ROOT / 'models').as_posix()}" for path in models} <= wheel
    assert "decima/models/README.md" in wheel


def test_source_distribution_can_build_the_same_wheel(tmp_path):
    (path,) = SdistBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    with tarfile.open(path) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames()}
    assert {"pyproject.toml", "models/README.md", "src/decima/__init__.py"} <= names
