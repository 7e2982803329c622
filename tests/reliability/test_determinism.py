"""The same seed gives the same bytes in any process, environment and place."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import decima
from tests.knobs import when_asked

pytestmark = pytest.mark.slow
PACKAGE = Path(decima.__file__).parent
ROOT = Path(__file__).parents[2]
# What differs between the processes.
USUAL = {"PYTHONHASHSEED": "0", "threads": 1}
OTHERS = {
    "plain C": {
        "PYTHONHASHSEED": "4711",
        "threads": 5,
        "LANG": "C",
        "LC_ALL": "C",
        "PYTHONUTF8": "0",
        "PYTHONCOERCECLOCALE": "0",
        "TZ": "Pacific/Chatham",
    },
    "random hashes": {"PYTHONHASHSEED": "random", "threads": 2, "OMP_NUM_THREADS": "3"},
}


def fingerprint(what, folder, threads=1, checkout=None, **environment):
    """What a new process computes; with all that it said on stderr."""
    folder.mkdir()
    paths = [str(PACKAGE.parent), str(ROOT)] if checkout is None else [str(checkout / "src"), str(checkout)]
    done = subprocess.run(
        [sys.executable, "-m", "tests.reliability.fingerprint", what, str(folder), str(threads)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), **environment},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    assert Path(found.pop("package")) == Path(paths[0]) / "decima"
    return found, done.stderr


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """What a process in the usual environment computes."""
    return fingerprint("all", tmp_path_factory.mktemp("usual") / "out", **USUAL)


@pytest.mark.parametrize("name", ["plain C", pytest.param("random hashes", marks=when_asked)])
def test_results_depend_neither_on_hashes_nor_threads_nor_language(name, expected, tmp_path):
    found, said = fingerprint("all", tmp_path / "out", **OTHERS[name])
    assert found == expected[0]
    assert said == expected[1] == ""
    assert len(found) > 30


@when_asked
def test_a_copied_checkout_gives_the_same_where_nothing_can_be_kept(expected, tmp_path):
    """Also with a home that nobody can write to, so that everything is compiled anew."""
    checkout = tmp_path / "a copy, elsewhere"
    shutil.copytree(PACKAGE, checkout / "src" / "decima", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "tests", checkout / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "file").write_text("")
    nowhere = {name: str(tmp_path / "file" / "home") for name in ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME")}
    before = sorted(path for path in checkout.rglob("*") if path.suffix in (".nbi", ".nbc"))
    found, said = fingerprint("core", tmp_path / "out", checkout=checkout, **nowhere)
    assert found == {name: expected[0][name] for name in found}
    assert said.count("RuntimeWarning: compiled code cannot be kept in") == 1
    assert sorted(path for path in checkout.rglob("*") if path.suffix in (".nbi", ".nbc")) == before == []
