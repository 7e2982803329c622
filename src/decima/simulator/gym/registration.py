"""Makes ``gymnasium.make("decima/SparkCluster-v0")`` work after ``import decima``, without importing Gymnasium here.

Gymnasium from 1.0 on looks for no plugins: a package registers its environments when it is imported. If Gymnasium is
there already, it is told at once; if not, as soon as it is imported. The longer name
``gymnasium.make("decima:decima/SparkCluster-v0")`` imports this package by itself.
"""

import sys
from importlib.abc import MetaPathFinder
from importlib.util import find_spec

ENVIRONMENT_ID = "decima/SparkCluster-v0"
_ENTRY_POINT = "decima.simulator.gym.environment:SparkClusterEnv"


def register_environments() -> None:
    """Register the environment now, or when Gymnasium is imported."""
    if "gymnasium" in sys.modules:
        _register()
    else:
        sys.meta_path.insert(0, _AfterGymnasium())


def _register() -> None:
    from gymnasium.envs.registration import register, registry

    if ENVIRONMENT_ID not in registry:
        register(id=ENVIRONMENT_ID, entry_point=_ENTRY_POINT)


class _AfterGymnasium(MetaPathFinder):
    """Waits for the import of Gymnasium and registers after it."""

    def __init__(self) -> None:
        self._looking = False

    def find_spec(self, fullname, path=None, target=None):
        """Leave every other module alone."""
        if fullname != "gymnasium" or self._looking:
            return None
        self._looking = True
        try:
            spec = find_spec(fullname)
        finally:
            self._looking = False
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_register(module) -> None:
                execute(module)
                if self in sys.meta_path:
                    sys.meta_path.remove(self)
                _register()

            spec.loader.exec_module = execute_and_register
        return spec
