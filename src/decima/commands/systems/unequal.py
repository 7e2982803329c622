"""Options of the command line for unequal executors, and what files and lines say of schedules there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from decima.core.errors import ConfigError
from decima.core.grammar import MOST

if TYPE_CHECKING:
    import pandas

    from decima.systems.unequal import Instance, Schedule


EXPLORED = False  # no page of a schedule


@dataclass(frozen=True)
class Options:
    """Options of jobs and of a cluster of unequal executors."""

    defaults: ClassVar[Mapping[str, Any]] = MappingProxyType({"scheduler": "heft"})

    jobs: Annotated[
        str | None,
        typer.Option(
            "--jobs",
            metavar="JOBS",
            help="canonical; random:nodes=100,ccr=5; gauss:size=8; fft:points=16; jobs of stages (embedded:n=20); "
            "or a file with jobs (.json).",
            show_default="embedded:n=20 at the paper's sizes",
        ),
    ] = None
    executors: Annotated[
        int | None, typer.Option(metavar="N", max=MOST, help="Executors.", show_default="50, or the file's")
    ] = None
    speeds: Annotated[
        str | None, typer.Option(metavar="V+V", help="Speed of each.", show_default="drawn from 2.1 to 3.6")
    ] = None
    rate: Annotated[
        float | None, typer.Option(metavar="X", help="Data per second between two of them.", show_default="125")
    ] = None
    latency_s: Annotated[float | None, typer.Option(metavar="S", help="Of every transfer.", show_default="0")] = None
    edges: Annotated[
        str | None,
        typer.Option(
            metavar="ccr=X|measured|own",
            help="Data between stages, for jobs of stages; own: what a file says (data_mb).",
            show_default="own, or ccr=1",
        ),
    ] = None

    def files(self) -> tuple[Path | None, ...]:
        """Files that are read, which no output may replace."""
        return (Path(self.jobs),) if self.jobs is not None and self.jobs.endswith(".json") else ()

    def instance(self, seed: int) -> Instance:
        """The jobs on their cluster; without a text, the jobs of the paper at a ratio of 1."""
        from decima.systems.unequal.sources import PAPER_JOBS, read_instance

        edges = "ccr=1" if self.jobs is None and self.edges is None else self.edges
        return read_instance(PAPER_JOBS if self.jobs is None else self.jobs, self.cluster(), edges, seed)

    def cluster(self) -> Any:
        """What is said about the cluster alone."""
        from decima.systems.unequal.sources import ClusterOptions

        return ClusterOptions(self.executors, self.speeds, self.rate, self.latency_s)


@dataclass(frozen=True)
class SimulateOptions(Options):
    """Options of one schedule."""

    service: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="Ask this service ('decima serve --unequal') for every decision."),
    ] = None

    def run(self, scheduler: Any, seed: int, *, log: bool) -> tuple[Schedule, Mapping[str, Any]]:
        """The schedule and the settings of its scheduler."""
        instance = self.instance(seed)
        schedule = (
            scheduler.schedule(instance, seed) if self.service is None else self._asked(scheduler, instance, seed)
        )
        return schedule, schedule.settings

    def _asked(self, scheduler: Any, instance: Instance, seed: int) -> Schedule:
        """The schedule that the service makes node by node while it is executed."""
        from decima.connect.service.client import ServiceClient, check_address
        from decima.connect.service.node_client import schedule_by_service
        from decima.connect.service.security import read_token

        check_address(self.service)
        with ServiceClient(self.service, token=read_token(None)) as client:
            return schedule_by_service(instance, client, scheduler.text, seed=seed)


@dataclass(frozen=True)
class CompareOptions(Options):
    """Options of a comparison."""

    defaults: ClassVar[Mapping[str, Any]] = MappingProxyType({"schedulers": None, "seeds": 1, "metric": "makespan"})

    search: Annotated[
        int, typer.Option(metavar="N", min=0, max=MOST, help="Priorities to try on each instance; 0: none.")
    ] = 0

    @staticmethod
    def all_schedulers() -> list[str]:
        """Names that are compared where none is given."""
        from decima.systems.unequal import list_schedulers

        return list_schedulers()

    def compare(
        self, schedulers: Mapping[str, Any], seeds: Sequence[int], *, baseline: str | None = None, **others: Any
    ) -> SideBySide:
        """Metrics of schedules above the lower bound, an instance per seed."""
        from decima.systems.unequal import compare

        if baseline is not None:
            raise ConfigError("--baseline has no effect for --system unequal, which compares with the lower bound")
        if (metric := others.pop("metric")) not in (None, "makespan"):
            raise ConfigError(f"metric {metric!r} is unknown for --system unequal; known: makespan")
        instances = [self.instance(seed) for seed in seeds]
        table = compare(list(schedulers), instances, seed=seeds[0], budget=self.search, **others)
        return SideBySide(table, label(instances[0]), len(instances))

    def runs(self, schedulers: Mapping[str, Any], seed: int) -> list[Schedule]:
        """Schedules of one instance."""
        instance = self.instance(seed)
        return [scheduler.schedule(instance, seed) for scheduler in schedulers.values()]


@dataclass(frozen=True)
class SideBySide:
    """Schedulers above the lower bound, as a table for people and one for files."""

    scores: pandas.DataFrame = field(repr=False)  # see :func:`decima.systems.unequal.compare`
    label: str
    instances: int

    def means(self) -> pandas.DataFrame:
        """A row per scheduler."""
        columns = ["makespan_s", "above_bound", "speedup", "avg_jct_s"]
        return self.scores.groupby("scheduler", sort=False)[columns].mean()

    def __str__(self) -> str:
        lines = [f"{'scheduler':<28} {'makespan [s]':>14} {'over bound':>11} {'speedup':>8} {'avg JCT [s]':>12}"]
        for name, row in self.means().iterrows():
            rest = "" if name == "lower_bound" else f"{row.speedup:>8.2f} {row.avg_jct_s:>12.2f}"
            lines.append(f"{name:<28} {row.makespan_s:>14.2f} {row.above_bound:>11.3f} {rest}".rstrip())
        return "\n".join(lines)


def best(comparison: SideBySide) -> str:
    """Which scheduler has the shortest mean makespan."""
    from decima.plotting.words import count

    means = comparison.means()
    first = means["makespan_s"].drop("lower_bound").idxmin()
    return (
        f"{comparison.label}, {count(comparison.instances, 'instance')}: shortest on average {first}, "
        f"{means.above_bound[first]:.3f} of the bound"
    )


def schedulers() -> Any:
    """Registry of the schedulers."""
    from decima.systems.unequal.schedulers.registry import SCHEDULERS

    return SCHEDULERS


def make_scheduler(text: str) -> Any:
    """Scheduler of a text."""
    from decima.systems.unequal import make_scheduler as make

    return make(text)


def label(instance: Instance) -> str:
    """Text that says how large an instance is."""
    from decima.plotting.words import count

    return (
        f"{instance.label} ({count(len(instance.jobs), 'job')}, {count(len(instance), 'node')}, "
        f"{count(len(instance.cluster), 'executor')}, CCR {instance.ccr:.2g})"
    )


def workload_label(schedule: Schedule) -> str:
    """Name of the jobs."""
    return schedule.instance.label


def result_fields(schedule: Schedule) -> dict[str, Any]:
    """What a result file says beside what it says for all systems: all copies."""
    from decima.systems.unequal.json_format import schedule_document

    document = schedule_document(schedule)
    return {name: document[name] for name in ("makespan_s", "copies")}


def job_rows(schedule: Schedule) -> list[dict[str, Any]]:
    """A row per job for a result file."""
    completion_s = schedule.completion_s
    return [
        {"name": job.name, "arrival_s": job.arrival_s, "finish_s": float(completion_s[index])}
        for index, job in enumerate(schedule.instance.jobs)
    ]


def scores(schedule: Schedule) -> dict[str, float]:
    """Scores by name."""
    from decima.systems.unequal import metrics

    return asdict(metrics(schedule))


def task_table(schedule: Schedule) -> pandas.DataFrame:
    """A row per copy, for ``--log``."""
    import pandas

    return pandas.DataFrame(result_fields(schedule)["copies"])


def sentence(schedule: Schedule) -> str:
    """One line about a schedule."""
    from decima.systems.unequal import lower_bound, metrics

    judged, floor_s = metrics(schedule), lower_bound(schedule.instance)
    above = f" ({judged.makespan_s / floor_s:.3f} of the lower bound)" if floor_s > 0.0 else ""
    return (
        f"{label(schedule.instance)}: {schedule.scheduler} takes {judged.makespan_s:g} s{above}, "
        f"speedup {judged.speedup:.2f}, average JCT {judged.avg_jct_s:.2f} s, utilisation "
        f"{100.0 * judged.utilisation:.1f} %, {judged.duplicates} further copies"
    )


def figure(results: Sequence[Schedule]) -> Any:
    """Gantt charts of schedules above each other."""
    from decima.plotting import style
    from decima.plotting.gantt import schedule_gantt

    rows = len(results[0].instance.cluster)
    drawn = style.new_figure(style.PAGE, min(9.0, 1.2 + 0.25 * max(rows, 4)) * len(results))
    for axes, schedule in zip(drawn.subplots(len(results), 1, squeeze=False)[:, 0], results, strict=True):
        schedule_gantt(schedule, axes)
    return drawn


@dataclass(frozen=True)
class TrainOptions:
    """Options of what is trained for; JOBS says all of the rest."""

    defaults: ClassVar[Mapping[str, Any]] = MappingProxyType({"jobs": "lachesis-batch", "architecture": "paper"})

    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="GROUP.KEY=VALUE",
            help="Change a field of the recipe or the architecture (recipe.lr_start=2e-3); may be given several times.",
        ),
    ] = None


OPTIONS: Mapping[str, type] = {
    "simulate": SimulateOptions,
    "compare": CompareOptions,
    "optimum": Options,
    "train": TrainOptions,
}
