"""What workers do; a module of its own, since each of them imports it."""

import contextlib
import os
import signal
import sys
import time

from decima.systems.spark.policy.episodes import Episodes


def divide(item):
    return 60 // item


def fall(item):
    if item == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return item


class Slow:
    """Squares; writes down that it was called, and takes half a second."""

    def __init__(self, folder):
        self._folder = folder

    def __call__(self, item):
        with open(self._folder / "calls", "a") as file:
            file.write(f"{item}\n")
        time.sleep(0.5)
        return item * item


def nodes_seen(_):
    import ray

    return len(ray.nodes())


class Mortal:
    """Episodes; a worker that finds a file ``death*`` takes it and dies."""

    def __init__(self, folder, task):
        self._folder, self._work = folder, Episodes(task)

    def __call__(self, item):
        for death in self._folder.glob("death*"):
            with contextlib.suppress(OSError):
                death.unlink()
                os.kill(os.getpid(), signal.SIGKILL)
        assert "tensorflow" not in sys.modules
        return self._work(item)
