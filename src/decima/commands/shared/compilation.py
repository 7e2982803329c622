"""Compilation by Numba: announced, ended by Ctrl-C at once, and not counted as progress."""

import os
import signal
import sys
import threading
from functools import cache
from time import sleep, time
from types import SimpleNamespace
from typing import Any

ANNOUNCED_S = 1.0  # compilation that is done by then is not announced
ANNOUNCEMENT = "compiling for this machine, which may take a minute; later commands find the code in the cache"
_NOW = SimpleNamespace(depth=0)  # one thread compiles at a time, functions within functions


@cache
def watch_compilation() -> None:
    """Announce compilation once it lasts, and move the start of progress bars by its time."""
    from numba.core import event
    from tqdm import std

    class Compilation(event.Listener):
        since_s, announced = time(), False
        on_start = on_end = None  # which notify replaces

        def notify(self, event: Any) -> None:
            if event.is_start and _NOW.depth == 0:
                self.since_s = time()
            _NOW.depth += 1 if event.is_start else -1
            lasted_s = time() - self.since_s
            if not self.announced and lasted_s >= ANNOUNCED_S:
                self.announced = True
                std.tqdm.write(ANNOUNCEMENT, file=sys.stderr)
            for bar in list(std.tqdm._instances) * (_NOW.depth == 0):
                bar.start_t += lasted_s
                bar.last_print_t += lasted_s

    event.register("numba:compile", Compilation())


def end_while_compiling() -> None:
    """Let Ctrl-C end this process while it compiles.

    Python would answer when LLVM returns, after seconds. Whatever is kept is written under another name first, so that
    an end at any time leaves no half of a file.
    """
    seen, notify = os.pipe()
    os.set_blocking(notify, False)
    signal.set_wakeup_fd(notify, warn_on_full_buffer=False)

    def wait() -> None:
        while number := os.read(seen, 1):
            sleep(0.2)  # until Python has answered, if it can
            if number[0] == signal.SIGINT and _NOW.depth:
                os.write(2, b"error: interrupted\n")
                os._exit(130)

    threading.Thread(target=wait, daemon=True).start()
