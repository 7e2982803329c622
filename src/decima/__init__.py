"""Decima: learned and heuristic scheduling of DAG-structured jobs, reproducible from data to figures.

The public names are resolved on first use, so that `import decima` stays quick and pulls in none of the heavy
libraries. `gymnasium.register_envs(decima.gym)` makes the environment `decima/SparkCluster-v0` known to Gymnasium.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

__all__ = [
    "__version__",
    "check_scheduler",
    "compare",
    "from_logs",
    "gym",
    "list_schedulers",
    "load",
    "load_policy",
    "make_scheduler",
    "models",
    "optimum",
    "plan",
    "plotting",
    "simulate",
    "train",
    "workload",
]

# public name -> (module, attribute); no attribute stands for the module itself
_EXPORTS: dict[str, tuple[str, str | None]] = {
    "check_scheduler": ("decima.systems.spark.schedulers", "check_scheduler"),
    "compare": ("decima.evaluation.comparison", "compare"),
    "from_logs": ("decima.connect.eventlog.profiles", "from_logs"),
    "gym": ("decima.gym", None),
    "list_schedulers": ("decima.systems.spark.schedulers", "list_schedulers"),
    "load": ("decima.workload", "load"),
    "load_policy": ("decima.systems.spark.policy.learned", "load_policy"),
    "make_scheduler": ("decima.systems.spark.schedulers", "make_scheduler"),
    "models": ("decima.learning.cards", "models"),
    "optimum": ("decima.evaluation.run", "optimum"),
    "plan": ("decima.systems.unequal.system", "plan"),
    "plotting": ("decima.plotting", None),
    "simulate": ("decima.evaluation.run", "simulate"),
    "train": ("decima.learning.training", "train"),
    "workload": ("decima.workload", None),
}

if TYPE_CHECKING:
    from decima import gym as gym
    from decima import plotting as plotting
    from decima import workload as workload
    from decima.connect.eventlog.profiles import from_logs as from_logs
    from decima.evaluation.comparison import compare as compare
    from decima.evaluation.run import optimum as optimum
    from decima.evaluation.run import simulate as simulate
    from decima.learning.cards import models as models
    from decima.learning.training import train as train
    from decima.systems.spark.policy.learned import load_policy as load_policy
    from decima.systems.spark.schedulers import check_scheduler as check_scheduler
    from decima.systems.spark.schedulers import list_schedulers as list_schedulers
    from decima.systems.spark.schedulers import make_scheduler as make_scheduler
    from decima.systems.unequal.system import plan as plan
    from decima.workload import load as load


def __getattr__(name: str) -> Any:
    """Resolve a public name on first use (PEP 562)."""
    try:
        module_name, attribute = _EXPORTS[name]
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
    module = import_module(module_name)
    value = module if attribute is None else getattr(module, attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
