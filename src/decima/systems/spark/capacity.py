"""Capacity planning: recorded jobs on clusters of many sizes, with cost and limits.

    points = summarize(sweep(recordings, schedulers, Plan(executors=range(1, 41))))
    knee_of(points, "run_s")

A *recording* is what ran together on one cluster: an application, whose queries wait for each other, or the queries of
a shared cluster with their arrivals. Each recording is simulated on a cluster of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from decima.core.checks import LARGEST_MS, is_number, is_whole
from decima.core.decision import CompiledDecision, call_decide
from decima.core.errors import ConfigError
from decima.core.grammar import read_value
from decima.core.jit import njit
from decima.core.progress import progress_bar
from decima.evaluation.statistics import mean_interval
from decima.evaluation.workers import map_threads
from decima.systems.spark.decision import DELAY
from decima.systems.spark.fields import state_at
from decima.systems.spark.result import Result
from decima.systems.spark.rules.choices import choose
from decima.systems.spark.rules.delays import refuse_delay
from decima.systems.spark.schedulers.fields import rule_of, rule_record
from decima.systems.spark.schedulers.interface import CompiledScheduler
from decima.systems.spark.settings import ELASTIC, ELASTIC_SWITCHES, MAX_EXECUTORS, Settings, cluster_settings
from decima.systems.spark.state import ClusterState, new_state
from decima.systems.spark.system import run_state
from decima.workload.jobs import Job, Workload
from decima.workload.profile import JobProfile, at_sizes

if TYPE_CHECKING:
    import pandas

#: What a run is measured by, in the order of tables; those of seconds may be given a target.
MEASURES = ("run_s", "mean_s", "p50_s", "p95_s", "executor_hours", "cost", "utilization")
#: Parts of the time of a job, which add up to it; the first is what more executors shorten.
PARTS = ("work", "few_tasks", "uneven_tasks", "driver", "waiting", "unexplained")
#: Losses that a task of mean length may meet on average, beyond which a run would hardly end; and how many times as
#: long as without losses a run may take.
MOST_LOSSES, LONGEST = 7.0, 100.0


#: Sizes that are simulated unless others are asked for.
SIZES = 40


@dataclass(frozen=True, eq=False)
class Recording:
    """Jobs that ran together on one cluster.

    Raises:
        ConfigError: There is not one driver time per stage, or not one recorded time per job.
    """

    name: str  # of the application, or of the logs
    workload: Workload  # jobs with their recorded arrivals
    driver_ms: np.ndarray  # float64 [stages of all jobs], what the driver takes before each stage
    recorded_ms: np.ndarray  # float64 [jobs], recorded time from arrival to completion
    slots: int  # tasks that its cluster ran at once while it worked; with dynamic allocation, the most
    # Float64 [stages of all jobs], what a slot adds to the time of a task, see `decima.workload.profile.at_sizes`.
    contention: np.ndarray
    # Float64 [stages of all jobs], part of `driver_ms` in which no query ran and that nothing recorded explains.
    unexplained_ms: np.ndarray | None = None
    plan: Plan | None = None  # the recorded cluster, whose executors came, went or failed; None: it has `slots`
    # What the first task of an executor takes longer in a stage without recorded ones; None: executors are never new.
    warmup_ms: float | None = None

    def __post_init__(self) -> None:
        stages = int(self.workload.first_stage[-1])
        if self.unexplained_ms is None:
            object.__setattr__(self, "unexplained_ms", np.zeros(stages))
        sizes = dict.fromkeys(("driver_ms", "contention", "unexplained_ms"), stages)
        sizes["recorded_ms"] = len(self.workload)
        for name, size in sizes.items():
            if getattr(self, name).shape != (size,):
                raise ConfigError(f"{name} of {self.name!r} has shape {getattr(self, name).shape}; expected ({size},)")

    def at(self, slots: int, load: float = 1.0, least: int | None = None) -> Workload:
        """The jobs on ``slots`` slots, with arrivals ``load`` times as frequent.

        Where the number of slots changes, from ``least`` on, durations follow the slots that a job has.
        """
        sizes = [slots]
        while least is not None and (size := least * 2 ** (len(sizes) - 1)) < slots:
            sizes.insert(-1, size)
        scaled: dict[tuple, JobProfile] = {}
        jobs = []
        for job, first in zip(self.workload.jobs, self.workload.first_stage.tolist(), strict=False):
            contention = tuple(self.contention[first : first + len(job.profile.stages)].tolist())
            key = (job.profile, contention)
            if key not in scaled:
                fixed = not any(contention) and all(len(stage.levels) == 1 for stage in job.profile.stages)
                scaled[key] = job.profile if fixed else at_sizes(job.profile, sizes, contention)
            jobs.append(Job(scaled[key], job.arrival_ms / load, job.initial, job.name))
        return Workload(tuple(jobs), self.workload.label)

    def on(self, cluster: Settings) -> Settings:
        """Settings of a cluster whose executors are as new as the recording says."""
        return cluster if self.warmup_ms is None else cluster.replace(startup=True, warmup_delay_ms=self.warmup_ms)

    @property
    def critical_path_s(self) -> np.ndarray:
        """Time of each job with unlimited executors, float64 s [jobs].

        Tasks take their mean duration; the driver's time counts.
        """
        paths = []
        for job, first in zip(self.workload.jobs, self.workload.first_stage[:-1].tolist(), strict=True):
            driver = self.driver_ms[first : first + len(job.profile.stages)]
            mean = [stage.mean_duration_ms for stage in job.profile.stages]
            paths.append(float(job.profile.longest_path_down(driver + mean).max()) / 1000.0)
        return np.array(paths)


@dataclass(frozen=True)
class Plan:
    """What a sweep simulates.

    Raises:
        ConfigError: A number is out of range.
    """

    executors: Sequence[int]  # sizes of the cluster
    cores: int = 1  # tasks that an executor runs at once
    loads: Sequence[float] = (1.0,)  # factors on the frequency of arrivals
    draws: int = 20  # runs of every point with other durations
    dynamic: int | None = None  # fewest executors under dynamic allocation up to each size; None: the size is fixed
    lose: float = 0.0  # losses per hour and executor
    changes: Mapping[str, Any] = field(default_factory=dict)  # further settings of executors that come, go and fail

    def cluster(self, executors: int) -> Settings:
        """Settings of the cluster of a fixed or a maximum number of executors."""
        values = dict(self.changes)
        if self.dynamic is not None:
            values |= {"dynamic": True, "min_executors": min(self.dynamic, executors)}
        if self.lose:
            values["loss_rate"] = self.lose
        if self.dynamic is not None or self.lose or values.get("loss_times_ms"):
            values["executor_cores"] = self.cores
        return cluster_settings(executors * self.cores, **values)

    def __post_init__(self) -> None:
        for name in ("cores", "draws"):
            if not is_whole(getattr(self, name)) or getattr(self, name) < 1:
                raise ConfigError(f"{name} must be a whole number of at least 1, got {getattr(self, name)!r}")
        for count in self.executors:
            if not is_whole(count) or not 1 <= count * self.cores <= MAX_EXECUTORS:
                raise ConfigError(f"executors is {count!r}; expected 1 to {MAX_EXECUTORS:,} slots")
        for load in self.loads:
            if not is_number(load) or not 0.0 < load < math.inf:
                raise ConfigError(f"load is {load!r}; expected a factor above 0")
        if not self.executors or not self.loads:
            raise ConfigError("a sweep needs at least one size and one load factor")


def sweep(
    recordings: Sequence[Recording],
    schedulers: Mapping[str, CompiledScheduler],
    plan: Plan,
    *,
    price: Callable[[int], float] | None = None,
    threads: int | None = None,
    progress: str | None = None,
) -> pandas.DataFrame:
    """Simulate every point with every draw.

    Args:
        recordings: What ran; several are simulated one by one, each on a cluster of its own.
        schedulers: Compiled schedulers by name.
        plan: Sizes, loads, draws.
        price: Price per hour of a cluster by its number of executors; None: no cost.
        threads: Workers, all cores by default; the result does not depend on it.
        progress: Label of a progress bar; None for no bar.

    Returns:
        A row per scheduler, load, executors and draw, with the columns `MEASURES`: `run_s` (to the last completion,
        summed over recordings), `mean_s`, `p50_s`, `p95_s` (of the times of all jobs), `executor_hours`, `cost` (NaN
        without a price) and `utilization` (share of slot time spent on tasks).

    Raises:
        ConfigError: There is no recording, a scheduler is not compiled, or executors are lost so often that a run does
            not end.
    """
    import pandas

    if not recordings or not schedulers:
        raise ConfigError("a sweep needs at least one recording and one scheduler")
    work = [(load, executors) for load in plan.loads for executors in plan.executors]

    def simulate(item):
        load, executors = item
        slots = executors * plan.cores
        settings = plan.cluster(executors)
        shape = (len(schedulers), plan.draws)
        times = [[np.zeros(0) for _ in range(plan.draws)] for _ in schedulers]
        run_ms, busy_ms, executor_ms = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        for recording in recordings:
            least = None if plan.dynamic is None else max(1, min(plan.dynamic, executors)) * plan.cores
            workload = recording.at(slots, load, least)
            limit_ms = _limit_ms(recording, workload, next(iter(schedulers.values())), slots, plan, executors)
            state = new_state(workload, recording.on(settings.replace(time_limit_ms=limit_ms)))
            for row, inner in enumerate(schedulers.values()):
                scheduler = AfterDriver(inner, recording.driver_ms)
                for draw in range(plan.draws):
                    run_state(state, scheduler, draw)
                    if limit_ms < math.inf and np.isnan(state.job_finish_ms).any():
                        raise _endless(plan, executors, f"a run does not end within {limit_ms / 1000.0:.4g} s")
                    jct = state.job_finish_ms - state.job_arrival_ms
                    times[row][draw] = np.concatenate([times[row][draw], jct])
                    run_ms[row, draw] += state.job_finish_ms.max()
                    busy_ms[row, draw] += state.busy_ms
                    executor_ms[row, draw] += state.executor_ms
        rows = []
        for row, name in enumerate(schedulers):
            for draw in range(plan.draws):
                mean, median, p95 = _summary(times[row][draw])
                hours = executors * run_ms[row, draw] / 3.6e6
                slot_ms = slots * run_ms[row, draw]
                paid = 1.0  # share of the time of all executors
                if settings.elastic and hours:
                    paid = executor_ms[row, draw] / 3.6e6 / hours
                    hours, slot_ms = paid * hours, plan.cores * executor_ms[row, draw]
                rows.append({
                    "scheduler": name, "load": load, "executors": executors, "draw": draw,
                    "run_s": run_ms[row, draw] / 1000.0, "mean_s": mean, "p50_s": median, "p95_s": p95,
                    "executor_hours": hours,
                    "cost": math.nan if price is None else price(executors) * paid * run_ms[row, draw] / 3.6e6,
                    "utilization": busy_ms[row, draw] / slot_ms if slot_ms else 0.0,
                })  # fmt: skip
        return rows

    with progress_bar(progress, len(work), "point") as bar:
        tables = map_threads(simulate, work, threads, lambda _: bar.update())
    return pandas.DataFrame([row for rows in tables for row in rows])


def _limit_ms(recording, workload: Workload, scheduler, slots: int, plan: Plan, executors: int) -> float:
    """Time after which a run with losses ends, finished or not; infinite without them."""
    if not plan.lose:
        return math.inf
    task_ms = max(stage.mean_duration_ms for job in workload.jobs for stage in job.profile.stages)
    if task_ms * plan.lose / 3.6e6 > MOST_LOSSES:
        raise _endless(plan, executors, f"a task takes up to {task_ms / 1000.0:.4g} s and would hardly ever end")
    state = new_state(workload, recording.on(cluster_settings(slots)))
    run_state(state, AfterDriver(scheduler, recording.driver_ms), 0)
    delays = sum(float(plan.changes.get(name, getattr(Settings, name))) for name in _AFTER_LOSS)
    return LONGEST * (float(state.job_finish_ms.max()) + delays)


_AFTER_LOSS = ("executor_startup_ms", "replacement_delay_ms")


def _endless(plan: Plan, executors: int, why: str) -> ConfigError:
    from decima.plotting.words import count

    life = 3600.0 / plan.lose
    return ConfigError(
        f"--lose {plan.lose:g}: with {count(executors, 'executor')}, which live {life:.4g} s on average, {why}; "
        "expected fewer losses"
    )


def _summary(times_ms: np.ndarray) -> tuple[float, float, float]:
    """Mean, median and 95th percentile of times, float64 ms [jobs], in s."""
    seconds = times_ms / 1000.0
    return float(seconds.mean()), *(float(value) for value in np.quantile(seconds, (0.5, 0.95)))


def summarize(draws: pandas.DataFrame) -> pandas.DataFrame:
    """Means over draws with 95 % intervals, a row per point.

    Columns are `run_s`, `run_s_low`, `run_s_high`, and so on for all :data:`MEASURES`.
    """
    import pandas

    rows = []
    for key, group in draws.groupby(["scheduler", "load", "executors"], sort=False):
        row = dict(zip(("scheduler", "load", "executors"), key, strict=True))
        for measure in MEASURES:
            mean, _, low, high = mean_interval(group[measure].to_numpy())
            row |= {measure: mean, f"{measure}_low": low, f"{measure}_high": high}
        rows.append(row)
    return pandas.DataFrame(rows)


def knee_of(points: pandas.DataFrame, measure: str) -> pandas.Series:
    """Point of a curve beyond which more executors save little.

    One percent more executors saves less than half a percent of time there.

    It has the least product of time and the square root of the executors; the smaller cluster counts among equals.

    Args:
        points: Rows of :func:`summarize` with one scheduler and one load.
        measure: Column of the time.
    """
    product = points[measure] * np.sqrt(points.executors)
    return points.loc[points.assign(product=product).sort_values(["product", "executors"]).index[0]]


def floors_of(recordings: Sequence[Recording], load: float = 1.0) -> dict[str, float]:
    """Times in s with unlimited executors and mean task durations, by column."""
    ends = [each.workload.arrival_ms / 1000.0 / load + each.critical_path_s for each in recordings]
    times = _summary(1000.0 * np.concatenate([each.critical_path_s for each in recordings]))
    return dict(zip(MEASURES[:4], (float(sum(end.max() for end in ends)), *times), strict=True))


@dataclass(frozen=True)
class Target:
    """Bound on a time, such as ``p95<60s``."""

    measure: str  # `run_s`, `mean_s`, `p50_s` or `p95_s`
    seconds: float

    def __str__(self) -> str:
        return f"{self.measure[:-2]}<{self.seconds:g}s"


_UNITS_S = {"ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


def read_target(text: str) -> Target:
    """Read a target such as ``p95<60s``.

    It has ``run``, ``mean``, ``p50`` or ``p95``, ``<``, a number, and ``ms``, ``s``, ``min`` or ``h``.

    Raises:
        ConfigError: The text is not of that form.
    """
    name, sign, bound = text.replace(" ", "").partition("<")
    number = bound.rstrip("abcdefghijklmnopqrstuvwxyz")
    unit = bound[len(number) :] or "s"
    try:
        seconds = float(number) * _UNITS_S[unit]
    except (ValueError, KeyError):
        seconds = math.nan
    if not sign or f"{name}_s" not in MEASURES[:4] or not 0.0 < seconds < math.inf:
        raise ConfigError(f"target is {text!r}; expected run, mean, p50 or p95, '<' and a time, such as 'p95<60s'")
    return Target(f"{name}_s", seconds)


def read_sizes(text: str) -> tuple[int, ...]:
    """Sizes of ``1-40``, ``2+4+8`` or ``1-4+8``, ascending.

    Raises:
        ConfigError: The text is not of that form.
    """
    sizes: set[int] = set()
    for part in text.split("+"):
        first, _, last = part.partition("-") if part[:1] != "-" else (part, "", "")
        low = read_value(first, int, "--executors")
        high = read_value(last, int, "--executors") if last else low
        if not 1 <= low <= high or high - low > 10_000:
            raise ConfigError(f"--executors is {text!r}; expected sizes from 1 on, such as 1-40 or 2+4+8")
        sizes |= set(range(low, high + 1))
    return tuple(sorted(sizes))


def read_bounds(text: str) -> tuple[int, int]:
    """Fewest and most executors of ``MIN-MAX``.

    Raises:
        ConfigError: The text is not of that form.
    """
    first, dash, last = text.partition("-")
    if dash:
        least, most = read_value(first, int, "--dynamic"), read_value(last, int, "--dynamic")
        if 0 <= least <= most and most >= 1:
            return least, most
    raise ConfigError(f"--dynamic is {text!r}; expected the fewest and the most executors, such as 1-40")


def default_sizes(recorded: float) -> tuple[int, ...]:
    """Up to :data:`SIZES` sizes from 1 to four times the recorded executors.

    They go to 8 at least.
    """
    most = max(8, math.ceil(4.0 * recorded))
    return tuple(sorted({round(size) for size in np.linspace(1, most, min(most, SIZES)).tolist()}))


def choose_point(
    points: pandas.DataFrame,
    measure: str,
    target: Target | None = None,
    budget: float | None = None,
    floors: Mapping[str, float] | None = None,
) -> pandas.Series:
    """Choose the smallest cluster that meets target and budget.

    With a budget alone it is the fastest one. Without either it is the knee of the scheduler that is best there.

    Args:
        points: Rows of :func:`summarize` with one load.
        measure: Column of the time that counts where there is no target.
        target: Bound on a time.
        budget: Bound on the cost.
        floors: Least value of each time, see :func:`floors_of`, for the message.

    Raises:
        ConfigError: No cluster meets them; the message names the nearest, and why.
    """
    from decima.plotting.words import count

    if target is None and budget is None:
        knees = [knee_of(group, measure) for _, group in points.groupby("scheduler", sort=False)]
        return min(knees, key=lambda point: point[measure] * math.sqrt(point.executors))
    measure = measure if target is None else target.measure
    within = points if budget is None else points[points.cost <= budget]
    within = within.sort_values([measure, "executors"], kind="stable")
    asked = " with ".join([*([str(target)] if target else []), *([f"a cost of {budget:g}"] if budget else [])])
    sizes = f"{points.executors.min()} to {points.executors.max()} executors"
    if not len(within):
        best = points.loc[points.cost.idxmin()]
        raise ConfigError(
            f"no cluster of {sizes} meets {asked}: the cheapest is {count(best.executors, 'executor')} with "
            f"{best.scheduler}, cost {best.cost:.4g}"
        )
    if target is None:
        return within.iloc[0]
    meeting = within[within[measure] < target.seconds]
    if not len(meeting):
        best = within.iloc[0]
        why = "" if floors is None else f"; the critical path with the driver takes {floors[measure]:.4g} s"
        raise ConfigError(
            f"no cluster of {sizes} meets {asked}: the nearest is {count(best.executors, 'executor')} with "
            f"{best.scheduler}, {measure[:-2]} {best[measure]:.4g} s{why}"
        )
    return meeting.sort_values(["executors", measure], kind="stable").iloc[0]


#: Spark's names of settings, and the unit in seconds of its times; None: no time. `docs/elastic.md` lists them.
SPARK_NAMES: dict[str, tuple[str, float | None]] = {
    "dynamic": ("spark.dynamicAllocation.enabled", None),
    "executor_cores": ("spark.executor.cores", None),
    "min_executors": ("spark.dynamicAllocation.minExecutors", None),
    "initial_executors": ("spark.dynamicAllocation.initialExecutors", None),
    "backlog_timeout_ms": ("spark.dynamicAllocation.schedulerBacklogTimeout", 1.0),
    "sustained_timeout_ms": ("spark.dynamicAllocation.sustainedSchedulerBacklogTimeout", 1.0),
    "idle_timeout_ms": ("spark.dynamicAllocation.executorIdleTimeout", 1.0),
    "shuffle_service": ("spark.shuffle.service.enabled", None),
    "speculation": ("spark.speculation", None),
    "speculation_quantile": ("spark.speculation.quantile", None),
    "speculation_multiplier": ("spark.speculation.multiplier", None),
    "speculation_interval_ms": ("spark.speculation.interval", 1e-3),
    "speculation_min_runtime_ms": ("spark.speculation.minTaskRuntime", 1e-3),
}
_MOST, _TRACKING = "spark.dynamicAllocation.maxExecutors", "spark.dynamicAllocation.shuffleTracking.enabled"
_TASK_CPUS = "spark.task.cpus"
_NO_SETTING = "# settings."  # before what Spark has no setting for


def spark_options(executors: int, cores: int, elastic: Settings | None = None, task_cpus: int = 1) -> str:
    """Options of ``spark-submit`` for a size, and settings of dynamic allocation that was simulated.

    Args:
        executors: Executors of the cluster of a fixed size.
        cores: Slots of each.
        elastic: Settings with dynamic allocation that were also simulated; None: there are none.
        task_cpus: Cores of a task, ``spark.task.cpus``.
    """
    fixed = f"--conf spark.dynamicAllocation.enabled=false --executor-cores {cores * task_cpus}"
    if task_cpus > 1:
        fixed += f" --conf {_TASK_CPUS}={task_cpus}"
    lines = [
        "# A cluster of a fixed size, as it was simulated: options of spark-submit on YARN and Kubernetes",
        f"{fixed} --num-executors {executors}",
        "# and on a standalone master",
        f"{fixed} --total-executor-cores {executors * cores * task_cpus}",
    ]
    if elastic is None:
        return "\n".join(lines) + "\n"
    values = {name: getattr(elastic, name) for name in (*ELASTIC, *ELASTIC_SWITCHES)}
    values["initial_executors"] = elastic.first_executors
    values["sustained_timeout_ms"] = elastic.sustained_timeout_ms or elastic.backlog_timeout_ms
    values["executor_cores"] *= task_cpus
    lines += ["", "# Dynamic allocation, as it was simulated: settings (spark-defaults.conf)"]
    for name, value in values.items():
        if not any(getattr(elastic, switch) for switch in ELASTIC_SWITCHES.get(name, (name,))):
            continue  # has no effect
        if name not in SPARK_NAMES:
            lines.append(f"{_NO_SETTING}{name}={_text(value)} was simulated; Spark has no such setting")
            continue
        spark, unit = SPARK_NAMES[name]
        if unit and value % (1000.0 * unit):
            lines.append(f"# Spark rounds the next one down to whole {'seconds' if unit == 1.0 else 'milliseconds'}.")
        lines.append(f"{spark} {_text(value) if unit is None else _time(value)}")
    lines += [f"{_MOST} {elastic.most_executors}", f"{_TRACKING} {_text(not elastic.shuffle_service)}"]
    if task_cpus > 1:
        lines.append(f"{_TASK_CPUS} {task_cpus}")
    return "\n".join(lines) + "\n"


def _text(value: Any) -> str:
    """Value as Spark and ``--set`` write it."""
    if isinstance(value, (tuple, list)):
        return "+".join(map(_text, value))
    return str(value).lower() if isinstance(value, (bool, np.bool_)) else f"{value:.17g}"


def _time(value_ms: float) -> str:
    """Time as Spark reads it: whole seconds, else milliseconds."""
    return f"{value_ms / 1000.0:.0f}s" if value_ms % 1000.0 == 0.0 else f"{value_ms:.17g}ms"


def elastic_of(spark: Mapping[str, str]) -> dict[str, Any]:
    """Settings of the simulator that a configuration of Spark states.

    `executors` are the most task slots. What it does not state, or not as a number, is left out.

    Args:
        spark: Values by Spark's names.
    """
    stated: dict[str, Any] = {}
    for name, (key, unit) in SPARK_NAMES.items():
        text = spark.get(key, "").strip().lower()
        plain = getattr(Settings, name)
        if isinstance(plain, bool):
            if text in ("true", "false"):
                stated[name] = text == "true"
        elif (value := _number(text, unit)) is not None and 0.0 <= value < math.inf:
            whole = unit is None and name.endswith(("_executors", "_cores"))
            stated[name] = int(value) if whole else value
    if "executor_cores" in stated:
        cpus = int(_number(spark.get(_TASK_CPUS, ""), None) or 1)
        stated["executor_cores"] = max(1, stated["executor_cores"] // cpus)
    if (most := _number(spark.get(_MOST, ""), None)) is not None and 1.0 <= most <= MAX_EXECUTORS:
        stated["executors"] = int(most) * stated.get("executor_cores", 1)
    return stated


def _number(text: str, unit: float | None) -> float | None:
    """Number of a text; with a unit in s, a time in ms."""
    number = text.rstrip("abcdefghijklmnopqrstuvwxyz")
    try:
        value = float(number)
        return value if unit is None else 1000.0 * value * (_UNITS_S[text[len(number) :]] if number != text else unit)
    except (ValueError, KeyError):
        return None


# ---- one run in detail: what its time is made of --------------------------------------------------------------------


def run_recording(
    recording: Recording, scheduler: CompiledScheduler, slots: int, load: float = 1.0, seed: int = 0
) -> Result:
    """Run a recording once, with the log of its tasks."""
    workload = recording.at(slots, load)
    state = new_state(workload, recording.on(cluster_settings(slots)), log_tasks=True, log_decisions=True)
    run_state(state, AfterDriver(scheduler, recording.driver_ms), seed)
    return Result.of_state(state, workload, scheduler.name, seed)


def time_parts(recording: Recording, result: Result) -> pandas.DataFrame:
    """Split the time of every job into parts along its chain of stages.

    From the stage that ends last, the chain continues with the parent that finished last. Of a stage with n tasks of W
    seconds together on S slots, `work` is W / S; `few_tasks` is what it takes longer because only min(n, S) slots have
    a task and the last wave is not full; `uneven_tasks` is the rest from its first launch to its end: tasks of
    different length, and slots that other jobs hold. Before the launch are `driver`, `waiting` (no slot was free), and
    `unexplained` (no query ran, and the log has no reason).

    Args:
        recording: What ran.
        result: Its run, with a log.

    Returns:
        A row per job and stage of its chain: job, name, stage, tasks, the parts in s, which add up to the job's time.
    """
    import pandas

    log, workload = result.log, result.workload
    slots = result.num_executors
    number = workload.first_stage[log.job] + log.stage
    first_launch = np.full(int(workload.first_stage[-1]), np.inf)
    np.minimum.at(first_launch, number, log.start_ms)
    total = np.bincount(number, log.finish_ms - log.start_ms, minlength=len(first_launch))
    rows = []
    for index, job in enumerate(workload.jobs):
        finish = result.stage_finish_ms[index]
        stage: int | None = int(np.argmax(finish))
        while stage is not None:
            parents = job.profile.stages[stage].parents
            parent = max(parents, key=lambda each: finish[each]) if parents else None
            ready = job.arrival_ms if parent is None else float(finish[parent])
            at = int(workload.first_stage[index]) + stage
            tasks = job.profile.stages[stage].num_tasks
            before = float(first_launch[at]) - ready
            unexplained = min(before, float(recording.unexplained_ms[at]))
            driver = min(before, float(recording.driver_ms[at])) - unexplained
            usable = min(tasks, slots)
            span = float(finish[stage] - first_launch[at])
            work = float(total[at]) / slots
            rest = max(0.0, span - float(total[at]) / usable)
            partial = min(rest, float(total[at]) / tasks * (math.ceil(tasks / usable) - tasks / usable))
            few = float(total[at]) / usable - work + partial
            values = (work, few, rest - partial, driver, before - driver - unexplained, unexplained)
            rows.append({
                "job": index, "name": job.name, "stage": job.profile.stages[stage].name, "tasks": tasks,
                **{f"{part}_s": value / 1000.0 for part, value in zip(PARTS, values, strict=True)},
            })  # fmt: skip
            stage = parent
    return pandas.DataFrame(rows)


def limit_of(parts: pandas.DataFrame) -> str:
    """Part of :data:`PARTS` besides work that takes most time in a table of :func:`time_parts`."""
    return max(PARTS[1:], key=lambda part: float(parts[f"{part}_s"].sum()))


@njit
def runnable_since_ms(state, stage):
    """When the last parent of a stage finished, or its job arrived, in ms."""
    job = state.stage_job[stage]
    since_ms = state.job_arrival_ms[job]
    row = state.stage_row[stage]
    first = state.job_first_stage[job]
    for index in range(state.parent_offset[row], state.parent_offset[row + 1]):
        since_ms = max(since_ms, state.stage_finish_ms[first + state.parent[index]])
    return since_ms


@CompiledDecision.reading((), ("stage_driver_ms",))
def _after_driver(address):
    state = state_at(address)
    rule = rule_of(state)
    for stage in range(state.num_stages):
        delay_ms = rule.stage_driver_ms[stage]
        if delay_ms > 0.0 and state.stage_in_frontier[stage] and refuse_delay(state, stage) == 0:
            left_ms = runnable_since_ms(state, stage) + delay_ms - state.now_ms
            if left_ms > 0.0:
                choose(state, stage, 1)
                state.action[DELAY] = left_ms
                return
    call_decide(rule.inner_decide, state)


class AfterDriver(CompiledScheduler):
    """Compiled scheduler whose stages wait for the driver first.

    Between the end of a stage's parents and the launch of its first task the driver of Spark plans, optimizes and makes
    tasks. That time takes no executor. It is a deliberate slot (:mod:`decima.systems.spark.rules.slots`) that ends so
    long after the stage became runnable.

    The cluster must offer runnable stages only (``runnable_only`` of the settings), so that no executor is promised to
    a stage before the driver is done with it.

    Args:
        inner: The scheduler that decides about all other stages.
        driver_ms: Float64 [stages of the workload], driver time in ms after the last parent, at least 0.

    Raises:
        ConfigError: The scheduler is not compiled, or a time is out of range.
    """

    def __init__(self, inner: CompiledScheduler, driver_ms: Sequence[float]) -> None:
        if not isinstance(inner, CompiledScheduler):
            raise ConfigError(f"scheduler {inner.name} is not compiled; driver time is for compiled schedulers")
        super().__init__(inner.name, _after_driver)
        self.inner = inner
        self.driver_ms = np.asarray(driver_ms, dtype=np.float64)
        if not ((self.driver_ms >= 0.0) & (self.driver_ms <= LARGEST_MS)).all():  # NaN fails both
            raise ConfigError(f"driver times must be numbers of ms from 0 to {LARGEST_MS:g}")

    def bind(self, state: ClusterState) -> None:
        """Hand the times to a state, and the rule inside, before its run starts.

        Raises:
            ConfigError: The cluster offers stages before their parents have finished.
            RecordError: There is not one time per stage of the workload.
        """
        if not state.runnable_only:
            raise ConfigError("driver time needs a cluster that offers runnable stages only; set runnable_only")
        record = rule_record(state)
        record.bind("stage_driver_ms", self.driver_ms)
        self.inner.bind(state)
        record.configure(inner_decide=self.inner.decision.address)
        self._bound = state
