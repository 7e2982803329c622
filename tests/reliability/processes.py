"""Commands as processes of their own, and their sudden end."""

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path

import psutil

import decima

PACKAGE = Path(decima.__file__).parent


def environment(**changes):
    """Variables of this process, this package first on the path, numbers of TensorFlow's messages off."""
    return {**os.environ, "PYTHONPATH": str(PACKAGE.parent), "DVC_NO_ANALYTICS": "1", **changes}


@contextlib.contextmanager
def started(*words, variables=(), errors=None, **options):
    """A process at the head of a group of its own, which is dead when the block ends; errors go to a file or stdout."""
    process = subprocess.Popen(
        [str(word) for word in words],
        env=environment(**dict(variables)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT if errors is None else errors,
        text=True,
        start_new_session=True,
        **options,
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
        process.stdin.close()


def finish(*words, code=0, **options):
    """Run a process to its end, which must be this exit code; returns all that it said."""
    with started(*words, **options) as process:
        said = process.communicate(timeout=900)[0]
    assert process.returncode == code, said[-3000:]
    return said


def wait_until(condition, process, patience_s=600.0):
    """Wait for a condition while a process lives; False if it ended before."""
    deadline = time.monotonic() + patience_s
    while not condition():
        if process.poll() is not None:
            return False
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.01)
    return True


def below(process, word):
    """Processes below one that have a word on their command line; none when it has gone."""
    found = []
    with contextlib.suppress(psutil.NoSuchProcess):
        for child in psutil.Process(process.pid).children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):
                found += [child] if word in child.cmdline() else []
    return found
