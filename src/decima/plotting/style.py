"""Style of all figures: one look per scheduler, one context, titles that name the workload, reproducible files."""

from __future__ import annotations

import io
import textwrap
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path

import matplotlib
import matplotlib.figure
import seaborn
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import NullFormatter

from decima.core.files import atomic_write_bytes

# Okabe and Ito's colours, told apart with every common kind of colour blindness.
ORANGE, SKY, GREEN, YELLOW = "#E69F00", "#56B4E9", "#009E73", "#F0E442"
BLUE, VERMILION, PINK, BLACK = "#0072B2", "#D55E00", "#CC79A7", "#000000"
OLIVE, INDIGO, WINE, GREY = "#888833", "#332288", "#882255", "#777777"
TEAL, MAGENTA, BROWN = "#44AA99", "#AA4499", "#661100"

IDLE = "#8E44AD"
COMPLETION = "#E31A1C"

# Inches: one column and two columns of the proceedings.
COLUMN, PAGE = 3.5, 7.2


@dataclass(frozen=True)
class SchedulerStyle:
    """Look of one scheduler in every figure."""

    label: str  # name in legends and on axes
    color: str  # hex colour
    linestyle: str | tuple = "-"  # matplotlib line style
    marker: str = "o"  # matplotlib marker

    def line(self) -> dict:
        """Keywords of matplotlib for a line of this look."""
        return {"color": self.color, "linestyle": self.linestyle, "label": self.label}


_DASH, _DOT, _DASHDOT, _LONG = (0, (4, 1.5)), (0, (1, 1.2)), (0, (4, 1.5, 1, 1.5)), (0, (8, 2))
_MIXED = (0, (3, 1, 1, 1, 1, 1))

