"""Actions of the environment as one whole number, for a single categorical choice."""

from __future__ import annotations

from functools import reduce
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.utils import RecordConstructorArgs

from decima.core.errors import InvalidDecisionError


class NumberedActions(gymnasium.ActionWrapper, RecordConstructorArgs):
    """Every combination of the numbers of an action is one, as in ``numpy.unravel_index``.

    Args:
        env: An environment ``decima/SparkCluster-v0``.
    """

    def __init__(self, env: gymnasium.Env) -> None:
        RecordConstructorArgs.__init__(self)
        gymnasium.ActionWrapper.__init__(self, env)
        self._choices = tuple(env.action_space.nvec.tolist())
        self.action_space = spaces.Discrete(int(np.prod(self._choices)))

    def reset(self, **options: Any) -> tuple[Any, dict[str, Any]]:
        """Begin an episode; ``action_mask`` is one int8 array [actions]."""
        observation, info = self.env.reset(**options)
        return observation, info | {"action_mask": self._joined(info["action_mask"])}

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Act; ``action_mask`` is one int8 array [actions]."""
        *outcome, info = super().step(action)
        return (*outcome, info | {"action_mask": self._joined(info["action_mask"])})

    def action(self, action: Any) -> np.ndarray:
        """Numbers of an action.

        Raises:
            InvalidDecisionError: It is not a whole number of the action space.
        """
        number = np.asarray(action)
        if number.size != 1 or number.dtype.kind not in "iu" or not 0 <= number.item() < self.action_space.n:
            raise InvalidDecisionError(
                f"action is {action!r:.60}; expected a whole number from 0 to {self.action_space.n - 1}"
            )
        return np.array(np.unravel_index(number.item(), self._choices))

    def action_masks(self) -> np.ndarray:
        """The present mask, bool [actions], for sb3-contrib."""
        masks = self.env.get_wrapper_attr("action_masks")()
        return self._joined(np.split(masks, np.cumsum(self._choices)[:-1]))

    def _joined(self, masks: Any) -> np.ndarray:
        return reduce(lambda joined, mask: (joined[:, None] & mask).ravel(), masks)
