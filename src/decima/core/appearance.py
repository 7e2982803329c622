"""Appearance of schedulers in figures, from a table of every system."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from decima.core.registry import Registry

# Okabe and Ito's colours, told apart with every common kind of colour blindness.
ORANGE, SKY, GREEN, YELLOW = "#E69F00", "#56B4E9", "#009E73", "#F0E442"
BLUE, VERMILION, PINK, BLACK = "#0072B2", "#D55E00", "#CC79A7", "#000000"
OLIVE, INDIGO, WINE, GREY = "#888833", "#332288", "#882255", "#777777"
TEAL, MAGENTA, BROWN = "#44AA99", "#AA4499", "#661100"
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
