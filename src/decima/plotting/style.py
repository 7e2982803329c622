"""Style of all figures: colours and markers, one context, titles, reproducible files."""

from __future__ import annotations

import io
import re
import textwrap
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from inspect import signature
from pathlib import Path

import matplotlib
import matplotlib.figure
import numpy as np
import pandas
import seaborn
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.collections import Collection
from matplotlib.lines import Line2D
from matplotlib.ticker import NullFormatter
from scipy.optimize import isotonic_regression

from decima.core.appearance import (  # noqa: F401  (plots take their colours from here)
    BLACK,
    BLUE,
    BROWN,
    GREEN,
    GREY,
    INDIGO,
    ORANGE,
    PINK,
    SKY,
    VERMILION,
    WINE,
    YELLOW,
    Appearance,
    appearances,
)
from decima.core.files import atomic_write_bytes

IDLE = "#FFFFFF"
COMPLETION = BLACK

# Inches: one column and two columns of the proceedings.
COLUMN, PAGE = 3.5, 7.2

# Colour, dashes and marker of lines that stand for no scheduler.
LINES = (
    (BLUE, "-", "o"),
    (VERMILION, (0, (4, 1.5)), "s"),
    (GREEN, (0, (1, 1.2)), "^"),
    (PINK, (0, (4, 1.5, 1, 1.5)), "D"),
    (SKY, "-", "v"),
    (BLACK, (0, (1, 1.2)), "P"),
)

# For schedulers of the user's own, which are not in the table.
_SPARE_COLORS = (INDIGO, WINE, BROWN)
_SPARE_MARKERS = ("1", "2", "3", "4", "+", "|")


