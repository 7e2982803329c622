"""Lachesis: a network chooses the node, DEFT its executor.

Source: sections IV-A and IV-B; the weights are this project's own.
"""

from __future__ import annotations

from decima.systems.unequal.policy.scheduler import POLICY, network_rule
from decima.systems.unequal.registry import register
from decima.systems.unequal.settings import Rules


@register("lachesis", "Lachesis", "Luo et al., section IV", Rules(slots="insertion"), texts=(POLICY,))
def lachesis(instance, rules, rng, policy=""):
    """A graph network scores the nodes that can be decided, the best goes first; DEFT."""
    return network_rule(instance, rules, policy or "lachesis-batch")
