"""Heterogeneous executors: DAG nodes as units of work, duplication of nodes.

The system of Luo et al., "Learning to Optimize DAG Scheduling in Heterogeneous Environment"; sections, equations and
figures named in this package are theirs unless another paper is named. Public names are resolved on first use.
"""

from decima import lazy_names

_EXPORTS = {
    "checking": ["InvalidScheduleError"],
    "cluster": ["Cluster"],
    "generators": ["canonical"],
    "json_format": ["load_instance", "load_schedule", "save_instance"],
    "optimum.bounds": ["lower_bound"],
    "optimum.exact": ["search"],
    "result": ["Schedule", "metrics", "validate"],
    "schedulers.check": ["check_scheduler"],
    "schedulers.registry": ["list_schedulers", "make_scheduler"],
    "settings": ["Rules"],
    "system": ["plan"],
    "workload": ["Instance", "Job"],
}

__all__ = sorted(name for names in _EXPORTS.values() for name in names)

__getattr__, __dir__ = lazy_names(__name__, _EXPORTS)
