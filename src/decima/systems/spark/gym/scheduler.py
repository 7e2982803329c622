"""Policies of the environment as schedulers, to be compared, served or tried on Spark."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from copy import copy
from typing import Any

import gymnasium
import numpy as np

from decima.core.errors import ConfigError
from decima.systems.spark.decision import OPTION_PARTS
from decima.systems.spark.gym.environment import SparkClusterEnv
from decima.systems.spark.schedulers.interface import Decision, Observation


class GymScheduler:
    """Scheduler that asks a policy of the environment; see :func:`as_scheduler`."""

    offered_again = True  # where every executor is parked, as in the environment

    def __init__(self, policy: Any, env: gymnasium.Env | None, name: str) -> None:
        self.name = name
        self._policy = policy
        self._predict: Callable = getattr(policy, "predict", policy)
        if not callable(self._predict):
            raise ConfigError(f"a policy is a function of an observation or has predict, got {policy!r:.60}")
        vector = policy.get_env() if env is None and hasattr(policy, "get_env") else None
        env = vector.envs[0] if hasattr(vector, "envs") else env
        if env is None:
            raise ConfigError("the policy has no environment; expected the one that it was trained in, as env")
        if not isinstance(getattr(env, "unwrapped", None), SparkClusterEnv):
            raise ConfigError(f"expected an environment decima/SparkCluster-v0, got {env!r:.60}")
        self._outer = _detached(env)  # the episode of the other goes on undisturbed
        self._env = self._outer.unwrapped
        asked = inspect.signature(self._predict).parameters if hasattr(policy, "predict") else {}
        self._masked, self._options = "action_masks" in asked, {}
        if "deterministic" in asked:
            self._options["deterministic"] = True
        self._seen, self._acts, wrapper = [], [], self._outer
        while wrapper is not self._env:
            if isinstance(wrapper, gymnasium.ObservationWrapper):
                self._seen.insert(0, wrapper.observation)
            elif isinstance(wrapper, gymnasium.ActionWrapper):
                self._acts.append(wrapper.action)
            wrapper = wrapper.env
        while vector is not None:  # such as VecNormalize
            if "normalize_obs" in vars(type(vector)):
                self._seen.append(vector.normalize_obs)
            vector = getattr(vector, "venv", None)

    def reset(self, rng: np.random.Generator) -> None:
        """Forget the last run; a policy with ``reset`` forgets, too."""
        if hasattr(self._policy, "reset"):
            self._policy.reset()

    def decide(self, observation: Observation) -> Decision:
        """Decide as the policy does about the same arrays."""
        stage, *options = self._env.decide(observation.state, self._choose)
        if stage < 0:
            return Decision.idle()
        chosen = dict(zip((part.attribute for part in OPTION_PARTS), options, strict=True))
        if chosen.get("executor_class", 0) in (-1, None):
            chosen["executor_class"] = None
        return Decision(stage, **chosen)

    def _choose(self, arrays: dict[str, np.ndarray]) -> Any:
        for see in self._seen:
            arrays = see(arrays)
        options = dict(self._options)
        if self._masked:
            options["action_masks"] = self._outer.get_wrapper_attr("action_masks")()
        action = self._predict(arrays, **options)
        action = action[0] if hasattr(self._policy, "predict") else action
        for act in self._acts:
            action = act(action)
        return action


def _detached(env: gymnasium.Env) -> gymnasium.Env:
    """Copy of an environment and its wrappers."""
    other = copy(env)
    if env is not env.unwrapped:
        other.env = _detached(env.env)
    return other


def as_scheduler(policy: Any, env: gymnasium.Env | None = None, name: str = "policy") -> GymScheduler:
    """Make a scheduler of a policy that was learned in Gymnasium.

    The policy sees the arrays that it saw in the environment, through the same wrappers of observations and actions.

    Example:
        >>> import decima.gym, gymnasium
        >>> env = gymnasium.make("decima/SparkCluster-v0", workload=decima.workload.embedded_batch(2), executors=4)
        >>> first = as_scheduler(lambda observation: (0, 3), env, name="first")
        >>> decima.simulate("embedded:n=2", first, executors=4).scheduler
        'first'

    Args:
        policy: Function of an observation that returns an action; or an object with ``predict(observation)`` that
            returns an action and a state, such as a model of Stable-Baselines3. It decides deterministically, and gets
            the masks if it takes ``action_masks``, as ``MaskablePPO`` does.
        env: The environment that it was trained in, wrapped as it was. Its room for jobs, stages and edges counts. That
            of a model of Stable-Baselines3, when omitted.
        name: What tables call it.

    Raises:
        ConfigError: One of the two is something else.
    """
    return GymScheduler(policy, env, name)
