"""Generator of jobs like those of the Alibaba trace.

Stages per job, tasks per stage, memory requests and durations follow published frequency counts over 2.86 million jobs,
kept here as a few points of their distributions; nothing of the trace itself is part of this project. What is computed
from them says "Alibaba-like" in titles and file names and is not a result about the trace.

Source: the distributions of package ``spar`` (GitHub ``All-less/trace-generator``, MIT licence), Tian, Zheng and Wang,
SoCC 2019. Differs: durations and tasks of a stage are correlated as they are in the package's hour (rank correlation
0.46); the counts are independent. Depths follow a power law through their mean by number of stages.
"""

import functools
import math

import numpy as np

from decima.core.checks import is_whole
from decima.core.errors import ConfigError
from decima.workload.alibaba.assemble import ZERO_MS
from decima.workload.alibaba.trace import Trace, TraceReport
from decima.workload.arrivals import check_count

LABEL = "Alibaba-like (generated)"
ORIGIN = "alibaba-like"
MIXES = ("public", "paper")
JOBS_PER_S = 15_478 / 3600.0  # DAG jobs of the package's hour
LARGEST_DAG = 203  # stages of the largest job of the trace that is known to us
_MOST_JOBS = 1_000_000
_MOST_SAMPLES = 32  # recorded durations of a stage
# Points of cumulative distributions: probability, value. Between them values grow geometrically.
_STAGES = (
    (0.3833, 1), (0.5874, 2), (0.715, 3), (0.7847, 4), (0.8385, 5), (0.8716, 6), (0.9069, 7), (0.9383, 9),
    (0.9573, 11), (0.979, 15), (0.9909, 20), (0.995, 24), (0.999, 36), (0.9999, 77), (1.0, LARGEST_DAG),
)  # fmt: skip
_TASKS = (
    (0.66, 1), (0.74, 3), (0.8, 7), (0.85, 17), (0.9, 47), (0.95, 176), (0.975, 367), (0.99, 844), (0.999, 3526),
    (1.0, 27_616),
)  # fmt: skip
_MEAN_S = (
    (0.08, 0.5), (0.3, 1.0), (0.4, 2.0), (0.5, 3.4), (0.6, 6.0), (0.7, 10.0), (0.8, 20.0), (0.9, 48.0), (0.95, 93.0),
    (0.99, 231.0), (0.999, 529.0), (1.0, 2727.0),
)  # fmt: skip
_MEMORY = ((0.35, 0.2), (0.59, 0.3), (0.81, 0.39), (0.937, 0.49), (0.994, 0.59), (0.998, 0.69), (1.0, 1.0))
_CORRELATION = 0.46  # of the ranks of tasks and mean duration of a stage
_MOST_WORK_S = 120_000.0  # of a stage in executor seconds: the longest stages are not those of the most tasks
_SPREAD = 0.5  # standard deviation of the logarithm of durations inside a stage
_EXTRA_PARENT = 0.27  # chance of each further parent; 1.37 parents per stage that has any
_PAPER_SHARE = 0.59  # of jobs with four stages or more, as in the paper's trace
_PAPER_HUNDREDS = 0.005  # of jobs with a hundred stages or more; the paper says "some"


