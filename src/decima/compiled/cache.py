"""Cache in which compiled functions are kept between processes."""

import hashlib
from pathlib import Path

import numba
import platformdirs


def _fingerprint() -> str:
    """Hash of numba's version and of every source file that holds fields or compiled functions."""
    digest = hashlib.sha256(numba.__version__.encode())
    for path in sorted(Path(__file__).parent.parent.rglob("*.py")):
        source = path.read_bytes()
        if path.name in ("fields.py", "record.py") or b"njit" in source or b"CompiledDecision" in source:
            digest.update(source)
    return digest.hexdigest()[:16]


_FINGERPRINT = _fingerprint()


def cached(decorate):
    """Apply a numba decorator so that its cache is keyed by the sources of all kernels.

    Numba looks only at the file of the function itself, and would run stale code after a change in a file that the
    function calls into. The cache therefore lies in a folder named after a hash of all compiled sources.
    """
    base = numba.config.CACHE_DIR or platformdirs.user_cache_dir("decima-sched")

    def wrap(function):
        previous = numba.config.CACHE_DIR
        numba.config.CACHE_DIR = str(Path(base) / f"kernels-{_FINGERPRINT}")
        try:
            return decorate(function)
        finally:
            numba.config.CACHE_DIR = previous

    return wrap
