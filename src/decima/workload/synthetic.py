"""Generator of job profiles from parameters, for workloads that are unlike the measured ones.

Whatever is computed from a generated workload is labelled `synthetic`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields
from hashlib import sha256

import numpy as np

from decima.core.checks import is_number
from decima.core.errors import ConfigError
from decima.workload import arrivals
from decima.workload.profile import JobProfile, Stage, frozen
from decima.workload.sources import WorkloadSource, resolve_sizes

LABEL = "synthetic"
ORIGIN = "synthetic"
DEFAULT_COUNT = 154
DEFAULT_SEED = 0


@dataclass(frozen=True)
class SyntheticParameters:
    """Parameters of the generator; defaults are near TPC-H with a heavier tail.

    Raises:
        ConfigError: a parameter is out of range; names it.
    """

    # Job size classes; job i of a generated set is of class i modulo their number.
    class_names: tuple[str, ...] = ("xs", "s", "m", "l", "xl", "2xl", "3xl")
    # Mean nominal work of a job of each class, in executor seconds.
    class_work_s: tuple[float, ...] = (30.0, 65.0, 140.0, 300.0, 800.0, 1800.0, 3300.0)
    work_spread: float = 0.4  # standard deviation of log work between jobs of one class
    mean_stages: float = 9.0  # mean number of stages of a job before it is cut to `min_stages` and `max_stages`
    min_stages: int = 2  # fewest stages
    max_stages: int = 18  # most stages
    depth_ratio: float = 0.65  # layers of the DAG per stage: 1 gives chains, small values give wide DAGs
    # How many times likelier a stage lies in a layer than in the next one; above 1, DAGs have many sources and
    # narrow towards their only sink, as joins do.
    early_weight: float = 1.5
    extra_edge_probability: float = 0.08  # chance that a stage has a second child
    median_tasks: float = 70.0  # median number of tasks of a stage in a job of mean work
    task_spread: float = 1.5  # standard deviation of the log of that number
    max_tasks: int = 600  # most tasks of a stage
    task_growth: float = 0.35  # tasks grow with the job's work to this power; durations take the rest
    stage_spread: float = 0.8  # standard deviation of the log task duration between stages of one job
    duration_spread: float = 0.35  # standard deviation of the log duration between tasks of one stage and wave
    first_slowdown: float = 1.8  # mean duration of a first-wave task over that of a later one
    fresh_slowdown: float = 3.0  # mean duration of a task on a fresh executor over that of a later one
    inflation: float = 0.5  # relative slowdown of all tasks at 100 executors, mean over jobs
    inflation_exponent: float = 1.5  # slowdown grows with executors to this power
    inflation_spread: float = 0.5  # standard deviation of the log slowdown between jobs
    levels: tuple[int, ...] = (2, 5, 10, 20, 40, 50, 60, 80, 100)  # executor counts to profile, ascending
    max_samples: int = 24  # longest list of durations per stage, level and wave

    def __post_init__(self) -> None:
        at_least = dict.fromkeys(("min_stages", "max_stages", "max_tasks", "max_samples", "mean_stages"), 1)
        at_least |= dict.fromkeys(("median_tasks", "first_slowdown", "fresh_slowdown"), 1)
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name in ("class_names", "class_work_s", "levels"):
                continue
            if not is_number(value) or not math.isfinite(value):
                raise ConfigError(f"{field.name} is {value!r}; expected a finite number")
            if field.type == "int" and not isinstance(value, int):
                raise ConfigError(f"{field.name} is {value!r}; expected an integer")
            if value < at_least.get(field.name, 0):
                raise ConfigError(f"{field.name} is {value!r}; expected at least {at_least.get(field.name, 0)}")
        if self.max_stages < self.min_stages:
            raise ConfigError(f"max_stages is {self.max_stages}, below min_stages {self.min_stages}")
        for name in ("extra_edge_probability", "depth_ratio"):
            if getattr(self, name) > 1:
                raise ConfigError(f"{name} is {getattr(self, name)!r}; expected at most 1")
        if self.early_weight == 0:
            raise ConfigError("early_weight is 0; expected a number above 0")
        if not self.class_work_s or not all(0 < work < math.inf for work in self.class_work_s):
            raise ConfigError(f"class_work_s is {self.class_work_s!r}; expected positive numbers of seconds")
        if len(self.class_names) != len(self.class_work_s) or len(set(self.class_names)) != len(self.class_names):
            raise ConfigError(f"class_names is {self.class_names!r}; expected one name per class, all different")
        if not self.levels or self.levels[0] < 1 or list(self.levels) != sorted(set(self.levels)):
            raise ConfigError(f"levels is {self.levels!r}; expected ascending positive executor counts")


def synthetic_profiles(
    count: int = DEFAULT_COUNT, seed: int = DEFAULT_SEED, parameters: SyntheticParameters | None = None
) -> tuple[JobProfile, ...]:
    """Generate job profiles.

    Profile i depends on the seed, i and the parameters alone, so a longer set begins like a shorter one.
    Durations are rounded to whole milliseconds, as in measured logs, which also hides differences in the last
    digit between the mathematical libraries of different platforms.

    Args:
        count: at least 1.
        seed: 0 or more.
        parameters: the defaults when omitted.

    Raises:
        ConfigError: `count` or `seed` is out of range.
    """
    parameters = SyntheticParameters() if parameters is None else parameters
    arrivals.check_count("count", count, least=1)
    arrivals.check_count("seed", seed, least=0)
    children = np.random.SeedSequence(int(seed)).spawn(int(count))
    return tuple(_profile(index, np.random.default_rng(child), parameters) for index, child in enumerate(children))


def default_profiles(sizes: str | Sequence[str] = "released") -> tuple[JobProfile, ...]:
    """Profiles of the default parameters: 22 of each of seven size classes.

    Args:
        sizes: `"released"` (all seven classes), `"paper"` (all but `2xl`, which stands where the
            paper's six sizes lack 80 GB) or a list of class names; so calls look like those for TPC-H.

    Raises:
        WorkloadError: there is no such class.
    """
    names = SyntheticParameters.class_names
    groups = {"paper": tuple(name for name in names if name != "2xl"), "released": names}
    chosen = resolve_sizes(sizes, names, groups, "synthetic")
    profiles = _default()
    return tuple(profile for name in chosen for profile in profiles[names.index(name) :: len(names)])


@functools.cache
def _default() -> tuple[JobProfile, ...]:
    return synthetic_profiles(DEFAULT_COUNT, DEFAULT_SEED)


def _profile(index: int, rng: np.random.Generator, parameters: SyntheticParameters) -> JobProfile:
    size = index % len(parameters.class_names)
    work_ms = 1000.0 * parameters.class_work_s[size] * _mean_one(rng, parameters.work_spread)
    parents = random_dag(rng, parameters)
    relative_work = work_ms / (1000.0 * float(np.mean(parameters.class_work_s)))
    median_tasks = parameters.median_tasks * relative_work**parameters.task_growth
    tasks = median_tasks * np.exp(parameters.task_spread * rng.standard_normal(len(parents)))
    tasks = np.clip(np.rint(tasks), 1, parameters.max_tasks).astype(np.int64)
    duration = _mean_one(rng, parameters.stage_spread, len(parents))
    inflation = parameters.inflation * float(_mean_one(rng, parameters.inflation_spread))
    slowdown = 1.0 + inflation * (np.array(parameters.levels) / 100.0) ** parameters.inflation_exponent
    # Axes of every stage's table: wave (fresh, first, rest), level, sample.
    tables = [_draw_durations(rng, parameters, mean * slowdown) for mean in duration]
    counts = [_samples(parameters, int(number)) for number in tasks]
    sample = np.arange(parameters.max_samples)
    pooled_mean = [float(table[sample < count[:, :, None]].mean()) for table, count in zip(tables, counts, strict=True)]
    scale = work_ms / float(np.dot(tasks, pooled_mean))
    stages = []
    for number, (table, count) in enumerate(zip(tables, counts, strict=True)):
        table = frozen(np.maximum(np.rint(scale * table), 1.0))
        waves = [
            tuple(durations[:length] for durations, length in zip(*wave, strict=True))
            for wave in zip(table, count, strict=True)
        ]
        stages.append(Stage(str(number), int(tasks[number]), parents[number], parameters.levels, *waves))
    return JobProfile(f"{parameters.class_names[size]}-{index:03d}", tuple(stages), ORIGIN)


def random_dag(rng: np.random.Generator, parameters: SyntheticParameters) -> list[tuple[int, ...]]:
    """Draw parents of stages in topological order: layers that narrow towards one sink."""
    low, high = parameters.min_stages, parameters.max_stages
    count = min(max(1 + int(rng.poisson(parameters.mean_stages - 1.0)), low), high)
    depth = min(max(round(parameters.depth_ratio * count * float(rng.uniform(0.75, 1.25))), 1), count)
    if count > 1:
        depth = max(depth, 2)  # the sink is alone in its layer
    # One stage in every layer makes the chain that gives the depth; the others crowd into the early layers.
    weight = parameters.early_weight ** -np.arange(depth - 1, dtype=np.float64)
    others = rng.choice(depth - 1, size=count - depth, p=weight / weight.sum()) if count > depth else []
    layer = np.sort(np.concatenate([np.arange(depth), others]).astype(np.int64))
    members = [np.flatnonzero(layer == number) for number in range(depth)]
    parents: list[set[int]] = [set() for _ in range(count)]
    for number in range(depth - 1):
        for position, stage in enumerate(members[number]):
            # The first of each layer feeds the first of the next.
            child = members[number + 1][0] if position == 0 else rng.choice(members[number + 1])
            parents[child].add(int(stage))
            if rng.random() < parameters.extra_edge_probability:
                later = np.flatnonzero(layer > number)
                parents[rng.choice(later)].add(int(stage))
    return [tuple(sorted(group)) for group in parents]


def _draw_durations(rng: np.random.Generator, parameters: SyntheticParameters, rest_mean: np.ndarray) -> np.ndarray:
    """Draw unscaled durations, float64 [waves, levels, max_samples]; `rest_mean` is per level."""
    factors = np.array([parameters.fresh_slowdown, parameters.first_slowdown, 1.0])
    shape = (len(factors), len(rest_mean), parameters.max_samples)
    return factors[:, None, None] * rest_mean[:, None] * _mean_one(rng, parameters.duration_spread, shape)


def _samples(parameters: SyntheticParameters, tasks: int) -> np.ndarray:
    """Numbers of durations to keep, int [waves, levels], up to a limit.

    There is no later wave where every task has an executor of its own.
    """
    at_once = np.minimum(parameters.levels, tasks)
    return np.minimum([at_once, at_once, tasks - at_once], parameters.max_samples)


def _mean_one(rng: np.random.Generator, spread: float, shape=None):
    return np.exp(spread * rng.standard_normal(shape) - 0.5 * spread**2)


def _digest() -> str:
    return sha256(repr((DEFAULT_COUNT, DEFAULT_SEED, astuple(SyntheticParameters()))).encode("ascii")).hexdigest()


SOURCE = WorkloadSource(
    "synthetic",
    LABEL,
    "generated jobs with a heavier tail of work than TPC-H; sizes are xs, s, m, l, xl, 2xl and 3xl",
    default_profiles,
    _digest,
)
synthetic_batch, synthetic_poisson = SOURCE.batch, SOURCE.poisson
