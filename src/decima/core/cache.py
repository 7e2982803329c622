"""Where compiled functions are kept between processes.

Numba looks only at the file of the function itself, and would run stale code after a change in a file that the function
calls into. The code of a function therefore lies in a folder named after a hash of everything its module imports: an
edit compiles anew what depends on the edited file, and nothing else.

A wheel brings such folders along (``make wheel``), which are read first. No path is part of a name, so that they are
valid wherever the package lies. Another Python, Numba or processor finds nothing there, and compiles.
"""

import hashlib
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numba
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile, UserProvidedCacheLocator
from numba.core.runtime import rtsys

from decima.core.array_checks import CHECKED

_ROOT = Path(__file__).parent.parent
#: Compiled functions that a wheel brings along.
SHIPPED = _ROOT / "_kernels"
# Imports at the beginning of a line: those inside functions, or for type checkers only, play no part in compiled code.
_IMPORT = re.compile(r"^(?:from (decima[\w.]*) import (\([^)]*\)|[^\n]*)|import (decima[\w.]*))", re.MULTILINE)


class _Locator(UserProvidedCacheLocator):
    """Folder of the package's functions, by the content of their sources."""

    def __init__(self, function: Callable, file: str) -> None:
        super().__init__(function, file)
        self._cache_path = numba.config.CACHE_DIR

    def get_source_stamp(self) -> str:
        return Path(self._cache_path).name

    @classmethod
    def from_function(cls, function: Callable, file: str) -> "_Locator | None":
        return cls(function, file) if _read(function.__module__) else None


class _Folders(CompileResultCacheImpl):
    _locator_classes = (_Locator, *CompileResultCacheImpl._locator_classes)


class KernelCache(FunctionCache):
    """Numba's cache of a function: the shipped code, then that of the user.

    Args:
        function: In Python; one of another package has its code in the user's folder alone.
    """

    _impl_class = _Folders

    def __init__(self, function: Callable) -> None:
        from decima.core.config import kernels_folder

        key = f"kernels-{cache_key(function.__module__)}"
        previous = numba.config.CACHE_DIR
        numba.config.CACHE_DIR = str(Path(kernels_folder()) / key)
        try:
            super().__init__(function)
        finally:
            numba.config.CACHE_DIR = previous
        self._shipped = IndexDataCacheFile(str(SHIPPED / key), self._impl.filename_base, key)

    def load_overload(self, sig, target_context):
        """Load code without what Numba registers for compilation (a third of a start)."""
        rtsys.initialize(target_context)
        data = self._shipped.load(self._index_key(sig, target_context.codegen()))
        if data is None:
            return self._load_overload(sig, target_context)
        return self._impl.rebuild(target_context, data)


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
