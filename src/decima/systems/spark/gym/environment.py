"""Gymnasium environment ``decima/SparkCluster-v0``: a learner instead of the scheduler.

    import decima, gymnasium

    env = gymnasium.make("decima/SparkCluster-v0", executors=10)
    observation, info = env.reset(seed=0)
    action = env.action_space.sample(mask=info["action_mask"])
    observation, reward, terminated, truncated, info = env.step(action)

One step is one decision (§5.2). An episode with seed s meets the same task durations as ``decima.simulate`` with it.
"""

import math
import numbers
from collections.abc import Callable, Sequence
from functools import reduce
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from gymnasium.utils import RecordConstructorArgs

from decima.core.checks import check_whole
from decima.core.environment import GymScheduler, SchedulingEnv
from decima.core.errors import ConfigError, InvalidDecisionError
from decima.core.objectives import AVG_JCT, MAKESPAN, Objective, get_objective
from decima.systems.spark.decision import NUM_PARTS, OPTION_PARTS, PARTS, parts_of
from decima.systems.spark.gym import kernel
from decima.systems.spark.gym.kernel import F, V
from decima.systems.spark.gym.padded import Memory, Padding
from decima.systems.spark.result import Result, outcome_of, progress_of
from decima.systems.spark.schedulers.interface import Decision, Observation
from decima.systems.spark.settings import Settings
from decima.systems.spark.state import ClusterState, new_state, spawn_generators
from decima.systems.spark.tables import WorkloadTables
from decima.workload.jobs import Workload
from decima.workload.sources import parse_jobs

DEFAULT_JOBS = 20
INVALID_ACTIONS = ("nearest", "error")
LARGEST = 2**31 - 1
# Views of a memory, which a copy has of its own.
_DERIVED = (
    *("_facts", "_amounts", "_action", "_views", "_job_ids", "_stage_ids", "_mask", "cuts"),
    *("_memory", "_row"),
)


class SparkGymScheduler(GymScheduler):
    """Scheduler that asks a policy of the environment; see :func:`decima.core.environment.as_scheduler`."""

    offered_again = True  # where every executor is parked, as in the environment

    def decide(self, observation: Observation) -> Decision:
        """Decide as the policy does about the same arrays."""
        stage, *options = self._env.decide(observation.state, self.choose)
        if stage < 0:
            return Decision.idle()
        chosen = dict(zip((part.attribute for part in OPTION_PARTS), options, strict=True))
        if chosen.get("executor_class", 0) in (-1, None):
            chosen["executor_class"] = None
        return Decision(stage, **chosen)


