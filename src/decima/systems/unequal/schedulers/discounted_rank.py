"""Discounted rank: HighRankUp-DEFT whose ranks count only a part of the transfer times."""

import numpy as np

from decima.systems.unequal.engine import ListRule, list_rule
from decima.systems.unequal.ranks import rank_up
from decima.systems.unequal.registry import Number, register
from decima.systems.unequal.settings import Rules
from decima.systems.unequal.workload import Instance

_DISCOUNT = Number("discount", "factor on transfer times in the rank", 0.25, 0.0, 1.0)


@register("discounted_rank", "discounted rank", "ours", Rules(slots="insertion"), numbers=(_DISCOUNT,))
def discounted_rank(instance: Instance, rules: Rules, rng: np.random.Generator, discount: float) -> ListRule:
    """Place the node with the largest upward rank, transfers counted by a quarter, by DEFT with insertion.

    A good placement avoids most transfers, so the full mean transfer time overstates what is still to come.
    """
    return list_rule(instance, rules, rank_up(instance, transfers=discount))
