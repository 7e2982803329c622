"""Planner: keeps a plan for one run and improves it from the state that the cluster is in."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from decima.core.decision import Parameter
from decima.core.errors import ConfigError
from decima.systems.spark.lookahead.bases import FACTORS
from decima.systems.spark.lookahead.copies import Draw, Plan
from decima.systems.spark.lookahead.features import FEATURES, job_features
from decima.systems.spark.lookahead.future import draw_future
from decima.systems.spark.lookahead.search import Budget, Search, Trials
from decima.systems.spark.schedulers.interface import CompiledScheduler
from decima.systems.spark.state import ClusterState

# Steps: of a parameter, as a part of its value; per factor, of what is common to all jobs, per unit of a feature; of
# the share of a single job. The last two are natural logarithms. The order gets small steps and no part of single
# jobs: the cost has a kink wherever two jobs change places.
_PARAMETER, _FEATURE, _SHARE = 0.05, (0.02, 0.05), 0.2
# Bound of a factor's natural logarithm.
_LARGEST_FACTOR = 5.0


class Space:
    """Points among which a search chooses, for one rule.

    A point is a vector in steps: changes of the tunable parameters, then a coefficient per factor and feature of the
    jobs, then a number per job for its share. The vector of zeros is the rule itself.

    Args:
        base: The rule.
    """

    def __init__(self, base: CompiledScheduler) -> None:
        self._base = np.array([base.values[item.name] for item in base.parameters])
        self._tunable = [(index, item) for index, item in enumerate(base.parameters) if item.tunable]
        self.common = len(self._tunable) + len(FACTORS) * len(FEATURES)

    def plan(self, point: np.ndarray, features: np.ndarray) -> Plan:
        """What a point means for jobs of these features, float64 [features, jobs]."""
        parameters = self._base.copy()
        for number, (index, item) in zip(point, self._tunable, strict=False):
            parameters[index] = _changed(item, parameters[index], number)
        together = point[len(self._tunable) : self.common].reshape(len(FACTORS), -1)
        factors = (np.array(_FEATURE)[:, None] * together) @ features
        factors[1] += _SHARE * point[self.common :]
        return Plan(parameters, np.clip(factors, -_LARGEST_FACTOR, _LARGEST_FACTOR))


def _changed(item: Parameter, value: float, number: float) -> float:
    """A parameter changed by a number of steps, inside of its range."""
    scale = max(abs(value), 0.5)
    return float(np.clip(value + _PARAMETER * scale * number, item.low, item.high))


class Planner:
    """Plan for one run, improved from time to time.

    Args:
        base: The rule whose parameters and factors are planned.
        draws: Draws of what is not known, per plan.
        horizon_ms: Simulated time that is looked ahead, ms; infinity: to the end of the jobs in the system.
        arrivals: How jobs to come are drawn, see :func:`decima.systems.spark.lookahead.future.draw_future`.
        threads: Candidates that run at the same time; plans do not depend on it where the budget is in runs.
        seed: Source of chance, of what is drawn and of candidates.

    Attributes:
        plans: Plans made.
        runs: Runs of candidates.
    """

    def __init__(
        self,
        base: CompiledScheduler,
        *,
        draws: int,
        horizon_ms: float = float("inf"),
        arrivals: str = "none",
        threads: int = 1,
        seed: int | np.random.SeedSequence = 0,
    ) -> None:
        self.base = base
        self.plans = self.runs = 0
        self._space = Space(base)
        self._horizon_ms, self._arrivals, self._threads = horizon_ms, arrivals, threads
        self._rng = np.random.default_rng(seed)
        self._num_draws = draws
        self._draws: list[Draw] = []
        self._room = (0, 0)
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="decima-plan") if threads > 1 else None
        self._search = Search(self._space.common, self._rng)

    def close(self) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown()

    def replan(self, state: ClusterState, budget: Callable[[], Budget]) -> tuple[np.ndarray, Plan]:
        """Improve the plan in force for the jobs in the system.

        Args:
            state: The cluster, at a decision; only looked at.
            budget: Makes a budget that begins now.

        Returns:
            The jobs, int32 [jobs], and the plan for them.

        Raises:
            ConfigError: A task takes longer than what is looked ahead.
        """
        trial_budget = budget()
        jobs = state.active[: state.num_active].astype(np.int32)
        features, largest_ms = np.zeros((len(FEATURES), len(jobs))), np.zeros(1)
        work_ms = job_features(state.address, jobs, features, largest_ms)
        if largest_ms[0] > self._horizon_ms:
            raise ConfigError(
                f"the horizon is {self._horizon_ms / 1000:g} s, but a task takes {largest_ms[0] / 1000:g} s; expected "
                "a horizon no shorter than a task"
            )
        self._begin(state, jobs, work_ms)
        trials = Trials(
            lambda draw, point, thread: self._draws[draw].cost_ms(self._space.plan(point, features), thread),
            self._num_draws,
            trial_budget,
            self._threads,
            self._pool,
        )
        point = self._search.improve(trials, jobs.tolist())
        self.plans += 1
        self.runs += trials.runs
        return jobs, self._space.plan(point, features)

    def _begin(self, state: ClusterState, jobs: np.ndarray, work_ms: float) -> None:
        """Put every draw into the state that the cluster is in."""
        seeds = self._rng.integers(2**63, size=self._num_draws)
        futures = [
            draw_future(state, self._arrivals, work_ms, self._horizon_ms, self._rng) for _ in range(self._num_draws)
        ]
        sizes = np.diff(state.job_first_stage)
        most_jobs = len(jobs) + max(len(future.like) for future in futures)
        most_stages = int(sizes[jobs].sum()) + max(int(sizes[future.like].sum()) for future in futures)
        if not self._draws or most_jobs > self._room[0] or most_stages > self._room[1]:
            self._room = (_room(most_jobs), _room(most_stages))
            self._draws = [Draw(state, self.base, *self._room, self._threads) for _ in range(self._num_draws)]
        until_ms = state.now_ms + self._horizon_ms
        for draw, future, seed in zip(self._draws, futures, seeds.tolist(), strict=True):
            draw.begin(state, jobs, future, until_ms, seed)


def _room(needed: int) -> int:
    """Room for so many and some more: the next power of two."""
    return 1 << max(3, (needed - 1).bit_length())
