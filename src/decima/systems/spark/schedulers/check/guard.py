"""Guard that notices when a scheduler changes what it may only look at."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from decima.core.errors import SchedulerError
from decima.core.record import BUFFER, GIVEN, RUN
from decima.systems.spark.fields import ARRAYS, SCALARS
from decima.systems.spark.schedulers.interface import Observation
from decima.systems.spark.state import ClusterState

#: Fields that compiled schedulers write while they decide.
_OWN = {"action", "no_answer"}


class StateGuard:
    """Memory of a state before a decision; the arrays of a state stay where they are, so they are fetched once."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        kinds = {name: field.storage for name, field in ARRAYS.items() if field.storage != BUFFER and name not in _OWN}
        self._live = {name: getattr(state, name) for name, kind in kinds.items() if kind != GIVEN}
        self._static = {name: getattr(state, name) for name, kind in kinds.items() if kind == GIVEN}
        self._scalars = [name for name, field in SCALARS.items() if field.storage == RUN and name not in _OWN]
        self._workload = [values.tobytes() for values in self._static.values()]

    def look(self) -> None:
        """Remember the state as it is before a decision."""
        self._numbers = [getattr(self._state, name) for name in self._scalars]
        self._contents = [values.tobytes() for values in self._live.values()]

    def require_untouched(self, observation: Observation, make_error: Callable[[str], SchedulerError]) -> None:
        """Compare with what ``look`` remembered.

        Raises:
            SchedulerError: A field of the state, or the observation itself, was changed.
        """
        numbers = zip(self._scalars, self._numbers, strict=True)
        changed = [name for name, old in numbers if getattr(self._state, name) != old]
        changed += _changed(self._live, self._contents)
        if changed:
            raise make_error(
                f"decide changed {', '.join(changed[:5])} of the cluster; expected to find it as it was; only look at "
                "observation.state, and return the decision instead of carrying it out"
            )
        extra = [name for name in vars(observation) if name != "state"]
        if extra or observation.state is not self._state:
            raise make_error(
                f"decide changed the attribute {(extra or ['state'])[0]} of the observation; expected it untouched; "
                "keep notes in attributes of the scheduler"
            )

    def require_workload(self, make_error: Callable[[str], SchedulerError]) -> None:
        """Compare the workload with what it was when the guard was made.

        Raises:
            SchedulerError: An array of the workload was changed.
        """
        changed = _changed(self._static, self._workload)
        if changed:
            raise make_error(
                f"the run changed {', '.join(changed[:5])} of the workload; expected to find it as it was; copy an "
                "array before changing it"
            )


def _changed(arrays: dict[str, np.ndarray], contents: list[bytes]) -> list[str]:
    """Names of the arrays that no longer hold these contents."""
    pairs = zip(arrays.items(), contents, strict=True)
    return [name for (name, values), old in pairs if values.tobytes() != old]