_SPARK = {
    "spark_fifo": SchedulerStyle("Spark's FIFO", GREY, "-", "<"),
    "fifo": SchedulerStyle("FIFO", ORANGE, _DASH, "s"),
    "sjf_cp": SchedulerStyle("SJF-CP", PINK, _DASHDOT, "v"),
    "fair": SchedulerStyle("fair", BLUE, "-", "o"),
    "naive_weighted_fair": SchedulerStyle("naive weighted fair", SKY, _DOT, "^"),
    "weighted_fair": SchedulerStyle("tuned weighted fair", GREEN, "-", "D"),
    "weighted_fair_arrival": SchedulerStyle("tuned weighted fair, by arrival", GREEN, _LONG, "^"),
    "weighted_fair_default": SchedulerStyle("weighted fair (α = −1)", GREEN, _DASH, "h"),
    "weighted_fair_each": SchedulerStyle("weighted fair, tuned on each", GREEN, _DOT, "d"),
    "capped_srw": SchedulerStyle("capped SRW", VERMILION, "-", "P"),
    "priced_srw": SchedulerStyle("capped SRW, larger at a price", VERMILION, _DOT, "p"),
    "weighted_best_fit": SchedulerStyle("weighted fair, best fit", TEAL, "-", "D"),
    "weighted_best_fit_memory": SchedulerStyle("the same, shares in memory", TEAL, _DOT, "d"),
    "graphene": SchedulerStyle("Graphene*", MAGENTA, "-", "v"),
    "graphene_arrival": SchedulerStyle("Graphene*, by arrival", MAGENTA, _LONG, "^"),
    "tetris": SchedulerStyle("Tetris", BROWN, "-", "s"),
    "tetris_sticky": SchedulerStyle("Tetris, executors stay", BROWN, _DASH, "h"),
    "lookahead": SchedulerStyle("lookahead", VERMILION, _DASH, "X"),
    "lookahead_least": SchedulerStyle("lookahead, fewest runs", VERMILION, _DASHDOT, "o"),
    "decima_lookahead": SchedulerStyle("Decima + lookahead", VERMILION, _LONG, "s"),
    "idle_rule": SchedulerStyle("linear rule, slots", OLIVE, _DASH, "X"),
    "idle_rule_blind": SchedulerStyle("linear rule, slots, ages unknown", OLIVE, _DOT, "^"),
    "idle_rule_hold": SchedulerStyle("linear rule, hold", INDIGO, _DASH, "D"),
    "idle_policy": SchedulerStyle("policy with slots", TEAL, _LONG, "*"),
    "idle_twin": SchedulerStyle("policy without slots", BROWN, _DOT, "p"),
    "idle_plain": SchedulerStyle("slots, no shape of jobs", MAGENTA, _DASHDOT, "P"),
    "idle_replaced": SchedulerStyle("slots, shape replaces 2 features", SKY, _DASH, "X"),
    "idle_optimum": SchedulerStyle("optimum", WINE, _DASH, "8"),
    "decima": SchedulerStyle("Decima", BLACK, "-", "*"),
    "decima_busy": SchedulerStyle("Decima, for busy clusters", BLACK, _LONG, "D"),
    "decima_full": SchedulerStyle("all of Decima", BLACK, (0, (2, 1)), "o"),
    "decima_no_graph": SchedulerStyle("no graph embedding", TEAL, _DASH, "v"),
    "decima_no_limit": SchedulerStyle("no parallelism control", MAGENTA, _DOT, "s"),
    "decima_unfixed": SchedulerStyle("no fixed sequences", BROWN, _DASHDOT, "d"),
    "decima_batch": SchedulerStyle("trained on batches", OLIVE, _LONG, "P"),
    "decima_drawn_ends": SchedulerStyle("episodes end, time drawn", SKY, _LONG, "<"),
    "decima_fixed_ends": SchedulerStyle("episodes end, time fixed", SKY, _MIXED, ">"),
    "decima_output": SchedulerStyle("an output per limit", ORANGE, "-", "^"),
    "decima_stage": SchedulerStyle("limits of stages", WINE, _DOT, "h"),
    "decima_blind": SchedulerStyle("Decima, no durations", GREY, _LONG, "*"),
    "trained_14": SchedulerStyle("trained at 14 s", BLACK, (0, (5, 1)), "s"),
    "trained_long": SchedulerStyle("the same, for longer", BLACK, (0, (9, 1.5, 1, 1.5)), "v"),
    "trained_23": SchedulerStyle("trained at 23 s", BROWN, _LONG, "o"),
    "trained_25": SchedulerStyle("trained at 25 s", PINK, _LONG, "^"),
    "trained_mixed": SchedulerStyle("trained at 13 to 23 s", SKY, "-", "P"),
    "trained_hint": SchedulerStyle("the same, told the gap", SKY, _DASHDOT, "d"),
    "trained_queries": SchedulerStyle("16 of 22 queries", INDIGO, _DOT, "h"),
    "trained_test": SchedulerStyle("trained as tested", BLACK, (0, (7, 2, 2, 2)), "d"),
    "trained_fewer_jobs": SchedulerStyle("15 times fewer jobs", PINK, _MIXED, "D"),
    "trained_fewer_executors": SchedulerStyle("10 times fewer executors", INDIGO, _MIXED, "^"),
    "decima_greedy": SchedulerStyle("Decima, greedy", BLACK, _DASHDOT, "H"),
    "decima_sampled": SchedulerStyle("Decima, sampled", BLACK, _DOT, "p"),
    "decima_simplified": SchedulerStyle("Decima, trained simplified", BLACK, (0, (2, 2)), "<"),
    "goal_average": SchedulerStyle("policy for the average JCT", BLACK, _MIXED, "h"),
    "goal_free": SchedulerStyle("policy for free moves", TEAL, _MIXED, "X"),
    "goal_makespan": SchedulerStyle("policy for the makespan", MAGENTA, _MIXED, "H"),
    "goal_p90": SchedulerStyle("policy for the 90th percentile", BROWN, _MIXED, "8"),
    "priority": SchedulerStyle("fixed order", OLIVE, "-", "<"),
    "random": SchedulerStyle("random", GREY, _DOT, "x"),
    "released_fair": SchedulerStyle("fair (released)", BLUE, _DASH, "h"),
    "released_fifo": SchedulerStyle("FIFO (released)", ORANGE, _DOT, "p"),
    "sjf_cp_sticky": SchedulerStyle("SJF-CP, sticky", PINK, "-", "v"),
    "fair_strict": SchedulerStyle("fair, strict shares", BLUE, _DASHDOT, "o"),
    "critical_path": SchedulerStyle("critical path", PINK, _DASH, ">"),
    "optimal": SchedulerStyle("optimal", GREEN, _DASHDOT, "X"),
    "exhaustive": SchedulerStyle("exhaustive search", INDIGO, "-", "8"),
    "search": SchedulerStyle("per-instance search", WINE, "-", "H"),
    "lower_bound": SchedulerStyle("lower bound", BLACK, _DASH, "_"),
    "lower_bound_unpriced": SchedulerStyle("lower bound, no prices", GREY, _DASH, "_"),
}
# Executors of different speed; a rule of the same name and another allocation keeps its look.
_UNEQUAL = {
    "fifo_deft": SchedulerStyle("FIFO-DEFT", ORANGE, _DASH, "s"),
    "sjf_deft": SchedulerStyle("SJF-DEFT", PINK, _DASHDOT, "v"),
    "hrrn_deft": SchedulerStyle("HRRN-DEFT", SKY, _DOT, "^"),
    "high_rank_up_deft": SchedulerStyle("HighRankUp-DEFT", BLUE, "-", "o"),
    "heft": SchedulerStyle("HEFT", GREEN, "-", "D"),
    "tdca": SchedulerStyle("TDCA", GREY, "-", "<"),
    "decima_deft": SchedulerStyle("Decima-DEFT", INDIGO, _DASHDOT, "H"),
    "discounted_rank": SchedulerStyle("discounted rank", VERMILION, "-", "P"),
    "linear_rank": SchedulerStyle("linear rule", OLIVE, _DASH, "X"),
    "lachesis": SchedulerStyle("Lachesis", BLACK, "-", "*"),
}
# Executors on cloud VMs.
_PLACEMENT = {
    "rr": SchedulerStyle("RR", ORANGE, "-", "o"),
    "rr_continuing": SchedulerStyle("RR, continuing", ORANGE, _LONG, "^"),
    "rrc": SchedulerStyle("RRC", GREY, _DASH, "s"),
    "ff": SchedulerStyle("FF", GREY, _LONG, "^"),
    "fill": SchedulerStyle("fill", "#44AA99", "-", "D"),
    "aep": SchedulerStyle("AEP", BLUE, _LONG, "D"),
    "aep_inverted": SchedulerStyle("AEP, inverted", BLUE, _DOT, "d"),
    "gio": SchedulerStyle("GIO", PINK, _DOT, "h"),
    "ilp": SchedulerStyle("ILP", SKY, "-", "v"),
    "ilp_exact": SchedulerStyle("ILP, knows placement", SKY, _DASH, "P"),
    "ilp_beta": SchedulerStyle("ILP with β (ours)", VERMILION, _LONG, "s"),
    "good_first": SchedulerStyle("good first (ours)", GREEN, _MIXED, "o"),
    "random_placing": SchedulerStyle("random, no waits", OLIVE, _LONG, "x"),
    "learned": SchedulerStyle("learned, held-out traces", BLACK, _LONG, "s"),
    "learned_here": SchedulerStyle("learned on the trace", BLACK, (0, (2, 1)), "D"),
    "cloud_optimum": SchedulerStyle("optimum or best found", WINE, _LONG, "o"),
    "paper_reinforce": SchedulerStyle("REINFORCE (paper)", INDIGO, _DASHDOT, "v"),
    "paper_reinforce_mask": SchedulerStyle("REINFORCE (paper), mask", INDIGO, _LONG, "^"),
    "paper_dqn": SchedulerStyle("DQN (paper)", WINE, _DASHDOT, "v"),
    "paper_dqn_mask": SchedulerStyle("DQN (paper), mask", WINE, _DOT, "^"),
}
# Schedulers by the system that they decide for; those of one system, which share figures, all look different.
SYSTEMS = (_SPARK, _UNEQUAL, _PLACEMENT)
SCHEDULERS: dict[str, SchedulerStyle] = _SPARK | _UNEQUAL | _PLACEMENT

