"""Compare schedulers on the same workloads with the same seeds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from decima.evaluation.pool import RunPool, check_metric
from decima.evaluation.statistics import mean_interval, paired_change
from decima.exceptions import ConfigError
from decima.schedulers import CompiledScheduler, Scheduler, make_scheduler
from decima.simulator.settings import Settings
from decima.workload.jobs import Workload

if TYPE_CHECKING:
    import pandas

DEFAULT_SEEDS = range(20)
METRIC_NAMES = {"avg_jct_s": "average JCT", "makespan_s": "makespan"}


@dataclass(frozen=True, eq=False)
class Comparison:
    """Scores of several schedulers.

    Attributes:
        scores: One row per scheduler and seed: scheduler, seed, avg_jct_s, makespan_s.
        baseline: Scheduler the others are compared with.
        metric: Column of ``scores`` that the summary is about.
        settings: The cluster.
        label: What the workloads are called.
    """

    scores: pandas.DataFrame = field(repr=False)
    baseline: str
    metric: str
    settings: Settings
    label: str

    def summary(self, metric: str | None = None) -> pandas.DataFrame:
        """One row per scheduler, best first.

        Args:
            metric: ``"avg_jct_s"`` or ``"makespan_s"``; the comparison's own by default.

        Returns:
            scheduler, mean_s, sem_s (standard error), low_s and high_s (95 % confidence interval of the mean),
            change_percent, change_low and change_high (against the baseline, paired by seed, 95 %; 0 for the baseline
            itself). With one seed there are no intervals (NaN).
        """
        import pandas

        metric = metric or self.metric
        check_metric(metric)
        # One column per scheduler; rows are workloads, in order.
        columns = {name: group[metric].to_numpy() for name, group in self.scores.groupby("scheduler", sort=False)}
        rows = []
        for name, values in columns.items():
            change = (0.0, 0.0, 0.0) if name == self.baseline else paired_change(values, columns[self.baseline])
            numbers = (*mean_interval(values), *change)
            keys = ("mean_s", "sem_s", "low_s", "high_s", "change_percent", "change_low", "change_high")
            rows.append({"scheduler": name} | dict(zip(keys, numbers, strict=True)))
        return pandas.DataFrame(rows).sort_values("mean_s", kind="stable", ignore_index=True)

    @property
    def title(self) -> str:
        """What is compared, on what, how often."""
        runs = self.scores["seed"].groupby(self.scores["scheduler"]).size().iloc[0]
        return (
            f"{METRIC_NAMES[self.metric]}, {self.label}, {self.settings.executors} executors, mode "
            f"{self.settings.mode}, {runs} run{'s' if runs > 1 else ''} each"
        )

    def _shown(self) -> pandas.DataFrame:
        """The summary as text for people."""
        import pandas

        rows = []
        for row in self.summary().itertuples():
            interval = "" if row.low_s != row.low_s else f"{row.low_s:.1f} to {row.high_s:.1f}"
            change = "baseline" if row.scheduler == self.baseline else f"{row.change_percent:+.1f} %"
            if row.scheduler != self.baseline and row.change_low == row.change_low:
                change += f" ({row.change_low:+.1f} to {row.change_high:+.1f})"
            rows.append(
                {
                    "scheduler": row.scheduler,
                    f"{METRIC_NAMES[self.metric]} [s]": f"{row.mean_s:.1f}",
                    "95 % interval": interval,
                    f"against {self.baseline} (paired, 95 %)": change,
                }
            )
        return pandas.DataFrame(rows)

    def __str__(self) -> str:
        return f"{self.title}\n{self._shown().to_string(index=False)}"

    def _repr_html_(self) -> str:
        return f"<p>{self.title}</p>{self._shown().to_html(index=False, border=0)}"


def compare(
    schedulers: Sequence[str | Scheduler] | Mapping[str, str | Scheduler],
    jobs: Workload | str | Path | Sequence[Workload] | Callable[[int], Workload],
    executors: int = 50,
    seeds: Sequence[int] = DEFAULT_SEEDS,
    *,
    baseline: str | None = None,
    mode: str = "paper",
    metric: str = "avg_jct_s",
    threads: int | None = None,
    progress: str | None = None,
    **settings,
) -> Comparison:
    """Run schedulers on the same workloads with the same seeds.

    Args:
        schedulers: Names or scheduler objects, or a mapping from a label to either.
        jobs: One workload (or the path of a job file), whose task durations vary with the seed; or one workload per
            seed; or a function from a seed to a workload.
        executors: Executors of the cluster.
        seeds: Runs of every scheduler; for a sequence of workloads 0, 1, ... if not given.
        baseline: Label of the scheduler to compare with, the first by default.
        mode: ``"paper"``, ``"released"`` or ``"simplified"``.
        metric: What the summary shows, ``"avg_jct_s"`` or ``"makespan_s"``; the scores hold both.
        threads: Workers, all cores by default. The result does not depend on it.
        progress: Label of a progress bar; None for no bar.
        **settings: Further fields of :class:`decima.simulator.settings.Settings`.

    Raises:
        UnknownSchedulerError: A name is not registered.
        ConfigError: A list is empty, two schedulers have one label, seeds and workloads do not match, ...
    """
    import numpy as np
    import pandas

    check_metric(metric)
    named = _labelled(schedulers)
    baseline = next(iter(named)) if baseline is None else baseline
    if baseline not in named:
        raise ConfigError(f"baseline {baseline!r} is not among the compared schedulers: {', '.join(named)}")
    cluster = Settings.of_mode(mode, executors=executors, **settings)
    workloads, seeds = _workloads(jobs, seeds)
    runs = RunPool(workloads, cluster, seeds=seeds, threads=threads, keep=False)
    metrics = tuple(METRIC_NAMES)
    values = runs.measure(list(named.values()), metrics, progress=progress)
    frame = {
        "scheduler": np.repeat(list(named), len(seeds)),
        "seed": np.tile(seeds, len(named)),
    } | {name: values[name].ravel() for name in metrics}
    labels = list(dict.fromkeys(workload.label for workload in workloads))
    return Comparison(pandas.DataFrame(frame), baseline, metric, cluster, ", ".join(labels))


def _labelled(schedulers) -> dict[str, Scheduler]:
    """Schedulers by label; parameters are added to a name that occurs more than once."""
    if isinstance(schedulers, Mapping):
        named = {str(label): make_scheduler(item) for label, item in schedulers.items()}
    else:
        if isinstance(schedulers, str) or not isinstance(schedulers, Sequence):
            raise ConfigError(f"schedulers must be a list of names or schedulers, got {schedulers!r}")
        made = [make_scheduler(item) for item in schedulers]
        names = [item.name for item in made]
        named = {}
        for item in made:
            label = item.name if names.count(item.name) == 1 else _long_label(item)
            if label in named:
                raise ConfigError(f"scheduler {label} is given twice; use a mapping from labels to schedulers")
            named[label] = item
    if not named:
        raise ConfigError("no scheduler given; expected at least one")
    return named


def _long_label(scheduler: Scheduler) -> str:
    if not isinstance(scheduler, CompiledScheduler) or not scheduler.values:
        return scheduler.name
    values = ", ".join(f"{name}={value:g}" for name, value in scheduler.values.items())
    return f"{scheduler.name}({values})"


def _workloads(jobs, seeds) -> tuple[list[Workload], list[int]]:
    """One workload and one seed per run."""
    if isinstance(jobs, (str, Path)):
        from decima.workload import load

        jobs = load(jobs)
    if isinstance(jobs, Sequence):
        if not jobs:
            raise ConfigError("no workload given; expected at least one")
        seeds = range(len(jobs)) if seeds is DEFAULT_SEEDS else seeds
        workloads = list(jobs)
    else:
        workloads = None
    seeds = [int(seed) for seed in seeds]
    if not seeds:
        raise ConfigError("no seed given; expected at least one")
    if len(set(seeds)) != len(seeds):
        raise ConfigError("a seed is given twice; expected different ones")
    if workloads is None:
        if isinstance(jobs, Workload):
            workloads = [jobs] * len(seeds)
        elif callable(jobs):
            workloads = [jobs(seed) for seed in seeds]
        else:
            raise ConfigError(f"jobs must be workloads or a function from a seed to one, got {type(jobs).__name__}")
    if len(workloads) != len(seeds):
        raise ConfigError(f"{len(seeds)} seeds for {len(workloads)} workloads; expected one each")
    return workloads, seeds