class SparkClusterEnv(SchedulingEnv):
    """The simulated cluster as a Gymnasium environment.

    Observation: a dict of padded arrays, see :data:`decima.systems.spark.gym.padded.LAYOUT`.

    Action: two whole numbers from 0 on, (slot, executors). Slot: row of a stage whose ``stage_mask`` is 1, or the last
    slot (``max_stages``) to leave all offered executors idle. Executors: k gives the stage k + 1 of the offered
    executors, or one for each task that it has to launch. In the paper's words (§5.2) the parallelism limit of its job
    becomes ``job_allocation`` + k + 1.

    Masks: an action is valid if and only if every one of its numbers is allowed by its own mask. Idling is not valid
    when nothing would ever happen after it.

    Idling gains nothing: jobs cost what they take, and where every executor is parked and no event is ahead, all of
    them are offered again at once and idling is not valid.

    Reward: minus the growth of the objective's cost since the last step; the wait for the first decision counts.
    ``"avg_jct"``: -(t_k - t_(k-1)) J_k in seconds, J_k the jobs in the system, exact also when jobs come and go between
    two decisions; over a finished episode it adds up to minus the sum of all JCTs. ``"makespan"``: -(t_k - t_(k-1)) in
    seconds, which adds up to minus the makespan. A function ``state -> cost so far`` is taken as it is.

    End: ``terminated`` when all jobs have finished; ``truncated`` at ``time_limit_ms``, or when no executor can ever
    serve the unfinished jobs (``info["deadlock"]``).

    Delays: with ``delay_steps`` g above 0 an action has a third number r from 0 to g. Above 0 the stage is withheld for
    r / g of its nominal task duration and gets no executor; the next step is about the same executors. Where
    ``delay_mask`` of the stage is 0, r counts as 0. The observation has
    :data:`decima.systems.spark.gym.padded.DELAY_LAYOUT` too.

    Classes: with several ``classes`` of executors an action has one more number at its end: 0 for best fit, c for class
    c - 1, which counts as best fit where ``class_mask`` of stage and class is 0. The observation has
    :data:`decima.systems.spark.gym.padded.CLASS_LAYOUT` too.

    Info: ``time_ms``, float; ``jobs``, int32 [max_jobs], index in the workload of each job row, -1 for padding;
    ``action_mask``, one int8 array per number of an action, for ``action_space.sample(mask=...)``;
    ``invalid_action`` and ``deadlock``, bool; at the end ``num_unfinished``, ``avg_jct_s`` of the finished jobs if
    there are any, and ``makespan_s`` if all have finished.

    Copies: ``copy.deepcopy`` and ``pickle`` work in the middle of an episode; given the same actions, copy and original
    continue alike, also in another process.

    Source: §5.2 (actions), §5.3 (rewards). Differs: the number of executors is chosen instead of the limit, so that it
    is valid or not whichever stage is chosen.

    Args:
        workload: A workload; a function ``seed -> workload`` called for every episode; or a text such as
            ``"tpch:n=10"``, drawn anew for every episode, or the path of a job file. 20 embedded jobs when omitted.
        executors: Executors of the cluster, 50 or those of the classes when omitted.
        mode: ``"paper"``, ``"released"`` or ``"simplified"``.
        objective: Name of a registered objective (:mod:`decima.core.objectives`), an objective, or a function.
        max_jobs: Most jobs in the system at one time. The number of jobs of the workload, when omitted.
        max_stages: Most stages of these jobs. Enough for ``max_jobs`` of the largest profiles, when omitted.
        max_edges: Most edges of these jobs, likewise.
        delay_steps: Steps g in which a stage may be delayed; 0: actions have two numbers, and nothing can be delayed.
        invalid_action: ``"nearest"``: of an invalid action, every number that its mask excludes becomes the nearest
            one allowed, and ``info`` says so; ``"error"``: it raises and changes nothing.
        copy: Return copies; False: views of memory that the next step overwrites.
        log: Keep every task and decision for :meth:`result`.
        render_mode: ``"ansi"``: ``render()`` returns a text.
        **settings: Further fields of :class:`decima.systems.spark.settings.Settings`.

    Raises:
        ConfigError: A parameter is out of range.
    """

    workload_type, scheduler_type = Workload, SparkGymScheduler

    def __init__(
        self,
        workload: Workload | str | Path | Callable[[int], Workload] | None = None,
        executors: int | None = None,
        mode: str = "paper",
        *,
        objective: str | Objective | Callable[[ClusterState], float] = "avg_jct",
        max_jobs: int | None = None,
        max_stages: int | None = None,
        max_edges: int | None = None,
        delay_steps: int = 0,
        invalid_action: str = "nearest",
        copy: bool = True,
        log: bool = False,
        render_mode: str | None = None,
        **settings: Any,
    ) -> None:
        source = f"embedded:n={DEFAULT_JOBS}" if workload is None else workload
        super().__init__(source, render_mode, invalid_action=(invalid_action, INVALID_ACTIONS))
        check_whole("delay_steps", delay_steps, least=0)
        self.settings = Settings.of_mode(mode, executors=executors, **settings)
        named = isinstance(objective, (str, Objective)) or not callable(objective)
        self._objective = get_objective(objective) if named else objective
        self.strict = invalid_action == "error"
        self._copy, self._log = copy, log
        self._workload = self._workload_of(self._source, 0)
        self._tables = None if self.varies else WorkloadTables(self._workload, self.settings)
        self.padding = Padding.for_workload(
            self._workload,
            self.settings,
            varies=self.varies,
            jobs=max_jobs,
            stages=max_stages,
            edges=max_edges,
            delay_steps=delay_steps,
        )
        self.observation_space = spaces.Dict({part.name: self._box(part) for part in self.padding.layout})
        self._parts = [part for part in PARTS if part.always or self.padding.size(part.extent) > 1]
        self.action_space = spaces.MultiDiscrete([self.padding.size(part.extent) for part in self._parts])
        self.state: ClusterState | None = None
        self._over = True
        self.move_to(self.make_memory(1), 0)

    def read_text(self, text: str) -> Workload | Callable[[int], Workload]:
        """The jobs of a file, or a function that draws those of a source."""
        spec = parse_jobs(text)
        return spec.workload if spec.path is None else spec.workload(0)

    @property
    def _begun(self) -> bool:
        return self.state is not None

    def _box(self, part) -> spaces.Box:
        size = self.padding.size
        return spaces.Box(part.low, size(part.high), tuple(size(extent) for extent in part.shape), part.dtype)

    # ---- memory -----------------------------------------------------------------------------------------------------

    def make_memory(self, rows: int) -> Memory:
        """Memory for some environments with these settings."""
        compiled = {id(AVG_JCT): 1, id(MAKESPAN): 2}.get(id(self._objective), 0)
        return Memory(self.padding, rows, len(self._parts), compiled)

    def move_to(self, memory: Memory, row: int) -> None:
        """Live in a row of a memory, and bring there what was shown before."""
        if "_memory" in self.__dict__:
            self._memory.copy_row(self._row, memory, row)
        self._memory, self._row = memory, row
        self._facts, self._amounts, self._action = memory.facts[row], memory.amounts[row], memory.actions[row]
        self._views = {name: view[row] for name, view in memory.views().items()}
        self._job_ids, self._stage_ids = memory.array("job_ids")[row], memory.array("stage_ids")[row]
        self._mask = memory.masks()[row]
        ends = np.cumsum(self.action_space.nvec).tolist()
        self.cuts = [slice(*pair) for pair in zip([0, *ends], ends, strict=False)]

    def __getstate__(self) -> dict[str, Any]:
        memory = self.make_memory(1)
        self._memory.copy_row(self._row, memory, 0)
        kept = {name: value for name, value in self.__dict__.items() if name not in _DERIVED}
        return kept | {"_kept": memory}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        memory = kept.pop("_kept")
        self.__dict__ |= kept
        if self.state is not None:
            memory.hold(0, self.state)
        self.move_to(memory, 0)

    # ---- episodes ---------------------------------------------------------------------------------------------------

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[dict, dict]:
        """Begin an episode.

        Args:
            seed: Random seed of task durations, and of the workload if it is a function; from ``np_random`` if omitted.
            options: ``{"workload": ...}`` replaces the workload for this episode.
        """
        self.begin(seed, options)
        self._memory.run(self._row, self._row + 1, False)
        *_, info = self.outcome(False)
        return self.observe(), info

    def begin(self, seed: int | None, options: dict[str, Any] | None = None) -> None:
        """Prepare an episode, see :meth:`reset`; the row then runs to its first decision."""
        self._over = True
        workload = self._draw(seed, options)
        if workload is not self._workload:
            self._workload, self._tables, self.state = workload, None, None
        if self.state is None:
            self._tables = self._tables or WorkloadTables(self._workload, self.settings)
            self.state = new_state(self._tables, self.settings, log_tasks=self._log, log_decisions=self._log)
            self._memory.hold(self._row, self.state)
        self.state.start(*spawn_generators(self._seed))
        self._facts[F.doing], self._facts[F.invalid], self._facts[F.rescued] = kernel.BEGINS, 0, 0
        self._amounts[V.cost], self._amounts[V.reward] = self._cost_so_far(), 0.0

    def step(self, action) -> tuple[dict, float, bool, bool, dict]:
        """Decide about the offered executors and run to the next decision.

        Raises:
            InvalidDecisionError: The action is not one whole number per part of a decision, or is invalid with
                ``invalid_action="error"``.
            ResetNeeded: The episode is over.
        """
        if self._over:
            raise ResetNeeded("the episode is over, or none has begun; call reset() before step()")
        self._action[:] = self._whole_numbers(action)
        self._facts[F.doing] = kernel.ACTS
        if self._memory.run(self._row, self._row + 1, self.strict) >= 0:
            raise self.refusal()
        reward, terminated, truncated, info = self.outcome(True)
        return self.observe(), reward, terminated, truncated, info

    def outcome(self, acted: bool) -> tuple[float, bool, bool, dict]:
        """Reward, whether the episode terminated or was truncated, and ``info``, after the row has run.

        Args:
            acted: Whether it has acted; else an episode has begun.

        Raises:
            ConfigError: The observation has no room, or the objective returned something else than a finite number.
        """
        facts = self._facts.tolist()
        code = facts[F.code]
        self._over = True
        if code == kernel.NO_ROOM:
            raise self.no_room()
        if acted and not self._memory.objective:
            self.pay()
        self._over = code != kernel.ASKS
        terminated = self._over and self.state.num_done == self.state.num_jobs
        amounts, mask = self._amounts.tolist(), self._mask.copy() if self._copy else self._mask
        info = {
            "time_ms": amounts[V.time_ms],
            "jobs": self._job_ids.copy() if self._copy else self._job_ids,
            "action_mask": tuple([mask[cut] for cut in self.cuts]),
            "invalid_action": facts[F.invalid] > 0,
            "deadlock": code == kernel.DEADLOCK,
        }
        if self._over:
            info |= self.ending()
        return amounts[V.reward], terminated, self._over and not terminated, info

    def pay(self) -> None:
        """Reward of an objective that compiled code does not know."""
        cost = self._cost_so_far()
        self._amounts[V.reward], self._amounts[V.cost] = self._amounts[V.cost] - cost, cost

    def ending(self) -> dict[str, Any]:
        """Entries of ``info`` at the end of an episode."""
        state, outcome = self.state, outcome_of(self.state)
        info: dict[str, Any] = {"num_unfinished": state.num_jobs - state.num_done}
        if state.num_done:
            info[AVG_JCT.column] = AVG_JCT.score(outcome)
        if state.num_done == state.num_jobs:
            info[MAKESPAN.column] = MAKESPAN.score(outcome)
        return info

    def observe(self) -> dict[str, np.ndarray]:
        """The last observation."""
        if not self._copy:
            return dict(self._views)
        return {name: view.copy() for name, view in self._views.items()}

    def _cost_so_far(self) -> float:
        """Cost of the episode so far."""
        objective, state = self._objective, self.state
        if isinstance(objective, Objective):
            name, cost = objective.name, objective.cost_so_far(progress_of(state))
        else:
            name, cost = getattr(objective, "__name__", type(objective).__name__), objective(state)
        if not isinstance(cost, numbers.Real) or not math.isfinite(cost):
            when = f"{state.now_ms / 1000:.1f} s"
            raise ConfigError(f"objective {name} returned {cost!r} at {when}; expected a finite number")
        return float(cost)

    def _whole_numbers(self, action) -> Sequence[int] | np.ndarray:
        """Numbers of an action."""
        numbers = np.asarray(action)
        if numbers.shape != (len(self._parts),) or numbers.dtype.kind not in "iu":
            names = ", ".join(self._names())
            raise InvalidDecisionError(f"action is {action!r:.60}; expected {len(self._parts)} whole numbers ({names})")
        return numbers if numbers.dtype.kind == "i" else np.minimum(numbers, LARGEST)

    def _names(self) -> list[str]:
        names = {"stage": "slot", "limit": "executors", "delay_ms": "delay"}
        return [names.get(part.name, part.name) for part in self._parts]

    def refusal(self) -> InvalidDecisionError:
        """What is wrong with the action that stopped this row, and what is allowed."""
        self._facts[F.doing] = kernel.WAITS
        slot, executors, *_ = action = self._action.tolist()
        which = int(self._facts[F.invalid]) - 1
        allowed = [np.flatnonzero(self._mask[cut]).tolist() for cut in self.cuts]
        if slot == self.padding.stages:
            what = "idling"
        elif 0 <= slot < int(self._facts[F.stages]):
            stage = int(self._stage_ids[slot])
            job = int(self.state.stage_job[stage])
            what = f"stage {stage - int(self.state.job_first_stage[job])} of job {job}"
        else:
            what = "no stage"
        stages = ", ".join(map(str, allowed[0][:8])) + (", ..." if len(allowed[0]) > 8 else "")
        most = len(allowed[1])
        text = f"action {action} is slot {slot} ({what}) with {executors + 1} executors; expected slot {stages}"
        text += f" ({self.padding.stages} idles) and 0 to {most - 1} for 1 to {most} executors, at most those offered"
        if which > 1:
            text += f"; {self._names()[which]} {action[which]} must be 0 to {allowed[which][-1]}"
        return InvalidDecisionError(text)

    def no_room(self) -> ConfigError:
        """What there is no room for, after the row has run."""
        padding, facts = self.padding, self._facts
        present = (("jobs", facts[F.jobs]), ("stages", facts[F.stages]), ("edges", facts[F.edges]))
        room = (padding.jobs, padding.stages, padding.edges)
        short = [(*each, most) for each, most in zip(present, room, strict=True) if each[1] > most]
        if not short:
            return ConfigError(
                f"more executors are offered than the {padding.executors} of the environment; make it with as many "
                "executors as the cluster has"
            )
        name, number, most = short[0]
        return ConfigError(
            f"{number} {name} are in the system at {self._amounts[V.time_ms] / 1000:.1f} s, more than the {most} "
            f"the observation has room for; make the environment with max_{name} of at least {number}"
        )

    # ---- a state elsewhere ------------------------------------------------------------------------------------------

    def decide(self, state: ClusterState, choose: Callable[[dict], Any]) -> tuple[int, ...]:
        """Decision for a state elsewhere of what chooses an action from its observation.

        Of a cluster that is not simulated here, idling is valid while more executors work or move than are offered.

        Args:
            state: A state with an open round of offers, or what has its fields.
            choose: Function of an observation that returns an action.

        Raises:
            InvalidDecisionError: The action is invalid, with ``invalid_action="error"``.
            ConfigError: The observation has no room for the state.
        """
        row = self._memory.row(self._row)
        if isinstance(state, ClusterState):
            room = kernel.observe(state.address, *row)
        else:
            busy = int(state.stage_executors.sum()) + int(state.job_moving.sum()) > state.num_source
            room = kernel.observe_cluster(state, busy, *row)
        if not room:
            raise self.no_room()
        self.state = state
        self._action[:] = self._whole_numbers(choose(self.observe()))
        choice = np.empty(NUM_PARTS)
        self._facts[F.invalid] = kernel.take_action(state, self._action, choice, *row[1:3], *row[5:])
        if self.strict and self._facts[F.invalid]:
            raise self.refusal()
        return parts_of(choice)

    # ---- looking at it ----------------------------------------------------------------------------------------------

    def slot_of(self, stage: int) -> int:
        """Slot of a stage id in the present observation.

        Raises:
            ConfigError: The stage's job is not in the system.
        """
        slots = np.flatnonzero(self._stage_ids == stage)
        if not len(slots):
            raise ConfigError(f"stage {stage} is not in the present observation")
        return int(slots[0])

    def action_of(self, stage: int, limit: int = 1) -> np.ndarray:
        """Action of a decision of a scheduler, int64 [numbers]; no delay, best fit.

        Args:
            stage: Stage id, -1 to idle.
            limit: As in :meth:`decima.systems.spark.state.ClusterState.decide`.

        Raises:
            ConfigError: The stage's job is not in the system.
        """
        action = np.zeros(len(self._parts), dtype=np.int64)
        action[0] = self.padding.stages if stage < 0 else self.slot_of(stage)
        if stage >= 0:
            row = self._views["stage_job"][action[0]]
            kept = int(self._views["job_allocation"][row]) if self.state.job_limit else 0
            action[1] = min(limit - kept, self.state.num_source) - 1
        return action

    def result(self) -> Result:
        """Outcome of the episode so far; with its log if the environment keeps one."""
        self._require_begun("result")
        return Result.of_state(self.state, self._workload, "environment", self._seed)

    def describe(self) -> str:
        """The cluster as a text of a few lines."""
        return describe_state(self.state, self._workload)


