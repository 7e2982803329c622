"""The pages on architecture and extensions name what is there, in the order that the import contracts have."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "decima"
PAGE = "".join((ROOT / "docs" / name).read_text() for name in ("architecture.md", "extend.md"))


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
    table = PAGE.split("| outside of the package |")[0]
    rows = re.findall(r"^\| (`[a-z_`.,/ ]+`) \|", table, flags=re.MULTILINE)
    shown = [name.removesuffix(".py") for row in rows for name in re.findall(r"`([a-z_.]+)`", row)]
    order = [name for name in layers() if name != "__main__"]
    assert set(shown) == set(order)
    ranks = [order.index(name) for row in rows for name in [re.search(r"`([a-z_]+)", row)[1]]]
    assert ranks == sorted(ranks)


def test_every_part_of_the_package_has_a_layer():
    parts = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()}
    assert parts - {"__init__"} <= set(layers())
