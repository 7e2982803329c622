"""Planner: improves the plan of a run from the present state."""

from __future__ import annotations

from collections.abc import Callable
from math import log

import numpy as np

from decima.core.cache import cached
from decima.core.decision import Parameter
from decima.core.jit import njit
from decima.systems.spark.fields import ARRIVING, state_at
from decima.systems.spark.lookahead.copies import FACTORS, Draw, Plan
from decima.systems.spark.lookahead.projection import NO_FUTURE, Future
from decima.systems.spark.lookahead.search import Budget, Search, Trials
from decima.systems.spark.schedulers.interface import CompiledScheduler
from decima.systems.spark.schedulers.registry import SCHEDULERS, scheduler_presets
from decima.systems.spark.state import ClusterState

# Steps: of a parameter, as a part of its value; per factor, of what is common to all jobs, per unit of a feature; of
# the share of a single job. The last two are natural logarithms. The order gets small steps and no part of single
# jobs: the cost has a kink wherever two jobs change places.
_PARAMETER, _FEATURE, _SHARE = 0.05, (0.02, 0.05), 0.2
# Step of a parameter on several executor classes, of a rule without presets: nobody tuned it for jobs that are there at
# once, so its best values are far.
_UNTUNED = 0.4
# Draws of what is not known, per plan.
_DRAWS = 16
# Bound of a factor's natural logarithm.
_LARGEST_FACTOR = 5.0
#: Length of the longest remaining path relative to the remaining work; tasks that could be launched now. Logarithms.
FEATURES = ("path", "tasks")
#: What a plan assumes of jobs to come: nothing, or a Poisson process like the arrivals that were seen.
NONE, POISSON = "none", "poisson"
ARRIVALS = (NONE, POISSON)
# Jobs are assumed to come for so many times the time that the work in the system takes; there are at
# most so many of them.
_WINDOW = 1.5
_MOST = 32


# ---- what is known and assumed of jobs -------------------------------------------------------------------------------


@cached(njit(cache=True, nogil=True))
def job_features(address, jobs, features):
    """Compute the features of jobs, each less its mean over them.

    Args:
        address: A state; of its jobs only those given are looked at.
        jobs: Jobs in the system, int32 [jobs].
        features: Receives them, float64 [``FEATURES``, jobs].

    Returns:
        Remaining work of these jobs, executor time in ms.
    """
    state = state_at(address)
    total = 0.0
    for index in range(len(jobs)):
        job = jobs[index]
        work = 0.0
        path = 0.0
        ready = 0
        for stage in range(state.job_first_stage[job], state.job_first_stage[job + 1]):
            unfinished = state.stage_tasks[stage] - state.stage_finished_tasks[stage]
            if unfinished > 0:
                row = state.stage_row[stage]
                work += unfinished * state.row_nominal_ms[row]
                path = max(path, state.row_path_ms[row])
            if state.stage_unfinished_parents[stage] == 0:
                ready += state.stage_tasks[stage] - state.stage_next[stage]
        total += work
        features[0, index] = log(max(path, 1.0) / max(work, 1.0))
        features[1, index] = log(1.0 + ready)
    for row in range(len(features)):
        features[row] -= np.mean(features[row])
    return total


def draw_future(state: ClusterState, arrivals: str, work_ms: float, rng: np.random.Generator) -> Future:
    """Draw jobs that may come.

    Args:
        state: The cluster; of its tables only jobs that have arrived are looked at.
        arrivals: One of ``ARRIVALS``. ``"poisson"``: gaps have the mean of those seen since time 0, jobs are like any
            that has arrived, with equal probability; none come before two have come after time 0.
        work_ms: Remaining work of the jobs in the system, executor time in ms.
        rng: Source of chance.
    """
    if arrivals == NONE:
        return NO_FUTURE
    seen = np.flatnonzero(state.job_state != ARRIVING)
    later = int(np.count_nonzero(state.job_arrival_ms[seen] > 0.0))
    if later < 2:
        return NO_FUTURE
    window_ms = _WINDOW * work_ms / state.num_executors
    times_ms = np.cumsum(rng.exponential(state.now_ms / later, _MOST))
    times_ms = times_ms[times_ms < window_ms]
    return Future(rng.choice(seen, len(times_ms)).astype(np.int32), state.now_ms + times_ms)


# ---- plans ----------------------------------------------------------------------------------------------------------