@functools.lru_cache(maxsize=4)
def generate(jobs: int = 1000, trace_seed: int = 0, mix: str = "public") -> Trace:
    """Generate a trace.

    Args:
        jobs: Number of jobs; they arrive at the rate of the package's hour.
        trace_seed: 0 or more.
        mix: ``"public"``: stages per job as in the public trace; ``"paper"``: 59 % of the jobs have four stages or more
            and one in 200 has 100 to 203, after what the paper says of its trace.

    Raises:
        ConfigError: An argument is not as described.

    Source: §7.3 for the mix of the paper.
    """
    if not is_whole(jobs) or not 1 <= jobs <= _MOST_JOBS:
        raise ConfigError(f"jobs is {jobs!r}; expected an integer from 1 to {_MOST_JOBS:,}")
    check_count("trace_seed", trace_seed, least=0)
    if mix not in MIXES:
        raise ConfigError(f"mix is {mix!r}; expected {' or '.join(MIXES)}")
    gaps_rng, size_rng, shape_rng, stage_rng, sample_rng = np.random.default_rng(int(trace_seed)).spawn(5)
    arrival_s = np.floor(np.cumsum(gaps_rng.exponential(1.0 / JOBS_PER_S, jobs)))
    sizes = _sizes(size_rng, int(jobs), mix)
    first_stage = np.concatenate([[0], np.cumsum(sizes)])
    parents = [above for size in sizes.tolist() for above in _dag(shape_rng, size)]
    count = len(parents)
    tasks, mean_s = _tasks_and_means(stage_rng, count)
    memory = np.array([value for _, value in _MEMORY])[
        np.searchsorted([probability for probability, _ in _MEMORY], stage_rng.random(count))
    ]
    recorded = np.minimum(tasks, _MOST_SAMPLES)
    offset = np.concatenate([[0], np.cumsum(recorded)])
    spread = np.exp(_SPREAD * sample_rng.standard_normal(offset[-1]) - _SPREAD**2 / 2.0)
    duration_ms = np.maximum(np.round(1000.0 * np.repeat(mean_s, recorded) * spread), ZERO_MS)
    return Trace(
        label=LABEL,
        source=ORIGIN,
        length_s=float(arrival_s[-1]) + 1.0,
        job_names=tuple(f"like-{index:06d}" for index in range(jobs)),
        arrival_s=arrival_s,
        first_stage=first_stage,
        stage_names=tuple(str(1 + index) for size in sizes.tolist() for index in range(size)),
        num_tasks=tasks,
        memory=memory,
        parent_offset=np.cumsum([0, *map(len, parents)], dtype=np.int64),
        parent=np.array([each for above in parents for each in above], dtype=np.int64),
        duration_offset=offset,
        duration_ms=duration_ms,
        report=TraceReport(int(jobs), count, int(tasks.sum()), sum(map(len, parents))),
    )


def _quantile(points: tuple[tuple[float, float], ...], at: np.ndarray) -> np.ndarray:
    """Quantiles of a distribution, float64: geometric interpolation, the first point below."""
    probability = [each for each, _ in points]
    return np.exp(np.interp(at, probability, np.log([value for _, value in points])))


def _sizes(rng: np.random.Generator, jobs: int, mix: str) -> np.ndarray:
    at = rng.random(jobs)
    large = rng.random(jobs)
    if mix == "paper":
        # The same distribution, stretched on both sides of its border between three and four stages.
        border = _STAGES[2][0]
        low = 1.0 - _PAPER_SHARE
        at = np.where(at < low, at * border / low, border + (at - low) * (1.0 - border) / (1.0 - low))
    sizes = np.ceil(_quantile(_STAGES, at) - 1e-9).astype(np.int64)
    if mix == "paper":
        hundreds = np.exp(rng.uniform(math.log(100.0), math.log(LARGEST_DAG + 1.0), jobs)).astype(np.int64)
        sizes = np.where(large < _PAPER_HUNDREDS, np.minimum(hundreds, LARGEST_DAG), sizes)
    return sizes


def _dag(rng: np.random.Generator, size: int) -> list[tuple[int, ...]]:
    """Parents of each stage in topological order, drawn in levels of the mean depth."""
    if size == 1:
        return [()]
    depth = 1 + int(rng.binomial(size - 1, min(0.98, 1.6 * size**-0.55)))
    weight = 2.0 - np.arange(depth) / depth  # early levels are wider
    level = np.sort(np.concatenate([np.arange(depth), rng.choice(depth, size - depth, p=weight / weight.sum())]))
    begin = np.searchsorted(level, np.arange(depth))
    parents: list[tuple[int, ...]] = []
    for at in level.tolist():
        if at == 0:
            parents.append(())
            continue
        above = {int(rng.integers(begin[at - 1], begin[at]))}
        while rng.random() < _EXTRA_PARENT:
            above.add(int(rng.integers(begin[at])))
        parents.append(tuple(sorted(above)))
    return parents


def _tasks_and_means(rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Tasks of each stage, int64, and mean duration in seconds, float64, correlated."""
    from scipy.special import ndtr

    pearson = 2.0 * math.sin(math.pi * _CORRELATION / 6.0)  # of normal variables with that correlation of ranks
    one, other = rng.standard_normal((2, count))
    tasks = np.ceil(_quantile(_TASKS, ndtr(one)) - 1e-9).astype(np.int64)
    mean_s = _quantile(_MEAN_S, ndtr(pearson * one + math.sqrt(1.0 - pearson**2) * other))
    return tasks, np.minimum(mean_s, _MOST_WORK_S / tasks)