# For schedulers of the user's own, which are not in the table.
_SPARE_COLORS = (OLIVE, INDIGO, WINE, TEAL, MAGENTA, BROWN)
_SPARE_MARKERS = ("1", "2", "3", "4", "+", "|")


def scheduler_style(name: str) -> SchedulerStyle:
    """Look of a scheduler; one that is not in the table gets a look that depends on its name alone."""
    if name in SCHEDULERS:
        return SCHEDULERS[name]
    digest = zlib.crc32(name.encode())
    marker = _SPARE_MARKERS[digest // len(_SPARE_COLORS) % len(_SPARE_MARKERS)]
    return SchedulerStyle(name.replace("_", " "), _SPARE_COLORS[digest % len(_SPARE_COLORS)], "-", marker)


def display_order(names) -> list[str]:
    """Distinct scheduler names in the order of the table, unknown ones last as they come."""
    names = list(dict.fromkeys(names))
    known = [name for name in SCHEDULERS if name in names]
    return known + [name for name in names if name not in SCHEDULERS]


@contextmanager
def context() -> Iterator[None]:
    """Apply the settings that all figures are drawn and saved with; those of the caller are restored afterwards."""
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


class Figure(matplotlib.figure.Figure):
    """A figure outside pyplot's registry: nothing to close, and a notebook shows it once, where it is returned.

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
        """What pages say in place of the picture: title and caption, or the titles and labels of a figure without."""
        if self.title:
            return f"{self.title}. {self.caption}".strip()
        parts = [part for axes in self.axes for part in (axes.get_title(), axes.get_xlabel(), axes.get_ylabel())]
        return "Chart: " + ", ".join(dict.fromkeys(part for part in parts if part))

    def _repr_png_(self) -> tuple[bytes, dict[str, str]]:
        return image(self, "png"), {"alt": self.alt}


def new_figure(width: float = COLUMN, height: float = 2.4) -> Figure:
    """Empty figure of a size in inches, laid out so that nothing overlaps."""
    return Figure(figsize=(width, height), layout="constrained")


def own_axes(axes: Axes | None, width: float = COLUMN, height: float = 2.4) -> Axes:
    """Axes to draw on: those given, or the only ones of a new figure of a size in inches."""
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
    figure.title = f"{title} ({workload})"
    figure.suptitle(textwrap.fill(figure.title, int(13 * width)))
    figure.caption = caption
    figure.supxlabel(textwrap.fill(caption, int(17 * width)), fontsize=7, color="0.35", ha="center")
    return figure


KINDS = ("png", "pdf", "svg")


def save(figure: matplotlib.figure.Figure, path: str | Path) -> list[Path]:
    """Write ``path`` with the suffixes ``.png``, ``.pdf`` and ``.svg``; equal figures give equal bytes.

    Returns:
        The paths.
    """
    stem = Path(path)
    stem = stem.with_suffix("") if stem.suffix[1:] in KINDS else stem
    targets = [stem.with_name(f"{stem.name}.{kind}") for kind in KINDS]
    for target in targets:
        atomic_write_bytes(target, image(figure, target.suffix[1:]))
    return targets


def image(figure: matplotlib.figure.Figure, kind: str) -> bytes:
    """Draw a figure as ``"png"``, ``"pdf"`` or ``"svg"``; equal figures give equal bytes.

    Files are written of these bytes, not by matplotlib, whose PDF writer hides that a disk is full behind an error of
    its own.
    """
    content = io.BytesIO()
    with context():
        figure.savefig(content, format=kind, metadata=_metadata(figure, kind))
    return content.getvalue()


def _metadata(figure: matplotlib.figure.Figure, kind: str) -> dict[str, str | None]:
    """What a file says of itself: no date, no version; SVG, which can be read as text, says what is in the picture."""
    if kind != "svg":
        return {"Software" if kind == "png" else "CreationDate": None}
    words = {"Date": None, "Creator": None}
    if isinstance(figure, Figure) and figure.title:
        words |= {"Title": figure.title, "Description": figure.caption, "Source": ", ".join(figure.sources)}
    return words


def time_unit(end_s: float) -> tuple[float, str]:
    """Seconds per unit and its name for a time axis up to ``end_s``: hours from three hours on, else minutes."""
    return (3600.0, "h") if end_s >= 3.0 * 3600.0 else (60.0, "min")


def legend_beside(axes: Axes, **options) -> None:
    """Put the legend to the right of the axes, from their top down; ``options`` are those of ``Axes.legend``."""
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), **options)


def legend_above(axes: Axes, ncols: int = 1) -> None:
    """Put a small legend above the middle of the axes."""
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=ncols, fontsize=7)


def label_rows(axes: Axes, labels: list[str]) -> None:
    """Label the rows of a horizontal chart, which lie at 0, 1, ... from the top; grid lines run along the values."""
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.5, -0.5)
    axes.grid(visible=True, axis="x")
    axes.grid(visible=False, axis="y")


def plain_numbers(*axes: Axis) -> None:
    """Write the numbers of logarithmic axes out: 1000, not 10 to the third."""
    for axis in axes:
        axis.set_major_formatter(lambda value, _: f"{value:g}")
        axis.set_minor_formatter(NullFormatter())
