"""The pages on architecture and extensions name what is there, in the order that the import contracts have."""

import re
import tomllib
from pathlib import Path

import pytest

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
