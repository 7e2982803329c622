"""The table at the end of a notebook: what the paper says, what we get, how far apart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas


def against_paper(rows: Mapping[str, tuple[float | str | None, float | str]]) -> pandas.DataFrame:
    """Table with the columns paper, ours and gap.

    Args:
        rows: Per quantity the paper's value (None: it gives no number) and ours. The gap of two numbers is ours less
            the paper's, in percent of the paper's; anything else has none.
    """
    import pandas

    table = {name: (_text(paper), _text(ours), _gap(paper, ours)) for name, (paper, ours) in rows.items()}
    return pandas.DataFrame.from_dict(table, orient="index", columns=["paper", "ours", "gap"])


def _is_number(value) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _text(value: float | str | None) -> str:
    if value is None:
        return "–"
    return f"{value:.4g}" if _is_number(value) else str(value)


def _gap(paper: float | str | None, ours: float | str) -> str:
    if not (_is_number(paper) and _is_number(ours)) or paper == 0:
        return "–"
    return f"{100.0 * (ours - paper) / abs(paper):+.0f} %"
