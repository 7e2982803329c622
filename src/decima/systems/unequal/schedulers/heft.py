"""HEFT: nodes with the largest upward rank go first, each to the earliest finish, gaps included."""

import numpy as np

from decima.systems.unequal.engine import ListRule, list_rule
from decima.systems.unequal.ranks import rank_up
from decima.systems.unequal.registry import register
from decima.systems.unequal.settings import Rules
from decima.systems.unequal.workload import Instance


@register("heft", "HEFT", "Topcuoglu, Hariri and Wu (2002), Section 4.1", Rules(slots="insertion", duplicate=False))
def heft(instance: Instance, rules: Rules, rng: np.random.Generator) -> ListRule:
    """Place the node with the largest upward rank where it finishes first, without copies."""
    return list_rule(instance, rules, rank_up(instance))
