"""The example of ten nodes on three executors that list schedulers are explained with."""

from decima.systems.unequal.cluster import Cluster
from decima.systems.unequal.workload import Instance, Job

_COSTS = (
    (14, 16, 9), (13, 19, 18), (11, 13, 19), (13, 8, 17), (12, 13, 10),
    (13, 16, 9), (7, 15, 11), (5, 11, 14), (18, 12, 20), (21, 7, 16),
)  # fmt: skip
_EDGES = (
    (1, 2, 18), (1, 3, 12), (1, 4, 9), (1, 5, 11), (1, 6, 14), (2, 8, 19), (2, 9, 16), (3, 7, 23),
    (4, 8, 27), (4, 9, 23), (5, 9, 13), (6, 8, 15), (7, 10, 17), (8, 10, 11), (9, 10, 13),
)  # fmt: skip


def canonical() -> Instance:
    """The example: HEFT needs 80, CPOP 86, DLS 91; the optimum is 73 without and 69 with duplication.

    Source: Topcuoglu, Hariri and Wu, "Performance-effective and low-complexity task scheduling for heterogeneous
    computing" (2002), Figure 2.
    """
    edges = [(parent - 1, child - 1) for parent, child, _ in _EDGES]
    data = [size for _, _, size in _EDGES]
    names = [f"n{number}" for number in range(1, 11)]
    job = Job("canonical", [sum(row) / 3 for row in _COSTS], edges, data, nodes=names)
    return Instance([job], Cluster(costs=_COSTS, rate=1.0), "canonical example")
