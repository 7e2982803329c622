"""Agents written for spark-sched-sim, on the simulated Spark cluster and as entries.

Such an agent has ``schedule(obs)``, which returns an action ``{"stage_idx": i, "num_exec": n}`` and a dict. In a file
for ``decima bench run``, next to a copy of this one:

    from sched_sim import SchedSimScheduler

    class Mine(SchedSimScheduler):
        def __init__(self):
            super().__init__(MyAgent(num_executors=50))

Source: https://github.com/ArchieGertsman/spark-sched-sim (revision 2ba8d80), its environment's observation and action.
Differs: see docs/benchmark-entries.md.
"""

from __future__ import annotations

import math
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from decima.core.errors import SchedulerError
from decima.systems.spark.gym.environment import SparkClusterEnv
from decima.systems.spark.schedulers.interface import Decision, Observation, StageView, decision_parts


def observe(state: Any) -> tuple[dict[str, Any], np.ndarray]:
    """Observation of a state, and the stages that may be chosen.

    Args:
        state: A cluster state with an open round of offers, or what an entry sees of one.

    Returns:
        ``dag_batch``: unfinished stages of the jobs in the system as a graph, nodes float32 [n, 3] (tasks to launch,
        nominal task duration in ms, 1 where the stage may be chosen), edge_links int [m, 2] from parent to child.
        ``dag_ptr``: first node of every job, and n. ``num_committable_execs``: executors on offer. ``source_job_idx``:
        place of the job that they are with, the number of jobs where it is none. ``exec_supplies``: executors that
        each job holds, those on the way and those promised to others included. Second, the ids of the stages in the
        order of ``stage_idx``, int [k].
    """
    jobs = [int(job) for job in state.active[: state.num_active]]
    supplies = [int(state.job_attached[job] + state.job_moving[job] + state.job_commit[job]) for job in jobs]
    pointer, stages, links, allowed = [0], [], [], []
    for job, supply in zip(jobs, supplies, strict=True):
        first, end = (int(each) for each in state.job_first_stage[job : job + 2])
        rows = range(first, end)
        left = [stage for stage in rows if state.stage_finished_tasks[stage] < state.stage_tasks[stage]]
        node = {stage: pointer[-1] + index for index, stage in enumerate(left)}
        for stage in left:  # children of an unfinished stage are unfinished
            begin, stop = state.child_offset[state.stage_row[stage] : state.stage_row[stage] + 2]
            links += [(node[stage], node[first + int(child)]) for child in state.child[begin:stop]]
        stages += left
        pointer.append(len(stages))
        allowed += [job == state.source_job or supply < state.num_executors] * len(left)
    ids = np.array(stages, dtype=np.int64)
    chosen = state.stage_in_frontier[ids].astype(bool) & np.array(allowed, dtype=bool)
    to_launch = state.stage_tasks[ids] - state.stage_next[ids]
    nodes = np.stack([to_launch, state.row_nominal_ms[state.stage_row[ids]], chosen], axis=1).astype(np.float32)
    graph = spaces.GraphInstance(nodes, np.zeros(len(links), int), np.array(links, dtype=int).reshape(-1, 2))
    source = jobs.index(state.source_job) if state.source_job in jobs else len(jobs)
    seen = {"dag_batch": graph, "dag_ptr": pointer, "num_committable_execs": int(state.num_source)}
    return seen | {"source_job_idx": source, "exec_supplies": supplies}, ids[chosen]


def decision_of(action: Any, observation: Observation, stages: np.ndarray) -> Decision:
    """Decision that an action means.

    Args:
        action: ``stage_idx`` (place among the stages that may be chosen, -1 idles) and ``num_exec`` (of the executors
            on offer; more than the stage can use are cut).
        observation: Where it was chosen.
        stages: The stages of :func:`observe`, int [k].

    Raises:
        SchedulerError: The action is none, names no such stage, or asks for no executors or more than are on offer.
    """
    try:
        index, executors = (int(action[name]) for name in ("stage_idx", "num_exec"))
    except (TypeError, KeyError, ValueError):
        raise SchedulerError(f"the action is {action!r:.80}; expected a dict with stage_idx and num_exec") from None
    if index == -1:
        return Decision.idle()
    if not 0 <= index < len(stages):
        raise SchedulerError(f"stage_idx is {index}; expected -1 to {len(stages) - 1}")
    if not 1 <= executors <= observation.num_free_executors:
        raise SchedulerError(f"num_exec is {executors}; expected 1 to {observation.num_free_executors}")
    stage = StageView(observation.state, int(stages[index]))
    return observation.grant(stage, min(executors, stage.room))


