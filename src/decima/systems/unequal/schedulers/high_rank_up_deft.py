"""HighRankUp-DEFT: nodes with the largest upward rank go first, placed by DEFT."""

import numpy as np

from decima.systems.unequal.engine import ListRule, list_rule
from decima.systems.unequal.ranks import rank_up
from decima.systems.unequal.registry import register
from decima.systems.unequal.settings import Rules
from decima.systems.unequal.workload import Instance


@register("high_rank_up_deft", "HighRankUp-DEFT", "Luo et al., Section V-B", Rules())
def high_rank_up_deft(instance: Instance, rules: Rules, rng: np.random.Generator) -> ListRule:
    """Place the node with the largest upward rank by DEFT."""
    return list_rule(instance, rules, rank_up(instance))
