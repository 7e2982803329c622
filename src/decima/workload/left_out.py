"""Members of a collection that cannot be read, with their reasons."""

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from decima.core.errors import WorkloadError

_NAMED = 3  # members that a message names


@contextmanager
def inside(where: str | os.PathLike) -> Iterator[None]:
    """Prefix messages of errors with the path or part of the file."""
    try:
        yield
    except WorkloadError as error:
        raise WorkloadError(f"{where}: {error}") from error


class LeftOut:
    """Members that are left out of what is read.

    Args:
        source: What is read, for the warning.
        noun: What a member is called.
    """

    def __init__(self, source: str, noun: str = "job") -> None:
        self.source, self.noun = source, noun
        self.reasons: list[str] = []  # of each member, with its name

    @contextmanager
    def member(self) -> Iterator[None]:
        """Read a member; an error about it is noted, and its message names the member."""
        try:
            yield
        except WorkloadError as error:
            self.reasons.append(str(error))

    def finish(self, kept: int) -> None:
        """Warn of the members that are left out.

        Args:
            kept: Members that were read.

        Raises:
            WorkloadError: None was read, and some are left out.
        """
        count = len(self.reasons)
        if count and not kept:
            many = f"none of {count} {self.noun}s can be read; the first: " if count > 1 else ""
            raise WorkloadError(f"{many}{self.reasons[0]}")
        if count:
            listed = "; ".join(self.reasons[:_NAMED]) + ("; ..." if count > _NAMED else "")
            warnings.warn(f"{self.source}: {count} of {count + kept} {self.noun}s left out: {listed}", stacklevel=2)