class Space:
    """Points among which a search chooses, for one rule.

    A point is a vector in steps: changes of the tunable parameters, then a coefficient per factor and feature of the
    jobs, then a number per job for its share. The vector of zeros is the rule itself.

    Args:
        base: The rule.
        classes: Number of executor classes.
    """

    def __init__(self, base: CompiledScheduler, classes: int) -> None:
        tuned = base.name in SCHEDULERS and scheduler_presets(base.name)
        self._step = _PARAMETER if tuned or classes == 1 else _UNTUNED
        self._base = np.array([base.values[item.name] for item in base.parameters])
        self._tunable = [(index, item) for index, item in enumerate(base.parameters) if item.tunable]
        self.common = len(self._tunable) + len(FACTORS) * len(FEATURES)

    def plan(self, point: np.ndarray, features: np.ndarray) -> Plan:
        """What a point means for jobs of these features, float64 [features, jobs]."""
        parameters = self._base.copy()
        for number, (index, item) in zip(point, self._tunable, strict=False):
            parameters[index] = _changed(item, parameters[index], self._step * number)
        together = point[len(self._tunable) : self.common].reshape(len(FACTORS), -1)
        factors = (np.array(_FEATURE)[:, None] * together) @ features
        factors[1] += _SHARE * point[self.common :]
        return Plan(parameters, np.clip(factors, -_LARGEST_FACTOR, _LARGEST_FACTOR))


def _changed(item: Parameter, value: float, part: float) -> float:
    """A parameter changed by a part of its value, inside of its range."""
    scale = max(abs(value), 0.5)
    return float(np.clip(value + part * scale, item.low, item.high))


class Planner:
    """Plan for one run, improved from time to time.

    Args:
        base: The rule whose parameters and factors are planned.
        arrivals: How jobs to come are drawn, see :func:`draw_future`.
        classes: Number of executor classes of the cluster.
        draws: Draws of what is not known, per plan.
        seed: Source of chance, of what is drawn and of candidates.

    Attributes:
        plans: Plans made.
        runs: Runs of candidates.
    """

    def __init__(
        self,
        base: CompiledScheduler,
        *,
        arrivals: str = NONE,
        classes: int = 1,
        draws: int = _DRAWS,
        seed: int | np.random.SeedSequence = 0,
    ) -> None:
        self.base = base
        self.plans = self.runs = 0
        self._space = Space(base, classes)
        self._arrivals = arrivals
        self._rng = np.random.default_rng(seed)
        self._num_draws = draws
        self._draws: list[Draw] = []
        self._room = (0, 0)
        self._search = Search(self._space.common, self._rng)

    def replan(self, state: ClusterState, budget: Callable[[], Budget]) -> tuple[np.ndarray, Plan]:
        """Improve the plan in force for the jobs in the system.

        Args:
            state: The cluster, at a decision; only looked at.
            budget: Makes a budget that begins now.

        Returns:
            The jobs, int32 [jobs], and the plan for them.
        """
        trial_budget = budget()
        jobs = state.active[: state.num_active].astype(np.int32)
        features = np.zeros((len(FEATURES), len(jobs)))
        work_ms = job_features(state.address, jobs, features)
        self._begin(state, jobs, work_ms)
        trials = Trials(
            lambda draw, point: self._draws[draw].cost_ms(self._space.plan(point, features)),
            self._num_draws,
            trial_budget,
        )
        point = self._search.improve(trials, jobs.tolist())
        self.plans += 1
        self.runs += trials.runs
        return jobs, self._space.plan(point, features)

    def _begin(self, state: ClusterState, jobs: np.ndarray, work_ms: float) -> None:
        """Put every draw into the state that the cluster is in."""
        seeds = self._rng.integers(2**63, size=self._num_draws)
        futures = [draw_future(state, self._arrivals, work_ms, self._rng) for _ in range(self._num_draws)]
        sizes = np.diff(state.job_first_stage)
        most_jobs = len(jobs) + max(len(future.like) for future in futures)
        most_stages = int(sizes[jobs].sum()) + max(int(sizes[future.like].sum()) for future in futures)
        if not self._draws or most_jobs > self._room[0] or most_stages > self._room[1]:
            self._room = (_room(most_jobs), _room(most_stages))
            self._draws = [Draw(state, self.base, *self._room) for _ in range(self._num_draws)]
        for draw, future, seed in zip(self._draws, futures, seeds.tolist(), strict=True):
            draw.begin(state, jobs, future, seed)


def _room(needed: int) -> int:
    """Room for so many and some more: the next power of two."""
    return 1 << max(3, (needed - 1).bit_length())
