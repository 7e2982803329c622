"""Appearances of schedulers of heterogeneous executors; other allocations of a rule share its."""

from decima.core import appearance as ink
from decima.core.appearance import Appearance

APPEARANCES = {
    "fifo_deft": Appearance("FIFO-DEFT", ink.ORANGE, ink.DASH, "s"),
    "sjf_deft": Appearance("SJF-DEFT", ink.PINK, ink.DASHDOT, "v"),
    "hrrn_deft": Appearance("HRRN-DEFT", ink.SKY, ink.DOT, "^"),
    "high_rank_up_deft": Appearance("HighRankUp-DEFT", ink.BLUE, "-", "o"),
    "heft": Appearance("HEFT", ink.GREEN, "-", "D"),
    "tdca": Appearance("TDCA", ink.BROWN, "-", "<"),
    "decima_deft": Appearance("Decima-DEFT", ink.INDIGO, ink.DASHDOT, "H"),
    "discounted_rank": Appearance("discounted rank", ink.VERMILION, "-", "P"),
    "linear_rank": Appearance("linear heuristic", ink.WINE, ink.DASH, "X"),
    "lachesis": Appearance("Lachesis", ink.BLACK, "-", "*"),
}