class SchedSimScheduler:
    """Scheduler that asks an agent for spark-sched-sim.

    Args:
        agent: An object with ``schedule(obs)``. Its ``set_seed``, if there is one, is called at the beginning of every
            run. Its ``env_wrapper_cls``, if there is one, wraps observations and actions as it does there.
        num_executors: Executors of the cluster, for such wrappers; the agent's ``num_executors`` when omitted.
    """

    def __init__(self, agent: Any, num_executors: int | None = None) -> None:
        if not callable(getattr(agent, "schedule", None)):
            raise SchedulerError(f"{type(agent).__name__} has no method schedule; expected an agent of spark-sched-sim")
        self.name = str(getattr(agent, "name", type(agent).__name__))
        self._agent, self._see, self._act = agent, [], []
        if wrap := getattr(agent, "env_wrapper_cls", None):
            executors = num_executors or agent.num_executors
            wrapper = wrap(SchedSimEnv(SparkClusterEnv("embedded:n=1", executors=executors)))
            while isinstance(wrapper, gymnasium.Wrapper):
                if isinstance(wrapper, gymnasium.ObservationWrapper):
                    self._see.insert(0, wrapper.observation)
                elif isinstance(wrapper, gymnasium.ActionWrapper):
                    self._act.append(wrapper.action)
                wrapper = wrapper.env

    def reset(self, rng: np.random.Generator) -> None:
        """Begin a run."""
        if hasattr(self._agent, "set_seed"):
            self._agent.set_seed(int(rng.integers(2**31)))

    def decide(self, observation: Observation) -> Decision:
        """Decision of the agent; it is not asked where no stage may be chosen.

        Raises:
            SchedulerError: Its action is not valid.
        """
        seen, stages = observe(observation.state)
        if not len(stages):
            return Decision.idle()
        for see in self._see:
            seen = see(seen)
        action = self._agent.schedule(seen)
        action = action[0] if isinstance(action, tuple) else action
        for act in self._act:
            action = act(action)
        return decision_of(action, observation, stages)


class SchedSimEnv(gymnasium.Env):
    """The simulated cluster with the observations, actions and rewards of spark-sched-sim.

    Reward: minus the time in ms that jobs spent in the system since the last step. ``info`` has ``wall_time``, ms.

    Args:
        env: The environment that it shows so.
    """

    def __init__(self, env: SparkClusterEnv) -> None:
        self._env = env.unwrapped
        self.num_executors = self._env.settings.executors
        box = spaces.Box(0.0, math.inf, (3,))
        numbers = spaces.Sequence(spaces.Discrete(2**31), stack=True)
        counts = {"num_committable_execs": spaces.Discrete(self.num_executors + 1)}
        counts |= {"source_job_idx": spaces.Discrete(2**31), "exec_supplies": numbers, "dag_ptr": numbers}
        self.observation_space = spaces.Dict({"dag_batch": spaces.Graph(box, spaces.Discrete(1))} | counts)
        executors = spaces.Discrete(self.num_executors, start=1)
        self.action_space = spaces.Dict({"stage_idx": spaces.Discrete(2**31, start=-1), "num_exec": executors})

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[dict, dict]:
        """Begin an episode."""
        super().reset(seed=seed)
        _, info = self._env.reset(seed=seed, options=options)
        return self._seen(), {"wall_time": info["time_ms"]}

    def step(self, action: dict) -> tuple[dict, float, bool, bool, dict]:
        """Carry out an action.

        Raises:
            SchedulerError: The action is not valid.
        """
        chosen = decision_of(action, Observation(self._env.state), self._stages)
        reward, end = 0.0, (False, False)
        while not any(end):
            _, gain, *end, info = self._env.step(self._env.action_of(*decision_parts(chosen)[:2]))
            reward, seen, chosen = reward + gain, self._seen(), Decision.idle()
            if len(self._stages):
                break
        return seen, 1000.0 * reward, *end, {"wall_time": info["time_ms"]}

    def _seen(self) -> dict[str, Any]:
        seen, self._stages = observe(self._env.state)
        return seen
