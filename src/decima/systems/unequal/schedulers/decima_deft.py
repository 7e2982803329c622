"""Decima-DEFT: Decima's network chooses the node, DEFT its executor.

Source: section V-B. Decima's features and Eq. 1 of its paper, where a stage is one unit of work and no limits exist;
trained like Lachesis.
"""

from __future__ import annotations

from decima.systems.unequal.policy.scheduler import POLICY, network_rule
from decima.systems.unequal.registry import register
from decima.systems.unequal.settings import Rules


@register("decima_deft", "Decima-DEFT", "Luo et al., section V-B", Rules(slots="insertion"), texts=(POLICY,))
def decima_deft(instance, rules, rng, policy=""):
    """Decima's network without edges and ranks scores the nodes, the best goes first; DEFT."""
    return network_rule(instance, rules, policy or "decima-deft-batch")
