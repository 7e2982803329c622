"""Which edits compile which kernels anew."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import pytest

from decima.core import cache, config
from decima.core.cache import SHIPPED, KernelCache, cache_key, import_closure


def closure(**sources):
    return import_closure("decima.a", lambda name: sources.get(name.removeprefix("decima.").replace(".", "_"), ""))


def test_closure_follows_imports_of_the_package_at_the_top_of_a_module():
    found = closure(
        a="import numpy\nfrom decima.b import (\n    one,\n    two,\n)\nimport decima.c\n",
        b="from decima.d import e\n",
        c="def later():\n    from decima.f import g\n",
        d="",
        d_e="NUMBER = 1\n",
        f="from decima.a import one\n",
    )
    assert found == {"decima.a", "decima.b", "decima.c", "decima.d.e"}


def test_closure_ends_where_modules_import_each_other():
    assert closure(a="from decima.b import x\n", b="from decima.a import y\n") == {"decima.a", "decima.b"}


@pytest.mark.parametrize(
    ("edited", "compiled_anew"),
    [
        ("decima.systems.spark.policy.features", {"decima.systems.spark.policy.kernel.inference"}),
        ("decima.systems.spark.schedulers.sharing", {"decima.systems.spark.schedulers.baselines"}),
        ("decima.systems.spark.schedulers.packing", set()),
        (
            "decima.systems.spark.rules.pools",
            {"decima.systems.spark.engine", "decima.systems.spark.optimum.exhaustive"},
        ),
        ("decima.systems.spark.optimum.exhaustive", {"decima.systems.spark.optimum.exhaustive"}),
    ],
)
def test_an_edit_compiles_anew_what_depends_on_it_and_nothing_else(edited, compiled_anew, monkeypatch):
    systems = (
        "decima.systems.spark.engine",
        "decima.systems.spark.schedulers.baselines",
        "decima.systems.spark.policy.kernel.inference",
        "decima.systems.spark.optimum.exhaustive",
    )
    before = {name: cache_key.__wrapped__(name) for name in systems}
    read = cache._read
    monkeypatch.setattr(cache, "_read", lambda name: read(name) + ("# edited\n" if name == edited else ""))
    changed = {name for name in systems if cache_key.__wrapped__(name) != before[name]}
    assert changed == compiled_anew


def test_functions_from_elsewhere_depend_on_the_whole_package(monkeypatch):
    before = cache_key.__wrapped__("__main__")
    read = cache._read
    monkeypatch.setattr(cache, "_read", lambda name: read(name) + ("# edited\n" if name == "decima.cli" else ""))
    assert cache_key.__wrapped__("__main__") != before


def test_the_cache_lies_in_a_folder_of_the_key(monkeypatch, tmp_path):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    before = numba.config.CACHE_DIR
    assert KernelCache(import_closure).cache_path == str(tmp_path / f"kernels-{cache_key(cache.__name__)}")
    here = Path(KernelCache(closure).cache_path)  # of a file elsewhere also its path
    assert here.parent == tmp_path / f"kernels-{cache_key(__name__)}"
    assert before == numba.config.CACHE_DIR


def test_where_nothing_can_be_kept_the_cache_ends_with_the_process(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file" / "cache"))
    with pytest.warns(RuntimeWarning, match=r"compiled code cannot be kept in .*/cache \(Not a directory\)"):
        first = KernelCache(import_closure)
    second = KernelCache(import_closure)  # says so once
    assert first.cache_path == second.cache_path == f"{config._KEPT[-1].name}/kernels-{cache_key(cache.__name__)}"


# Code that a wheel brings along, with one function of the package.

PROGRAM = """
import numpy as np
from decima.core.graphs import topological_order
print(topological_order(np.array([0, 2, 3, 4, 4]), np.array([1, 2, 3, 3])))
"""


def compiled_by(package, kept, **environment):
    """Names of what a run of a copy of the package compiles into a folder."""
    environment = os.environ | {"PYTHONPATH": str(package), "NUMBA_CACHE_DIR": str(kept)} | environment
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[0 1 2 3]\n", "")
    return {path.name.partition("-")[0] for path in kept.rglob("*.nbc")}


@pytest.fixture
def shipped(tmp_path):
    """Folder of a copy of the package that has its compiled code, and lies elsewhere than where that was compiled."""
    ignored = shutil.ignore_patterns("__pycache__", "_kernels")
    shutil.copytree(cache._ROOT, tmp_path / "built" / "decima", ignore=ignored)
    assert compiled_by(tmp_path / "built", tmp_path / "built" / "decima" / SHIPPED.name) == {"graphs.topological_order"}
    return (tmp_path / "built").rename(tmp_path / "moved")


def test_shipped_code_is_used_wherever_the_package_lies(shipped, tmp_path):
    assert compiled_by(shipped, tmp_path / "first") == set()
    processor = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
    assert compiled_by(shipped, tmp_path / "second", **processor) == {"graphs.topological_order"}
    with (shipped / "decima" / "core" / "jit.py").open("a") as file:
        file.write("# edited\n")
    assert compiled_by(shipped, tmp_path / "third") == {"graphs.topological_order"}
