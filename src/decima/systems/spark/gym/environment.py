"""Gymnasium environment ``decima/SparkCluster-v0``: a learner instead of the scheduler.

    import decima, gymnasium

    env = gymnasium.make("decima/SparkCluster-v0", executors=10)
    observation, info = env.reset(seed=0)
    action = env.action_space.sample(mask=info["action_mask"])
    observation, reward, terminated, truncated, info = env.step(action)

One step is one decision (§5.2). An episode with seed s meets the same task durations as ``decima.simulate`` with it.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.error import ResetNeeded

from decima.core.checks import check_whole
from decima.core.errors import ConfigError, DeadlockError, InvalidDecisionError, RenderModeError
from decima.core.objectives import AVG_JCT, MAKESPAN, Objective, get_objective
from decima.systems.spark.decision import OPTION_PARTS, PARTS
from decima.systems.spark.gym.padded import PaddedView, Padding
from decima.systems.spark.loop import new_state, offers, spawn_generators
from decima.systems.spark.result import Result, outcome_of, progress_of
from decima.systems.spark.rules.delays import slot_length_ms
from decima.systems.spark.settings import Settings
from decima.systems.spark.state import ClusterState
from decima.workload.jobs import Workload
from decima.workload.sources import parse_jobs

DEFAULT_JOBS = 20
END = object()
_LARGEST = 2**31 - 1


class SparkClusterEnv(gymnasium.Env):
    """The simulated cluster as a Gymnasium environment.

    Observation: a dict of padded arrays, see :data:`decima.systems.spark.gym.padded.LAYOUT`.

    Action: two whole numbers (slot, limit). Slot: row of a stage whose ``stage_mask`` is 1, or the last slot
    (``max_stages``) to leave all offered executors idle, whatever the limit. Limit: executors that the stage's job may
    hold from now on (§5.2), at least its ``job_min_limit``; with ``job_limit`` off (mode ``released``): how many of the
    offered executors to use. Idling is not among the valid choices when nothing would ever happen after it.

    Idling gains nothing: where every executor is parked and no event is ahead, ``simulate`` ends with a deadlock; the
    environment offers all of them again at once, and idling is not valid then. An invalid action in such a state is
    answered by the first valid choice, so that time goes on and jobs cost what they take.

    Reward: minus the growth of the objective's cost since the last step; the wait for the first decision counts.
    ``"avg_jct"``: -(t_k - t_(k-1)) J_k in seconds, J_k the jobs in the system, exact also when jobs come and go between
    two decisions; over a finished episode it adds up to minus the sum of all JCTs. ``"makespan"``: -(t_k - t_(k-1)) in
    seconds, which adds up to minus the makespan. A function ``state -> cost so far`` is taken as it is.

    End: ``terminated`` when all jobs have finished; ``truncated`` at ``time_limit_ms``, or when no executor can ever
    serve the unfinished jobs (``info["deadlock"]``).

    Delays: with ``delay_steps`` g above 0 an action has a third number r from 0 to g. Above 0 the stage is withheld for
    r / g of its nominal task duration (:func:`.slot_length_ms`) and gets no executor; the
    next step is about the same executors. Only stages whose ``delay_mask`` is 1 can be delayed. The observation has
    :data:`decima.systems.spark.gym.padded.DELAY_LAYOUT` too.

    Classes: with several ``classes`` of executors an action has one more number at its end, the class, -1 for best fit.
    Only pairs of stage and class whose ``class_mask`` is 1 can be chosen. The observation has
    :data:`decima.systems.spark.gym.padded.CLASS_LAYOUT` too.

    Info: ``time_ms``; ``jobs``, int32 [max_jobs], index in the workload of each job row, -1 for padding;
    ``action_mask`` for ``action_space.sample(mask=...)``, with the limits that are valid whichever stage is drawn;
    ``invalid_action`` and ``invalid_reason``; ``deadlock``; at the end ``num_unfinished``, ``avg_jct_s`` of the
    finished jobs if there are any, and ``makespan_s`` if all have finished.

    Copies: ``copy.deepcopy`` and ``pickle`` work in the middle of an episode; given the same actions, copy and original
    go on alike, also in another process.

    Source: §5.2 (actions), §5.3 (rewards).

    Args:
        workload: A workload; a function ``seed -> workload`` called for every episode; or a text such as
            ``"tpch:n=10"``, drawn anew for every episode, or the path of a job file. 20 embedded jobs when omitted.
        executors: Executors of the cluster, 50 or those of the classes when omitted.
        mode: ``"paper"``, ``"released"`` or ``"simplified"``.
        objective: Name of a registered objective (:mod:`decima.core.objectives`), an objective, or a function.
        max_jobs: Most jobs in the system at one time. As many as the workload has, when omitted.
        max_stages: Most stages of these jobs. Enough for ``max_jobs`` of the largest profiles, when omitted.
        max_edges: Most edges of these jobs, likewise.
        delay_steps: Steps g in which a stage may be delayed; 0: actions have two numbers, and nothing can be delayed.
        invalid_action: ``"idle"``: an invalid action idles, or is answered by the first valid choice where idling is
            invalid too, and is reported in ``info``; ``"error"``: it raises and changes nothing.
        log: Keep every task and decision for :meth:`result`.
        render_mode: ``"ansi"``: ``render()`` returns a text.
        **settings: Further fields of :class:`decima.systems.spark.settings.Settings`.

    Raises:
        ConfigError: A parameter is out of range.
    """

    metadata = {"render_modes": ["ansi"], "render_fps": 4}  # noqa: RUF012

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
        invalid_action: str = "idle",
        log: bool = False,
        render_mode: str | None = None,
        **settings: Any,
    ) -> None:
        if invalid_action not in ("idle", "error"):
            raise ConfigError(f"invalid_action must be idle or error, got {invalid_action!r}")
        check_whole("delay_steps", delay_steps, least=0)
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise RenderModeError(f"render_mode must be ansi or None, got {render_mode!r}")
        self.render_mode = render_mode
        self.settings = Settings.of_mode(mode, executors=executors, **settings)
        named = isinstance(objective, (str, Objective)) or not callable(objective)
        self._objective = get_objective(objective) if named else objective
        self._strict = invalid_action == "error"
        self._log = log
        source = f"embedded:n={DEFAULT_JOBS}" if workload is None else workload
        if isinstance(source, (str, Path)):
            spec = parse_jobs(str(source))
            source = spec.workload if spec.path is None else spec.workload(0)
        self._make_workload = source if callable(source) else None
        self._workload = _require_workload(source(0) if callable(source) else source)
        self.padding = Padding.for_workload(
            self._workload,
            self.settings,
            varies=self._make_workload is not None,
            jobs=max_jobs,
            stages=max_stages,
            edges=max_edges,
            delay_steps=delay_steps,
        )
        self.observation_space = spaces.Dict({part.name: self._box(part) for part in self.padding.layout})
        self._parts = [part for part in PARTS if part.always or self.padding.size(part.extent) > 1]
        self.action_space = spaces.MultiDiscrete(
            [self.padding.size(part.extent) for part in self._parts], start=[part.low for part in self._parts]
        )
        self.state: ClusterState | None = None
        self._masks: tuple[np.ndarray, ...] | None = None
        self._over = True

    def _box(self, part) -> spaces.Box:
        size = self.padding.size
        return spaces.Box(part.low, size(part.high), tuple(size(extent) for extent in part.shape), part.dtype)

    def decide(self, state: ClusterState, choose: Callable[[dict], Any]) -> tuple[int, ...]:
        """Decision for a state elsewhere of what chooses an action from its observation.

        An action that is invalid in a way that only the core sees is the core's to refuse.

        Args:
            state: A state with an open round of offers.
            choose: Function of an observation that returns an action.

        Raises:
            InvalidDecisionError: The action names no stage of the observation.
            ConfigError: The observation has no room for the state.
        """
        if self.state is not state:
            self.state, self._view = state, PaddedView(state, self.padding)
        slot, *options = self._whole_numbers(choose(self._view.observe(self._may_idle())))
        return self._decision(slot, options)

    # ---- episodes ---------------------------------------------------------------------------------------------------

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[dict, dict]:
        """Begin an episode.

        Args:
            seed: Source of task durations, and of the workload if it is a function; from ``np_random`` if omitted.
            options: ``{"workload": ...}`` replaces the workload for this episode.
        """
        super().reset(seed=seed)
        unknown = set(options or {}) - {"workload"}
        if unknown:
            raise ConfigError(f"unknown options of reset: {', '.join(sorted(map(str, unknown)))}; expected workload")
        self._over = True
        self._seed = int(self.np_random.integers(2**31)) if seed is None else int(seed)
        self._enter((options or {}).get("workload"))
        self.state.start(*spawn_generators(self._seed))
        self._cost = self._cost_so_far()
        return self._advance()

    def _enter(self, workload: Workload | None) -> None:
        """Make the state of the episode's workload, or keep the one there is."""
        previous = self._workload
        if workload is None and self._make_workload is not None:
            workload = self._make_workload(self._seed)
        if workload is not None:
            self._workload = _require_workload(workload)
        if self.state is None or self._workload is not previous:
            self.state = new_state(self._workload, self.settings, log_tasks=self._log, log_decisions=self._log)
            self._view = PaddedView(self.state, self.padding)

    def step(self, action) -> tuple[dict, float, bool, bool, dict]:
        """Decide about the offered executors and run to the next decision.

        Raises:
            InvalidDecisionError: The action is not one whole number per part of a decision, or is invalid with
                ``invalid_action="error"``.
            ResetNeeded: The episode is over.
        """
        if self._over:
            raise ResetNeeded("the episode is over, or none has begun; call reset() before step()")
        slot, *options = self._whole_numbers(action)
        try:
            self.state.decide(*self._decision(slot, options))
            observation, info = self._advance()
        except InvalidDecisionError as error:
            if self._strict:
                raise
            self.state.decide(*((-1,) if self._may_idle() else self._first_choice()))
            observation, info = self._advance()
            info |= {"invalid_action": True, "invalid_reason": str(error)}
        cost = self._cost_so_far()
        reward, self._cost = self._cost - cost, cost
        terminated = self.state.num_done == self.state.num_jobs
        return observation, reward, terminated, self._over and not terminated, info

    def _cost_so_far(self) -> float:
        """Cost of the episode so far.

        Raises:
            ConfigError: The objective returned something else than a finite number.
        """
        objective, state = self._objective, self.state
        if isinstance(objective, Objective):
            name, cost = objective.name, objective.cost_so_far(progress_of(state))
        else:
            name, cost = getattr(objective, "__name__", type(objective).__name__), objective(state)
        if not isinstance(cost, numbers.Real) or not math.isfinite(cost):
            when = f"{state.now_ms / 1000:.1f} s"
            raise ConfigError(f"objective {name} returned {cost!r} at {when}; expected a finite number")
        return float(cost)

    def _decision(self, slot: int, options: list[int]) -> tuple[int, ...]:
        """The decision for the core, which judges everything else."""
        if slot == self.padding.stages:
            if not self._may_idle():
                raise InvalidDecisionError("idling cannot be chosen: no event is ahead and nothing would ever happen")
            return (-1,)
        if not 0 <= slot < len(self._view.stage_ids):
            last = len(self._view.stage_ids) - 1
            raise InvalidDecisionError(
                f"slot {slot} holds no stage; expected 0 to {last}, or {self.padding.stages} to idle"
            )
        stage = int(self._view.stage_ids[slot])
        chosen = {part.attribute: value for part, value in zip(self._parts[1:], options, strict=True)}
        if steps := chosen.get("delay_ms"):
            chosen["delay_ms"] = self._delay_ms(stage, steps)
        return (stage, *(chosen.get(part.attribute, part.default) for part in OPTION_PARTS))

    def _delay_ms(self, stage: int, steps: int) -> float:
        """The delay of a stage in ms that a number of steps stands for."""
        most = self.padding.delay_steps
        if not 0 <= steps <= most:
            raise InvalidDecisionError(f"a delay of {steps} steps cannot be chosen; expected 0 to {most}")
        return steps * slot_length_ms(self.state, stage) / most

    def _whole_numbers(self, action) -> list[int]:
        """Numbers of an action.

        Raises:
            InvalidDecisionError: They are not as many whole numbers as an action has.
        """
        numbers = np.asarray(action)
        if numbers.shape != (len(self._parts),) or numbers.dtype.kind not in "iu":
            names = ", ".join(["slot", *(part.name if part.whole else "delay" for part in self._parts[1:])])
            raise InvalidDecisionError(f"action is {action!r:.60}; expected {len(self._parts)} whole numbers ({names})")
        # The core counts in machine integers; a larger number means the same there.
        return [max(-_LARGEST, min(number, _LARGEST)) for number in numbers.tolist()]

    def _may_idle(self) -> bool:
        """Something happens after idling: an event, or another round of offers."""
        state = self.state
        return bool(
            state.heap_size > 0
            or state.next_arrival < state.num_arrivals
            or state.num_timers > 0
            or state.num_selected > 0
            or (state.reoffer and state.num_marked > 0 and state.num_runnable_open > 0)
        )

    def _first_choice(self) -> tuple[int, int]:
        """First stage that may be chosen, with the least limit that gives it an executor."""
        seen = self._view.observe(False)
        slot = int(np.flatnonzero(seen["stage_mask"])[0])
        return int(self._view.stage_ids[slot]), int(seen["job_min_limit"][seen["stage_job"][slot]])

    def _advance(self) -> tuple[dict, dict]:
        """Run to the next decision that has a choice, or to the end."""
        state = self.state
        over = deadlock = False
        try:
            over = next(offers(state), END) is END
        except DeadlockError:
            state.offer_all()
            try:
                over = next(offers(state), END) is END
            except DeadlockError:
                over = deadlock = True
        self._over = True  # also if there is no room for the observation
        observation = self._view.observe(not over and self._may_idle())
        info = self._info(observation, over, deadlock)
        self._masks = info["action_mask"]
        self._over = over
        return observation, info

    def action_masks(self) -> np.ndarray:
        """The present ``action_mask`` in one row, bool [choices of all parts], for sb3-contrib.

        Libraries that ignore ``action_space.start`` give the position of a choice, not its value: add ``start`` to it.

        Raises:
            ResetNeeded: No episode has begun.
        """
        if self._masks is None:
            raise ResetNeeded("no episode has begun; call reset() before action_masks()")
        return np.concatenate(self._masks).astype(bool)

    def _info(self, observation: dict[str, np.ndarray], over: bool, deadlock: bool) -> dict[str, Any]:
        state = self.state
        stages = observation["stage_mask"].copy()
        slots = np.flatnonzero(stages[:-1])
        jobs = observation["stage_job"][slots]
        limits = np.zeros(self.padding.executors, dtype=np.int8)
        if len(jobs):
            most = self.padding.executors if state.job_limit else state.num_source
            limits[observation["job_min_limit"][jobs].max() - 1 : most] = 1
        masks = [stages, limits]
        if self.padding.delay_steps:
            steps = np.ones(self.padding.delays, dtype=np.int8)
            steps[1:] = observation["delay_mask"][slots].all()
            masks.append(steps)
        if self.padding.classes > 1:
            kinds = np.ones(self.padding.class_choices, dtype=np.int8)
            kinds[1:] = observation["class_mask"][slots].all(axis=0)
            masks.append(kinds)
        jobs_shown = np.full(self.padding.jobs, -1, dtype=np.int32)
        jobs_shown[: len(self._view.job_ids)] = self._view.job_ids
        info = {
            "time_ms": state.now_ms,
            "jobs": jobs_shown,
            "action_mask": tuple(masks),
            "invalid_action": False,
            "invalid_reason": "",
            "deadlock": deadlock,
        }
        if over:
            info["num_unfinished"] = state.num_jobs - state.num_done
            outcome = outcome_of(state)
            if state.num_done:
                info[AVG_JCT.column] = AVG_JCT.score(outcome)
            if state.num_done == state.num_jobs:
                info[MAKESPAN.column] = MAKESPAN.score(outcome)
        return info

    # ---- looking at it ----------------------------------------------------------------------------------------------

    def slot_of(self, stage: int) -> int:
        """Slot of a stage id in the present observation.

        Raises:
            ConfigError: The stage's job is not in the system.
        """
        slots = np.flatnonzero(self._view.stage_ids == stage)
        if not len(slots):
            raise ConfigError(f"stage {stage} is not in the present observation")
        return int(slots[0])

    def result(self) -> Result:
        """Outcome of the episode so far; with its log if the environment keeps one."""
        if self.state is None:
            raise ResetNeeded("no episode has begun; call reset() before result()")
        return Result.of_state(self.state, self._workload, "environment", self._seed)

    def render(self) -> str | None:
        """The cluster as a text of a few lines."""
        if self.render_mode is None:
            gymnasium.logger.warn('render() shows nothing without a render mode; make the environment with "ansi"')
            return None
        if self.state is None:
            raise ResetNeeded("no episode has begun; call reset() before render()")
        return describe_state(self.state, self._workload)


def _require_workload(workload: object) -> Workload:
    if not isinstance(workload, Workload):
        raise ConfigError(f"the workload is {workload!r:.60} ({type(workload).__name__}); expected a Workload")
    return workload


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