def scheduler_style(name: str) -> Appearance:
    """Style of a scheduler; without a registered one it follows from the name."""
    if name in appearances():
        return appearances()[name]
    digest = zlib.crc32(name.encode())
    marker = _SPARE_MARKERS[digest // len(_SPARE_COLORS) % len(_SPARE_MARKERS)]
    return Appearance(name.replace("_", " "), _SPARE_COLORS[digest % len(_SPARE_COLORS)], "-", marker)


def display_order(names) -> list[str]:
    """Distinct scheduler names in the order of the table, unknown ones last as they come."""
    names = list(dict.fromkeys(names))
    known = [name for name in appearances() if name in names]
    return known + [name for name in names if name not in appearances()]


def by_scheduler(table: pandas.DataFrame, column: str = "scheduler") -> Iterator[tuple[Appearance, pandas.DataFrame]]:
    """Style and rows of each scheduler that a column names, in display order."""
    for name in display_order(table[column]):
        yield scheduler_style(name), table[table[column] == name]


@contextmanager
def context() -> Iterator[None]:
    """Apply the settings that all figures are drawn and saved with."""
    settings = seaborn.axes_style("ticks") | seaborn.plotting_context("paper", font_scale=0.9)
    changed = {
        "axes.grid": True,
        "axes.grid.axis": "y",
        "axes.spines.right": False,
        "axes.spines.top": False,
        "axes.titlesize": 9.0,
        "axes.unicode_minus": True,
        "figure.titlesize": 10.0,
        "font.family": "DejaVu Sans",  # comes with matplotlib, so files are the same on every machine
        "font.sans-serif": ["DejaVu Sans"],
        "grid.alpha": 0.5,
        "grid.linewidth": 0.5,
        "legend.frameon": False,
        "lines.linewidth": 1.4,
        "pdf.fonttype": 42,
        "pdf.compression": 6,
        "savefig.dpi": 200,
        "svg.fonttype": "path",  # looks the same whatever fonts a reader has
        "svg.hashsalt": "decima",  # names inside the file are the same each time
    }
    with matplotlib.rc_context(settings | changed):
        yield


def styled(draw: Callable) -> Callable:
    """Decorator of a drawing function, which then draws inside :func:`context`."""

    @wraps(draw)
    def inside(*args, **kwargs):
        with context():
            return draw(*args, **kwargs)

    return inside


def on_axes(
    width: float = COLUMN, height: float = 2.4, legend: Callable[[Axes], object] | None = None
) -> Callable[[Callable[..., None]], Callable[..., Axes]]:
    """Decorator of a function that draws on ``axes``, by default those of a new figure.

    It draws inside :func:`context` and returns the axes. With ``legend`` it takes ``legend=False``, which leaves the
    legend out.

    Args:
        width: Of a new figure, inches.
        height: Of a new figure, inches.
        legend: Draws the legend, after everything else.
    """

    def decorate(draw: Callable[..., None]) -> Callable[..., Axes]:
        shape = signature(draw)

        @styled
        @wraps(draw)
        def inside(*args, **kwargs) -> Axes:
            shown = legend is not None and kwargs.pop("legend", True)
            bound = shape.bind(*args, **kwargs)
            axes = bound.arguments["axes"] = axes_or_new(bound.arguments.get("axes"), width, height)
            draw(*bound.args, **bound.kwargs)
            if shown:
                legend(axes)
            return axes

        return inside

    return decorate


class Figure(matplotlib.figure.Figure):
    """A figure outside pyplot's registry, which a notebook shows once.

    Attributes:
        title: What it shows, with the workload.
        caption: Text under the figure.
        sources: Names of the tables that it was drawn from.
    """

    title: str = ""
    caption: str = ""
    sources: tuple[str, ...] = ()

    @property
    def alt(self) -> str:
        """Alternative text: title and caption, or titles and labels of axes."""
        if self.title:
            return f"{self.title}. {self.caption}".strip()
        parts = [part for axes in self.axes for part in (axes.get_title(), axes.get_xlabel(), axes.get_ylabel())]
        return "Chart: " + ", ".join(dict.fromkeys(part for part in parts if part))

    def _repr_png_(self) -> tuple[bytes, dict[str, str]]:
        return image(self, "png"), {"alt": self.alt}


def new_figure(width: float = COLUMN, height: float = 2.4) -> Figure:
    """Empty figure of a size in inches, laid out so that nothing overlaps."""
    return Figure(figsize=(width, height), layout="constrained")


def axes_or_new(axes: Axes | None, width: float = COLUMN, height: float = 2.4) -> Axes:
    """Axes to draw on, those of a new figure (inches) by default."""
    return new_figure(width, height).subplots() if axes is None else axes


def entitle(figure: Figure, title: str, caption: str, workload: str) -> Figure:
    """Give a figure its title, which names the workload, and its caption.

    Args:
        figure: Finished figure.
        title: What it shows.
        caption: How many seeds or instances stand behind it, what bands mean.
        workload: Label of the workload, as in ``Workload.label``.
    """
    width = figure.get_figwidth()
    figure.title = f"{title[:-1]}; {workload})" if title.endswith(")") else f"{title} ({workload})"
    figure.suptitle(textwrap.fill(figure.title, int(13 * width)))
    figure.caption = caption
    figure.supxlabel(textwrap.fill(caption, int(17 * width)), fontsize=7, color="0.35", ha="center")
    return figure


KINDS = ("png", "pdf", "svg")
_MOST_POINTS = 1500  # of a line or collection that an SVG has as a vector; a denser one is an image inside the axes


def save(figure: matplotlib.figure.Figure, path: str | Path, kinds: Sequence[str] = KINDS) -> list[Path]:
    """Write ``path`` with the suffixes of some kinds; equal figures give equal bytes.

    Args:
        figure: What is drawn.
        path: Path without a suffix, or with one of ``KINDS``.
        kinds: Some of ``KINDS``.
    """
    stem = Path(path)
    stem = stem.with_suffix("") if stem.suffix[1:] in KINDS else stem
    targets = [stem.with_name(f"{stem.name}.{suffix}") for suffix in kinds]
    for target in sorted(targets, key=lambda each: each.suffix != ".svg"):  # first, as where it is drawn alone
        atomic_write_bytes(target, image(figure, target.suffix[1:]))
    return targets


def image(figure: matplotlib.figure.Figure, suffix: str) -> bytes:
    """Draw a figure as ``"png"``, ``"pdf"`` or ``"svg"``; equal figures give equal bytes.

    Files are written of these bytes, not by matplotlib, whose PDF writer hides that a disk is full behind an error of
    its own.
    """
    content = io.BytesIO()
    dense = figure.findobj(lambda each: suffix == "svg" and _points(each) > _MOST_POINTS)
    vectors = [each for each in dense if not each.get_rasterized()]
    for each in vectors:
        each.set_rasterized(True)
    try:
        with context():
            figure.savefig(content, format=suffix, metadata=_metadata(figure, suffix))
    finally:
        for each in vectors:
            each.set_rasterized(False)
    return _rounded(content.getvalue()) if suffix == "svg" else content.getvalue()


def _points(artist: Artist) -> int:
    """Points of a line, or of all parts of a collection."""
    if isinstance(artist, Line2D):
        return len(artist.get_xydata())
    if isinstance(artist, Collection):
        return max(sum(len(path.vertices) for path in artist.get_paths()), len(artist.get_offsets()))
    return 0


def _rounded(drawing: bytes) -> bytes:
    """An SVG with coordinates of two decimals, short names and no indentation."""
    number = re.compile(rb"-?\d+\.\d{3,}")

    def two(match: re.Match) -> bytes:
        return number.sub(lambda each: f"{float(each[0]):.2f}".rstrip("0").rstrip(".").encode(), match[0])

    drawing = re.sub(rb"\n +", b"\n", drawing).replace(b"DejaVuSans-", b"g")
    return re.sub(rb' (?:d|x|y|width|height)="[^"]*"|translate\([^)]*\)', two, drawing)


def _metadata(figure: matplotlib.figure.Figure, suffix: str) -> dict[str, str | None]:
    """Metadata of a file, without date and version; SVG describes the picture."""
    if suffix != "svg":
        return {"Software" if suffix == "png" else "CreationDate": None}
    words = {"Date": None, "Creator": None}
    if isinstance(figure, Figure) and figure.title:
        words |= {"Title": figure.title, "Description": figure.caption, "Source": ", ".join(figure.sources)}
    return words


def time_unit(end_s: float) -> tuple[float, str]:
    """Seconds per unit and its name for a time axis up to ``end_s``."""
    return (3600.0, "h") if end_s >= 3.0 * 3600.0 else (60.0, "min")


def legend_beside(axes: Axes, **options) -> None:
    """Put the legend to the right of the axes; ``options`` of ``Axes.legend``."""
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), **options)


