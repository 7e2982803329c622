"""A linear rule over logarithms of features that do not change, tuned on jobs that no comparison sees."""

from __future__ import annotations

from decima.systems.unequal.engine import list_rule
from decima.systems.unequal.linear_rule import COEFFICIENTS, linear_priority
from decima.systems.unequal.registry import register
from decima.systems.unequal.settings import Rules


@register("linear_rank", "Linear rule", "this project", Rules(slots="insertion"))
def linear_rank(instance, rules, rng):
    """The largest weighted sum of logarithms of ranks, work and transfers goes first; DEFT."""
    return list_rule(instance, rules, linear_priority(instance, COEFFICIENTS[rules.decision]))
