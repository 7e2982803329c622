"""Gymnasium environment ``decima/HeterogeneousExecutors-v0``: a learner chooses the node that is placed next.

    import gymnasium

    env = gymnasium.make("decima.systems.heterogeneous.gym:decima/HeterogeneousExecutors-v0", workload="random")
    observation, info = env.reset(seed=0)
    action = env.action_space.sample(mask=info["action_mask"])
    observation, reward, terminated, truncated, info = env.step(action)

Source: Luo et al. (Lachesis), section IV.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.error import ResetNeeded

from decima.core.checks import check_whole
from decima.core.environment import GymScheduler, SchedulingEnv
from decima.core.errors import ConfigError, InvalidDecisionError
from decima.systems.heterogeneous.engine import OUTSIDE, Planner, step_plan
from decima.systems.heterogeneous.policy.architecture import NodeArchitecture
from decima.systems.heterogeneous.policy.batch import SeenInstance
from decima.systems.heterogeneous.result import HeterogeneousResult, Schedule
from decima.systems.heterogeneous.settings import Rules
from decima.systems.heterogeneous.sources import ClusterOptions, InstanceText
from decima.systems.heterogeneous.system import result_of
from decima.systems.heterogeneous.workload import Instance

OBJECTIVES = ("makespan", "avg_jct")
#: What learned policies see of a node; the last column is of its outgoing edges (Eq. 7).
ARCHITECTURE = NodeArchitecture.named("fast")
NODE_COLUMNS = (*ARCHITECTURE.node_features, "outgoing")
_EXAMPLES = 10
_MOST = float(np.finfo(np.float32).max)


class HeterogeneousGymScheduler(GymScheduler):
    """Scheduler that asks a policy of the environment; see :func:`decima.core.environment.as_scheduler`."""

    def schedule(self, instance: Instance, seed: int = 0) -> Schedule:
        """Schedule an instance in the order that the policy chooses."""
        self.reset(np.random.default_rng(seed))
        return replace(self._env.play(instance, self.choose), scheduler=self.name)


class HeterogeneousExecutorsEnv(SchedulingEnv):
    """List scheduling on heterogeneous executors as a Gymnasium environment.

    Observation: ``nodes`` float32 [N, F], columns :data:`NODE_COLUMNS` as log(1 + x) in the job's unit of time;
    ``node_job`` int32 [N], job of the node; ``edges`` int32 [M, 2], rows of parent and child; ``time_s`` float32 [1];
    ``action_mask`` int8 [N]. Rows are nodes that are not placed, of jobs that have arrived; the others are 0, in
    ``node_job`` and ``edges`` -1.

    Action: row of the node that is placed next. The rule chooses its executor (EFT, or DEFT where it may duplicate).

    Reward: minus the growth of the cost since the last step, in seconds. ``"makespan"``: the end of the schedule so
    far, minus the makespan over an episode. ``"avg_jct"``: the sum of the completion times of the jobs so far.

    End: ``terminated`` when all nodes are placed.

    Info: ``action_mask``, ``time_s``, ``invalid_action``; at the end ``makespan_s`` and ``avg_jct_s``.

    Args:
        workload: An instance, a text of :mod:`decima.systems.heterogeneous.sources`, or a function
            ``seed -> instance``; texts and functions are drawn anew for every episode. Random DAGs when omitted.
        executors: Executors of drawn instances, as the text has them when omitted.
        edges: Sizes of edges of a text, as in :func:`decima.systems.heterogeneous.sources.read_instance`.
        objective: ``"makespan"`` or ``"avg_jct"``.
        max_nodes: Most nodes N of an instance. Those of the instance when omitted; half more than ten examples have
            where it is drawn.
        max_edges: Most edges M, likewise.
        invalid_action: ``"nearest"``: a masked action becomes the nearest one allowed, and ``info`` says so;
            ``"error"``: it raises and changes nothing.
        render_mode: ``"ansi"``: ``render()`` returns a text.
        **rules: Fields of :class:`decima.systems.heterogeneous.settings.Rules`; ``slots="insertion"`` by default where
            it means something.

    Raises:
        ConfigError: A parameter is out of range.
    """

    workload_type, scheduler_type = Instance, HeterogeneousGymScheduler

    def __init__(
        self,
        workload: Instance | str | Path | Callable[[int], Instance] | None = None,
        executors: int | None = None,
        *,
        edges: str | None = None,
        objective: str = "makespan",
        max_nodes: int | None = None,
        max_edges: int | None = None,
        invalid_action: str = "nearest",
        render_mode: str | None = None,
        **rules: Any,
    ) -> None:
        self._cluster, self._edges = ClusterOptions(executors), edges
        super().__init__(
            "random" if workload is None else workload,
            render_mode,
            objective=(objective, OBJECTIVES),
            invalid_action=(invalid_action, ("nearest", "error")),
        )
        if unknown := sorted(set(rules) - {"decision", "slots", "duplicate", "transfers"}):
            raise ConfigError(f"unknown setting {unknown[0]!r}; expected decision, slots, duplicate or transfers")
        slots = "insertion" if rules.get("decision", "plan") == "plan" else "append"
        self.rules = Rules(**({"slots": slots} | rules))
        self._strict, self._by_job = invalid_action == "error", objective == "avg_jct"
        examples = [self._workload_of(self._source, seed) for seed in range(_EXAMPLES if self.varies else 1)]
        self._room = []
        for name, asked, sizes in (
            ("max_nodes", max_nodes, [len(each) for each in examples]),
            ("max_edges", max_edges, [len(each.children[1]) for each in examples]),
        ):
            if asked is not None:
                check_whole(name, asked, least=1)
            self._room.append(int(asked or max(1, *sizes, max(sizes) * (1 + self.varies / 2))))
        most, links = self._room
        self.action_space = spaces.Discrete(most)
        self.observation_space = spaces.Dict(
            {
                "nodes": spaces.Box(0.0, _MOST, (most, len(NODE_COLUMNS)), np.float32),
                "node_job": spaces.Box(-1, most - 1, (most,), np.int32),
                "edges": spaces.Box(-1, most - 1, (links, 2), np.int32),
                "time_s": spaces.Box(0.0, _MOST, (1,), np.float32),
                "action_mask": spaces.Box(0, 1, (most,), np.int8),
            }
        )

    def read_text(self, text: str) -> Instance | Callable[[int], Instance]:
        """The instance of a file, or a function that draws those of a source."""
        spec = InstanceText(text, self._cluster, self._edges)
        return spec.workload if spec.path is None else spec.workload(0)

    def __getstate__(self) -> dict[str, Any]:
        derived = ("_planner", "_seen", "_static", "_links")
        return {name: value for name, value in self.__dict__.items() if name not in derived}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        self.__dict__ |= kept
        if self._begun:  # the same nodes once more
            nodes, self._nodes = self._nodes, []
            self._begin(self._workload)
            for node in nodes:
                self._assign(node)
            self._spent = self._cost()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[dict, dict]:
        """Begin an episode.

        Args:
            seed: Chooses the instance where it is drawn; from ``np_random`` when omitted.
            options: ``{"workload": ...}`` replaces the workload for this episode.

        Raises:
            ConfigError: The instance has more nodes or edges than there is room for.
        """
        self._begin(self._draw(seed, options))
        return self._observe()

    def _begin(self, instance: Instance) -> None:
        for name, most, number in zip(
            ("nodes", "edges"), self._room, (len(instance), len(instance.children[1])), strict=True
        ):
            if number > most:
                raise ConfigError(
                    f"the instance has {number} {name}, more than the {most} the observation has room for; make the "
                    f"environment with max_{name} of at least {number}"
                )
        self._workload, self._planner = instance, Planner(instance, self.rules, choice=OUTSIDE)
        self._seen = SeenInstance(instance, ARCHITECTURE)
        self._static = np.column_stack([self._seen.static, self._seen.outgoing])
        start, child, _ = instance.children
        self._links = np.stack([np.repeat(np.arange(len(instance)), np.diff(start)), child], 1)
        self._nodes: list[int] = []
        self._goes_on, self._begun = bool(step_plan(self._planner.address, -1)), True
        self._spent = self._cost()

    def step(self, action: Any) -> tuple[dict, float, bool, bool, dict]:
        """Assign a node.

        Raises:
            InvalidDecisionError: The action is not a whole number, or is masked, with ``invalid_action="error"``.
            ResetNeeded: The episode is over.
        """
        if not self._begun or not self._goes_on:
            raise ResetNeeded("the episode is over, or none has begun; call reset() before step()")
        number = np.asarray(action)
        if number.size != 1 or number.dtype.kind not in "iu":
            raise InvalidDecisionError(f"action is {action!r:.60}; expected a whole number, the row of a node")
        allowed = np.flatnonzero(self._mask)
        node = int(allowed[np.argmin(np.abs(allowed - int(number.item())))])
        if (invalid := node != number.item()) and self._strict:
            raise InvalidDecisionError(f"node {number.item()} cannot be placed now; expected one of {allowed.tolist()}")
        before = self._spent
        self._assign(node)
        self._spent = self._cost()
        observation, info = self._observe()
        info["invalid_action"] = invalid
        if not self._goes_on:
            ends = self._ends()
            info |= {"makespan_s": float(ends.max()), "avg_jct_s": float(np.mean(ends - self._arrivals()))}
        return observation, before - self._spent, not self._goes_on, False, info

    def _assign(self, node: int) -> None:
        record = self._planner.record
        position = np.flatnonzero(record.pool[: record.size] == node)[0]
        self._nodes.append(node)
        self._goes_on = bool(step_plan(self._planner.address, position))

    def _arrivals(self) -> np.ndarray:
        return self._workload.arrival_ms / 1000.0

    def _ends(self) -> np.ndarray:
        """End of each job so far, float64 [jobs], seconds; at least its arrival."""
        finish = self._planner.record.finish
        ends = np.where(np.isfinite(finish), finish, self._workload.arrival_s)
        return np.maximum.reduceat(ends, self._workload.first_node[:-1])

    def _cost(self) -> float:
        if self._by_job:
            return float(np.sum(self._ends() - self._arrivals()))
        finish = self._planner.record.finish
        return float(np.max(finish, initial=0.0, where=np.isfinite(finish)))

    def _observe(self) -> tuple[dict, dict]:
        record, instance, seen = self._planner.record, self._workload, self._seen
        (most, links), time_s = self._room, float(record.now)
        present = np.isinf(record.finish) & (instance.arrival_s <= time_s)
        first, job = instance.first_node, instance.job_of_node
        left = np.add.reduceat(present, first[:-1], dtype=np.int64)
        left_s = np.add.reduceat(np.where(present, instance.mean_time_s, 0.0), first[:-1])
        nodes, node_job = np.zeros((most, len(NODE_COLUMNS)), np.float32), np.full(most, -1, np.int32)
        x = self._static.copy()
        for column, values in zip(seen.columns, seen.changing(np.arange(len(left)), left, left_s), strict=True):
            if column >= 0:
                x[:, column] = values[job]
        nodes[: len(x)] = x * present[:, None]
        node_job[: len(x)] = np.where(present, job, -1)
        ends = np.full((links, 2), -1, np.int32)
        ends[: len(self._links)] = np.where(present[self._links].all(axis=1, keepdims=True), self._links, -1)
        self._mask = np.zeros(most, np.int8)
        self._mask[record.pool[: record.size]] = self._goes_on
        observation = {"nodes": nodes, "node_job": node_job, "edges": ends, "action_mask": self._mask.copy()}
        observation["time_s"] = np.array([time_s], np.float32)
        return observation, {"action_mask": self._mask.copy(), "time_s": time_s, "invalid_action": False}

    def result(self) -> HeterogeneousResult:
        """Outcome of an episode that is over."""
        self._require_begun("result")
        return result_of(replace(self._planner.schedule(), scheduler="environment"), self._seed)

    def play(self, instance: Instance, choose: Callable[[dict], Any]) -> Schedule:
        """Schedule an instance in the order of what chooses an action from an observation.

        Args:
            instance: Jobs and cluster.
            choose: Function of an observation that returns an action.
        """
        self._begin(instance)
        observation, _ = self._observe()
        while self._goes_on:
            observation, *_ = self.step(choose(observation))
        return self._planner.schedule()

    def describe(self) -> str:
        """Time, nodes and the end of the schedule as a text of a few lines."""
        return (
            f"{self._planner.record.now:.1f} s: {len(self._nodes)} of {len(self._workload)} nodes placed\n"
            f"{int(self._mask.sum())} nodes can be placed; the schedule ends at {self._ends().max():.1f} s"
        )
