"""Episodes for training: in workers of rollouts, and an ongoing one for value learning."""

from __future__ import annotations

import threading

import numpy as np

from decima.core.checks import is_number
from decima.core.errors import ConfigError
from decima.core.record import Record
from decima.learning.replay import Transitions
from decima.learning.rollout import RolloutJob
from decima.systems.cloud.fields import COMPLETE, GOES_ON
from decima.systems.cloud.optimum.search import search
from decima.systems.cloud.policy.architecture import PlacementArchitecture
from decima.systems.cloud.policy.fields import TEACHER_PLAN, TEACHER_PROGRAM
from decima.systems.cloud.policy.scheduler import (
    LearnedPlacement,
    PlacementRecord,
    collect_record,
    give_actions,
    play,
    teach,
)
from decima.systems.cloud.policy.task import PlacementSequence, PlacementTask
from decima.systems.cloud.result import outcome_of
from decima.systems.cloud.schedulers.registry import make_placement
from decima.systems.cloud.state import give_chance, give_plan
from decima.systems.cloud.system import VM_PLACEMENT, Episode

# Sequences whose memory a process keeps.
KEPT_SEQUENCES = 64
# The teacher that is a part of the policy's own kernel; all others are run beforehand.
PROGRAM = "ilp_beta"
# The teacher that knows all jobs beforehand: simulated annealing from the plans of two rules; ``budget`` candidates.
SEARCH, STARTS, BUDGET = "search", ("ilp_beta", "good_first"), 20_000


class PlacementEpisodes:
    """Function from (architecture, weights, job) to a record; threads may share it.

    Args:
        task: What to draw sequences of.
    """

    def __init__(self, task: PlacementTask) -> None:
        self._task = task
        self._lock = threading.Lock()
        self._plans: dict[tuple, tuple[np.ndarray, np.ndarray]] = {}
        self._idle: dict[tuple[PlacementSequence, PlacementArchitecture], list[tuple[Episode, Record]]] = {}

    def __reduce__(self) -> tuple:
        """Pickle as the task alone."""
        return _episodes_of, (self._task.as_dict(),)

    def __call__(self, item: tuple[PlacementArchitecture, np.ndarray, RolloutJob]) -> PlacementRecord:
        """Run the episode."""
        architecture, weights, job = item
        sequence, key = job.sequence, (job.sequence, architecture)
        scheduler = LearnedPlacement(architecture, weights, greedy=False)
        with self._lock:
            idle = self._idle.pop(key, None)
            idle = [] if idle is None else idle
            self._idle[key] = idle
            while len(self._idle) > KEPT_SEQUENCES:
                del self._idle[next(iter(self._idle))]
        try:
            episode, memory = idle.pop()
            scheduler.show(memory)
            teach(memory)
        except IndexError:
            episode = Episode.of(self._task.workload(sequence), self._task.settings_of(sequence))
            memory = scheduler.memory(episode.state, record=True)
            memory.configure(per_job=self._task.reward == "per_job")
        if job.teacher is not None:
            self._prepare(episode, memory, job)
        episode.start(job.seed)
        play(episode.state, episode.other, memory)
        record = collect_record(episode.state, memory, numbers_of(episode))
        episode.state.release("wanted", "wanted_waits")
        idle.append((episode, memory))
        return record

    def _prepare(self, episode: Episode, memory: Record, job: RolloutJob) -> None:
        """Let decisions of the per-job program, or of a prepared plan, be recorded."""
        teacher = job.teacher
        name = teacher.name
        if name == PROGRAM and not teacher.parameters:
            teach(memory, TEACHER_PROGRAM, teacher.share)
            return
        # Searching takes longer than an episode, and traces may come again.
        key = job.sequence, name, teacher.parameters
        with self._lock:
            plan = self._plans.get(key)
        if plan is None:
            plan = plan_of(episode, name, dict(teacher.parameters))
            with self._lock:
                self._plans[key] = plan
                while len(self._plans) > KEPT_SEQUENCES:
                    del self._plans[next(iter(self._plans))]
        give_plan(episode.state, *plan)
        teach(memory, TEACHER_PLAN, teacher.share)


