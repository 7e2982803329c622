"""FIFO-DEFT: nodes of the job that arrived first go first, placed by DEFT."""

import numpy as np

from decima.systems.unequal.engine import ListRule, list_rule
from decima.systems.unequal.registry import register
from decima.systems.unequal.settings import Rules
from decima.systems.unequal.workload import Instance


@register("fifo_deft", "FIFO-DEFT", "Luo et al., Section V-B", Rules(decision="idle"))
def fifo_deft(instance: Instance, rules: Rules, rng: np.random.Generator) -> ListRule:
    """Place nodes in the order of their jobs' arrivals, then of their numbers, by DEFT."""
    return list_rule(instance, rules, -instance.arrival_s)
