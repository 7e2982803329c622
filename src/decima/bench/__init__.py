"""Benchmark: fixed tasks with rules, with rules, policies and bounds to compare every entry with."""

import sys
from importlib.abc import MetaPathFinder
from typing import Any

_EXAMPLES = {"decima.bench.torch_policy": "examples/torch_policy.py", "decima.bench.sched_sim": "examples/sched_sim.py"}


class _Moved(MetaPathFinder):
    """Says where modules are that are part of the package no more."""

    def find_spec(self, name: str, *_: Any) -> None:
        """Raise for such a module."""
        if name in _EXAMPLES:
            where = f"{_EXAMPLES[name]} of the repository; version 0.2.0 is the last one that has it in the package"
            raise ModuleNotFoundError(f"{name} is {where}", name=name)


sys.meta_path.append(_Moved())
