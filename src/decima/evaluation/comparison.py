"""Comparison of schedulers that meet the same workloads with the same seeds."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from decima.core.checks import different_seeds, is_whole
from decima.core.display import table_html
from decima.core.errors import ConfigError
from decima.core.objectives import Objective
from decima.core.system import (
    JobsText,
    System,
    SystemScheduler,
    SystemSettings,
    SystemWorkload,
    chosen_settings,
    objective_of,
    system_of,
)
from decima.evaluation.pool import DRAWN, TO_COME, UNFINISHED, RunPool
from decima.evaluation.statistics import mean_interval, paired_change

if TYPE_CHECKING:
    import pandas

DEFAULT_SEEDS = range(20)
UNFINISHED_SHOWN = "unfinished jobs"  # column of tables for people


@dataclass(frozen=True, eq=False)
class Comparison:
    """Scores of several schedulers."""

    # One row per scheduler and seed: scheduler, seed, the columns of the objectives that the system always scores
    # (``System.scored``; of the Spark cluster avg_jct_s and makespan_s) and of the comparison's own, and unfinished,
    # the number of jobs that a time limit left unfinished; where there are any, also to_come, those of them that had
    # not arrived. Unfinished jobs count with their time up to the limit, jobs to come
    # do not count (``Objective.measure``).
    scores: pandas.DataFrame = field(repr=False)
    baseline: str  # scheduler the others are compared with
    objective: Objective  # what the summary is about
    settings: SystemSettings  # the cluster, or the settings of another system
    label: str  # what the workloads are called
    drawn: bool = True  # False: neither jobs nor runs take chance, so that one run of each scheduler says all
    remarks: tuple[str, ...] = ()  # what schedulers say of their runs, such as which stored policy they took

    def summary(self, metric: str | Objective | None = None) -> pandas.DataFrame:
        """Table of means and changes with confidence intervals, one row per scheduler, best first.

        Args:
            metric: Name of an objective that was scored; the comparison's own by default.

        Returns:
            scheduler, mean_s, sem_s (standard error), low_s and high_s (95 % confidence interval of the mean),
            change_percent, change_low and change_high (against the baseline, paired by seed, 95 %; 0 for the baseline
            itself), unfinished (jobs that a time limit left unfinished, of all runs) and mark (what mean and interval
            are then: ``≥`` or ``≤`` for a bound, ``~`` for no bound, see ``Objective.mark``). With one seed there
            intervals are NaN; a mean is NaN if the limit cut a run before any job arrived. Of an objective without
            a unit the columns end without ``_s``.

        Raises:
            ConfigError: The objective is unknown or was not scored.
        """
        import pandas

        objective = self.objective if metric is None else objective_of(system_of(self.settings), metric)
        if objective.column not in self.scores:
            raise ConfigError(f"no scores for {objective.name}; compare with metric={objective.name!r}")
        # One column per scheduler; rows are workloads, in order.
        groups = self.scores.groupby("scheduler", sort=False)[objective.column]
        columns = {name: group.to_numpy() for name, group in groups}
        statistics = [objective.with_unit(name) for name in ("mean", "sem", "low", "high")]
        keys = (*statistics, "change_percent", "change_low", "change_high")
        cut = self.scores.reindex(columns=["scheduler", UNFINISHED, TO_COME], fill_value=0).groupby("scheduler").sum()
        rows = []
        for name, values in columns.items():
            change = (0.0, 0.0, 0.0) if name == self.baseline else paired_change(values, columns[self.baseline])
            numbers = (*mean_interval(values), *change)
            row = {"scheduler": name} | dict(zip(keys, numbers, strict=True))
            unfinished, to_come = cut.loc[name]
            rows.append(row | {UNFINISHED: unfinished, "mark": objective.mark(unfinished, to_come)})
        table = pandas.DataFrame(rows)
        return table.sort_values(keys[0], key=objective.loss, kind="stable", ignore_index=True)

    @property
    def num_runs(self) -> int:
        """Number of runs of each scheduler."""
        return int((self.scores["scheduler"] == self.baseline).sum())

    @property
    def title(self) -> str:
        """Title: the objective, the workloads, the cluster and the number of runs."""
        runs = self.num_runs
        return f"{self.objective.label}, {self.label}, {self.settings.label}, {runs} run{'s' if runs > 1 else ''} each"

    def _shown(self) -> pandas.DataFrame:
        """Table of the summary as text for people."""
        import pandas

        rows = []
        objective = self.objective
        means = self.scores.groupby("scheduler").mean(numeric_only=True)
        summary = self.summary().rename(columns={objective.with_unit(name): name for name in ("mean", "low", "high")})
        small = summary["mean"].abs().max() < 1.0  # such as shares, of which one decimal says little
        shown, form = _heading(objective), f".{objective.digits + 2 * small}f"
        marks = dict(zip(summary["scheduler"], summary["mark"], strict=True))
        summary["least"] = self.scores[objective.column].min()
        for row in summary.itertuples():
            sign = "" if math.isnan(row.mean) or not row.mark else f"{row.mark} "
            low = max(row.low, 0.0) if row.least >= 0.0 else row.low  # what is never negative has no such mean
            interval = _interval(row.low, f"{low:{form}}", f"{row.high:{form}}")
            change = "baseline"
            if row.scheduler != self.baseline:
                change = "" if math.isnan(row.change_percent) else _mark_of_change(row.mark, marks[self.baseline])
                change += _number(row.change_percent, "+.1f", " %")
                if ends := _interval(row.change_low, f"{row.change_low:+.1f}", f"{row.change_high:+.1f}"):
                    change += f" ({ends})"
            rows.append(
                {"scheduler": row.scheduler, shown: sign + _number(row.mean, form)}
                | ({"95 % interval": interval} if self.num_runs > 1 else {})
                | {f"against {self.baseline}" + " (paired, 95 %)" * (self.num_runs > 1): change}
                | {
                    _heading(each): _number(means.at[row.scheduler, each.column], f".{each.digits}f")
                    for each in self._others()
                }
                | ({UNFINISHED_SHOWN: row.unfinished} if any(marks.values()) else {})
            )
        return pandas.DataFrame(rows)

    def _others(self) -> list[Objective]:
        """Objectives that the table shows as means, for systems with special objectives."""
        system = system_of(self.settings)
        special = (each.name for each in system.objectives() if isinstance(each, Objective))
        if not set(special) & set(system.scored):
            return []
        return [each for name in system.scored if (each := objective_of(system, name)) is not self.objective]

    @property
    def note(self) -> str:
        """Remarks of schedulers, and notes on deterministic comparisons or truncated runs; else empty."""
        lines = list(self.remarks)
        if not self.drawn:
            lines.append("Nothing is drawn: every run of a scheduler would be the same, so there is one.")
        if not self.scores[UNFINISHED].any():
            return "\n".join(lines)
        lines += [
            "The time limit cut runs: unfinished jobs count up to it, jobs still to come do not count.",
            "≥ and ≤ mark bounds; ~ marks what was counted up to the limit: without it the order may be another.",
        ]
        if self.scores[self.objective.column].isna().any():
            lines.append("A dash: cut before any job arrived, or the objective has no value for a run that was cut.")
        return "\n".join(lines)

    def __str__(self) -> str:
        return "\n".join(filter(None, (self.title, self._shown().to_string(index=False), self.note)))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        spans = self.summary()[[self.objective.with_unit(name) for name in ("low", "mean", "high")]]
        return table_html(self.title, self._shown(), spans.to_numpy(), self.note)

    def to_markdown(self) -> str:
        """Table of the summary in Markdown."""
        table = self._shown().astype(str)
        rows = [list(table), ["---"] * len(table.columns), *table.values.tolist()]
        return "\n".join(f"| {' | '.join(row)} |" for row in rows)

    def to_latex(self) -> str:
        """Table of the summary in LaTeX (booktabs), after its title as a comment."""
        table = self._shown().astype(str)
        head, *rows = [" & ".join(map(_latex, row)) + r" \\" for row in [list(table), *table.values.tolist()]]
        begin = r"\begin{tabular}{l" + "r" * (len(table.columns) - 1) + "}"
        lines = [f"% {self.title}", begin, r"\toprule", head, r"\midrule", *rows, r"\bottomrule", r"\end{tabular}"]
        return "\n".join(lines)


def _latex(text: str) -> str:
    """Text for LaTeX, special signs escaped."""
    signs = {"≥": r"$\ge$", "≤": r"$\le$", "~": r"$\sim$"} | {sign: rf"\{sign}" for sign in "%_&#${}"}
    return "".join(signs.get(sign, sign) for sign in text)


def _heading(objective: Objective) -> str:
    """Label and unit of an objective over a column."""
    return f"{objective.label} [{objective.unit}]" if objective.unit else objective.label


def _mark_of_change(mark: str, baseline: str) -> str:
    """Sign of a change; it is a bound where one mean is exact."""
    if not baseline:
        return f"{mark} " if mark else ""
    return {"≥": "≤ ", "≤": "≥ "}.get(baseline, "~ ") if not mark else "~ "


def _number(value: float, form: str, unit: str = "") -> str:
    """A number in a table for people, a dash where there is none."""
    return "-" if math.isnan(value) else f"{value:{form}}{unit}"


def compare(
    schedulers: Sequence[str | SystemScheduler] | Mapping[str, str | SystemScheduler],
    jobs: SystemWorkload | str | Path | Sequence[SystemWorkload] | JobsText | Callable[[int], SystemWorkload],
    executors: int | None = None,
    seeds: Sequence[int] | int = DEFAULT_SEEDS,
    *,
    baseline: str | None = None,
    mode: str | None = None,
    cluster: SystemSettings | None = None,
    system: str | None = None,
    metric: str | Objective | None = None,
    workers: int | None = None,
    backend: str | None = None,
    progress: str | None = None,
    **settings,
) -> Comparison:
    """Run schedulers of a system on the same workloads with the same seeds.

    Example:
        >>> comparison = compare(["fifo", "fair"], "embedded:n=3", executors=10, seeds=4)
        >>> comparison.summary()[["scheduler", "mean_s"]].round(1)
          scheduler  mean_s
        0      fair    80.9
        1      fifo   124.9

    Args:
        schedulers: Names or scheduler objects, or a mapping from a label to either.
        jobs: One workload; one per seed; a text, the name of a source with options (drawn anew for every seed) or the
            path of a file or folder; what such a text was read into; or a function from a seed to a workload.
        executors: Executors of the cluster, 50 by default.
        seeds: Runs of every scheduler, or how many; for a sequence of workloads 0, 1, ... if not given. Where neither
            jobs nor runs take chance, only the first is run.
        baseline: Label of the scheduler to compare with, the first by default.
        mode: ``"paper"`` (the default), ``"released"`` or ``"simplified"``.
        cluster: Settings of the cluster, or of another system, instead of ``executors``, ``mode`` and further fields.
        system: Name of the system where neither jobs nor ``cluster`` say it; ``"spark"`` when omitted.
        metric: Name of the objective that the summary shows; the system's first when omitted (average JCT, makespan or
            cost). The scores also hold all others that the system scores in every comparison.
        workers: Workers, all cores by default. The result does not depend on it.
        backend: Where the workers are, see :func:`decima.evaluation.workers.make_workers`. The result does not depend
            on it.
        progress: Label of a progress bar; None for no bar.
        **settings: Further fields of the system's settings, such as :class:`decima.systems.spark.settings.Settings`.

    Raises:
        UnknownSchedulerError: A name is not registered.
        ConfigError: A list is empty, two schedulers have one label, seeds and workloads do not match, ...
    """
    import numpy as np
    import pandas

    chosen = chosen_settings(jobs, cluster, mode, system, executors=executors, **settings)
    runs_on = system_of(chosen)
    objective = objective_of(runs_on, runs_on.scored[0] if metric is None else metric)
    objectives = dict.fromkeys([*(objective_of(runs_on, name) for name in runs_on.scored), objective])
    named = _labelled(schedulers, runs_on)
    competitors = list(named.values())
    baseline = next(iter(named)) if baseline is None else baseline
    if baseline not in list(named):
        raise ConfigError(f"baseline {baseline!r} is not among the compared schedulers: {', '.join(named)}")
    workloads, seeds = _workloads(jobs, seeds, runs_on)
    one = len(seeds) > 1 and all(workload is workloads[0] for workload in workloads)
    draws = getattr(chosen, "draws", True) and getattr(workloads[0], "draws", True)
    tried = one and not draws and not any(getattr(each, "draws", False) for each in competitors)
    remarks = tuple(each.remark(workloads) for each in competitors if hasattr(each, "remark"))
    parts = []
    # Nothing is drawn where the workload is one for all seeds and the first run of every scheduler took no chance.
    for part in (slice(1), slice(1, None)) if tried else (slice(None),):
        options = {"workers": workers, "backend": backend}
        with RunPool(workloads[part], chosen, seeds=seeds[part], keep=False, **options) as runs:
            parts.append(runs.measure(competitors, objectives, progress=progress))
        drawn = not tried or bool(parts[0][DRAWN].any())
        if not drawn:
            break
    values = {name: np.hstack([part[name] for part in parts]) for name in parts[0] if name != DRAWN}
    seeds = seeds if drawn else seeds[:1]
    if not values[UNFINISHED].any():
        del values[TO_COME]
    frame = {"scheduler": np.repeat(list(named), len(seeds)), "seed": np.tile(seeds, len(competitors))}
    frame |= {name: scores.ravel() for name, scores in values.items()}
    label = ", ".join(dict.fromkeys(workload.label for workload in workloads))
    return Comparison(pandas.DataFrame(frame), baseline, objective, chosen, label, drawn, remarks)


def _interval(low: float, *ends: str) -> str:
    return "" if math.isnan(low) or ends[0] == ends[1] else " to ".join(ends)


def _labelled(schedulers, system: System) -> dict[str, SystemScheduler]:
    """Schedulers by label; names that occur twice get their text or parameters."""
    if isinstance(schedulers, Mapping):
        named = {str(label): system.make_scheduler(item) for label, item in schedulers.items()}
    else:
        if isinstance(schedulers, str) or not isinstance(schedulers, Sequence):
            raise ConfigError(f"schedulers must be a list of names or schedulers, got {schedulers!r}")
        ready = [system.make_scheduler(item) for item in schedulers]
        names = [item.name for item in ready]
        named = {}
        for request, item in zip(schedulers, ready, strict=True):
            label = request if isinstance(request, str) else _long_label(item)
            label = item.name if names.count(item.name) == 1 else label
            if label in named:
                raise ConfigError(f"scheduler {label} is given twice; use a mapping from labels to schedulers")
            named[label] = item
    if not named:
        raise ConfigError("no scheduler given; expected at least one")
    return named


def _long_label(scheduler: SystemScheduler) -> str:
    values = getattr(scheduler, "values", None)
    if not isinstance(values, Mapping) or not values:
        return scheduler.name
    shown = ", ".join(f"{name}={value:g}" for name, value in values.items())
    return f"{scheduler.name}({shown})"


def _workloads(jobs, seeds, system: System) -> tuple[list[SystemWorkload], list[int]]:
    """Lists of one workload and one seed per run."""
    if isinstance(jobs, (str, Path)):
        jobs = system.read_jobs(str(jobs))
    if members := getattr(jobs, "members", lambda seed: None)(0):
        jobs, seeds = members, DEFAULT_SEEDS  # files of a folder, each once
    listed = isinstance(jobs, Sequence) and not isinstance(jobs, system.workload_type)
    if listed and not jobs:
        raise ConfigError("no workload given; expected at least one")
    if listed and seeds is DEFAULT_SEEDS:
        seeds = range(len(jobs))
    seeds = different_seeds(range(seeds) if is_whole(seeds) else seeds)
    if listed:
        workloads = list(jobs)
    elif isinstance(jobs, system.workload_type):
        workloads = [jobs] * len(seeds)
    elif hasattr(jobs, "workloads"):
        workloads = jobs.workloads(seeds)
    elif callable(jobs):
        workloads = [jobs(seed) for seed in seeds]
    else:
        raise ConfigError(f"jobs must be workloads or a function from a seed to one, got {type(jobs).__name__}")
    if len(workloads) != len(seeds):
        raise ConfigError(f"{len(seeds)} seeds for {len(workloads)} workloads; expected one each")
    return workloads, seeds
