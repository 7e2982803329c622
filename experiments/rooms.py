"""Code that results rest on: rooms of the package, and definitions of experiments.

A *room* is a folder without the packages inside of it: ``systems/spark`` has neither ``systems/spark/policy`` nor
``systems/spark/rules``, which are rooms of their own. Its data files belong to it. A file may stand for itself, and
``-workload/task_graphs.py`` leaves one out of those before it. Names are below ``src/decima``, or below the checkout.

Modules of experiments hold tables and figures side by side. Of them only those definitions count whose names are
reached, so that a figure makes no table old.

A digest is one of syntax trees without docstrings and comments, and of the content of other files.
"""

from __future__ import annotations

import ast
import hashlib
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from decima.core.errors import ConfigError
from decima.core.files import atomic_write_bytes
from decima.core.system import SYSTEM_MODULES

ROOT = Path(__file__).parents[1]

# The workload without readers of people's own files, which no experiment uses.
WORKLOAD = ("workload", "workload/tpch", "-workload/json_jobs.py", "-workload/task_graphs.py")
BASE_ROOMS = ("core", "-core/appearance.py", "evaluation", *WORKLOAD)
# Stored policies as they decide; what trains them counts where something is trained.
STORED_ROOMS = tuple(f"learning/{name}.py" for name in ("cards", "choosing", "dense", "perceptron", "store"))
SPARK_ROOMS = (
    *(*BASE_ROOMS, *STORED_ROOMS, "systems/spark", "systems/spark/rules", "systems/spark/schedulers"),
    *("-systems/spark/appearance.py", "-systems/spark/capacity.py"),
)
POLICY_ROOMS = (*SPARK_ROOMS, "systems/spark/policy", "systems/spark/policy/kernel")
# Recorded runs of real Spark, and their queries.
LOGS = ("connect/eventlog", "connect/cluster", "connect/cluster/tpch_queries")
# What figures are drawn with, beside the code of their tables.
DRAWING = ("plotting", "core/appearance.py", *(f"systems/{name}/appearance.py" for name in SYSTEM_MODULES))


def room_files(rooms: Iterable[str]) -> list[Path]:
    """Files of rooms, relative to the checkout and sorted.

    Raises:
        ConfigError: There is no such room.
    """
    files: set[Path] = set()
    for room in rooms:
        files = files - {_path(room[1:]).relative_to(ROOT)} if room.startswith("-") else files | _files(room)
    return sorted(files)


@cache
def _files(room: str) -> frozenset[Path]:
    path = _path(room)
    waiting, files = [path], set()
    above = (folder / "__init__.py" for folder in path.parents if folder.is_relative_to(ROOT))
    waiting += (each for each in above if each.is_file() and each != ROOT / "src" / "decima" / "__init__.py")
    for each in waiting:
        if each.is_file():
            files.add(each.relative_to(ROOT))
        elif each == path or not (each / "__init__.py").is_file():
            waiting += (inner for inner in each.iterdir() if inner.name != "__pycache__")
    return frozenset(files)


def _path(room: str) -> Path:
    for path in (ROOT / "src" / "decima" / room, ROOT / room):
        if path.exists():
            return path
    raise ConfigError(f"there is no room {room}: neither src/decima nor the checkout has such a file or folder")


def package_rooms(rooms: Iterable[str]) -> list[str]:
    """Rooms of the package but commands, service and systems that are not named."""
    folders = (path.parent.relative_to(ROOT / "src" / "decima") for path in (ROOT / "src").rglob("*/*/__init__.py"))
    systems = {room.split("/")[1] for room in rooms if room.startswith("systems/")}
    others = {f"systems/{name}" for name in SYSTEM_MODULES if name not in systems}
    left_out = (*others, "commands", "connect/service", "connect/plugin", "connect/cluster")
    names = sorted(folder.as_posix() for folder in folders)
    return [name for name in names if not f"{name}/".startswith(tuple(f"{each}/" for each in left_out))]


