"""Appearances of schedulers, policies and optima of executor placement."""

from decima.core import appearance as ink
from decima.core.appearance import Appearance

APPEARANCES = {
    "rr": Appearance("RR", ink.ORANGE, "-", "o"),
    "rr_continuing": Appearance("RR, continuing", ink.ORANGE, ink.LONG, "^"),
    "rrc": Appearance("RRC", ink.BROWN, ink.DASH, "s"),
    "ff": Appearance("FF", ink.BROWN, ink.LONG, "^"),
    "fill": Appearance("fill", ink.WINE, "-", "D"),
    "aep": Appearance("AEP", ink.BLUE, ink.LONG, "D"),
    "aep_inverted": Appearance("AEP, inverted", ink.BLUE, ink.DOT, "d"),
    "gio": Appearance("GIO", ink.PINK, ink.DOT, "h"),
    "ilp": Appearance("ILP", ink.SKY, "-", "v"),
    "ilp_exact": Appearance("ILP, placement-aware", ink.SKY, ink.DASH, "P"),
    "ilp_beta": Appearance("ILP with β (ours)", ink.VERMILION, ink.LONG, "s"),
    "good_first": Appearance("good first (ours)", ink.GREEN, ink.MIXED, "o"),
    "random_placing": Appearance("random, no waiting", ink.WINE, (0, (2, 2)), "x"),
    "learned": Appearance("learned, held-out traces", ink.BLACK, ink.LONG, "s"),
    "learned_here": Appearance("learned on the trace", ink.BLACK, (0, (2, 1)), "D"),
    "cloud_optimum": Appearance("optimum or best found", ink.BLACK, ink.DOT, "o"),
    "dqn": Appearance("DQN", ink.WINE, (0, (5, 1)), "v"),
    "dqn_mask": Appearance("DQN, mask", ink.WINE, ink.DASH, "s"),
    "reinforce": Appearance("REINFORCE", ink.INDIGO, "-", "v"),
    "reinforce_mask": Appearance("REINFORCE, mask", ink.INDIGO, ink.DASH, "^"),
    "reinforce_undiscounted": Appearance("REINFORCE, no discount", ink.INDIGO, ink.DOT, "D"),
    "paper_reinforce": Appearance("REINFORCE (paper)", ink.INDIGO, ink.DASHDOT, "s"),
    "paper_reinforce_mask": Appearance("REINFORCE (paper), mask", ink.INDIGO, ink.LONG, "D"),
    "paper_dqn": Appearance("DQN (paper)", ink.WINE, ink.DASHDOT, "h"),
    "paper_dqn_mask": Appearance("DQN (paper, ε 0.1), mask", ink.WINE, ink.DOT, "^"),
}
