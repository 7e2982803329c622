"""Import closures of a small package with every kind of import, and what is known of this one."""

from pathlib import Path

import pytest

from experiments import closure as module
from experiments.closure import closure, digest, syntax

FILES = {
    "__init__.py": "",
    "top/__init__.py": "",
    "top/commands.py": """
        from pkg.top.helpers import one, two
        from pkg import lazy, low
        def first():
            from pkg.low import inner
            return one(), low.plain.VALUE
        def second(low):
            return two(low.other.VALUE), lazy.drawn
        def third():
            return lazy.given
        def fourth():
            from pkg.lazy import given
            return given
    """,
    "top/helpers.py": """
        from pkg.low import a, b
        LIMIT = b.VALUE
        def one():
            return a.VALUE
        def two(value):
            return LIMIT
    """,
    "low/__init__.py": "",
    "low/inner.py": """
        from typing import TYPE_CHECKING
        if TYPE_CHECKING:
            from pkg.low import types_only
        import pkg.low.base as base
        TABLE = open("rows.csv")
    """,
    "low/rows.csv": "1,2",
    "low/found/__init__.py": "",
    "low/found/registry.py": """
        BY_PACKAGE = Registry("member", package="pkg.low.found")
        BY_TABLE = Registry("member", modules={"one": "pkg.low.found.listed.one:ONE", "far": "pkg.top.helpers"})
    """,
    "low/found/member.py": "",
    "low/found/listed/__init__.py": "",
    "low/found/listed/one.py": "",
    "low/dynamic.py": """
        from importlib import import_module
        def load(name):
            return import_module(f"{__package__}.found.{name}")
    """,
    "lazy/__init__.py": """
        from importlib import import_module
        from typing import TYPE_CHECKING
        if TYPE_CHECKING:
            from pkg.lazy.source import given as given
        def __getattr__(name):
            return import_module(f"{__name__}.{name}")
    """,
    "lazy/drawn.py": "",
    "lazy/source.py": "given = 1",
    **{f"low/{name}.py": "VALUE = 1" for name in ("a", "b", "base", "plain", "other", "types_only")},
}


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Let the closure see the small package instead of this one."""
    root = tmp_path / "pkg"
    for name, text in FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = text.splitlines()
        path.write_text("\n".join(line.removeprefix("        ") for line in lines))
    caches = (module.find_module, module._parsed, module._uses, module._content_digest)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "PACKAGES", {"pkg": "pkg"})
    monkeypatch.setattr(module, "SLICED", ("pkg.top",))
    for cached in caches:
        cached.cache_clear()
    yield root
    for cached in caches:
        cached.cache_clear()


def found(*entries, source=""):
    return {path.relative_to("pkg").as_posix() for path in closure(entries, source)} - {
        name for name in FILES if name.endswith("__init__.py")
    }


def test_of_a_sliced_module_only_what_the_entry_reaches_counts(package):
    first = {"top/commands.py", "top/helpers.py"}
    first |= {f"low/{name}" for name in ("a.py", "plain.py", "inner.py", "base.py", "rows.csv")}
    assert found("pkg.top.commands:first") == first
    # The argument hides the package of the same name.
    assert found("pkg.top.commands:second") == {"top/commands.py", "top/helpers.py", "low/b.py", "lazy/drawn.py"}
    assert found("pkg.top.commands:third") == {"top/commands.py", "lazy/source.py"}
    assert found("pkg.top.commands:fourth") == {"top/commands.py", "lazy/source.py"}
    assert found("pkg.top.commands") >= first | {"low/b.py", "lazy/drawn.py", "lazy/source.py"}


def test_modules_that_a_package_finds_itself_count(package):
    members = {f"low/found/{name}.py" for name in ("registry", "member", "listed/one")}
    assert found("pkg.low.found.registry") == members
    assert found("pkg.low.dynamic") == members | {"low/dynamic.py"}


def test_imports_for_type_checkers_do_not_count_and_packages_on_the_way_do(package):
    files = {path.as_posix() for path in closure(["pkg.low.inner"])}
    inside = ("__init__.py", "low/__init__.py", "low/inner.py", "low/base.py", "low/rows.csv")
    assert files == {f"pkg/{name}" for name in inside}


def test_code_outside_the_package_is_followed(package):
    code = "import pkg\nfrom pkg import lazy\nlazy.drawn\npkg.low.a.VALUE"
    assert found(source=code) == {"lazy/drawn.py", "low/a.py"}


def rewrite(package, text):
    (package / "low" / "base.py").write_text(text)
    module._content_digest.cache_clear()
    return digest(closure(["pkg.low.inner"]))


def test_the_digest_changes_with_the_code_and_with_nothing_else(package):
    before = digest(closure(["pkg.low.inner"]))
    assert rewrite(package, '"""Words."""\n\n# and more of them\nVALUE = (1)\n') == before
    assert rewrite(package, "VALUE = 2") != before
    assert rewrite(package, 'VALUE = 1\n"""not a docstring"""') != before


def test_docstrings_of_classes_and_functions_do_not_count():
    plain = "class A:\n    x = 1\n    def f(self):\n        return 1\n"
    documented = 'class A:\n    """A."""\n    x = 1\n    def f(self):\n        """F."""\n        return 1\n'
    assert syntax(plain) == syntax(documented)
    assert syntax(plain) != syntax(plain.replace("return 1", "return '1'"))


def test_a_comment_in_the_engine_changes_no_stamp_and_a_statement_those_that_execute_it(monkeypatch):
    engine = Path("src/decima/systems/heterogeneous/engine.py")
    names = ("heterogeneous.s40_heterogeneous_batch", "decima.s07_batch")
    planning, simulating = (closure([f"experiments.{name}:compute"]) for name in names)
    assert engine in planning
    assert engine not in simulating
    before = [digest(files) for files in (planning, simulating)]
    text, read = (module.ROOT / engine).read_text(), Path.read_bytes

    def digests(changed):
        own = module.ROOT / engine
        monkeypatch.setattr(Path, "read_bytes", lambda path: changed.encode() if path == own else read(path))
        module._content_digest.cache_clear()
        return [digest(files) for files in (planning, simulating)]

    assert digests(text + "# a remark\n") == before
    assert digests(text.replace('"""', '"""Really: ', 1)) == before
    changed = digests(text + "UNUSED = 1\n")
    assert (changed[0] != before[0], changed[1] == before[1]) == (True, True)
    monkeypatch.undo()
    module._content_digest.cache_clear()


def test_what_the_commands_of_the_package_execute():
    fidelity = closure(["experiments.decima.s14_fidelity:compute"])
    assert Path("measure/fidelity/tables.py") in fidelity
    assert Path("src/decima/systems/spark/engine.py") in fidelity
    batch = closure(["experiments.decima.s07_batch:compute"])
    assert Path("src/decima/evaluation/statistics.py") in batch
    assert Path("src/decima/systems/spark/policy/kernel/inference.py") in batch
    assert Path("src/decima/systems/spark/schedulers/capped_srw.py") in batch
