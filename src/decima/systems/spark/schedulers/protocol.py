"""Whether an object is a scheduler: a name, ``reset(rng)`` and ``decide(observation)``."""

from __future__ import annotations

import inspect

from decima.core.errors import SchedulerError

#: method -> its one argument
_METHODS = {"reset": "rng", "decide": "observation"}


def require_protocol(scheduler: object) -> None:
    """Return if the object has all that :class:`decima.systems.spark.schedulers.Scheduler` asks for.

    Raises:
        SchedulerError: A part is missing or of another kind; says which, what was expected and the likely mistake.
    """
    kind = type(scheduler).__name__
    if isinstance(scheduler, type):
        raise SchedulerError(
            f"got the class {scheduler.__name__}; expected an object of it: {scheduler.__name__}() with parentheses"
        )
    for method, argument in _METHODS.items():
        function = getattr(scheduler, method, None)
        if not callable(function):
            raise SchedulerError(f"{kind} has no method {method}; expected {method}({argument}){_hint(scheduler)}")
        try:
            inspect.signature(function).bind(None)
        except TypeError:
            raise SchedulerError(
                f"{kind}.{method}{inspect.signature(function)} cannot be called with one argument; "
                f"expected {method}(self, {argument})"
            ) from None
        except ValueError:  # builtin callables may have no signature to look at
            continue
        if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
            raise SchedulerError(f"{kind}.{method} is a generator or a coroutine; expected a plain function")
    name = getattr(scheduler, "name", None)
    if not isinstance(name, str) or not name:
        raise SchedulerError(
            f'{kind}.name is {name!r}; expected a non-empty string, for titles and tables: name = "my_scheduler"'
        )


def _hint(scheduler: object) -> str:
    """Hint for an error message on what may have been meant."""
    if inspect.isfunction(scheduler):
        return "; a plain function is not enough, give it a class with name, reset and decide"
    return ""
