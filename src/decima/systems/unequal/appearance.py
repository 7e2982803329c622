"""Appearances of schedulers of unequal executors; other allocations of a rule share its."""

from decima.core.appearance import (
    BLACK,
    BLUE,
    DASH,
    DASHDOT,
    DOT,
    GREEN,
    GREY,
    INDIGO,
    OLIVE,
    ORANGE,
    PINK,
    SKY,
    VERMILION,
    Appearance,
)

APPEARANCES = {
    "fifo_deft": Appearance("FIFO-DEFT", ORANGE, DASH, "s"),
    "sjf_deft": Appearance("SJF-DEFT", PINK, DASHDOT, "v"),
    "hrrn_deft": Appearance("HRRN-DEFT", SKY, DOT, "^"),
    "high_rank_up_deft": Appearance("HighRankUp-DEFT", BLUE, "-", "o"),
    "heft": Appearance("HEFT", GREEN, "-", "D"),
    "tdca": Appearance("TDCA", GREY, "-", "<"),
    "decima_deft": Appearance("Decima-DEFT", INDIGO, DASHDOT, "H"),
    "discounted_rank": Appearance("discounted rank", VERMILION, "-", "P"),
    "linear_rank": Appearance("linear rule", OLIVE, DASH, "X"),
    "lachesis": Appearance("Lachesis", BLACK, "-", "*"),
}
