"""SJF-DEFT: nodes of the job with the least work left go first, placed by DEFT."""

import numpy as np

from decima.heterogeneous.decisions import LEAST_LEFT, list_schedule
from decima.heterogeneous.instance import Instance
from decima.heterogeneous.registry import register
from decima.heterogeneous.rules import Rules
from decima.heterogeneous.schedule import Schedule


@register("sjf_deft", "SJF-DEFT", "Luo et al., Section V-B", Rules(decision="idle"))
def sjf_deft(instance: Instance, rules: Rules, rng: np.random.Generator) -> Schedule:
    """Place nodes of the job with the smallest sum of mean execution times left (nodes not yet placed) by DEFT.

    Differs: the paper's sentence about it repeats the one about FIFO.
    """
    return list_schedule(instance, rules, choice=LEAST_LEFT)
