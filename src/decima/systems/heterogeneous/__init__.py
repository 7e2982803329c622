"""Heterogeneous executors: DAG nodes as units of work, duplication of nodes.

The system of Luo et al., "Learning to Optimize DAG Scheduling in Heterogeneous Environment"; sections, equations and
figures named in this package are theirs unless another paper is named. Public names are resolved on first use.
"""

from typing import TYPE_CHECKING

from decima import lazy_names

_EXPORTS = {
    "checking": ["InvalidScheduleError"],
    "cluster": ["Cluster"],
    "generators": ["canonical"],
    "json_format": ["load_instance", "load_schedule", "save_instance"],
    "optimum.bounds": ["lower_bound"],
    "optimum.priority_search": ["search"],
    "result": ["Schedule", "metrics", "validate"],
    "schedulers.check": ["check_scheduler"],
    "schedulers.registry": ["list_schedulers", "make_scheduler"],
    "settings": ["Rules"],
    "system": ["plan"],
    "workload": ["Instance", "Job"],
}

__all__ = sorted(name for names in _EXPORTS.values() for name in names)

if TYPE_CHECKING:
    from decima.systems.heterogeneous.checking import InvalidScheduleError as InvalidScheduleError
    from decima.systems.heterogeneous.cluster import Cluster as Cluster
    from decima.systems.heterogeneous.generators import canonical as canonical
    from decima.systems.heterogeneous.json_format import load_instance as load_instance
    from decima.systems.heterogeneous.json_format import load_schedule as load_schedule
    from decima.systems.heterogeneous.json_format import save_instance as save_instance
    from decima.systems.heterogeneous.optimum.bounds import lower_bound as lower_bound
    from decima.systems.heterogeneous.optimum.priority_search import search as search
    from decima.systems.heterogeneous.result import Schedule as Schedule
    from decima.systems.heterogeneous.result import metrics as metrics
    from decima.systems.heterogeneous.result import validate as validate
    from decima.systems.heterogeneous.schedulers.check import check_scheduler as check_scheduler
    from decima.systems.heterogeneous.schedulers.registry import list_schedulers as list_schedulers
    from decima.systems.heterogeneous.schedulers.registry import make_scheduler as make_scheduler
    from decima.systems.heterogeneous.settings import Rules as Rules
    from decima.systems.heterogeneous.system import plan as plan
    from decima.systems.heterogeneous.workload import Instance as Instance
    from decima.systems.heterogeneous.workload import Job as Job

__getattr__, __dir__ = lazy_names(__name__, _EXPORTS)
