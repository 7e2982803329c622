"""Experiments that reproduce papers, a module each, with tables and figures, and their pipeline.

Notebooks need six names: ``load`` gives the tables of an experiment, ``figure`` draws from them, ``show`` prints one,
``Run`` describes the run, ``against_paper`` compares with the paper, ``checkout`` is the folder of the project.
They are resolved on first use, so that computing a table imports nothing that draws.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from experiments.captions import Run as Run
    from experiments.figures import figure as figure
    from experiments.params import checkout as checkout
    from experiments.tables import against_paper as against_paper
    from experiments.tables import load as load
    from experiments.tables import show as show

__all__ = ["Run", "against_paper", "checkout", "figure", "load", "show"]

_MODULES = {"Run": "captions", "checkout": "params", "figure": "figures"}
_MODULES |= dict.fromkeys(("against_paper", "load", "show"), "tables")


def __getattr__(name: str) -> Any:
    """A public name on first use (PEP 562)."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
