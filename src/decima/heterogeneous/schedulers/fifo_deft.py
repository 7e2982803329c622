"""FIFO-DEFT: nodes of the job that arrived first go first, placed by DEFT."""

import numpy as np

from decima.heterogeneous.decisions import ListRule, list_rule
from decima.heterogeneous.instance import Instance
from decima.heterogeneous.registry import register
from decima.heterogeneous.rules import Rules


@register("fifo_deft", "FIFO-DEFT", "Luo et al., Section V-B", Rules(decision="idle"))
def fifo_deft(instance: Instance, rules: Rules, rng: np.random.Generator) -> ListRule:
    """Place nodes in the order of their jobs' arrivals, then of their numbers, by DEFT."""
    return list_rule(instance, rules, -instance.arrival_s)