def _episodes_of(task: dict) -> PlacementEpisodes:
    return PlacementEpisodes(PlacementTask.from_dict(task))


def plan_of(episode: Episode, name: str, parameters: dict) -> tuple[np.ndarray, np.ndarray]:
    """What a teacher does with the jobs of an episode.

    Args:
        episode: The jobs and the settings; its memory is used.
        name: A rule, or :data:`SEARCH`.
        parameters: Its options.

    Returns:
        VM of every executor, int64 [executors], and waits before every job, int64 [jobs].
    """
    if name == SEARCH:
        starts = []
        for rule in STARTS:
            episode.run(make_placement(rule), 0)
            starts.append(VM_PLACEMENT.result(episode, rule, 0).require_complete().where)
        budget = int(parameters.get("budget", BUDGET))
        plan = search(episode.workload, episode.settings, starts, budget=budget)
        return plan.wanted, plan.waits
    episode.run(make_placement(name, **parameters), 0)
    result = VM_PLACEMENT.result(episode, name, 0).require_complete()
    return result.where, _voluntary(result)


def check_teacher(name: str, parameters: dict) -> None:
    """Refuse what is neither a rule nor the search, or a wrong option of one.

    Raises:
        ConfigError: There is no such teacher, or an option is wrong.
    """
    if name != SEARCH:
        make_placement(name, **parameters)
        return
    if unknown := set(parameters) - {"budget"}:
        raise ConfigError(f"unknown option of the teacher {SEARCH}: {', '.join(sorted(unknown))}; it has: budget")
    budget = parameters.get("budget", BUDGET)
    if not is_number(budget) or budget < 1 or budget != int(budget):
        raise ConfigError(f"budget of the teacher {SEARCH} must be a whole number of at least 1, got {budget!r:.60}")


def _voluntary(result) -> np.ndarray:
    """Waits before every job, int64 [jobs]."""
    waits, job, placed = np.zeros(len(result.workload), np.int64), 0, 0
    for action in result.actions:
        if action == 0:
            waits[job] += 1
            continue
        placed += 1
        if placed == result.workload.jobs[job].executors:
            job, placed = job + 1, 0
    return waits


def numbers_of(episode: Episode) -> tuple[bool, float, float]:
    """Whether all jobs are placed, cost and mean run time; NaN where not."""
    if episode.state.status != COMPLETE:
        return False, float("nan"), float("nan")
    outcome = outcome_of(episode.state, episode.workload)
    return True, outcome.cost, outcome.mean_duration_s


