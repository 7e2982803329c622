"""Appearance of schedulers in figures, from a table of every system."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from decima.core.registry import Registry

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