def legend_above(axes: Axes, ncols: int = 1) -> None:
    """Put a small legend above the middle of the axes."""
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=ncols, fontsize=7)


def label_ends(axes: Axes) -> None:
    """Write the labels of lines at their right ends, in their colours, without overlaps."""
    lines = [line for line in axes.get_lines() if not line.get_label().startswith("_")]
    axes.get_ylim()  # limits are settled now
    to_parts = axes.transData - axes.transAxes
    points = []
    for line in lines:
        each = line.get_xydata()[np.isfinite(line.get_xydata()).all(axis=1)]
        if not line.get_transform().contains_branch_seperately(axes.transData)[0]:  # spans the axes
            each[:, 0] = axes.get_xlim()[1]
        points.append(each[np.argmax(to_parts.transform(each)[:, 0])])
    ends = np.array([to_parts.transform(point)[1] for point in points]).clip(0.0, 1.0)
    order = np.argsort(ends, kind="stable")
    # A line of text in parts of the axes.
    apart = 8.5 / (72.0 * axes.figure.get_figheight() * axes.get_position().height) * np.arange(len(lines))
    places = isotonic_regression(ends[order] - apart).x + apart if lines else ()
    for index, height in zip(order, places, strict=True):
        color = lines[index].get_color()
        _, y = to_parts.inverted().transform((1.0, height))
        leader = {"arrowstyle": "-", "color": color, "linewidth": 0.4, "shrinkA": 0.0, "shrinkB": 3.0}
        where = {"xytext": (1.02, y), "textcoords": axes.get_yaxis_transform(), "va": "center"}
        axes.annotate(
            lines[index].get_label(), points[index], **where, fontsize=7, color=color, arrowprops=leader,
            annotation_clip=False,
        )  # fmt: skip


def label_rows(axes: Axes, labels: list[str]) -> None:
    """Label the rows of a horizontal chart at 0, 1, ... from the top."""
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.5, -0.5)
    axes.grid(visible=True, axis="x")
    axes.grid(visible=False, axis="y")


def largest_shown(values) -> float:
    """Largest number that leaves others readable on one axis: within five times their median."""
    ordered = sorted(values)
    return max(value for value in ordered if value <= 5.0 * ordered[len(ordered) // 2])


def plain_numbers(*axes: Axis) -> None:
    """Write the numbers of logarithmic axes out: 1000, not 10 to the third."""
    for axis in axes:
        axis.set_major_formatter(lambda value, _: f"{value:g}")
        axis.set_minor_formatter(NullFormatter())
