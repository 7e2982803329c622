"""References in docstrings lead to pages of the reference, as the build of the site wants; no build is needed."""

import ast
import builtins
import doctest
import re
from importlib import import_module
from pathlib import Path

import pytest

import decima

SOURCE = Path(__file__).parents[2] / "src"
REFERENCE = re.compile(r":(func|meth|mod|exc|attr|obj):`([^`]+)`")
# As in docs/conf.py: objects of other packages have no page here.
ELSEWHERE = {"mod": r"copy|pickle", "func": r"json\..*", "exc": r"grpc\..*|ResetNeeded"}
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def module_name(path):
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def members(body, prefix):
    """Documented public members of a module or class: their full names and docstrings."""
    for node in body:
        if isinstance(node, DEFINITIONS) and not node.name.startswith("_") and ast.get_docstring(node):
            yield f"{prefix}.{node.name}", node


def exports(module, tree):
    """Public names that a package takes from elsewhere, by name: the full name."""
    for node in tree.body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        if getattr(target, "id", "") == "_EXPORTS":
            for home, names in ast.literal_eval(node.value).items():
                yield from ((name, f"{module}.{home}.{name}") for name in names)
        elif isinstance(node, ast.ImportFrom):
            listed = {name for each in tree.body for name in public(each)}
            yield from ((each.name, f"{node.module}.{each.name}") for each in node.names if each.name in listed)


def public(node):
    """Names that a statement lists as public."""
    if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
        return [each.value for each in getattr(node.value, "elts", ())]
    return []


def texts(trees):
    """Docstrings that the reference shows: where they stand, the module and class around them, their text."""
    homes = {name: node for module, tree in trees.items() for name, node in members(tree.body, module)}
    for module, tree in trees.items():
        if not all(part.isidentifier() and not part.startswith("_") for part in module.split(".")):
            continue
        yield module, module, "", ast.get_docstring(tree) or ""
        shown = [(module, name, node) for name, node in members(tree.body, module)]
        for name, home in exports(module, tree):
            if home in homes:
                shown.append((module, f"{module}.{name}", homes[home]))
        for around, name, node in shown:
            owner = name.removeprefix(f"{around}.") if isinstance(node, ast.ClassDef) else ""
            yield name, around, owner, ast.get_docstring(node)
            if isinstance(node, ast.ClassDef):
                for inner, method in members(node.body, name):
                    yield inner, around, owner, ast.get_docstring(method)


def broken(trees):
    """References that lead nowhere, each with the place where it stands."""
    shown = list(texts(trees))
    known = set(trees) | {name for name, *_ in shown}
    for name, module, owner, text in shown:
        raised = re.search(r"^Raises:\n((?: .*\n?|\n)*)", text, re.MULTILINE)
        errors = re.findall(r"^    ([\w.]+):", raised[1], re.MULTILINE) if raised else []
        # Napoleon makes references of the errors, which Sphinx looks for anywhere.
        errors = [("exc", f".{error}") for error in errors if not hasattr(builtins, error)]
        for role, target in REFERENCE.findall(text) + errors:
            target = re.sub(r".*<(.+)>$", r"\1", target).lstrip("~!").removesuffix("()")
            if re.fullmatch(ELSEWHERE.get(role, ""), target.lstrip(".")):
                continue
            if target.startswith("."):  # anywhere, as Sphinx looks for it
                found = any(each == target[1:] or each.endswith(target) for each in known)
            else:
                scopes = ("", f"{module}.", f"{module}.{owner}.")
                found = any(f"{scope}{target}" in known for scope in scopes)
            if not found:
                yield f"{name}: {role} {target}"


def test_every_reference_leads_to_a_page():
    trees = {module_name(path): ast.parse(path.read_text(encoding="utf-8")) for path in SOURCE.rglob("*.py")}
    assert not list(broken(trees))


@pytest.mark.parametrize(
    ("reference", "found"),
    [
        (":func:`known`", True),
        (":func:`pkg.one.known`", True),
        (":meth:`method`", True),
        (":meth:`Kind.method`", True),
        (":mod:`.one`", True),
        (":func:`_hidden`", False),
        (":meth:`state`", False),
        (":func:`pkg.two.known`", False),
        (":func:`bare`", False),
        ("it.\n\n        Raises:\n            ValueError: Text.", True),
        ("it.\n\n        Raises:\n            LostError: Text.", False),
    ],
)
def test_broken_references_are_found(reference, found):
    source = f'''
def known():
    """Text."""
def bare():
    pass
def _hidden():
    """Text."""
class Kind:
    """Kind."""
    def method(self):
        """See {reference}."""
'''
    trees = {"pkg": ast.parse('"""Text."""'), "pkg.one": ast.parse(source)}
    assert bool(list(broken(trees))) is not found


def test_a_name_that_a_package_exports_is_read_there_too():
    trees = {
        "pkg": ast.parse('"""Text."""\n_EXPORTS = {"one": ["shown"]}'),
        "pkg.one": ast.parse('def shown():\n    """As :func:`other`."""\ndef other():\n    """Text."""'),
    }
    assert list(broken(trees)) == ["pkg.shown: func other"]


@pytest.mark.parametrize("name", [name for name in decima.__all__ if name != "__version__"])
def test_everything_public_has_an_example(name):
    assert ">>> " in getattr(decima, name).__doc__


EXAMPLES = [path for path in sorted(SOURCE.rglob("*.py")) if ">>> " in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize("module", map(module_name, EXAMPLES))
def test_examples_run(module, monkeypatch):
    monkeypatch.chdir(SOURCE.parent)
    outcome = doctest.testmod(import_module(module))
    assert outcome.attempted > 0
    assert outcome.failed == 0