# ---- a cluster state as a text of a few lines -----------------------------------------------------------------------


MOST_JOBS = 20


def describe_state(state: ClusterState, workload: Workload) -> str:
    """Time, executors and a line per job, at most ``MOST_JOBS``; times in seconds."""
    running = int(state.stage_executors.sum())
    moving = int(state.executor_moving.sum())
    now_s = state.now_ms / 1000
    lines = [
        f"{now_s:.1f} s: {state.num_active} jobs in the system, {state.num_done} of {state.num_jobs} finished",
        f"executors: {state.num_executors}, {running} at a stage, {moving} moving, {state.num_source} offered",
    ]
    if state.num_active:
        lines.append(f"{'job':>5} {'name':<16} {'age_s':>8} {'stages':>7} {'tasks':>7} {'executors':>9} {'choices':>8}")
    for job in state.active[: min(state.num_active, MOST_JOBS)].tolist():
        stages = slice(*state.job_first_stage[job : job + 2].tolist())
        tasks = int((state.stage_tasks[stages] - state.stage_finished_tasks[stages]).sum())
        lines.append(
            f"{job:>5} {workload.jobs[job].name:<16.16} {(state.now_ms - state.job_arrival_ms[job]) / 1000:>8.1f} "
            f"{state.job_unfinished[job]:>7} {tasks:>7} {state.job_attached[job]:>9} {state.job_frontier[job]:>8}"
        )
    if state.num_active > MOST_JOBS:
        lines.append(f"{'':>5} and {state.num_active - MOST_JOBS} more")
    return "\n".join(lines)


# ---- actions as one whole number ------------------------------------------------------------------------------------


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
