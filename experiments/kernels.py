"""Warm kernels of notebooks: forks of one server that has done their imports."""

import multiprocessing
import os
import sys
import time
from multiprocessing.context import ForkServerContext
from pathlib import Path

WARMTH = "experiments.warmth"  # module with the imports


class WarmKernel:
    """Process of a notebook's kernel, with what Jupyter asks of a ``Popen``."""

    stdin = stdout = stderr = None

    def __init__(self, command: list[str], *, env: dict[str, str], cwd: str | Path | None = None, **_) -> None:
        words = command[command.index("-f") :]
        self.process = ForkServerContext().Process(target=answer_cells, args=(words, env, str(cwd or Path.cwd())))
        self.process.start()
        self.pid = self.process.pid
        while os.getpgid(self.pid) != self.pid:  # Jupyter signals the group, which must not be that of the server
            time.sleep(0.01)

    def poll(self) -> int | None:
        """Exit code, None while it runs."""
        return self.process.exitcode

    def wait(self, timeout: float | None = None) -> int | None:
        """Exit code; a kernel that runs longer than the limit in seconds is killed."""
        self.process.join(timeout)
        return self.process.exitcode

    def send_signal(self, number: int) -> None:
        """Send a signal by its number."""
        os.kill(self.pid, number)


def answer_cells(words: list[str], env: dict[str, str], cwd: str) -> None:
    """Do in a fork what ``python -m ipykernel_launcher`` does.

    Args:
        words: Arguments of the launcher.
        env: Environment variables of the kernel.
        cwd: Its folder.
    """
    import matplotlib
    import pandas
    from ipykernel.kernelapp import IPKernelApp

    os.setsid()
    os.chdir(cwd)
    os.environ.clear()
    # The kernel ends with the server, and the server with the process that started it.
    os.environ.update(env, JPY_PARENT_PID=str(os.getppid()), MPLBACKEND="module://matplotlib_inline.backend_inline")
    # What both choose when they are imported in a kernel.
    matplotlib.rcParams["backend"] = os.environ["MPLBACKEND"]
    pandas.options.display.max_columns = 20
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (1, 2):
        os.dup2(nowhere, stream)
    sys.argv = ["ipykernel_launcher", *words]
    IPKernelApp.launch_instance()


def warm_kernels() -> None:
    """Let all kernels that this process starts be warm."""
    from jupyter_client.provisioning import local_provisioner

    multiprocessing.set_forkserver_preload([WARMTH])
    local_provisioner.launch_kernel = WarmKernel
