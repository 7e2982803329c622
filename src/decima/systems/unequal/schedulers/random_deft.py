"""random: nodes in a random order, placed by DEFT."""

import numpy as np

from decima.systems.unequal.engine import ListRule, list_rule
from decima.systems.unequal.registry import register
from decima.systems.unequal.settings import Rules
from decima.systems.unequal.workload import Instance


@register("random_deft", "random", "ours, for comparison", Rules())
def random_deft(instance: Instance, rules: Rules, rng: np.random.Generator) -> ListRule:
    """Place nodes in an order that the seed chooses by DEFT."""
    return list_rule(instance, rules, rng.random(len(instance)))
