"""The plan of the house holds: rooms with budgets of lines, one floor plan for every system, one word per thing."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HOUSE = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["decima"]
GLOSSARY = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
SYSTEMS = ROOT / "src" / "decima" / "systems"
# What a budget may be passed by before somebody has to delete, or to argue for a larger one in the same commit.
MARGIN = 1.05


def sources(room):
    """Python files of a room, generated ones left out."""
    return [path for path in sorted((ROOT / room).rglob("*.py")) if not path.stem.endswith("_pb2")]


def lines(room):
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in sources(room))


def refused_words():
    """Words of the column "not" of the glossary's last table."""
    rows = re.findall(r"^\| [^|]+ \| `([a-z, `]+)` \|", GLOSSARY.split("## Words that are not used")[1], re.MULTILINE)
    return {word.strip(" `") for row in rows for word in row.split(",")}


def bound_names(tree):
    """Names that a module gives to something: functions, classes, arguments, variables and attributes."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr


def first_lines(tree):
    """First lines of all docstrings of a module."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.FunctionDef, ast.ClassDef)) and (text := ast.get_docstring(node)):
            yield text.split("\n")[0]


def refused_in(source, refused):
    """Refused words of a module's text: in the names it binds, as parts between underscores, and in first lines."""
    tree = ast.parse(source)
    names = {part for name in bound_names(tree) for part in re.split(r"_|(?<=[a-z])(?=[A-Z])", name.lower())}
    words = {word for line in first_lines(tree) for word in re.findall(r"[a-z]+", line.lower())}
    return sorted((names | words) & refused)


def long_first_lines(source):
    """First lines of docstrings that have more than fifteen words."""
    return [line for line in first_lines(ast.parse(source)) if len(line.split()) > 15]


def count(room, found_in):
    return sum(len(found_in(path.read_text(encoding="utf-8"))) for path in sources(room))


@pytest.mark.parametrize("room", HOUSE["rooms"])
def test_room_keeps_its_budget(room):
    lines_allowed, files_allowed = HOUSE["rooms"][room]
    assert len(sources(room)) > 0
    assert lines(room) <= MARGIN * lines_allowed, "delete as much as was added, or change the budget in pyproject.toml"
    assert len(sources(room)) <= MARGIN * files_allowed


def test_every_folder_is_a_room():
    folders = {str(path.relative_to(ROOT)) for path in (ROOT / "src" / "decima").iterdir() if path.is_dir()}
    folders = {folder for folder in folders if list((ROOT / folder).rglob("*.py"))} - {"src/decima/systems"}
    systems = {path.name for path in SYSTEMS.iterdir() if (path / "__init__.py").is_file()}
    assert systems == set(HOUSE["floor-plan"]["systems"])
    folders |= {f"src/decima/systems/{name}" for name in systems}
    assert folders | {"experiments", "measure"} == set(HOUSE["rooms"])


@pytest.mark.parametrize("system", HOUSE["floor-plan"]["systems"])
def test_every_system_has_the_same_rooms_and_nothing_loose(system):
    parts = {
        path.stem for path in (SYSTEMS / system).iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()
    }
    plan = HOUSE["floor-plan"]
    assert parts - {"__init__"} == {*plan["rooms"], *plan["beside"][system]}, "a new file belongs into a room"


@pytest.mark.parametrize("room", HOUSE["rooms"])
def test_refused_words_become_fewer(room):
    refused = refused_words()
    assert {"twin", "clairvoyant"} <= refused
    assert count(room, lambda source: refused_in(source, refused)) <= HOUSE["words"]["refused"].get(room, 0)


@pytest.mark.parametrize("room", HOUSE["rooms"])
def test_long_first_lines_become_fewer(room):
    assert count(room, long_first_lines) <= HOUSE["words"]["long-first-lines"].get(room, 0)


def test_refused_words_are_seen():
    source = 'def twin_policy(place):\n    """Look of a slot."""\n    found_rows = 1\n'
    assert refused_in(source, {"twin", "place", "look", "found", "told"}) == ["found", "look", "place", "twin"]
    assert long_first_lines(f'"""{"word " * 16}"""')
    assert not long_first_lines(f'"""{"word " * 15}"""')
