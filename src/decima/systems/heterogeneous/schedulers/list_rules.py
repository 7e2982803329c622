"""List rules: nodes in order of a priority, placed by DEFT or as in HEFT."""

import numpy as np

from decima.core.decision import Parameter
from decima.systems.heterogeneous.engine import LEAST_LEFT, RESPONSE_RATIO, ListRule, Planner, list_rule
from decima.systems.heterogeneous.schedulers.priorities import COEFFICIENTS, TRANSFER_PARTS, linear_priority, rank_up
from decima.systems.heterogeneous.schedulers.registry import register
from decima.systems.heterogeneous.settings import Rules
from decima.systems.heterogeneous.workload import Instance


@register("fifo_deft", "FIFO-DEFT", "Luo et al., Section V-B", Rules(decision="idle"))
def fifo_deft(instance: Instance, rules: Rules, rng: np.random.Generator) -> ListRule:
    """Assign nodes in the order of their jobs' arrivals, then of their numbers, by DEFT."""
    return list_rule(instance, rules, -instance.arrival_s)


@register("sjf_deft", "SJF-DEFT", "Luo et al., Section V-B", Rules(decision="idle"))
def sjf_deft(instance: Instance, rules: Rules, rng: np.random.Generator) -> ListRule:
    """Assign nodes of the job with the least mean execution time left by DEFT.

    Differs: the paper's sentence about it repeats the one about FIFO.
    """
    return list_rule(instance, rules, choice=LEAST_LEFT)


@register("hrrn_deft", "HRRN-DEFT", "Luo et al., Section V-B", Rules(decision="idle"))
def hrrn_deft(instance: Instance, rules: Rules, rng: np.random.Generator) -> ListRule:
    """Assign the node with the highest response ratio by DEFT.

    Waiting begins when a node can be decided, so that with ``plan`` and ``event`` nothing waits. The usual ratio,
    waiting plus execution time over execution time, gives the same order.
    """
    return list_rule(instance, rules, choice=RESPONSE_RATIO)


@register("high_rank_up_deft", "HighRankUp-DEFT", "Luo et al., Section V-B", Rules())
def high_rank_up_deft(instance: Instance, rules: Rules, rng: np.random.Generator) -> ListRule:
    """Assign the node with the largest upward rank of Eq. 5 by DEFT."""
    return list_rule(instance, rules, rank_up(instance))


@register("heft", "HEFT", "Topcuoglu, Hariri and Wu (2002), Section 4.1", Rules(slots="insertion", duplicate=False))
def heft(instance: Instance, rules: Rules, rng: np.random.Generator) -> ListRule:
    """Assign the node with the largest upward rank where it finishes first, without copies."""
    return list_rule(instance, rules, rank_up(instance, node_s=instance.mean_cost_s))


@register("random_deft", "random", "ours, for comparison", Rules(), draws=True)
def random_deft(instance: Instance, rules: Rules, rng: np.random.Generator) -> ListRule:
    """Assign nodes by DEFT, in an order that the seed chooses."""
    return list_rule(instance, rules, rng.random(len(instance)))


_DISCOUNT = Parameter("discount", 0.25, 0.0, 1.0, "factor on transfer times in the rank", tunable=True)


@register("discounted_rank", "discounted rank", "ours", Rules(slots="insertion"), parameters=(_DISCOUNT,))
def discounted_rank(instance: Instance, rules: Rules, rng: np.random.Generator, discount: float) -> ListRule:
    """Assign the node with the largest discounted upward rank by DEFT with insertion.

    A good placement avoids most transfers, so the full mean transfer time overstates what is still to come.
    """
    return list_rule(instance, rules, rank_up(instance, transfers=discount))


@register("linear_rank", "Linear rule", "this project", Rules(slots="insertion"))
def linear_rank(instance, rules, rng):
    """The largest weighted sum of logarithms of ranks, work and transfers goes first; DEFT."""
    return list_rule(instance, rules, linear_priority(instance, COEFFICIENTS[rules.decision]))


def best_rule_priority(instance: Instance, rules: Rules) -> np.ndarray:
    """Priorities of the simple rule whose schedule of this instance is the shortest, float64 [nodes].

    Simple rules are upward ranks with discounted transfers, and the linear rule with the weights for the decisions.
    Where jobs arrive later, that looks into the future: only the whole schedule says which rule it is.

    Args:
        instance: Jobs and cluster.
        rules: How nodes are decided and placed.
    """
    ranks = [rank_up(instance, transfers=discount) for discount in TRANSFER_PARTS]
    linear = linear_priority(instance, COEFFICIENTS[rules.decision])
    return min([*ranks, linear], key=Planner(instance, rules).run)
