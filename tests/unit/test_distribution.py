"""What an installed package consists of, and with ``pytest -m fresh`` that it works without the checkout."""

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder

from decima.core.cache import SHIPPED
from tests.unit.commands.calls import run

ROOT = Path(__file__).parents[2]
EXTRAS = sorted(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"])


@pytest.fixture(scope="module")
def sdist(tmp_path_factory):
    """Path of the source distribution."""
    (path,) = SdistBuilder(str(ROOT)).build(directory=str(tmp_path_factory.mktemp("sdist")), versions=["standard"])
    return Path(path)


@pytest.fixture(scope="module")
def wheel_file(tmp_path_factory):
    """Path of the wheel."""
    (path,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path_factory.mktemp("wheel")), versions=["standard"])
    return Path(path)


def contents(wheel_file):
    """Checksum by name of the files in a wheel."""
    with zipfile.ZipFile(wheel_file) as archive:
        return {entry.filename: entry.CRC for entry in archive.infolist()}


@pytest.fixture(scope="module")
def wheel(wheel_file):
    """Names of the files in the wheel."""
    return set(contents(wheel_file))


def test_wheel_holds_the_package_and_its_data(wheel):
    sources = ROOT / "src" / "decima"
    expected = {f"decima/{path.relative_to(sources).as_posix()}" for path in sources.rglob("*.py")}
    assert expected <= wheel
    assert "decima/workload/tpch/tpch.sha256" in wheel
    assert "decima/workload/data/tpch_spark_measured.npz" in wheel
    assert "decima/workload/data/tpch_spark_embedded.npz" in wheel


def test_wheel_holds_the_trained_policies(wheel):
    models = [path for path in (ROOT / "models").rglob("*") if path.is_file()]
    assert {f"decima/models/{path.relative_to(ROOT / 'models').as_posix()}" for path in models} <= wheel
    assert "decima/models/README.md" in wheel


def test_source_distribution_builds_the_same_wheel(sdist, wheel_file, tmp_path):
    # Not by `tarfile`: its argument `filter`, which later versions of Python ask for, came with 3.11.4.
    subprocess.run(["tar", "--extract", "--file", sdist, "--directory", tmp_path], check=True)
    (folder,) = tmp_path.iterdir()
    assert {"pyproject.toml", "CHANGELOG.md", "CITATION.cff", "LICENSE"} <= {path.name for path in folder.iterdir()}
    (built,) = WheelBuilder(str(folder)).build(directory=str(tmp_path / "wheel"), versions=["standard"])
    assert contents(built) == contents(wheel_file)
    compiled = folder / "src" / "decima" / SHIPPED.name / "kernels-0" / "function.nbi"  # as `make wheel` leaves it
    compiled.parent.mkdir(parents=True)
    compiled.touch()
    (built,) = WheelBuilder(str(folder)).build(directory=str(tmp_path / "warm"), versions=["standard"])
    assert contents(built).keys() - contents(wheel_file) == {f"decima/{SHIPPED.name}/kernels-0/function.nbi"}


def test_commands_whose_code_a_wheel_brings_along_run():
    recipe = (ROOT / "Makefile").read_text().partition("\nwheel: env\n")[2].partition("\n\n")[0]
    commands = re.findall("^\tdecima (.*)", recipe, flags=re.MULTILINE)
    assert {run(*command.split()).exit_code for command in commands} == {0}
    (program,) = re.findall("^\tpython -c '([^']*)'", recipe, flags=re.MULTILINE)
    exec(program.replace("\\\n", ""), {})


def test_index_would_accept_both(sdist, wheel_file):
    command = [sys.executable, "-m", "twine", "check", "--strict", str(sdist), str(wheel_file)]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr


# ---- in a new environment ------------------------------------------------------------------------------------------


def uv(*arguments):
    """Run uv, which makes environments in seconds."""
    done = subprocess.run(["uv", *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done


@pytest.fixture(scope="module")
def fresh(wheel_file, tmp_path_factory):
    """Function that runs the installed command in an empty folder, with nothing of this checkout in reach."""
    root = tmp_path_factory.mktemp("fresh")
    uv("venv", "--quiet", "--python", sys.executable, root / "env")
    uv("pip", "install", "--quiet", "--python", root / "env" / "bin" / "python", wheel_file)
    (root / "empty").mkdir()
    environment = {
        "PATH": f"{root / 'env' / 'bin'}{os.pathsep}/usr/bin{os.pathsep}/bin",
        "HOME": str(root),
        "LANG": "C.UTF-8",
    }

    def decima(*arguments):
        words = ["decima", *map(str, arguments)]
        return subprocess.run(
            words, cwd=root / "empty", env=environment, capture_output=True, text=True, timeout=600, check=False
        )

    return decima


@pytest.mark.fresh
@pytest.mark.parametrize(
    "arguments",
    [
        ("doctor",),
        ("schedulers",),
        ("simulate", "--jobs", "embedded:n=3", "--scheduler", "decima", "--gantt", "schedule.html"),
        ("compare", "fair", "decima:embedded-stream", "--jobs", "embedded:n=3", "--seeds", "2"),
        ("workload", "write", "embedded:n=3", "--out", "jobs.json"),
        (
            *("train", "embedded:n=3", "--executors", "6", "--iterations", "1", "--out", "run"),
            *("--set", "recipe.teacher_iterations=1", "--set", "recipe.validation_sequences=2"),
        ),
    ],
    ids=lambda arguments: arguments[0],
)
def test_works_without_the_checkout(arguments, fresh):
    done = fresh(*arguments)
    assert done.returncode == 0, done.stderr


@pytest.mark.fresh
@pytest.mark.parametrize(
    "arguments",
    [
        ("evaluate", "all"),
        ("plot", "all"),
        ("notebook", "all"),
        ("report",),
        ("results",),
        ("site",),
        ("reproduce",),
        ("train", "--params", "spark-batch", "--out", "other"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_what_needs_a_checkout_says_so(arguments, fresh):
    done = fresh(*arguments)
    assert done.returncode == 2
    assert re.search(
        r"is not inside a checkout of the project|needs a checkout of the project|reads params/training", done.stderr
    )
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


@pytest.mark.fresh
@pytest.mark.parametrize("extra", EXTRAS)
def test_every_extra_installs_alone(extra, wheel_file, tmp_path):
    uv("venv", "--quiet", "--python", sys.executable, tmp_path / "env")
    target = f"decima-sched[{extra}] @ {wheel_file.as_uri()}"
    planned = uv("pip", "install", "--dry-run", "--python", tmp_path / "env" / "bin" / "python", target)
    assert " + decima-sched" in planned.stderr
