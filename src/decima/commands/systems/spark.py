"""Command-line options and output of the simulated Spark cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from decima.commands.shared.options import option, set_option
from decima.core.grammar import MOST, changed_texts, read_fields

if TYPE_CHECKING:
    import pandas

    from decima.systems.spark.result import Result
    from decima.systems.spark.settings import Settings
    from decima.workload.sources import JobSpec

Jobs = Annotated[
    str,
    option(
        "JOBS",
        "A source with options (tpch; embedded:n=5,sizes=2g+10g; synthetic:n=200,interarrival_s=25), see "
        "'decima workload sources'; or a file (.json, .parquet).",
        "--jobs",
    ),
]


@dataclass(frozen=True)
class ClusterOptions:
    """Options of the simulated cluster; the mode supplies all others."""

    executors: Annotated[
        int | None, option("N", "Executors of the cluster.", max=MOST, show_default="50, or as in --classes")
    ] = None
    mode: Annotated[
        str, option("paper|released|simplified", "Rules of the paper, of the published simulator, or of appendix H.")
    ] = "paper"
    durations: Annotated[
        str | None, option("sampled|mean", "Draw task durations or use their means.", show_default="by mode")
    ] = None
    classes: Annotated[
        str | None,
        option(
            "MEMORY:N,...",
            "Classes of executors (0.25:50,0.5:50,1:100; with CPUs 0.5x2:50), instead of --executors.",
            show_default="one that fits all",
        ),
    ] = None
    changes: Annotated[
        list[str] | None, set_option("Change a setting (settings.moving_delay_ms=0); may be repeated.")
    ] = None

    def settings(self) -> Settings:
        """Settings of the simulator.

        Raises:
            ConfigError: An option is out of range, or has no effect in that mode.
        """
        from decima.systems.spark.settings import Settings

        texts = changed_texts(self.changes, "settings")["settings"]
        return self.of_values(read_fields(texts, Settings, "--set settings."))

    def of_values(self, values: dict[str, Any]) -> Settings:
        """Settings of the simulator, some of them by name.

        Raises:
            ConfigError: As :meth:`settings`, or a value has an option of its own.
        """
        from decima.systems.spark.settings import settings_from

        by_option = {"executors": self.executors, "classes": self.classes, "durations": self.durations}
        return settings_from(self.mode, values, **by_option)


@dataclass(frozen=True)
class Options(ClusterOptions):
    """Options of jobs and of the simulated cluster."""

    jobs: Jobs = "tpch"

    def of_values(self, values: dict[str, Any]) -> Settings:
        """Settings of the simulator; jobs of event logs bring defaults, which a line says."""
        from decima.core.system import with_defaults

        brought = self.spec().settings
        merged = with_defaults(brought, values)
        taken = ", ".join(
            f"{name}={str(value).lower() if isinstance(value, bool) else f'{value:g}'}"
            for name, value in brought.items()
            if name in merged and name not in values
        )
        if taken:
            change = "--set settings.NAME=VALUE changes them"
            typer.echo(f"{self.jobs} brings settings of its cluster: {taken} ({change})")
        return super().of_values(merged)

    def spec(self) -> JobSpec:
        """The jobs that the text means, see :func:`decima.workload.sources.parse_jobs`."""
        from decima.workload.sources import parse_jobs

        return parse_jobs(self.jobs)

    def files(self) -> tuple[Path | None, ...]:
        """Files that are read, which no output may replace."""
        return (self.spec().path,)


def result_fields(result: Result) -> dict[str, Any]:
    """Keys of a result file for this system; decisions if the run kept a log."""
    document = {
        "completion_ms": result.completion_ms,
        "completion_order": result.completion_order,
        "makespan_ms": result.makespan_ms,
        "avg_jct_ms": result.avg_jct_ms,
        "num_unfinished": result.num_unfinished,
        "end_ms": result.end_ms,
        "truncated": result.truncated,
        "utilization": result.utilization,
        "num_decisions": result.num_decisions,
        "num_events": result.num_events,
        "node_finish_ms": result.stage_finish_ms,
    }
    if result.settings.elastic:
        document |= {"executor_hours": result.executor_hours, "losses": result.losses}
    if result.log is not None:
        document["decision_fields"] = list(result.log.decision_columns())
        document["decisions"] = result.log.decision_lists()
        if result.log.lives is not None:
            document["registrations"] = result.log.lives
    return document


def job_rows(result: Result) -> list[dict[str, Any]]:
    """A row per job for a result file."""
    return [{"name": job.name, "arrival_ms": job.arrival_ms, "initial": job.initial} for job in result.workload.jobs]


def scores(result: Result) -> dict[str, float]:
    """Scores by column of an objective."""
    hours = {"executor_hours_h": result.executor_hours} if result.settings.elastic else {}
    return {"avg_jct_s": result.avg_jct_s, "makespan_s": result.makespan_s} | hours


def task_table(result: Result) -> pandas.DataFrame:
    """A row per task, for ``--log``."""
    return result.log.tasks()


@dataclass(frozen=True)
class KnownOptions(Options):
    """Options of jobs and of a simulated cluster whose task durations are known beforehand."""

    durations: Annotated[
        str, option("sampled|mean", "The search knows the durations; bounds of sampled ones are loose.")
    ] = "mean"


@dataclass(frozen=True)
class ExhaustiveOptions:
    """Options of a batch for exhaustive search."""

    jobs: Jobs = "tpch:n=10"
    executors: Annotated[int, option("N", "Executors of the cluster.", max=MOST)] = 50

    def spec(self) -> JobSpec:
        """The jobs that the text means, see :func:`decima.workload.sources.parse_jobs`."""
        return Options(jobs=self.jobs).spec()


@dataclass(frozen=True)
class TrainOptions(ClusterOptions):
    """Options of the cluster to train for; `--set` also changes the recipe and the network."""

    changes: Annotated[
        list[str] | None,
        set_option(
            "Change a field of the settings, the recipe or the architecture (settings.moving_delay_ms=0, "
            "recipe.lr_start=2e-3, architecture.limit=none); may be repeated."
        ),
    ] = None


OPTIONS: Mapping[str, type] = {
    "simulate": Options,
    "compare": Options,
    "tune": Options,
    "optimum": KnownOptions,
    "train": TrainOptions,
}
