"""Compilation by Numba, which commands announce and do not count as progress."""

import sys
from functools import cache
from time import time
from typing import Any

ANNOUNCED_S = 1.0  # compilation that is done by then is not announced
ANNOUNCEMENT = "compiling for this machine, which may take a minute; later commands find the code in the cache"


@cache
def watch_compilation() -> None:
    """Announce compilation once it lasts, and move the start of progress bars by its time."""
    from numba.core import event
    from tqdm import std

    class Compilation(event.Listener):
        depth, since_s, announced = 0, time(), False  # one thread compiles at a time, functions within functions
        on_start = on_end = None  # which notify replaces

        def notify(self, event: Any) -> None:
            if event.is_start and self.depth == 0:
                self.since_s = time()
            self.depth += 1 if event.is_start else -1
            lasted_s = time() - self.since_s
            if not self.announced and lasted_s >= ANNOUNCED_S:
                self.announced = True
                std.tqdm.write(ANNOUNCEMENT, file=sys.stderr)
            for bar in list(std.tqdm._instances) * (self.depth == 0):
                bar.start_t += lasted_s
                bar.last_print_t += lasted_s

    event.register("numba:compile", Compilation())
