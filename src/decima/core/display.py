"""Display of results: short texts, and tables with a small chart per row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from decima.core.registry import Registry

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


# Okabe and Ito's colours are those of heuristics, the dark ones below those of learned policies and of bounds. Any two
# of them have a CIELAB distance of 18 or more, also with protanopia and deuteranopia.
ORANGE, SKY, GREEN = "#E69F00", "#56B4E9", "#009E73"
BLUE, VERMILION, PINK = "#0072B2", "#D55E00", "#CC79A7"
BLACK, INDIGO, WINE, BROWN = "#000000", "#332288", "#882255", "#661100"
# For what is no scheduler.
YELLOW, GREY = "#F0E442", "#777777"
# Line styles of matplotlib.
DASH, DOT, DASHDOT, LONG = (0, (4, 1.5)), (0, (1, 1.2)), (0, (4, 1.5, 1, 1.5)), (0, (8, 2))
MIXED = (0, (3, 1, 1, 1, 1, 1))


@dataclass(frozen=True)
class Appearance:
    """Label, colour, line and marker of one scheduler in every figure."""

    label: str  # name in legends and on axes
    color: str  # hex colour
    linestyle: str | tuple = "-"  # matplotlib line style
    marker: str = "o"  # matplotlib marker

    def line(self) -> dict:
        """Keywords of matplotlib for a line in this style."""
        return {"color": self.color, "linestyle": self.linestyle, "label": self.label}


#: Tables by system, in the order of legends.
TABLES: Registry[Mapping[str, Appearance]] = Registry(
    "table of appearances",
    modules={
        "spark": "decima.systems.spark.appearance:APPEARANCES",
        "heterogeneous": "decima.systems.heterogeneous.appearance:APPEARANCES",
        "cloud": "decima.systems.cloud.appearance:APPEARANCES",
    },
)


@cache
def appearances() -> dict[str, Appearance]:
    """Appearances of all schedulers by name, in the order of legends."""
    return {name: each for system in ("spark", "heterogeneous", "cloud") for name, each in TABLES.find(system).items()}
