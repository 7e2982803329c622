"""Progress of long work on stderr: a bar on a terminal, else a line sometimes."""

from __future__ import annotations

import io
import sys
import time
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tqdm.std import tqdm

FIRST_LINE_S = 10.0  # work that is done by then writes no line
MOST_S = 60.0  # longest time between two lines, which grows up to here
LEAST_SHARE = 0.1  # done before the remaining time is estimated, at the rate of all pieces after the first

_LINE = "{desc}: {percentage:.0f} %, {n_fmt} of {total_fmt} {unit}, {elapsed} gone, {remaining} left{postfix}"
_SHARE_LINE = "{desc}: {percentage:.0f} %, {elapsed} gone, {remaining} left{postfix}"
_SHARE_BAR = "{desc}: {percentage:3.0f}%|{bar}| {elapsed}<{remaining}{postfix}"


def progress_bar(label: str | None, total: float, unit: str = "it", *, done: float = 0, share: bool = False) -> tqdm:
    """Bar of tqdm for a piece of work, silent without a label.

    On a terminal it is redrawn in place. Elsewhere, as in files, notebooks and continuous integration, it is a line
    after ten seconds, others at growing distances up to a minute, and one at the end.

    Args:
        label: What is done; None for no bar, the default of everything in this package but commands.
        total: Number of pieces.
        unit: What a piece is called.
        done: Pieces that were done before.
        share: ``total`` is 1 and pieces are parts of it, so that only the percentage is shown.
    """
    bar_class = _bar_class()
    if label is None:
        return bar_class(disable=True)
    common = {"total": total, "initial": done, "desc": label}
    if sys.stderr.isatty():
        return bar_class(**common, unit=unit, bar_format=_SHARE_BAR if share else None)
    lines, unit = _Lines(), f"{unit}s" if unit.isalpha() else unit
    timing = {"delay": FIRST_LINE_S, "mininterval": FIRST_LINE_S, "miniters": 0}  # the clock alone decides
    lines.bar = bar_class(**common, **timing, unit=unit, bar_format=_SHARE_LINE if share else _LINE, file=lines)
    return lines.bar


@cache
def _bar_class() -> type[tqdm]:
    from tqdm import std

    class Bar(std.tqdm):
        first: tuple[float, float] | None = None  # count and time after the first piece, in which code is compiled

        def update(self, n: float | None = 1) -> bool | None:
            self.first = self.first or ((self.n + n, time.monotonic()) if n else None)
            return super().update(n)

        @property
        def format_dict(self) -> dict:
            values, (count, began) = super().format_dict, self.first or (self.n, 0.0)
            early = values["n"] - values["initial"] < LEAST_SHARE * (values["total"] or 0)
            rate = (values["n"] - count) / max(1e-9, time.monotonic() - began)
            return values | {"rate": 0.0 if early else rate or values["rate"]}

        def close(self) -> None:
            if hasattr(self, "pos"):  # else Ctrl-C came before the bar was whole
                super().close()

    return Bar


class _Lines(io.TextIOBase):
    """Stream that turns tqdm's redrawn line into separate lines."""

    bar: tqdm | None = None
    _last = ""

    def write(self, text: str) -> int:
        line = text.strip()
        if line and line != self._last:  # the last one comes twice
            self._last = line
            print(f"{line}\n", end="", file=sys.stderr, flush=True)  # noqa: T201
            if self.bar is not None:
                self.bar.mininterval = min(MOST_S, 1.5 * self.bar.mininterval)
        return len(text)
