"""Texts of the 22 TPC-H queries, one statement each, with the specification's validation parameters."""

from __future__ import annotations

import functools
from importlib import resources

from decima.core.errors import ConfigError

NAMES = tuple(f"q{number:02d}" for number in range(1, 23))
# More rows than any result that is sorted at the end; see `sql`.
ALL_ROWS = 1_000_000
# Q11 keeps what is worth more than this share of the total at scale 1 (specification, section 2.4.11.3).
_Q11_FRACTION = 0.0001


@functools.cache
def text(name: str) -> str:
    """Text of a query as the specification has it.

    Three things differ in form only: intervals are in Spark's notation, the view of Q15 is a `with` clause (the
    specification allows both), and "first n rows" is a `limit`.

    Args:
        name: `q01` to `q22`.

    Raises:
        ConfigError: there is no such query.
    """
    if name not in NAMES:
        raise ConfigError(f"unknown TPC-H query {name!r}: expected one of {NAMES[0]} to {NAMES[-1]}")
    return resources.files(__name__).joinpath(f"{name}.sql").read_text(encoding="utf-8").strip()


def sql(name: str, scale: float) -> str:
    """Text of a query for a scale factor; where possible, Spark plans a single job.

    `order by` without `limit` makes Spark sort by ranges, whose bounds it finds with a job of its own that runs the
    last stage twice. With a limit, every task sends its sorted rows to the driver, which merges them.

    Args:
        name: `q01` to `q22`.
        scale: TPC-H scale factor; the fraction of Q11 depends on it.

    Raises:
        ConfigError: there is no such query.
    """
    statement = text(name)
    if name == "q11":
        statement = statement.format(fraction=f"{_Q11_FRACTION / scale:.10f}")
    last = statement[statement.rfind(")") + 1 :]
    ordered = "\norder by" in statement
    return f"{statement}\nlimit {ALL_ROWS}" if ordered and "\nlimit " not in last else statement
