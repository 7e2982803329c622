"""Episodes for training: in workers of rollouts, and an ongoing one for value learning."""

from functools import lru_cache

import numpy as np

from decima.core.record import Record
from decima.learning.algorithms.dqn import Transitions
from decima.learning.rollout import RolloutJob
from decima.systems.cloud.fields import COMPLETE, GOES_ON
from decima.systems.cloud.optimum.search import search
from decima.systems.cloud.policy.architecture import PlacementArchitecture
from decima.systems.cloud.policy.kernel import TEACHER_PLAN, TEACHER_PROGRAM
from decima.systems.cloud.policy.scheduler import LearnedPlacement, PlacementRecord, give_actions, play, teach
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
        # Memory that no thread uses at present, and what teachers do.
        self._idle = lru_cache(KEPT_SEQUENCES)(lambda sequence, architecture: [])
        self._plan = lru_cache(KEPT_SEQUENCES)(
            lambda sequence, name, parameters: plan_of(episode_of(task, sequence), name, dict(parameters))
        )

    def __reduce__(self) -> tuple:
        return PlacementEpisodes, (self._task,)

    def __call__(self, item: tuple[PlacementArchitecture, np.ndarray, RolloutJob]) -> PlacementRecord:
        """Run the episode."""
        architecture, weights, job = item
        scheduler = LearnedPlacement(architecture, weights, greedy=False)
        idle = self._idle(job.sequence, architecture)
        try:
            episode, memory = idle.pop()
            scheduler.show(memory)
            teach(memory)
        except IndexError:
            episode = episode_of(self._task, job.sequence)
            memory = scheduler.memory(episode.state, record=True)
            memory.configure(per_job=self._task.reward == "per_job")
        if (teacher := job.teacher) is not None:
            by_program = teacher.name == PROGRAM and not teacher.parameters
            if not by_program:
                give_plan(episode.state, *self._plan(job.sequence, teacher.name, teacher.parameters))
            teach(memory, TEACHER_PROGRAM if by_program else TEACHER_PLAN, teacher.share)
        episode.start(job.seed)
        play(episode.state, episode.other, memory)
        record = collect_record(episode, memory)
        episode.state.release("wanted", "wanted_waits")
        idle.append((episode, memory))
        return record


def episode_of(task: PlacementTask, sequence: PlacementSequence) -> Episode:
    """Memory for episodes of a sequence."""
    return Episode.of(task.workload(sequence), task.settings_of(sequence))


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
        return search(episode.workload, episode.settings, starts, budget=budget)
    episode.run(make_placement(name, **parameters), 0)
    result = VM_PLACEMENT.result(episode, name, 0).require_complete()
    waits = result.actions == 0
    placed = np.cumsum(~waits)[waits]  # executors before each wait
    last = np.cumsum([job.executors for job in episode.workload.jobs])
    jobs = np.searchsorted(last, placed, side="right")
    return result.where, np.bincount(jobs, minlength=len(last))


def collect_record(episode: Episode, memory: Record) -> PlacementRecord:
    """Copy recorded decisions out of the memory of a policy."""
    state, outcome = episode.state, outcome_of(episode.state, episode.workload)
    complete = state.status == COMPLETE
    count, rows, width = memory.decisions, memory.rows, memory.inputs
    inputs = count if memory.vector else rows
    return PlacementRecord(
        memory.rec_first[: count + 1].copy(),
        memory.rec_action[:rows].copy(),
        memory.rec_x[: inputs * width].reshape(inputs, width).copy(),
        memory.rec_chosen[:count].copy(),
        memory.rec_log_prob[:count].copy(),
        memory.rec_reward[:count].copy(),
        memory.rec_job[:count].copy(),
        memory.rec_step[:count].copy(),
        state.num_jobs,
        state.steps,
        complete,
        outcome.cost if complete else np.nan,
        outcome.mean_duration_s,
        memory.total,
    )


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

    def restore(self, arrays: dict[str, np.ndarray], counters: dict) -> None:
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
        self._episode = episode_of(self._task, sequence)
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
                ended.append(collect_record(self._episode, memory))
            else:
                self._before += memory.total
                memory.configure(total=0.0)
        self._episode.rng = rng  # the state has its address
        return Transitions.joined([part for part in parts if len(part)]), ended

    def _transitions(self) -> Transitions:
        """What the memory recorded: every decision with the one after it."""
        state, memory, shape = self._episode.state, self._memory, self._architecture
        count, actions, width = memory.decisions, state.num_vms + 1, shape.inputs
        over = state.status != GOES_ON
        seen = count if over else count + 1  # the inputs of the one that is to be made now, too
        first, chosen = memory.rec_first[: seen + 1], memory.rec_chosen[:count]
        counts = np.diff(first)
        row = np.repeat(np.arange(seen), counts)
        if shape.form == "vector":
            x = np.zeros((count + 1, width), np.float32)
            x[:seen] = memory.rec_x[: seen * width].reshape(seen, width)
            column = memory.rec_action[: len(row)]
            chosen = memory.rec_action[first[:count] + chosen]
        else:
            column = np.arange(len(row)) - np.repeat(first[:-1], counts)
            x = np.zeros((count + 1, actions, width), np.float32)
            x[row, column] = memory.rec_x[: len(row) * width].reshape(-1, width)
            x = x.reshape(count + 1, actions * width)
        mask = np.zeros((count + 1, actions), bool)
        mask[row, column] = True
        step = np.append(memory.rec_step[:count], state.steps)
        done = np.zeros(count, bool)
        done[-1:] = over
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
