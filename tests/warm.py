"""Process workers and kernels of notebooks start warm: each is a fork of one server, which has done their imports."""

import multiprocessing
import os
import sys
import time
from multiprocessing.context import ForkServerContext
from pathlib import Path

import pytest

from decima.evaluation import workers

AS_PUBLISHED = workers._Spawn.__bases__


class WarmKernel:
    """The process of a notebook's kernel, with what Jupyter asks of a `Popen`."""

    stdin = stdout = stderr = None

    def __init__(self, command, *, env, cwd=None, **_):
        words = command[command.index("-f") :]
        self.process = ForkServerContext().Process(target=answer_cells, args=(words, env, str(cwd or Path.cwd())))
        self.process.start()
        self.pid = self.process.pid
        while os.getpgid(self.pid) != self.pid:  # Jupyter signals the group, which must not be that of the server
            time.sleep(0.01)

    def poll(self):
        return self.process.exitcode

    def wait(self, timeout=None):
        self.process.join(timeout)
        return self.process.exitcode

    def send_signal(self, number):
        os.kill(self.pid, number)


def answer_cells(words, env, cwd):
    """Do in a fork what `python -m ipykernel_launcher` does, in its environment and folder."""
    import matplotlib
    import pandas
    from ipykernel.kernelapp import IPKernelApp

    os.setsid()
    os.chdir(cwd)
    os.environ.clear()
    # The kernel ends with the server, and the server with the tests.
    os.environ.update(env, JPY_PARENT_PID=str(os.getppid()), MPLBACKEND="module://matplotlib_inline.backend_inline")
    # What both choose when they are imported in a kernel.
    matplotlib.rcParams["backend"] = os.environ["MPLBACKEND"]
    pandas.options.display.max_columns = 20
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (1, 2):
        os.dup2(nowhere, stream)
    sys.argv = ["ipykernel_launcher", *words]
    IPKernelApp.launch_instance()


def pytest_configure(config):
    multiprocessing.set_forkserver_preload(["tests.warmth"])
    if getattr(config.option, "nbval_lax", False):
        from jupyter_client.provisioning import local_provisioner

        local_provisioner.launch_kernel = WarmKernel


@pytest.fixture(scope="session", autouse=True)
def warm_processes():
    """Let a worker start in milliseconds instead of seconds; how it is used stays as it is."""
    workers._Spawn.__bases__ = (ForkServerContext,)
    yield
    workers._Spawn.__bases__ = AS_PUBLISHED
