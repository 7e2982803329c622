"""random: nodes in a random order, placed by DEFT."""

import numpy as np

from decima.heterogeneous.decisions import ListRule, list_rule
from decima.heterogeneous.instance import Instance
from decima.heterogeneous.registry import register
from decima.heterogeneous.rules import Rules


@register("random_deft", "random", "ours, for comparison", Rules())
def random_deft(instance: Instance, rules: Rules, rng: np.random.Generator) -> ListRule:
    """Place nodes in an order that the seed chooses by DEFT."""
    return list_rule(instance, rules, rng.random(len(instance)))
