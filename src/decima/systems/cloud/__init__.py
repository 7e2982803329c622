"""Executors of Spark jobs on cloud VMs: what a placement costs and how long jobs take, rules, the optimum, plans.

    from decima import cloud

    result = cloud.place("generated:pattern=burst", "ilp_exact", seed=1)
    result.cost, result.mean_duration_s, result.good_placements
    print(cloud.compare_placements(["aep", "ilp_exact", "good_first"]))

Source: Islam, Karunasekera, Buyya, "Performance and Cost-Efficient Spark Job Scheduling Based on Deep Reinforcement
Learning in Cloud Computing Environments", IEEE TPDS 33(7), 2022.
"""

from decima.systems.cloud.catalog import RELEASED, TABLE_4, Billing, Cluster, VmType, load_cluster, make_cluster
from decima.systems.cloud.policy import learned as registered
from decima.systems.cloud.result import PlacementResult
from decima.systems.cloud.schedulers.registry import list_placements, make_placement, register_placement
from decima.systems.cloud.settings import PlacementSettings, Rules
from decima.systems.cloud.sources import parse_placement_jobs
from decima.systems.cloud.system import compare_placements, place
from decima.systems.cloud.workload import PlacementJob, PlacementWorkload, load_jobs

__all__ = [
    "RELEASED",
    "TABLE_4",
    "Billing",
    "Cluster",
    "PlacementJob",
    "PlacementResult",
    "PlacementSettings",
    "PlacementWorkload",
    "Rules",
    "VmType",
    "compare_placements",
    "list_placements",
    "load_cluster",
    "load_jobs",
    "make_cluster",
    "make_placement",
    "parse_placement_jobs",
    "place",
    "register_placement",
    "registered",
]
