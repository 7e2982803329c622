"""TDCA: clusters, copies, merging and insertion; a reconstruction."""

import numpy as np

from decima.systems.unequal.clusters import clusters, merged, times
from decima.systems.unequal.engine import list_rule
from decima.systems.unequal.ranks import rank_up
from decima.systems.unequal.registry import register
from decima.systems.unequal.result import Schedule
from decima.systems.unequal.settings import Rules
from decima.systems.unequal.workload import Instance


@register(
    "tdca",
    "TDCA",
    "He, Meng, Pan, Yuan and Zhou, A novel task-duplication based clustering algorithm for heterogeneous computing "
    "environments (2019)",
    Rules(slots="insertion"),
    open=("drop_unread",),
)
def tdca(instance: Instance, rules: Rules, rng: np.random.Generator) -> Schedule:
    """Place clusters of nodes, each on one executor, with copies of the parent whose data comes last where that helps.

    Differs: a reconstruction from the four steps by which others describe it. Clusters are the paths of TDS without
    shared nodes. They are merged to as many as there are executors, the heaviest first, each to where it ends first.
    Then nodes are placed by upward rank, each on the executor of its cluster, behind a copy of one parent if that is
    earlier, in the first gap that fits.
    """
    paths = clusters(instance, times(instance), duplicate=False)
    forced = np.empty(len(instance), dtype=np.int64)
    for executor, nodes in enumerate(merged(instance, paths)):
        forced[nodes] = executor
    return list_rule(instance, rules, rank_up(instance), forced=forced).schedule()
