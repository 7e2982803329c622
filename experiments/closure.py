"""Import closure: the repository's files that a piece of code executes, determined statically.

Imports are followed wherever they stand, in functions too, except those for type checkers. Beside the import statements
these count: attributes of a package that are its modules (``plotting.bars``), names that a package gives on first use,
modules that a package imports because they are there, and data files that a string names. A module whose whole name
is in a table, to be imported when it is asked for, does not count: who asks for it imports it by name too.

A digest of files is one of their syntax trees without docstrings, so that words and comments never make a result old.

Modules of :data:`SLICED` packages hold unrelated things side by side (an experiment its figures, a command module
several commands). There only the definitions count that the entry reaches, and the imports whose names these use. Of
all other modules everything counts.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from decima.core.system import SYSTEM_MODULES

ROOT = Path(__file__).parents[1]
# Folders of the packages that are followed, relative to ROOT.
PACKAGES = {"decima": "src/decima", "experiments": "experiments", "measure": "measure"}
SLICED = ("experiments", "decima.commands")


def closure(entries: Iterable[str], source: str = "") -> list[Path]:
    """Files that entries execute, relative to the checkout.

    Args:
        entries: ``"module"`` or ``"module:function"``.
        source: Code outside of the packages that is followed too, such as the cells of a notebook.

    Returns:
        Paths such as ``src/decima/evaluation/run.py``, sorted.
    """
    return list(_closure(tuple(entries), source))


@cache
def _closure(entries: tuple[str, ...], source: str) -> tuple[Path, ...]:
    waiting = [(module, name or None) for module, _, name in (entry.partition(":") for entry in entries)]
    files: set[Path] = set()
    if source:
        outside = _Module("", ROOT / "outside.py", ast.parse(source))
        targets, _ = _Scope(outside).of_part(None)
        waiting += targets
    return tuple(sorted(_walk(waiting, files)))


def digest(files: Iterable[Path]) -> str:
    """SHA-256 of files' syntax trees and names; the same on every machine."""
    content = hashlib.sha256()
    for path in sorted(files):
        content.update(path.as_posix().encode() + b"\0" + _content_digest(path))
    return content.hexdigest()


@cache
def _content_digest(path: Path) -> bytes:
    content = (ROOT / path).read_bytes()
    return hashlib.sha256(syntax(content.decode()).encode() if path.suffix == ".py" else content).digest()


def syntax(code: str) -> str:
    """Text of the syntax tree of code, without docstrings, comments and positions."""
    tree = ast.parse(code)
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and (
            ast.get_docstring(node, clean=False) is not None
        ):
            del node.body[0]
    return ast.dump(tree)


@cache
def find_module(name: str) -> Path | None:
    """File of a module of the packages, None where there is none."""
    first, *rest = name.split(".")
    if first not in PACKAGES:
        return None
    stem = ROOT.joinpath(PACKAGES[first], *rest)
    return next((path for path in (stem.with_suffix(".py"), stem / "__init__.py") if path.is_file()), None)


class _Module:
    """Top-level definitions and imports of one module."""

    def __init__(self, name: str, path: Path, tree: ast.Module) -> None:
        self.name, self.path = name, path
        self.definitions: dict[str, list[ast.stmt]] = {}
        self.always: list[ast.stmt] = []  # neither definition nor import: executed whatever is asked for
        self.imported: dict[str, Part] = {}  # by the name it has here
        self.for_types: dict[str, Part] = {}  # the same below TYPE_CHECKING: what a package gives on first use
        for node in tree.body:
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                self.imported |= self.targets(node)
            elif _is_type_checking(node):
                for inner in node.body:
                    if isinstance(inner, (ast.Import, ast.ImportFrom)):
                        self.for_types |= self.targets(inner)
            elif names := _defined(node):
                for name in names:
                    self.definitions.setdefault(name, []).append(node)
            else:
                self.always.append(node)

    @staticmethod
    def targets(node: ast.Import | ast.ImportFrom) -> dict[str, Part]:
        """What an import statement binds."""
        if isinstance(node, ast.Import):
            # ``import a.b`` binds a; ``import a.b as c`` binds a.b.
            roots = {alias: alias.name if alias.asname else alias.name.split(".")[0] for alias in node.names}
            return {alias.asname or root: (root, None) for alias, root in roots.items()}
        bound = {}
        for alias in node.names:
            inner = f"{node.module}.{alias.name}"
            bound[alias.asname or alias.name] = (inner, None) if find_module(inner) else (node.module, alias.name)
        return bound


