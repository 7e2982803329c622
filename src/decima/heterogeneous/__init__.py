"""Heterogeneous executors: nodes of DAGs as units of work, executors of different speed, copies of nodes.

The system of Luo et al., "Learning to Optimize DAG Scheduling in Heterogeneous Environment"; sections, equations and
figures named in this package are theirs unless another paper is named. Public names are resolved on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

_EXPORTS = {
    "Cluster": "cluster",
    "Instance": "instance",
    "InvalidScheduleError": "checking",
    "Job": "instance",
    "Rules": "rules",
    "Schedule": "schedule",
    "canonical": "examples",
    "compare": "planning",
    "list_schedulers": "registry",
    "load_instance": "json_format",
    "load_schedule": "json_format",
    "lower_bound": "bounds",
    "make_scheduler": "registry",
    "metrics": "measures",
    "optimum": "exact",
    "plan": "planning",
    "save_instance": "json_format",
    "search": "priority_search",
    "validate": "validation",
}

__all__ = sorted(_EXPORTS)

if TYPE_CHECKING:
    from decima.heterogeneous.bounds import lower_bound as lower_bound
    from decima.heterogeneous.checking import InvalidScheduleError as InvalidScheduleError
    from decima.heterogeneous.cluster import Cluster as Cluster
    from decima.heterogeneous.exact import optimum as optimum
    from decima.heterogeneous.examples import canonical as canonical
    from decima.heterogeneous.instance import Instance as Instance
    from decima.heterogeneous.instance import Job as Job
    from decima.heterogeneous.json_format import load_instance as load_instance
    from decima.heterogeneous.json_format import load_schedule as load_schedule
    from decima.heterogeneous.json_format import save_instance as save_instance
    from decima.heterogeneous.measures import metrics as metrics
    from decima.heterogeneous.planning import compare as compare
    from decima.heterogeneous.planning import plan as plan
    from decima.heterogeneous.priority_search import search as search
    from decima.heterogeneous.registry import list_schedulers as list_schedulers
    from decima.heterogeneous.registry import make_scheduler as make_scheduler
    from decima.heterogeneous.rules import Rules as Rules
    from decima.heterogeneous.schedule import Schedule as Schedule
    from decima.heterogeneous.validation import validate as validate


def __getattr__(name: str) -> Any:
    """Resolve a public name on first use (PEP 562)."""
    if name not in _EXPORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_EXPORTS[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
