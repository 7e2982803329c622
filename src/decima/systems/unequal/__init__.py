"""Unequal executors: DAG nodes as units of work, duplication of nodes.

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
    "objectives": ["metrics"],
    "optimum.bounds": ["lower_bound"],
    "optimum.priority_search": ["search"],
    "result": ["Schedule"],
    "schedulers.check": ["check_scheduler"],
    "schedulers.registry": ["list_schedulers", "make_scheduler"],
    "settings": ["Rules"],
    "system": ["plan"],
    "validation": ["validate"],
    "workload": ["Instance", "Job"],
}

__all__ = sorted(name for names in _EXPORTS.values() for name in names)

if TYPE_CHECKING:
    from decima.systems.unequal.checking import InvalidScheduleError as InvalidScheduleError
    from decima.systems.unequal.cluster import Cluster as Cluster
    from decima.systems.unequal.generators import canonical as canonical
    from decima.systems.unequal.json_format import load_instance as load_instance
    from decima.systems.unequal.json_format import load_schedule as load_schedule
    from decima.systems.unequal.json_format import save_instance as save_instance
    from decima.systems.unequal.objectives import metrics as metrics
    from decima.systems.unequal.optimum.bounds import lower_bound as lower_bound
    from decima.systems.unequal.optimum.priority_search import search as search
    from decima.systems.unequal.result import Schedule as Schedule
    from decima.systems.unequal.schedulers.check import check_scheduler as check_scheduler
    from decima.systems.unequal.schedulers.registry import list_schedulers as list_schedulers
    from decima.systems.unequal.schedulers.registry import make_scheduler as make_scheduler
    from decima.systems.unequal.settings import Rules as Rules
    from decima.systems.unequal.system import plan as plan
    from decima.systems.unequal.validation import validate as validate
    from decima.systems.unequal.workload import Instance as Instance
    from decima.systems.unequal.workload import Job as Job

__getattr__, __dir__ = lazy_names(__name__, _EXPORTS)
