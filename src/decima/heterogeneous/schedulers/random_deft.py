"""random: nodes in a random order, placed by DEFT."""

import numpy as np

from decima.heterogeneous.decisions import list_schedule
from decima.heterogeneous.instance import Instance
from decima.heterogeneous.registry import register
from decima.heterogeneous.rules import Rules
from decima.heterogeneous.schedule import Schedule


@register("random_deft", "random", "ours, for comparison", Rules())
def random_deft(instance: Instance, rules: Rules, rng: np.random.Generator) -> Schedule:
    """Place nodes in an order that the seed chooses by DEFT."""
    return list_schedule(instance, rules, rng.random(len(instance)))
