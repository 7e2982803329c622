"""A cell ends with its kernel: nbval waits half an hour for one that was killed. Long trainings are cut."""

import gc
import time
import warnings
from functools import wraps
from queue import Empty

import nbval.kernel
import pytest

# Notebooks that train for minutes, as the pipeline executes them: every cell is tested with less of it.
LESS = {"00-start-here.ipynb": ("iterations = 60", "iterations = 14")}
PAUSE_S = 2.0  # how long to wait for a message before a look whether the kernel lives


class KernelError(Exception):
    """The process that executes the cells of a notebook ended."""


def started_again(start, tries=3):
    """A start of a kernel, once more where it died at once: another process took a port that was chosen for it."""

    @wraps(start)
    def started(*args, **kwargs):
        for _ in range(tries - 1):
            try:
                return start(*args, **kwargs)
            except (RuntimeError, ProcessLookupError):
                pass
            with warnings.catch_warnings():  # of what the dead kernel's client leaves open
                warnings.simplefilter("ignore", ResourceWarning)
                gc.collect()
        return start(*args, **kwargs)

    return started


nbval.kernel.start_new_kernel = started_again(nbval.kernel.start_new_kernel)


def answers_of_the_living(kernel):
    """A function like the kernel's ``get_message``, which waits no longer than the kernel lives."""
    wait = type(kernel).get_message

    def get_message(stream, timeout=None):
        end = float("inf") if timeout is None else time.monotonic() + timeout
        while True:
            try:
                return wait(kernel, stream, timeout=max(0.0, min(PAUSE_S, end - time.monotonic())))
            except Empty:
                if time.monotonic() >= end:
                    raise
                if not kernel.is_alive():
                    raise KernelError("the kernel was killed, perhaps for want of memory") from None

    return get_message


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.name in LESS and getattr(item, "cell_num", None) == 0:
            shown, less = LESS[item.path.name]
            assert shown in item.cell.source
            item.cell.source = item.cell.source.replace(shown, less)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item):
    """Before a cell is executed."""
    kernel = getattr(item.parent, "kernel", None)
    if kernel is not None:
        kernel.get_message = answers_of_the_living(kernel)
