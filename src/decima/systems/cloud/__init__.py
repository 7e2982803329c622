"""Executors of Spark jobs on cloud VMs: cost and duration of placements, and their optimum.

    from decima.systems import cloud

    result = cloud.simulate("generated:pattern=burst", "ilp_exact", seed=1)
    result.cost, result.mean_duration_s, result.good_placements
    print(decima.compare(["aep", "ilp_exact", "good_first"], "generated", system="cloud"))

Source: Islam, Karunasekera, Buyya, "Performance and Cost-Efficient Spark Job Scheduling Based on Deep Reinforcement
Learning in Cloud Computing Environments", IEEE TPDS 33(7), 2022. Public names are resolved on first use.
"""

from decima import lazy_names

_EXPORTS = {
    "catalog": ["RELEASED", "TABLE_4", "Billing", "Cluster", "VmType", "load_cluster", "make_cluster"],
    "result": ["PlacementResult"],
    "schedulers.registry": ["list_placements", "make_placement", "register_placement"],
    "settings": ["PlacementSettings", "Rules"],
    "sources": ["parse_placement_jobs"],
    "system": ["simulate"],
    "workload": ["PlacementJob", "PlacementWorkload", "load_jobs"],
}

__all__ = sorted(name for names in _EXPORTS.values() for name in names)

__getattr__, __dir__ = lazy_names(__name__, _EXPORTS)
