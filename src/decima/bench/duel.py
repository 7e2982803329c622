"""Duels: search for instances on which one scheduler loses most to another.

Simulated annealing changes jobs, their order and arrivals, executors and moving delay. The value of an instance is the
ratio of average JCTs over several seeds of durations; instances that are kept are run on seeds that no search has seen.

Source: Coleman and Krishnamachari, PISA, arXiv 2403.07120.
Differs: jobs are DAGs of a workload source instead of one DAG with changed weights, and durations are drawn.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from decima.bench.run import versions
from decima.core.checks import check_whole
from decima.core.errors import ConfigError
from decima.core.objectives import AVG_JCT
from decima.core.progress import progress_bar
from decima.core.system import SystemScheduler, get_system
from decima.evaluation.statistics import paired_change
from decima.evaluation.workers import make_workers
from decima.systems.spark.settings import Settings
from decima.workload.jobs import Job, Workload
from decima.workload.profile import JobProfile
from decima.workload.sources import get_source

SCHEMA = 1
CHAINS = 4  # searches in each direction; each keeps its best instance
SEEDS = range(3)  # of durations, in the search
UNSEEN = range(10_000, 10_020)  # of durations, for instances that are kept
JOBS, EXECUTORS, DELAY_S, GAP_S = (2, 12), (4, 50), (0.0, 10.0), 60.0  # limits; the longest mean gap of jobs
START_JOBS, START_EXECUTORS, START_DELAY_S, START_GAP_S = 10, 20, 2.0, 10.0
HOT, COLD = 0.1, 0.005  # first and last temperature, in units of the logarithm of the ratio
DIRECTIONS = ("first_loses", "second_loses")
LOSES = ("A loses", "B loses")  # the same on the terminal
TRAITS = {
    "jobs": "jobs",
    "tasks": "tasks per job",
    "depth": "stages on the longest chain of a job",
    "path_share": "longest path over work of a job",
    "largest_share": "largest job's share of the work",
    "first_share": "first job's share of the work",
    "work_s": "work per executor [s]",
    "arrivals_s": "last arrival [s]",
    "at_start": "share of jobs at the start",
    "executors": "executors",
    "moving_delay_s": "moving delay [s]",
}


@dataclass(frozen=True)
class Case:
    """Instance of a duel."""

    universe: tuple[JobProfile, ...]  # profiles to choose from
    jobs: tuple[int, ...]  # profile of each job, in the order of arrival
    gaps_s: tuple[float, ...]  # time between each job and the one before it; the first one's does not count
    executors: int
    moving_delay_s: float

    @cached_property
    def workload(self) -> Workload:
        """The jobs."""
        arrivals_ms = 1000.0 * np.cumsum([0.0, *self.gaps_s[1:]])
        jobs = (Job(self.universe[job], arrival) for job, arrival in zip(self.jobs, arrivals_ms, strict=True))
        return Workload(tuple(jobs), "duel", self.universe)

    @property
    def settings(self) -> Settings:
        """The cluster."""
        return Settings.paper(executors=self.executors, moving_delay_ms=1000.0 * self.moving_delay_s)

    def traits(self) -> dict[str, float]:
        """What instances may have in common, by the names of ``TRAITS``."""
        profiles, arrivals_ms = [job.profile for job in self.workload.jobs], self.workload.arrival_ms
        work_ms = np.array([profile.work_ms for profile in profiles])
        depth = [max(profile.longest_path_down([1.0] * len(profile.stages))) for profile in profiles]
        values = {
            "jobs": len(profiles),
            "tasks": np.mean([profile.num_tasks for profile in profiles]),
            "depth": np.mean(depth),
            "path_share": np.mean([profile.critical_path_ms for profile in profiles] / work_ms),
            "largest_share": work_ms.max() / work_ms.sum(),
            "first_share": work_ms[0] / work_ms.sum(),
            "work_s": work_ms.sum() / self.executors / 1000.0,
            "arrivals_s": arrivals_ms[-1] / 1000.0,
            "at_start": np.mean(arrivals_ms == 0.0),
            "executors": self.executors,
            "moving_delay_s": self.moving_delay_s,
        }
        return {name: float(f"{value:.6g}") for name, value in values.items()}

    def scores_s(self, schedulers: tuple[SystemScheduler, ...], seeds: range) -> np.ndarray:
        """Average JCTs in s, float64 [schedulers, seeds]."""
        spark, settings = get_system("spark"), self.settings
        state = spark.state(spark.tables(self.workload, settings), settings)
        scores = np.zeros((len(schedulers), len(seeds)))
        for row, scheduler in enumerate(schedulers):
            for column, seed in enumerate(seeds):
                spark.run(state, scheduler, seed)
                scores[row, column] = AVG_JCT.measure(spark.outcome(state))
        return scores

    def changed(self, rng: np.random.Generator) -> Case:
        """The same with one thing changed by chance."""
        jobs, gaps_s = list(self.jobs), list(self.gaps_s)
        at, what = int(rng.integers(len(jobs))), int(rng.integers(7))
        if what == 0 or (what == 1 and len(jobs) == JOBS[1]) or (what == 2 and len(jobs) == JOBS[0]):
            jobs[at] = int(rng.integers(len(self.universe)))
        elif what == 1:  # one more job, half the time like one that is there
            new = jobs[int(rng.integers(len(jobs)))] if rng.random() < 0.5 else int(rng.integers(len(self.universe)))
            jobs.insert(at, new)
            gaps_s.insert(at, 0.0)
        elif what == 2:
            del jobs[at], gaps_s[at]
        elif what == 3:
            other = int(rng.integers(len(jobs)))
            jobs[at], jobs[other] = jobs[other], jobs[at]
        elif what == 4:
            gaps_s[at] = 0.0 if rng.random() < 0.5 else round(float(rng.uniform(0.0, GAP_S)), 1)
        elif what == 5:
            executors = round(self.executors * 2.0 ** float(rng.uniform(-1.0, 1.0)))
            return replace(self, executors=min(max(executors, EXECUTORS[0]), EXECUTORS[1]))
        else:
            return replace(self, moving_delay_s=round(float(rng.uniform(*DELAY_S)), 1))
        return replace(self, jobs=tuple(jobs), gaps_s=tuple(gaps_s))


def start_case(universe: tuple[JobProfile, ...], seed: int, chain: int) -> Case:
    """Instance that a search begins with: a batch for even chains, else a stream."""
    rng = np.random.default_rng([seed, chain])
    jobs = tuple(rng.integers(len(universe), size=START_JOBS).tolist())
    gaps_s = np.round(rng.exponential(START_GAP_S, START_JOBS), 1) * (chain % 2)
    return Case(universe, jobs, tuple(gaps_s.tolist()), START_EXECUTORS, START_DELAY_S)


@dataclass(frozen=True)
class _Search:
    """Function from direction and chain to the case that is kept, and its ratio."""

    schedulers: tuple[SystemScheduler, ...]
    universe: tuple[JobProfile, ...]
    seed: int
    evaluations: int

    def __call__(self, item: tuple[int, int]) -> tuple[Case, float]:
        direction, chain = item
        rng = np.random.default_rng([self.seed, chain, direction])
        case = kept = start_case(self.universe, self.seed, chain)
        value = most = self.value(case, direction)
        for step in range(1, self.evaluations):
            other = case.changed(rng)
            gain = self.value(other, direction) - value
            temperature = HOT * (COLD / HOT) ** (step / self.evaluations)
            if gain >= 0.0 or rng.random() < math.exp(gain / temperature):
                case, value = other, value + gain
            if value > most:
                kept, most = case, value
        return kept, math.exp(most)

    def value(self, case: Case, direction: int) -> float:
        """Logarithm of the loser's average JCT over the winner's."""
        means = case.scores_s(self.schedulers, SEEDS).mean(axis=1)
        return math.log(means[direction] / means[1 - direction])


def duel(
    first: str,
    second: str,
    *,
    jobs: str = "embedded",
    evaluations: int = 2000,
    seed: int = 0,
    workers: int | None = None,
    progress: str | None = None,
) -> dict[str, Any]:
    """Search for instances where the first scheduler loses most to the second, and the reverse.

    Args:
        first: A scheduler of the Spark cluster, as commands take it.
        second: Another one.
        jobs: Name of the workload source whose profiles are the jobs.
        evaluations: Instances to try in each direction, at least one per chain.
        seed: Of the search; the same gives the same document.
        workers: Workers, where both are compiled; nothing depends on it.
        progress: Label of a progress bar; None for no bar.

    Returns:
        JSON values. ``start``, ``first_loses`` and ``second_loses`` list instances, each with jobs, cluster,
        ``traits``, ``ratio`` of the loser's average JCT to the winner's in the search (in ``start`` the first one's to
        the second one's), and of the unseen seeds ``confirmed``, the ratio with ``low`` and ``high``, its paired 95 %
        interval.

    Raises:
        DecimaError: A scheduler or source is unknown, data is missing, or a number is out of range.
    """
    check_whole("evaluations", evaluations, least=CHAINS)
    check_whole("seed", seed, least=0)
    schedulers = tuple(get_system("spark").make_scheduler(text) for text in (first, second))
    source = get_source(jobs)
    if required := [option.name for option in source.options if option.required]:
        raise ConfigError(f"source {jobs!r} needs {required[0]}; expected one without, such as embedded or tpch")
    search = _Search(schedulers, source.profiles(), seed, evaluations // CHAINS)
    if not all(getattr(each, "concurrent", False) for each in schedulers):
        workers = 1
    items = [(direction, chain) for direction in range(2) for chain in range(CHAINS)]
    with progress_bar(progress, len(items), "chain") as bar:
        kept = make_workers(search, "threads", workers).map(items, lambda _: bar.update())
    starts = [start_case(search.universe, seed, chain) for chain in range(CHAINS)]
    groups = {"start": [_row(search, case, math.exp(search.value(case, 0)), 0) for case in starts]}
    for direction, name in enumerate(DIRECTIONS):
        rows = [_row(search, *each, direction) for (way, _), each in zip(items, kept, strict=True) if way == direction]
        groups[name] = sorted(rows, key=lambda row: -row["ratio"])
    return {
        "schema": SCHEMA,
        "first": first,
        "second": second,
        "source": jobs,
        "seed": seed,
        "evaluations": 2 * CHAINS * search.evaluations,
        "seeds": list(SEEDS),
        "unseen_seeds": list(UNSEEN),
        "packages": versions(),
        **groups,
    }


def _row(search: _Search, case: Case, ratio: float, direction: int) -> dict[str, Any]:
    scores = case.scores_s(search.schedulers, UNSEEN)
    change = paired_change(scores[direction], scores[1 - direction])
    arrivals_s = (case.workload.arrival_ms / 1000.0).round(1).tolist()
    return {
        "ratio": ratio,
        **{name: 1.0 + value / 100.0 for name, value in zip(("confirmed", "low", "high"), change, strict=True)},
        "first_s": float(scores[0].mean()),
        "second_s": float(scores[1].mean()),
        "executors": case.executors,
        "moving_delay_s": case.moving_delay_s,
        "jobs": [[case.universe[job].name, arrival] for job, arrival in zip(case.jobs, arrivals_s, strict=True)],
        "traits": case.traits(),
    }


def lines(document: dict[str, Any]) -> Iterator[str]:
    """Lines of the terminal: kept instances, then what they have in common."""
    yield from (f"{letter}: {document[side]}" for letter, side in zip("AB", ("first", "second"), strict=True))
    form = "{:<10} {:>8} {:>10} {:>18} {:>6} {:>10}"
    yield form.format("", "searched", "confirmed", "95 %", "jobs", "executors")
    for name, group in zip(LOSES, DIRECTIONS, strict=True):
        for row in document[group]:
            interval = f"[{row['low']:.3f}, {row['high']:.3f}]"
            ratios = f"{row['ratio']:.3f}", f"{row['confirmed']:.3f}"
            yield form.format(name, *ratios, interval, len(row["jobs"]), row["executors"])
    form = "{:<38} {:>10} {:>10} {:>10}"
    yield form.format("means", "start", *LOSES)
    for trait, label in TRAITS.items():
        means = [np.mean([row["traits"][trait] for row in document[group]]) for group in ("start", *DIRECTIONS)]
        yield form.format(label, *(f"{mean:.3g}" for mean in means))
