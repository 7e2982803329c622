"""The real scheduling service in a process of its own, which can be killed."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator


@contextlib.contextmanager
def service_process(port: int, *arguments: str) -> Iterator[subprocess.Popen]:
    """Run `decima serve` until the block ends; the service answers when the block begins."""
    command = [sys.executable, "-m", "decima", "serve", "--port", str(port), *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline().startswith("serving "), "the service did not start"
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
