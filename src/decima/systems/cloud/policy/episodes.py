"""Episodes of a placement policy for training: in the workers of rollouts, and one that goes on for value learning."""

from __future__ import annotations

import threading

import numpy as np

from decima.core.checks import is_number
from decima.core.errors import ConfigError
from decima.core.record import Record
from decima.learning.rollout import RolloutJob
from decima.systems.cloud.fields import COMPLETE
from decima.systems.cloud.optimum.search import search
from decima.systems.cloud.policy.architecture import PlacementArchitecture
from decima.systems.cloud.policy.fields import TEACHER_PLAN, TEACHER_PROGRAM
from decima.systems.cloud.policy.scheduler import LearnedPlacement, PlacementRecord, collect_record, play, teach
from decima.systems.cloud.policy.task import PlacementSequence, PlacementTask
from decima.systems.cloud.result import outcome_of
from decima.systems.cloud.schedulers.registry import make_placement
from decima.systems.cloud.state import give_plan
from decima.systems.cloud.system import VM_PLACEMENT, Episode

# Sequences whose memory a process keeps.
KEPT_SEQUENCES = 64
# The teacher that is a part of the policy's own kernel; all others are run beforehand.
PROGRAM = "ilp_beta"
# The teacher that knows all jobs beforehand: simulated annealing from the plans of two rules; ``budget`` candidates.
SEARCH, STARTS, BUDGET = "search", ("ilp_beta", "good_first"), 20_000


class PlacementEpisodes:
    """Function from (architecture, weights, job) to the record of the episode; several threads may call it.

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
        sequence, kind = job.sequence, (job.sequence, architecture)
        scheduler = LearnedPlacement(architecture, weights, greedy=False)
        with self._lock:
            idle = self._idle.pop(kind, None)
            idle = [] if idle is None else idle
            self._idle[kind] = idle
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
        """Let a teacher's decisions be recorded: the per-job program with beta, or a plan made beforehand."""
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
        found = search(episode.workload, episode.settings, starts, budget=budget)
        return found.wanted, found.waits
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
