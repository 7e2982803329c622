"""Heterogeneous executors: nodes of DAGs as units of work, executors of different speed, copies of nodes.

The system of Luo et al., "Learning to Optimize DAG Scheduling in Heterogeneous Environment"; sections, equations and
figures named in this package are theirs unless another paper is named. Public names are resolved on first use.
"""

from importlib import import_module
from typing import Any

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


def __getattr__(name: str) -> Any:
    """Resolve a public name on first use (PEP 562)."""
    if name not in _EXPORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_EXPORTS[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
