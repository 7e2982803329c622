"""Schedulers from the texts on a command line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from decima.core.errors import ConfigError

if TYPE_CHECKING:
    from decima.systems.spark.schedulers import Scheduler


def require_different(texts: Sequence[str]) -> None:
    """Raise ConfigError if a text is given twice."""
    for text in texts:
        if texts.count(text) > 1:
            raise ConfigError(f"scheduler {text!r} is given twice")


@contextmanager
def opened(texts: Sequence[str]) -> Iterator[dict[str, Scheduler]]:
    """Make schedulers by their texts, and close what they hold open when the block ends.

    Raises:
        UnknownSchedulerError: No scheduler has that name.
        ConfigError: A text is given twice, or is not as expected.
    """
    from decima.systems.spark.schedulers import make_scheduler

    require_different(texts)
    with ExitStack() as stack:
        made = {text: make_scheduler(text) for text in texts}
        for scheduler in made.values():
            if hasattr(scheduler, "__exit__"):
                stack.enter_context(scheduler)
        yield made
