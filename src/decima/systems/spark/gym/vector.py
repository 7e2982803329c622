"""Many clusters as one vector environment: a step is one compiled call per thread."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy as duplicate
from itertools import pairwise
from typing import Any

import gymnasium
import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from decima.core.checks import check_whole
from decima.core.errors import ConfigError, InvalidDecisionError
from decima.evaluation.workers import check_workers
from decima.systems.spark.gym import kernel
from decima.systems.spark.gym.environment import LARGEST, SparkClusterEnv
from decima.systems.spark.gym.kernel import F, V


class SparkClusterVectorEnv(gymnasium.vector.VectorEnv):
    """N clusters of :class:`.environment.SparkClusterEnv`, with the same trajectories to the bit.

        envs = gymnasium.make_vec("decima/SparkCluster-v0", num_envs=64, vectorization_mode="vector_entry_point")

    Autoreset: ``AutoresetMode.NEXT_STEP``, as in ``SyncVectorEnv``. The step after the end of an episode ignores the
    action, begins the next episode and has reward 0.

    Info: as there, one entry per cluster. ``action_mask`` has one int8 array [N, choices] per number of an action.

    Args:
        num_envs: Number N of clusters.
        *arguments: As :class:`.environment.SparkClusterEnv` takes them.
        threads: Threads that step clusters; the number of cores, when omitted.
        copy: Return copies; False: views of memory that the next step overwrites.
        **options: Likewise.

    Raises:
        ConfigError: A parameter is out of range.
    """

    metadata = {"render_modes": ["ansi"], "autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012

    def __init__(
        self, num_envs: int = 1, *arguments: Any, threads: int | None = None, copy: bool = True, **options: Any
    ) -> None:
        check_whole("num_envs", num_envs, least=1)
        if threads is not None:
            check_whole("threads", threads, least=1)
        first = SparkClusterEnv(*arguments, copy=copy, **options)
        self.num_envs, self.render_mode = int(num_envs), first.render_mode
        self.single_observation_space, self.single_action_space = first.observation_space, first.action_space
        self.observation_space = batch_space(first.observation_space, self.num_envs)
        self.action_space = batch_space(first.action_space, self.num_envs)
        self._copy = copy
        self._threads = min(check_workers(threads), self.num_envs)
        self.envs = [first, *(duplicate(first) for _ in range(self.num_envs - 1))]
        self._gather()

    def _gather(self) -> None:
        self._memory = self.envs[0].make_memory(self.num_envs)
        for row, env in enumerate(self.envs):
            env.move_to(self._memory, row)
        self._masks = self._memory.masks()
        self._shown = self._memory.views() | {"jobs of rows": self._memory.array("job_ids"), "masks": self._masks}
        cuts = np.linspace(0, self.num_envs, self._threads + 1).astype(int).tolist()
        self._shares = list(pairwise(cuts))
        self._pool = ThreadPoolExecutor(self._threads - 1) if self._threads > 1 else None

    def __getstate__(self) -> dict[str, Any]:
        derived = ("_memory", "_shown", "_masks", "_pool")
        return {name: value for name, value in self.__dict__.items() if name not in derived}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        self.__dict__ |= kept
        self._gather()

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Begin an episode of every cluster.

        Args:
            seed: That of the first cluster, the next ones have the next numbers; or one for each.
            options: As in :meth:`.environment.SparkClusterEnv.reset`, for all.

        Raises:
            ConfigError: There are not as many seeds as clusters.
        """
        if isinstance(seed, (list, tuple, np.ndarray)):
            seeds = np.asarray(seed, dtype=object).tolist()
        else:
            seeds = [seed + row if isinstance(seed, int) else seed for row in range(self.num_envs)]
        if len(seeds) != self.num_envs:
            raise ConfigError(
                f"seed has {len(seeds)} numbers; expected one, or one for each of {self.num_envs} clusters"
            )
        for env, each in zip(self.envs, seeds, strict=True):
            env.begin(each, options)
        observation, *_, info = self._run(np.zeros(self.num_envs, dtype=bool))
        return observation, info

    def step(self, actions: Any) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Decide for every cluster, and run each to its next decision.

        Raises:
            InvalidDecisionError: The actions are not one row of whole numbers per cluster, or one is invalid with
                ``invalid_action="error"``; then nothing has happened.
            ResetNeeded: No episode has begun.
        """
        if not hasattr(self, "_over"):
            raise ResetNeeded("no episode has begun; call reset() before step()")
        memory, numbers = self._memory, np.asarray(actions)
        if numbers.shape != memory.actions.shape or numbers.dtype.kind not in "iu":
            rows, parts = memory.actions.shape
            raise InvalidDecisionError(
                f"actions are {actions!r:.60}; expected {rows} rows of {parts} whole numbers, one row per cluster"
            )
        memory.actions[:] = numbers if numbers.dtype.kind == "i" else np.minimum(numbers, LARGEST)
        over = self._over
        memory.facts[:, F.doing] = np.where(over, kernel.WAITS, kernel.ACTS)
        if self.envs[0].strict and (row := memory.run(0, self.num_envs, True)) >= 0:
            memory.facts[:, F.doing] = kernel.WAITS
            raise InvalidDecisionError(f"cluster {row}: {self.envs[row].refusal()}")
        for row in np.flatnonzero(over):
            self.envs[row].begin(None)
        return self._run(~over)

    def _run(self, acted: np.ndarray) -> tuple:
        """Let every cluster do what it is about to do, in threads; what :meth:`step` returns.

        Args:
            acted: Clusters that have acted; the others have begun an episode.
        """
        shown, (*others, last) = dict(self._shown), self._shares
        if self._copy:
            shown = {name: np.empty_like(view) for name, view in shown.items()}
        waiting = [self._pool.submit(self._run_share, *share, shown) for share in others]
        self._run_share(*last, shown)
        for each in waiting:
            each.result()
        return self._outcome(shown, acted)

    def _run_share(self, first: int, last: int, shown: dict[str, np.ndarray]) -> None:
        """Run some clusters and copy what they show."""
        self._memory.run(first, last, False)
        if self._copy:
            for name, view in self._shown.items():
                shown[name][first:last] = view[first:last]

    def _outcome(self, shown: dict[str, np.ndarray], acted: np.ndarray) -> tuple:
        facts, amounts = self._memory.facts, self._memory.amounts
        codes = facts[:, F.code]
        self._over = codes != kernel.ASKS
        for row in np.flatnonzero(codes == kernel.NO_ROOM):
            raise self.envs[row].no_room()
        if not self._memory.objective:
            for row in np.flatnonzero(acted):
                self.envs[row].pay()
        jobs, masks = shown.pop("jobs of rows"), shown.pop("masks")
        info = {
            "time_ms": amounts[:, V.time_ms].copy(),
            "jobs": jobs,
            "action_mask": tuple([masks[:, cut] for cut in self.envs[0].cuts]),
            "invalid_action": facts[:, F.invalid] > 0,
            "deadlock": codes == kernel.DEADLOCK,
        }
        info |= {f"_{name}": np.ones(self.num_envs, dtype=bool) for name in info}
        terminated = np.zeros(self.num_envs, dtype=bool)
        for row in np.flatnonzero(self._over):
            ending = self.envs[row].ending()
            terminated[row] = ending["num_unfinished"] == 0
            info = self._add_info(info, ending, row)
        return shown, amounts[:, V.reward].copy(), terminated, self._over & ~terminated, info

    def action_masks(self) -> np.ndarray:
        """The present masks in one row per cluster, bool [N, choices of all numbers].

        Raises:
            ResetNeeded: No episode has begun.
        """
        if not hasattr(self, "_over"):
            raise ResetNeeded("no episode has begun; call reset() before action_masks()")
        return self._masks.astype(bool)

    def render(self) -> tuple[str | None, ...]:
        """The clusters as texts of a few lines."""
        return tuple(env.render() for env in self.envs)

    def close_extras(self, **_options: Any) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown()