@cache
def _parsed(name: str) -> _Module:
    path = find_module(name)
    return _Module(name, path, ast.parse(path.read_text(encoding="utf-8")))


Part = tuple[str, str | None]  # module, and a part of it: None is all of it, "" what importing it executes


def _walk(waiting: list[Part], files: set[Path]) -> set[Path]:
    done: set[Part] = set()
    followed: set[Part] = set()  # names that a package gives on first use
    while waiting:
        name, part = waiting.pop()
        path = find_module(name)
        if path is None:
            continue
        if not name.startswith(SLICED):
            lazy = _parsed(name).for_types.get(part or "")
            if lazy and lazy not in followed:  # two packages may give a name to each other
                followed.add(lazy)
                waiting.append(lazy)
            part = None
        if (name, part) in done:
            continue
        done.add((name, part))
        files.add(path.relative_to(ROOT))
        waiting.append((name.rpartition(".")[0], ""))  # the package that holds it
        targets, data = _uses(name, part)
        waiting += targets
        if name.endswith(".settings"):  # the system that settings belong to is found by them
            waiting += [(module, None) for module in SYSTEM_MODULES.values() if module == f"{name[:-9]}.system"]
        files |= data
    return files


@cache
def _uses(name: str, part: str | None) -> tuple[frozenset[Part], frozenset[Path]]:
    """What a part of a module imports or names, directly."""
    return _Scope(_parsed(name)).of_part(part)