class Explorer:
    """Ongoing episode of value learning; the next trace begins where one ends.

    Args:
        task: What to draw traces of.
        architecture: Shape of the network, whose outputs are values of actions.
        seed: Of the run; traces and chance are functions of it.
    """

    def __init__(self, task: PlacementTask, architecture: PlacementArchitecture, seed: int) -> None:
        self._task, self._architecture, self._seed = task, architecture, seed
        self._episode: Episode | None = None
        self._sequence: PlacementSequence | None = None  # that its memory is made for
        self._number = -1  # of the present episode
        self._before = 0.0  # rewards of the episode before the memory was made anew

    def state(self) -> tuple[dict[str, np.ndarray], dict]:
        """Number of the episode and its actions, all that it depends on."""
        actions = np.zeros(0, np.int64)
        if self._episode is not None:
            actions = self._episode.state.action[: self._episode.state.steps].copy()
        return {"actions": actions}, {"episode": self._number, "before": self._before}

    def restore(self, arrays: dict[str, np.ndarray], counters: dict, weights: np.ndarray) -> None:
        """Repeat the actions."""
        self._episode, self._number = None, counters["episode"]
        if self._number < 0:
            return
        self._begin(self._number)
        memory = self._memory
        give_actions(memory, arrays["actions"])
        memory.configure(limit=0)
        play(self._episode.state, self._episode.other, memory)
        give_actions(memory, [])
        self._before = counters["before"]
        memory.configure(total=0.0)

    def _begin(self, number: int) -> None:
        sequence = self._task.training_sequences(self._seed, number, 1)[0]
        self._number, self._before = number, 0.0
        if self._episode is not None and sequence == self._sequence:
            self._episode.start(0)
            self._memory.configure(total=0.0)
            return
        self._sequence = sequence
        self._episode = Episode.of(self._task.workload(sequence), self._task.settings_of(sequence))
        self._episode.start(0)
        scheduler = LearnedPlacement(self._architecture, self._architecture.initial_weights(0))
        self._memory = scheduler.memory(self._episode.state, record=True)
        self._memory.configure(per_job=self._task.reward == "per_job")

    def go_on(
        self, weights: np.ndarray, iteration: int, steps: int, epsilon: float
    ) -> tuple[Transitions, list[PlacementRecord]]:
        """Make ``steps`` decisions, eps-greedy.

        Args:
            weights: Float32 [parameters].
            iteration: Chance is a function of it.
            steps: Decisions to make.
            epsilon: Probability of a random action.

        Returns:
            The transitions, and records of what the episodes that ended did since the iteration began.
        """
        rng = np.random.default_rng([self._seed, iteration, 3])
        parts, ended, left = [], [], steps
        while left > 0:
            if self._episode is None or self._episode.state.status != GOES_ON:
                self._begin(self._number + 1)
            state, memory = self._episode.state, self._memory
            give_chance(state, rng)
            memory.bind("weights", weights, copy=False)
            memory.configure(limit=left, explore=epsilon, greedy=True)
            play(state, self._episode.other, memory)
            parts.append(self._transitions())
            left -= memory.decisions
            if state.status != GOES_ON:
                memory.configure(total=memory.total + self._before)
                ended.append(collect_record(state, memory, numbers_of(self._episode)))
            else:
                self._before += memory.total
                memory.configure(total=0.0)
        self._held = rng  # the state has its address
        return Transitions.joined([part for part in parts if len(part)]), ended

    def _transitions(self) -> Transitions:
        """What the memory recorded: every decision with the one after it."""
        state, memory, shape = self._episode.state, self._memory, self._architecture
        count, actions, width = memory.decisions, state.num_vms + 1, shape.inputs
        over = state.status != GOES_ON
        vector = shape.form == "vector"
        seen = count if over else count + 1  # the inputs of the one that is to be made now, too
        first, action = memory.rec_first, memory.rec_action
        counts = np.diff(first[: seen + 1]) if seen else np.zeros(0, np.int64)
        row = np.repeat(np.arange(seen), counts)
        column = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
        mask = np.zeros((count + 1, actions), bool)
        if vector:
            x = np.zeros((count + 1, width), np.float32)
            x[:seen] = memory.rec_x[: seen * width].reshape(seen, width)
            mask[row, action[: len(row)]] = True
        else:
            x = np.zeros((count + 1, actions, width), np.float32)
            x[row, column] = memory.rec_x[: len(row) * width].reshape(-1, width)
            x = x.reshape(count + 1, actions * width)
            mask[row, column] = True
        chosen = memory.rec_chosen[:count].copy()
        if vector:
            chosen = action[first[:count] + chosen]
        step = np.append(memory.rec_step[:count], state.steps)
        done = np.zeros(count, bool)
        if over and count:
            done[-1] = True
        return Transitions(
            {
                "x": x[:count],
                "action": chosen.astype(np.int32),
                "reward": memory.rec_reward[:count].copy(),
                "next_x": x[1:],
                "next_mask": mask[1:],
                "steps": np.diff(step).astype(np.int32),
                "done": done,
            }
        )
