"""The pages on architecture and extensions name what is there, in the order that the import contracts have."""

import ast
import re
import tomllib
from functools import cache
from pathlib import Path

import pytest

import decima
from decima.core.system import SYSTEMS
from decima.learning.algorithms import ALGORITHMS
from decima.workload.sources import SOURCES

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "decima"
PAGE = "".join((ROOT / "docs" / name).read_text() for name in ("architecture.md", "code-paths.md", "extend.md"))


def layers():
    """Layers of the package by import-linter, highest first, without the marks of optional ones."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (names,) = (contract["layers"] for contract in contracts if contract.get("containers") == ["decima"])
    return [name.strip("()") for name in names]


def test_files_on_the_page_exist():
    paths = set(re.findall(r"(?:`|\[\")([a-z_]+(?:/[a-z_]+)*\.(?:py|proto))(?=`|<br/>|, \.\.\.<br/>)", PAGE))
    assert len(paths) > 25
    assert (
        sorted(
            path for path in paths if not any((base / path).is_file() for base in (PACKAGE, ROOT)) and "sNN" not in path
        )
        == []
    )


def test_names_on_the_page_are_in_their_files():
    pairs = re.findall(r"`([A-Za-z_]\w*)`\s+(?:of|in)\s+`([a-z_/]+\.py)`", PAGE)
    assert {"FEATURES", "PARTS", "System"} <= {name for name, _ in pairs}
    for name, path in pairs:
        assert re.search(rf"^(class |def )?{name}\b", (PACKAGE / path).read_text(), flags=re.MULTILINE), (name, path)


def test_packages_stand_in_the_order_of_the_contract():
    table = PAGE.split("## Features")[0]
    rows = re.findall(r"^\| (`[a-z_`.,/ ]+`) \|", table, flags=re.MULTILINE)
    shown = [name.removesuffix(".py") for row in rows for name in re.findall(r"`([a-z_.]+)`", row)]
    order = [name for name in layers() if name != "__main__"]
    assert set(shown) == set(order)
    ranks = [order.index(name) for row in rows for name in [re.search(r"`([a-z_]+)", row)[1]]]
    assert ranks == sorted(ranks)


HOUSE = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["decima"]


def features():
    """Rows of the table of features: name, rooms, lines, who needs it."""
    table = PAGE.split("## Features")[1].split("## ")[0]
    return [tuple(map(str.strip, row.split("|"))) for row in re.findall(r"^\| (.+) \|$", table, re.MULTILINE)[2:]]


def files_by_feature():
    """Files of each feature; a file is of the row that names it, or the nearest folder above it."""
    rows = {path: name for name, paths in HOUSE["features"].items() for path in paths}
    assert [path for path in rows if not (PACKAGE / path).exists()] == []
    found = {name: [] for name in HOUSE["features"]}
    for file in PACKAGE.rglob("*.py"):
        places = [each.relative_to(PACKAGE).as_posix() for each in (file, *file.parents) if PACKAGE in each.parents]
        row = next((rows[place] for place in places if place in rows), None)
        assert row is not None, f"[tool.decima.features] of pyproject.toml has no row for {file}"
        found[row].append(file)
    return found


def test_the_table_of_features_has_rooms_sizes_and_reasons():
    found, table = files_by_feature(), features()
    assert [name.replace("`", "") for name, *_ in table] == list(found)
    for (_, rooms, lines, who), (name, files) in zip(table, found.items(), strict=True):
        count = sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files if "_pb2" not in file.name)
        shown = int(lines.replace(",", ""))
        assert shown == pytest.approx(count, rel=0.1, abs=50), f"docs/architecture.md: {name} has {count} lines"
        places = [file.relative_to(PACKAGE).as_posix() for file in files]
        for room in re.findall(r"`([^`]+)`", rooms):
            assert any(place.startswith(f"{room}/") for place in places), f"{name} has no file in {room}"
        assert who, f"{name}: who needs it?"


@pytest.mark.parametrize("registry", [SYSTEMS, ALGORITHMS, SOURCES])
def test_what_is_registered_is_in_the_table(registry):
    named = {name for feature, *_ in features() for name in re.findall(r"`(\w+)`", feature)}
    makers = {name: getattr(registry.find(name), "maker", registry) for name in registry.names()}
    assert {name for name, maker in makers.items() if maker.__module__.startswith("decima.")} <= named


# ---- closures of imports stay small and inside their system ----------------------------------------------------------

SOURCE = Path(decima.__file__).parents[1]
# Entry, most modules that importing it may load, the only system that it may load.
LIMITS = [
    ("decima.learning.store", 15, None),
    ("decima.learning.trainer", 20, None),
    ("decima.systems.heterogeneous.policy.run", 94, "heterogeneous"),
    ("decima.systems.heterogeneous.system", 60, "heterogeneous"),
    ("decima.systems.heterogeneous.policy.architecture", 20, "heterogeneous"),
    ("decima.systems.cloud.policy.run", 90, "cloud"),
    ("decima.systems.cloud.system", 42, "cloud"),
    ("decima.systems.cloud.policy.architecture", 12, "cloud"),
    ("decima.systems.spark.system", 60, "spark"),
    ("decima.systems.spark.policy.architecture", 27, "spark"),
]


def file_of(module):
    """File of a module of the package, None if there is no such module."""
    path = SOURCE.joinpath(*module.split("."))
    files = (path.with_suffix(".py"), path / "__init__.py")
    return next((file for file in files if file.is_file()), None)


def is_type_checking(test):
    return getattr(test, "id", getattr(test, "attr", None)) == "TYPE_CHECKING"


def statements(nodes):
    """Statements that run when a module is imported, those inside of blocks and classes, too."""
    for node in nodes:
        yield node
        if isinstance(node, ast.If) and is_type_checking(node.test):
            continue
        if isinstance(node, ast.If | ast.Try | ast.With | ast.For | ast.While | ast.ClassDef):
            for part in ("body", "orelse", "finalbody"):
                yield from statements(getattr(node, part, ()))


@cache
def imported(module):
    """Modules of the package that a module imports when it is itself imported, in order; its packages, too."""
    names = [module.rpartition(".")[0]]
    for node in statements(ast.parse(file_of(module).read_text(encoding="utf-8")).body):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names += [f"{node.module}.{alias.name}" for alias in node.names] + [node.module]
    known = (name for name in names if name.startswith("decima.") and file_of(name) is not None)
    return tuple(dict.fromkeys(known))


def closure(entry):
    """Every module that importing ``entry`` loads, with the module that imports it first; the root is left out."""
    parents, waiting = {entry: None}, [entry]
    for module in waiting:
        for name in imported(module):
            if name not in parents:
                parents[name] = module
                waiting.append(name)
    return parents


def path_to(module, parents):
    """Imports that lead from the entry to a module, as text."""
    names = []
    while module is not None:
        names.append(module)
        module = parents[module]
    return " -> ".join(reversed(names))


@pytest.mark.parametrize(("entry", "most", "system"), LIMITS, ids=[entry for entry, *_ in LIMITS])
def test_a_module_loads_little_and_nothing_of_another_system(entry, most, system):
    parents = closure(entry)
    for module in parents:
        other = module.removeprefix("decima.systems.").partition(".")[0]
        assert not module.startswith("decima.systems.") or other == system, path_to(module, parents)
    longest = "\n".join(path_to(module, parents) for module in list(parents)[-5:])
    assert len(parents) < most, f"{entry} loads {len(parents)} modules, fewer than {most} allowed:\n{longest}"


def test_the_paths_of_a_closure_are_imports():
    parents = closure("decima.learning.store")
    assert "decima.core.files" in parents
    assert path_to("decima.core.files", parents) == "decima.learning.store -> decima.core.files"
    assert "decima.learning.trainer" not in parents