class _Scope:
    """Collects what code of one module uses."""

    def __init__(self, module: _Module) -> None:
        self._module = module
        self._targets: set[Part] = set()
        self._data: set[Path] = set()

    def of_part(self, part: str | None) -> tuple[frozenset[Part], frozenset[Path]]:
        module = self._module
        nodes = list(module.always)
        if part is None:
            # What a package gives on first use is found where it is used.
            groups = [group for name, group in module.definitions.items() if name != "__getattr__"]
            nodes += [node for group in groups for node in group]
            self._targets |= set(module.imported.values())
        elif part in module.definitions:
            nodes += module.definitions[part]
        elif target := module.imported.get(part) or module.for_types.get(part):
            self._targets.add(target)
        for node in nodes:
            self._use(node, module.imported)
        return frozenset(self._targets), frozenset(self._data)

    def _use(self, node: ast.stmt, imported: dict[str, Part]) -> None:
        if isinstance(node, ast.ClassDef):
            for inner in [*node.bases, *node.decorator_list, *node.body]:
                self._use(inner, imported)
            return
        nodes = list(_executed(node))
        imported = dict(imported)
        for inner in nodes:
            if isinstance(inner, (ast.Import, ast.ImportFrom)):
                bound = self._module.targets(inner)
                imported |= bound
                self._targets |= set(bound.values())
        # A variable of a function hides what the module calls by the same name.
        local = _variables(nodes) if isinstance(node, ast.FunctionDef) else set()
        imported = {name: target for name, target in imported.items() if name not in local}
        for inner in nodes:
            if isinstance(inner, ast.Name) and inner.id not in local:
                if inner.id in self._module.definitions:
                    self._targets.add((self._module.name, inner.id))
                elif inner.id in imported:
                    self._targets.add(imported[inner.id])
            elif isinstance(inner, ast.Attribute):
                self._attribute(inner, imported)
            elif isinstance(inner, ast.Call):
                self._dynamic(inner)
            elif isinstance(inner, ast.Constant) and isinstance(inner.value, str):
                self._named_data(inner.value)

    def _attribute(self, node: ast.expr, imported: dict[str, Part]) -> None:
        """Follow ``package.module.name``: every part that is a module of the package, and what it gives."""
        names: list[str] = []
        while isinstance(node, ast.Attribute):
            names.insert(0, node.attr)
            node = node.value
        if not isinstance(node, ast.Name) or imported.get(node.id, ("", ""))[1] is not None:
            return
        owner = imported[node.id][0]
        for name in names:
            if find_module(f"{owner}.{name}") is None:
                if find_module(owner):
                    self._targets.add(_parsed(owner).for_types.get(name, (owner, name)))
                return
            owner = f"{owner}.{name}"
            self._targets.add((owner, ""))

    def _dynamic(self, call: ast.Call) -> None:
        """Follow ``import_module(f"decima.package.{name}")``, every module of that form, and members of registries.

        Of ``Registry(package="decima.package", modules={name: "decima.package.module:MEMBER"})`` all modules of the
        package count, and of the modules that are written into the call those of the same system or room.
        """
        called = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        module_name = self._module.name
        package = module_name if self._module.path.name == "__init__.py" else module_name.rpartition(".")[0]
        if called == "Registry":
            self._registered(package, {word.arg: word.value for word in call.keywords})
        if called != "import_module" or not call.args or not isinstance(call.args[0], ast.JoinedStr):
            return
        text = ast.unparse(call.args[0])[2:-1].replace("{__package__}", package).replace("{__name__}", module_name)
        prefix, _, rest = text.partition(".{")
        if rest and find_module(prefix):
            folder = find_module(prefix).parent
            inner = (path.relative_to(folder).with_suffix("").parts for path in folder.rglob("*.py"))
            names = {".".join([prefix, *(part for part in parts if part != "__init__")]) for parts in inner}
            pattern = re.sub(r"\\\{.*?\\\}", r"[\\w.]+", re.escape(text))
            self._targets |= {(name, None) for name in names if re.fullmatch(pattern, name)}

    def _registered(self, package: str, words: dict[str | None, ast.expr]) -> None:
        listed = words.get("package")
        if isinstance(listed, ast.Constant) and find_module(listed.value):
            files = find_module(listed.value).parent.glob("*.py")
            self._targets |= {(f"{listed.value}.{path.stem}", None) for path in files}
        modules = words.get("modules")
        if isinstance(modules, ast.Dict):
            texts = [value.value for value in modules.values if isinstance(value, ast.Constant)]
            names = [text.partition(":")[0] for text in texts]
            room = ".".join(package.split(".")[: 3 if package.startswith("decima.systems.") else 2])
            self._targets |= {(name, None) for name in names if name.startswith(f"{room}.")}

    def _named_data(self, text: str) -> None:
        """Add the file or folder beside the module that a string names."""
        if not re.fullmatch(r"\w[\w.-]*(/\w[\w.-]*)*", text) or text.endswith(".py"):
            return
        named = self._module.path.parent / text
        if named.is_file():
            self._data.add(named.relative_to(ROOT))
        elif named.is_dir() and not (named / "__init__.py").exists() and text != "__pycache__":
            self._data |= {path.relative_to(ROOT) for path in named.rglob("*") if path.is_file()}


def _variables(nodes: list[ast.AST]) -> set[str]:
    """Names that a function binds: its arguments and what it assigns."""
    stored = {node.id for node in nodes if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
    return stored | {node.arg for node in nodes if isinstance(node, ast.arg)}


def _executed(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes below a statement but what is for type checkers only."""
    waiting = [node]
    while waiting:
        inner = waiting.pop()
        if _is_type_checking(inner):
            waiting += inner.orelse
            continue
        yield inner
        waiting += ast.iter_child_nodes(inner)


def _is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test).split(".")[-1] == "TYPE_CHECKING"


def _defined(node: ast.stmt) -> list[str]:
    """Names that a top-level statement defines."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return [node.name]
    if isinstance(node, ast.AnnAssign):
        return [node.target.id] if isinstance(node.target, ast.Name) else []
    if isinstance(node, ast.Assign):
        return [name.id for target in node.targets for name in ast.walk(target) if isinstance(name, ast.Name)]
    return []
