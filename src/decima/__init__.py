"""Decima: learned and heuristic scheduling of DAG-structured jobs, reproducible from data to figures.

The public names are resolved on first use, so that `import decima` stays quick and pulls in none of the heavy
libraries. `gymnasium.register_envs(decima.gym)` makes the environment `decima/SparkCluster-v0` known to Gymnasium.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.3.0"

__all__ = [
    "__version__",
    "as_scheduler",
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

_EXPORTS = {
    "core.environment": ["as_scheduler"],
    "connect.eventlog.profiles": ["from_logs"],
    "evaluation.comparison": ["compare"],
    "evaluation.run": ["optimum", "simulate"],
    "learning.cards": ["models"],
    "learning.training": ["train"],
    "systems.spark.policy.scheduler": ["load_policy"],
    "systems.spark.schedulers": ["check_scheduler", "list_schedulers", "make_scheduler"],
    "systems.heterogeneous.system": ["plan"],
    "workload": ["load"],
}

if TYPE_CHECKING:
    from decima import gym as gym
    from decima import plotting as plotting
    from decima import workload as workload
    from decima.connect.eventlog.profiles import from_logs as from_logs
    from decima.core.environment import as_scheduler as as_scheduler
    from decima.evaluation.comparison import compare as compare
    from decima.evaluation.run import optimum as optimum
    from decima.evaluation.run import simulate as simulate
    from decima.learning.cards import models as models
    from decima.learning.training import train as train
    from decima.systems.heterogeneous.system import plan as plan
    from decima.systems.spark.policy.scheduler import load_policy as load_policy
    from decima.systems.spark.schedulers import check_scheduler as check_scheduler
    from decima.systems.spark.schedulers import list_schedulers as list_schedulers
    from decima.systems.spark.schedulers import make_scheduler as make_scheduler
    from decima.workload import load as load


def lazy_names(
    package: str, exports: Mapping[str, Sequence[str]], modules: Sequence[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Make ``__getattr__`` and ``__dir__`` of a package, which resolve names on first use (PEP 562).

    Args:
        package: Its name.
        exports: Public names by the module of the package that has them.
        modules: Its modules that are public themselves.
    """
    homes = {name: module for module, names in exports.items() for name in names}
    namespace = vars(sys.modules[package])

    def resolve(name: str) -> Any:
        if name in modules:
            return import_module(f"{package}.{name}")
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = namespace[name] = getattr(import_module(f"{package}.{homes[name]}"), name)
        return value

    return resolve, lambda: sorted({*namespace, *homes, *modules})


__getattr__, __dir__ = lazy_names(__name__, _EXPORTS, modules=("gym", "plotting", "workload"))
