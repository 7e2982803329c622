"""What the Gymnasium environments of all systems have in common, and their policies as schedulers."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from copy import copy
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import gymnasium
import numpy as np
from gymnasium.error import ResetNeeded

from decima.core.errors import ConfigError, RenderModeError


class SchedulingEnv(gymnasium.Env):
    """Environment whose episodes are runs of workloads.

    A subclass defines its workloads and reads their text; it sets ``_mask``, the present mask in one row.

    Args:
        workload: A workload, a text, or a function ``seed -> workload`` that is called for every episode.
        render_mode: ``"ansi"`` or None.
        **options: Value of an option, and what is allowed.

    Raises:
        ConfigError: An option is out of range, or the workload is not one.
    """

    metadata = {"render_modes": ["ansi"], "render_fps": 4}  # noqa: RUF012
    workload_type: ClassVar[type]
    scheduler_type: ClassVar[type[GymScheduler]]
    _begun, _seed, _mask = False, 0, None

    def __init__(self, workload: Any, render_mode: str | None, **options: tuple[Any, tuple]) -> None:
        for name, (value, allowed) in options.items():
            if value not in allowed:
                raise ConfigError(f"{name} must be {' or '.join(map(str, allowed))}, got {value!r}")
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise RenderModeError(f"render_mode must be ansi or None, got {render_mode!r}")
        self.render_mode = render_mode
        self._source = self._source_of(workload)

    def read_text(self, text: str) -> Any:
        """Workload that a text means, or a function ``seed -> workload`` where it is drawn."""
        raise NotImplementedError

    @property
    def varies(self) -> bool:
        """Whether episodes have different workloads."""
        return getattr(self._source, "func", None) is not _same

    def _source_of(self, workload: Any) -> Callable[[int], Any]:
        if isinstance(workload, (str, Path)):
            workload = self.read_text(str(workload))
        return workload if callable(workload) else partial(_same, workload)  # lambdas cannot be pickled

    def _workload_of(self, source: Callable[[int], Any], seed: int) -> Any:
        workload, expected = source(seed), self.workload_type
        if not isinstance(workload, expected):
            got = f"{workload!r:.60} ({type(workload).__name__})"
            article = "an" if expected.__name__[0] in "AEIOU" else "a"
            raise ConfigError(f"the workload is {got}; expected {article} {expected.__name__}")
        return workload

    def _draw(self, seed: int | None, options: dict[str, Any] | None) -> Any:
        """Workload of an episode that begins, see ``reset``."""
        gymnasium.Env.reset(self, seed=seed)
        unknown = set(options or {}) - {"workload"}
        if unknown:
            raise ConfigError(f"unknown options of reset: {', '.join(sorted(map(str, unknown)))}; expected workload")
        self._seed = int(self.np_random.integers(2**31)) if seed is None else int(seed)
        replaced = (options or {}).get("workload")
        return self._workload_of(self._source if replaced is None else self._source_of(replaced), self._seed)

    def action_masks(self) -> np.ndarray:
        """The present ``action_mask`` in one row, bool [choices of all numbers], for sb3-contrib.

        Raises:
            ResetNeeded: No episode has begun.
        """
        self._require_begun("action_masks")
        return self._mask.astype(bool)

    def _require_begun(self, method: str) -> None:
        if not self._begun:
            raise ResetNeeded(f"no episode has begun; call reset() before {method}()")

    def render(self) -> str | None:
        """The state as a text of a few lines."""
        if self.render_mode is None:
            gymnasium.logger.warn('render() shows nothing without a render mode; make the environment with "ansi"')
            return None
        self._require_begun("render")
        return self.describe()

    def describe(self) -> str:
        """The state as a text of a few lines."""
        raise NotImplementedError


def _same(workload: Any, seed: int) -> Any:
    return workload


class GymScheduler:
    """Scheduler that asks a policy of an environment; see :func:`as_scheduler`."""

    def __init__(self, policy: Any, env: gymnasium.Env, vector: Any, name: str) -> None:
        self.name = name
        self._policy = policy
        self._predict: Callable = getattr(policy, "predict", policy)
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
        """Forget the last run; a policy with ``reset`` also forgets."""
        if hasattr(self._policy, "reset"):
            self._policy.reset()

    def choose(self, observation: Any) -> Any:
        """Action of the policy for an observation of the environment without its wrappers."""
        for see in self._seen:
            observation = see(observation)
        options = dict(self._options)
        if self._masked:
            options["action_masks"] = self._outer.get_wrapper_attr("action_masks")()
        action = self._predict(observation, **options)
        action = action[0] if hasattr(self._policy, "predict") else action
        for act in self._acts:
            action = act(action)
        return action


def _detached(env: gymnasium.Env) -> gymnasium.Env:
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
        ConfigError: One of the two is something else, or the model was trained with other spaces.
    """
    if not callable(getattr(policy, "predict", policy)):
        raise ConfigError(f"a policy is a function of an observation or has predict, got {policy!r:.60}")
    vector = policy.get_env() if env is None and hasattr(policy, "get_env") else None
    if env is not None:
        for space in ("observation_space", "action_space"):
            theirs, ours = (getattr(each, space, None) for each in (policy, env))
            if theirs is not None and theirs != ours:
                raise ConfigError(
                    f"the {space} of the policy is {theirs!s:.60}, that of the environment {ours!s:.60}; expected an "
                    "environment made and wrapped as the one that it was trained in"
                )
    env = vector.envs[0] if hasattr(vector, "envs") else env
    if env is None:
        raise ConfigError("the policy has no environment; expected the one that it was trained in, as env")
    if not isinstance(getattr(env, "unwrapped", None), SchedulingEnv):
        raise ConfigError(f"expected an environment such as decima/SparkCluster-v0, got {env!r:.60}")
    return env.unwrapped.scheduler_type(policy, env, vector, name)
