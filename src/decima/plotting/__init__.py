"""Kinds of plots and their style, from tidy frames.

A function with ``axes`` draws on those of a new figure when they are omitted, returns them, and takes ``legend=False``.

    >>> import decima
    >>> result = decima.simulate("embedded:n=2", "fair", executors=4, log=True)
    >>> axes = decima.plotting.gantt.gantt(result)
    >>> axes.get_ylabel()
    'executor'

Modules are imported when they are named, so that ``from decima import plotting`` costs nothing.
"""

from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

from decima.core.extras import MissingExtraError, advice


def __getattr__(name: str) -> ModuleType:
    """A module of this package on first use (PEP 562)."""
    if name.startswith("_") or find_spec(f"{__name__}.{name}") is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return import_module(f"{__name__}.{name}")
    except ModuleNotFoundError as error:
        if (text := advice(error.name or "")) is None:
            raise
        raise MissingExtraError(text, name=error.name) from error
