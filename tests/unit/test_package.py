"""Importing the package is cheap, and its public names lead where the documentation says."""

import ast
import json
import re
import subprocess
import sys
import tomllib
from importlib import import_module
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from hatchling.metadata.core import ProjectMetadata
from hatchling.plugin.manager import PluginManager

import decima
from decima.commands.doctor import EXTRAS
from decima.core.errors import DecimaError
from decima.core.extras import MissingExtraError, advice, how_to_install, require

ROOT = Path(__file__).parents[2]
LEARNING = {"tensorflow", "keras", "spektral", "tensorboard", "h5py", "sklearn", "ray"}


def modules_after(statement: str) -> set[str]:
    """Top-level modules loaded in a fresh interpreter after a statement."""
    code = f"import json, sys\n{statement}\nprint(json.dumps(list(sys.modules)))"
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {name.split(".")[0] for name in json.loads(finished.stdout.splitlines()[-1])}


def test_import_pulls_in_no_heavy_library():
    loaded = modules_after("import decima")
    assert "decima" in loaded
    heavy = {"matplotlib", "seaborn", "pandas", "pyarrow", "numba", "scipy"}
    assert loaded.isdisjoint(heavy | LEARNING)


def test_workloads_and_schedulers_come_without_tensorflow_and_plots():
    loaded = modules_after("import decima; decima.workload; decima.make_scheduler; decima.simulate")
    assert "numpy" in loaded
    assert loaded.isdisjoint({"matplotlib", "seaborn"} | LEARNING)


# Each costs every call of the command a tenth of a second or more.
@pytest.mark.parametrize("verb", ["doctor", "models", "schedulers"])
def test_commands_that_simulate_nothing_load_little(verb):
    command = f"import sys; from decima import app\ntry: app.app([{verb!r}])\nexcept SystemExit: print()"
    heavy = LEARNING | {"numpy", "numba", "pandas", "pyarrow", "pyspark", "matplotlib", "requests"}
    assert not modules_after(command) & heavy


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


# What works without the optional packages, and what the rest says.


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
BLOCKED = sorted(module for extra in EXTRAS.values() for module in extra.modules)

# Runs commands one after the other, in one process in which no optional package can be imported.
PROGRAM = """
import json, sys
from importlib.abc import MetaPathFinder

class Blocker(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in BLOCKED:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

BLOCKED, COMMANDS = json.loads(sys.argv[1])
sys.meta_path.insert(0, Blocker())
from decima.app import app
import contextlib, io
for command in COMMANDS:
    streams = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(streams[0]), contextlib.redirect_stderr(streams[1]):
        try:
            app(command, prog_name="decima")
        except SystemExit as end:
            code = end.code
    print(json.dumps([code, *(stream.getvalue() for stream in streams)]))
"""


def run(commands, folder):
    """Exit code, output and errors of each command."""
    words = [sys.executable, "-c", PROGRAM, json.dumps([BLOCKED, commands])]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


WORKING = [
    "simulate --jobs embedded:n=2 --scheduler decima --out result.json --log tasks.csv",
    "compare fair decima:embedded-stream --jobs embedded:n=2 --seeds 2 --workers 1",
    "simulate --system heterogeneous --scheduler heft",
    "simulate --system heterogeneous --scheduler lachesis",
    "simulate --system cloud --scheduler ff",
    "simulate --system cloud --scheduler learned",
    "optimum --jobs embedded:n=2 --budget 0",
    "models",
    "schedulers",
    "workload describe embedded:n=2",
    "workload write embedded:n=2 --out jobs.json",
]

REFUSED = {
    "train embedded:n=2 --executors 5 --set recipe.gradient=tensorflow --out run": "learn",
    "train --system cloud generated:n=2 --out run": "learn",
    "simulate --jobs embedded:n=2 --gantt chart.png": "plots",
    "simulate --jobs embedded:n=2 --gantt chart.html": "plots",
    "simulate --jobs embedded:n=2 --log tasks.parquet": "parquet",
    "workload describe jobs.parquet": "parquet",
    "serve": "service",
    "compare fair --jobs embedded:n=2 --seeds 2 --backend ray": "ray",
    "optimum --system heterogeneous --jobs random:nodes=9 --executors 3": "exact",
}


def test_core_commands_and_stored_policies_need_no_optional_package(tmp_path):
    for command, (code, _output, errors) in zip(WORKING, run([c.split() for c in WORKING], tmp_path), strict=True):
        assert code == 0, f"decima {command}: {errors}"


def test_other_commands_say_what_to_install_before_any_work(tmp_path):
    (tmp_path / "jobs.parquet").write_bytes(b"PAR1")
    answers = run([command.split() for command in REFUSED], tmp_path)
    for (command, extra), (code, output, errors) in zip(REFUSED.items(), answers, strict=True):
        assert code == 2, f"decima {command}: {errors}"
        assert errors.endswith(f": {how_to_install(extra)}\n"), f"decima {command}: {errors}"
        assert errors.count("\n") == 1
        assert output == ""
    assert [path.name for path in tmp_path.iterdir()] == ["jobs.parquet"]


def test_extras_are_those_of_the_project():
    stated = set(PROJECT["optional-dependencies"])
    assert set(EXTRAS) | {"all", "dev"} == stated
    (everything,) = PROJECT["optional-dependencies"]["all"]
    assert everything == f"decima-sched[{','.join(sorted(EXTRAS))}]"


@pytest.mark.parametrize("extra", EXTRAS)
def test_every_extra_has_the_packages_of_its_modules(extra):
    stated = {re.split("[=>]", text)[0] for text in PROJECT["optional-dependencies"][extra]}
    for module in set(EXTRAS[extra].modules) - {"keras"}:  # which comes with TensorFlow
        owners = {name.lower().replace("_", "-") for name in packages_distributions().get(module, [])}
        assert not owners or owners & stated


def test_no_core_requirement_is_optional():
    stated = {text.partition(">")[0] for text in PROJECT["dependencies"]}
    optional = {text.partition(">")[0] for extra in EXTRAS for text in PROJECT["optional-dependencies"][extra]}
    assert stated.isdisjoint(optional)


def test_everything_imported_is_required_somewhere():
    brought = {"llvmlite", "py4j"}  # by Numba and PySpark
    known = {*BLOCKED, *brought, *sys.stdlib_module_names, "decima", "experiments", "measure"}
    core = {text.partition(">")[0].replace("-", "_") for text in PROJECT["dependencies"]} | {"yaml"}
    imported = set()
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                imported |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                imported.add(node.module.partition(".")[0])
    assert imported <= known | core


def test_a_missing_package_is_a_plain_import_error_too(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"pyarrow is not installed, .*: pip install '.\[parquet\]'") as info:
        require("parquet")
    assert isinstance(info.value, DecimaError)
    assert isinstance(info.value, ModuleNotFoundError)
    assert advice("numpy") is None
