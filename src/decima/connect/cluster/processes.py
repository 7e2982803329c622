"""Process groups that end with their work, also if the process that started them dies."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from typing import NoReturn

STOP_S = 10.0  # from SIGTERM to SIGKILL


def free_port(host: str = "127.0.0.1") -> int:
    """Find a TCP port on an address of this machine that nobody listens on."""
    with socket.socket() as probe:
        probe.bind((host, 0))
        return probe.getsockname()[1]


def guard(groups: list[int]) -> subprocess.Popen:
    """Start a process that kills these groups if this process ends before calling `release`."""
    # Its input ends without a line when this process dies, of whatever.
    return subprocess.Popen(
        ["/bin/sh", "-c", 'read -r _ || kill -s KILL -- "$@"', "guard", *(str(-group) for group in groups)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def release(watching: subprocess.Popen | None) -> None:
    """End the process that `guard` started, if any, before it kills anything."""
    if watching is not None:
        # Gone already is as good.
        with contextlib.suppress(BrokenPipeError):
            watching.communicate(b"released\n")


def end_group(process: subprocess.Popen) -> None:
    """End a process and its whole group: with SIGTERM, and after `STOP_S` seconds with SIGKILL."""
    for number, wait_s in ((signal.SIGTERM, STOP_S), (signal.SIGKILL, STOP_S)):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        end = time.monotonic() + wait_s
        while time.monotonic() < end:
            process.poll()
            try:
                os.killpg(process.pid, 0)
            except ProcessLookupError:
                return
            time.sleep(0.05)


@contextlib.contextmanager
def ended_by_signals() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end the block like an exception, so that its resources close.

    By default both end this process at once. SIGINT raises KeyboardInterrupt already. Works in the main thread only.
    """

    def leave(number: int, _: object) -> NoReturn:
        raise SystemExit(128 + number)

    before = {number: signal.signal(number, leave) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
