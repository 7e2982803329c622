"""Where compiled functions are kept between processes.

Numba looks only at the file of the function itself, and would run stale code after a change in a file that the function
calls into. The cache of a function therefore lies in a folder named after a hash of everything its module imports: an
edit compiles anew what depends on the edited file, and nothing else.
"""

import hashlib
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numba

from decima.core.array_checks import CHECKED

_ROOT = Path(__file__).parent.parent
# Imports at the beginning of a line: those inside functions, or for type checkers only, play no part in compiled code.
_IMPORT = re.compile(r"^(?:from (decima[\w.]*) import (\([^)]*\)|[^\n]*)|import (decima[\w.]*))", re.MULTILINE)


def cached(decorate: Callable) -> Callable:
    """Apply a numba decorator whose cache is keyed by the sources of all dependencies."""
    from decima.core.config import kernels_folder

    base = kernels_folder()

    def wrap(function):
        previous = numba.config.CACHE_DIR
        numba.config.CACHE_DIR = str(Path(base) / f"kernels-{cache_key(function.__module__)}")
        try:
            return decorate(function)
        finally:
            numba.config.CACHE_DIR = previous

    return wrap


@cache
def cache_key(module: str) -> str:
    """Hash of numba's version and of the sources that a module depends on.

    Of a module outside of the package it is not known what else takes part, so all modules of the package count.
    """
    modules = import_closure(module) if _read(module) else {_name(path) for path in _ROOT.rglob("*.py")}
    digest = hashlib.sha256(f"{numba.__version__} {CHECKED}".encode())
    for name in sorted(modules):
        digest.update(_read(name).encode())
    return digest.hexdigest()[:16]


def import_closure(module: str, read: Callable[[str], str] | None = None) -> set[str]:
    """Modules of the package that a module imports, directly or not, itself included.

    Args:
        module: Name of a module of the package.
        read: Source of a module by name, "" if there is none; the installed package when omitted.
    """
    read = read or _read
    modules: set[str] = set()
    left = [module]
    while left:
        name = left.pop()
        if name not in modules and (source := read(name)):
            modules.add(name)
            for origin, names, plain in _IMPORT.findall(source):
                left.append(plain or origin)
                left += [f"{origin}.{part}" for part in re.findall(r"\w+", names)]
    return modules


@cache
def _read(module: str) -> str:
    """Source of a module of the package, "" if there is no such module."""
    top, *parts = module.split(".")
    path = _ROOT.joinpath(*parts)
    for file in (path.with_suffix(".py"), path / "__init__.py"):
        if top == "decima" and file.is_file():
            return file.read_text(encoding="utf-8")
    return ""


def _name(path: Path) -> str:
    parts = path.relative_to(_ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
