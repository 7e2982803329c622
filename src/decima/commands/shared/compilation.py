"""Compilation by Numba, which commands announce and do not count as progress."""

from __future__ import annotations

import sys
from functools import cache
from time import time
from typing import Any

ANNOUNCED_S = 1.0  # compilation that is done by then is not announced
ANNOUNCEMENT = "compiling for this machine, which may take a minute; later commands find the code in the cache"


@cache
def watch_compilation() -> None:
    """Take the time in which Numba compiles out of what progress bars call gone, and announce it once it lasts."""
    from numba.core import event
    from tqdm import std

    class Compilation(event.Listener):
        depth, since_s, announced = 0, 0.0, False  # one thread compiles at a time, functions within functions

        def on_start(self, event: Any) -> None:
            self.since_s = self.since_s if self.depth else time()
            self.depth += 1
            self.announce()

        def on_end(self, event: Any) -> None:
            self.announce()
            self.depth = max(0, self.depth - 1)
            for bar in list(std.tqdm._instances) if self.depth == 0 else ():
                bar.start_t += time() - self.since_s
                bar.last_print_t += time() - self.since_s

        def announce(self) -> None:
            if not self.announced and time() - self.since_s >= ANNOUNCED_S:
                self.announced = True
                std.tqdm.write(ANNOUNCEMENT, file=sys.stderr)

    event.register("numba:compile", Compilation())
