"""Display of results: short texts, and tables with a small chart per row."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pandas

MOST_ROWS = 20
_WIDTH = 160  # pixels of a chart


def shown_name(name: str, most: int = 60) -> str:
    """A name for a terminal: control characters escaped, a long one cut in its middle."""
    text = "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in name)
    return text if len(text) <= most else f"{text[: most // 2]}...{text[-(most // 2 - 3) :]}"


def table_html(title: str, table: pandas.DataFrame, spans: Sequence[Sequence[float]], note: str = "") -> str:
    """HTML of a table whose rows end with a line and a dot on it.

    Args:
        title: Text above the table.
        table: The table, of which the first rows are shown.
        spans: Start, dot and end per row, all on one scale that begins at 0; NaN draws nothing.
        note: Text below the table.
    """
    numbers = np.asarray(spans, dtype=float).reshape(-1, 3)
    most = np.nanmax(numbers, initial=1e-9)
    shown = table.head(MOST_ROWS).map(lambda value: f"{value:,.2f}" if isinstance(value, float) else escape(str(value)))
    shown[""] = [_chart(*row) for row in numbers[: len(shown)] / most * (_WIDTH - 6) + 3]
    if len(table) > MOST_ROWS:
        note = f"The first {MOST_ROWS} of {len(table):,} rows. {note}".strip()
    below = f"<p>{escape(note)}</p>".replace("\n", "<br>") if note else ""
    return f"<p>{escape(title)}</p>{shown.to_html(index=False, border=0, escape=False)}{below}"


def _chart(low: float, dot: float, high: float) -> str:
    line = f'<line x1="{low:.1f}" x2="{high:.1f}" y1="7" y2="7" stroke="currentColor"/>' if high >= low else ""
    point = f'<circle cx="{dot:.1f}" cy="7" r="3" fill="currentColor"/>' if dot == dot else ""
    return f'<svg width="{_WIDTH}" height="14">{line}{point}</svg>'


class ShownRun:
    """Display of a run: its sentence, and a row per job in notebooks."""

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        import pandas

        outcome = self.outcome
        times = {"arrival [s]": outcome.arrival_ms / 1e3, "completion [s]": outcome.completion_ms / 1e3}
        names = [getattr(job, "name", getattr(job, "id", index)) for index, job in enumerate(self.workload.jobs)]
        table = pandas.DataFrame({"job": names} | times)
        table["JCT [s]"] = table["completion [s]"] - table["arrival [s]"]
        spans = np.stack([*times.values(), times["completion [s]"]], axis=1)[:, [0, 2, 1]]
        return table_html(str(self), table, spans)
