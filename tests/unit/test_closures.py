"""How much of the package a module loads: closures of imports stay small and inside their system."""

import ast
from functools import cache
from pathlib import Path

import pytest

import decima

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