def digest(rooms: Iterable[str], entries: Iterable[str] = (), source: str = "") -> str:
    """SHA-256 of code; the same on every machine.

    Args:
        rooms: Folders and files that count as a whole.
        entries: Definitions of experiments, ``"module:name"``; what they reach in modules of experiments counts.
        source: Code outside of them, such as the cells of a notebook, whose imports of experiments count.

    Raises:
        ConfigError: There is no such room.
    """
    content = hashlib.sha256(syntax(source).encode())
    for path in room_files(rooms):
        content.update(path.as_posix().encode() + b"\0" + content_digest(path))
    for (module, name), text in sorted(definitions(entries, source).items()):
        content.update(f"{module}:{name}\0{text}".encode())
    return content.hexdigest()


@cache
def content_digest(path: Path) -> bytes:
    """SHA-256 of a file of the checkout; of code its syntax tree."""
    content = (ROOT / path).read_bytes()
    if path.suffix != ".py":
        return hashlib.sha256(content).digest()
    kept = _KEPT / hashlib.sha256(Path(__file__).read_bytes() + content).hexdigest()
    if not kept.is_file():
        atomic_write_bytes(kept, hashlib.sha256(syntax(content.decode()).encode()).digest())
    return kept.read_bytes()


# Digests of syntax trees by those of this file and the text: to make all trees takes each process seconds.
_KEPT = ROOT / "build" / f"syntax-{sys.implementation.cache_tag}"


def syntax(code: str | ast.AST) -> str:
    """Text of the syntax tree of code, without docstrings, comments and positions."""
    tree = ast.parse(code) if isinstance(code, str) else code
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and (
            ast.get_docstring(node, clean=False) is not None
        ):
            del node.body[0]
    return ast.dump(tree)


def definitions(entries: Iterable[str], source: str = "") -> dict[Part, str]:
    """Syntax trees of the definitions of experiments that entries reach, by module and name."""
    waiting = [tuple(entry.split(":")) for entry in entries]
    waiting += _imported(ast.parse(source)).values()
    reached: dict[Part, str] = {}
    for module, name in waiting:
        if (module, name) in reached:
            continue
        parts = _parts(module)
        reached[module, name], used = parts.get(name, ("", ()))
        waiting += used
        waiting += [(module, other) for other in (parts if name == ALL else [LOOSE])]
    return {part: text for part, text in reached.items() if text}


Part = tuple[str, str]  # module of experiments, and a definition of it
ALL, LOOSE = "*", ""  # every definition; statements that define no name


@cache
def _parts(module: str) -> dict[str, tuple[str, list[Part]]]:
    """Definitions of a module of experiments: their syntax trees, and which others they use."""
    path = ROOT / f"{module.replace('.', '/')}.py"
    tree = ast.parse(path.read_text(encoding="utf-8")) if path.is_file() else ast.Module([])
    named = {name: [node for node in tree.body if name in _names(node)] for node in tree.body for name in _names(node)}
    named[LOOSE] = [
        node for node in tree.body if not _names(node) and not isinstance(node, (*_IMPORTS, ast.Expr, ast.If))
    ]
    imported = _imported(*(node for node in tree.body if isinstance(node, (*_IMPORTS, ast.If))))
    parts = {}
    for name, nodes in named.items():
        here = {other: (module, other) for other in named} | imported | _imported(*nodes)
        words = {word.id for node in nodes for word in ast.walk(node) if isinstance(word, ast.Name)}
        parts[name] = "".join(map(syntax, nodes)), [here[word] for word in sorted(words & here.keys())]
    return parts


_IMPORTS = (ast.Import, ast.ImportFrom)


def _names(node: ast.stmt) -> set[str]:
    """Names that a statement of a module defines."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return {node.name}
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return {name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}


def _imported(*nodes: ast.AST) -> dict[str, Part]:
    """What code imports from modules of experiments, by the name that it has there."""
    reached = {}
    for node in (inner for each in nodes for inner in ast.walk(each) if isinstance(inner, ast.ImportFrom)):
        for alias in node.names if (node.module or "").startswith(__package__) else ():
            whole = f"{node.module}.{alias.name}"
            is_module = (ROOT / f"{whole.replace('.', '/')}.py").is_file()
            reached[alias.asname or alias.name] = (whole, ALL) if is_module else (node.module, alias.name)
    return reached
