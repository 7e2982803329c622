"""Unequal executors: DAG nodes as units of work, duplication of nodes.

The system of Luo et al., "Learning to Optimize DAG Scheduling in Heterogeneous Environment"; sections, equations and
figures named in this package are theirs unless another paper is named. Public names are resolved on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

_EXPORTS = {
    "Cluster": "cluster",
    "Instance": "workload",
    "InvalidScheduleError": "checking",
    "Job": "workload",
    "Rules": "settings",
    "Schedule": "result",
    "canonical": "generators",
    "list_schedulers": "schedulers.registry",
    "load_instance": "json_format",
    "load_schedule": "json_format",
    "lower_bound": "optimum.bounds",
    "make_scheduler": "schedulers.registry",
    "metrics": "objectives",
    "plan": "system",
    "save_instance": "json_format",
    "search": "optimum.priority_search",
    "validate": "validation",
}

__all__ = sorted(_EXPORTS)

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
    from decima.systems.unequal.schedulers.registry import list_schedulers as list_schedulers
    from decima.systems.unequal.schedulers.registry import make_scheduler as make_scheduler
    from decima.systems.unequal.settings import Rules as Rules
    from decima.systems.unequal.system import plan as plan
    from decima.systems.unequal.validation import validate as validate
    from decima.systems.unequal.workload import Instance as Instance
    from decima.systems.unequal.workload import Job as Job


def __getattr__(name: str) -> Any:
    """Resolve a public name on first use (PEP 562)."""
    if name not in _EXPORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_EXPORTS[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
