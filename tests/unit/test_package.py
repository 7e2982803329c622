"""Importing the package is cheap, and its public names lead where the documentation says."""

import json
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from hatchling.metadata.core import ProjectMetadata
from hatchling.plugin.manager import PluginManager

import decima

ROOT = Path(__file__).parents[2]
LEARNING = {"tensorflow", "keras", "spektral", "tensorboard", "h5py", "sklearn", "ray"}


def modules_after(statement: str) -> set[str]:
    """Top-level modules loaded in a fresh interpreter after a statement."""
    code = f"import json, sys\n{statement}\nprint(json.dumps(list(sys.modules)))"
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {name.split(".")[0] for name in json.loads(finished.stdout)}


def test_import_pulls_in_no_heavy_library():
    loaded = modules_after("import decima")
    assert "decima" in loaded
    heavy = {"matplotlib", "seaborn", "pandas", "pyarrow", "numba", "scipy"}
    assert loaded.isdisjoint(heavy | LEARNING)


def test_workloads_and_schedulers_come_without_tensorflow_and_plots():
    loaded = modules_after("import decima; decima.workload; decima.make_scheduler; decima.simulate")
    assert "numpy" in loaded
    assert loaded.isdisjoint({"matplotlib", "seaborn"} | LEARNING)


def test_libraries_of_the_policy_import_under_the_filters_of_this_suite():
    for name in ("tensorflow", "spektral", "tensorboard", "h5py"):
        import_module(name)


@pytest.mark.parametrize(
    ("name", "module", "attribute"),
    [
        ("simulate", "decima.evaluation.run", "simulate"),
        ("compare", "decima.evaluation.comparison", "compare"),
        ("load", "decima.workload", "load"),
        ("plan", "decima.systems.heterogeneous.system", "plan"),
        ("make_scheduler", "decima.systems.spark.schedulers", "make_scheduler"),
        ("list_schedulers", "decima.systems.spark.schedulers", "list_schedulers"),
        ("check_scheduler", "decima.systems.spark.schedulers", "check_scheduler"),
    ],
)
def test_public_function(name, module, attribute):
    function = getattr(decima, name)
    assert callable(function)
    assert function is getattr(import_module(module), attribute)


def test_workload_is_the_module():
    assert decima.workload is import_module("decima.workload")


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'decima' has no attribute 'simulat'"):
        decima.simulat  # noqa: B018


def test_public_names_are_listed():
    assert set(decima.__all__) <= set(dir(decima))


def test_version_has_one_home():
    assert ProjectMetadata(str(ROOT), PluginManager()).version == decima.__version__
    citation = (ROOT / "CITATION.cff").read_text()
    assert re.search(r"^version: (\S+)$", citation, flags=re.MULTILINE)[1] == decima.__version__
    changes = (ROOT / "CHANGELOG.md").read_text()
    assert re.search(r"^## (\S+)", changes, flags=re.MULTILINE)[1] == decima.__version__
