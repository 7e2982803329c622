"""SJF-DEFT: nodes of the job with the least work left go first, placed by DEFT."""

import numpy as np

from decima.systems.unequal.engine import LEAST_LEFT, ListRule, list_rule
from decima.systems.unequal.registry import register
from decima.systems.unequal.settings import Rules
from decima.systems.unequal.workload import Instance


@register("sjf_deft", "SJF-DEFT", "Luo et al., Section V-B", Rules(decision="idle"))
def sjf_deft(instance: Instance, rules: Rules, rng: np.random.Generator) -> ListRule:
    """Place nodes of the job with the smallest sum of mean execution times left (nodes not yet placed) by DEFT.

    Differs: the paper's sentence about it repeats the one about FIFO.
    """
    return list_rule(instance, rules, choice=LEAST_LEFT)
