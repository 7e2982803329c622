"""HRRN-DEFT: nodes with the highest response ratio go first, placed by DEFT."""

import numpy as np

from decima.systems.unequal.engine import RESPONSE_RATIO, ListRule, list_rule
from decima.systems.unequal.registry import register
from decima.systems.unequal.settings import Rules
from decima.systems.unequal.workload import Instance


@register("hrrn_deft", "HRRN-DEFT", "Luo et al., Section V-B", Rules(decision="idle"))
def hrrn_deft(instance: Instance, rules: Rules, rng: np.random.Generator) -> ListRule:
    """Place the node with the largest waiting time over waiting plus mean execution time by DEFT.

    Waiting begins when a node can be decided, so that with ``plan`` and ``event`` nothing waits. The usual ratio,
    waiting plus execution time over execution time, gives the same order.
    """
    return list_rule(instance, rules, choice=RESPONSE_RATIO)
