"""Executors of Spark jobs on cloud VMs: cost and duration of placements, and their optimum.

    from decima.systems import cloud

    result = cloud.simulate("generated:pattern=burst", "ilp_exact", seed=1)
    result.cost, result.mean_duration_s, result.good_placements
    print(decima.compare(["aep", "ilp_exact", "good_first"], "generated", system="cloud"))

Source: Islam, Karunasekera, Buyya, "Performance and Cost-Efficient Spark Job Scheduling Based on Deep Reinforcement
Learning in Cloud Computing Environments", IEEE TPDS 33(7), 2022. Public names are resolved on first use.
"""

from typing import TYPE_CHECKING

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

if TYPE_CHECKING:
    from decima.systems.cloud.catalog import RELEASED as RELEASED
    from decima.systems.cloud.catalog import TABLE_4 as TABLE_4
    from decima.systems.cloud.catalog import Billing as Billing
    from decima.systems.cloud.catalog import Cluster as Cluster
    from decima.systems.cloud.catalog import VmType as VmType
    from decima.systems.cloud.catalog import load_cluster as load_cluster
    from decima.systems.cloud.catalog import make_cluster as make_cluster
    from decima.systems.cloud.result import PlacementResult as PlacementResult
    from decima.systems.cloud.schedulers.registry import list_placements as list_placements
    from decima.systems.cloud.schedulers.registry import make_placement as make_placement
    from decima.systems.cloud.schedulers.registry import register_placement as register_placement
    from decima.systems.cloud.settings import PlacementSettings as PlacementSettings
    from decima.systems.cloud.settings import Rules as Rules
    from decima.systems.cloud.sources import parse_placement_jobs as parse_placement_jobs
    from decima.systems.cloud.system import simulate as simulate
    from decima.systems.cloud.workload import PlacementJob as PlacementJob
    from decima.systems.cloud.workload import PlacementWorkload as PlacementWorkload
    from decima.systems.cloud.workload import load_jobs as load_jobs

__getattr__, __dir__ = lazy_names(__name__, _EXPORTS)
