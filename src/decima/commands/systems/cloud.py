"""Command-line options and output of executors on cloud VMs."""

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

    from decima.systems.cloud.result import PlacementResult
    from decima.systems.cloud.settings import PlacementSettings
    from decima.systems.cloud.sources import JobsSpec

DEFAULTS = {"scheduler": "ilp_exact", "schedulers": None}
VMS = "table4, released, families, compute, or a .csv file."
Mode = Annotated[
    str, option("paper|released", "paper: the clock only goes forward; released: as in the published code.")
]


@dataclass(frozen=True)
class Options:
    """Options of jobs, VMs, billing and rules."""

    jobs: Annotated[
        str,
        option(
            "JOBS",
            "A source with options (generated; generated:pattern=burst,n=200; normal; burst; "
            "redrawn:trace=burst; dag:jobs=jobs.json), see 'decima workload sources --system cloud'; or a .csv file.",
            "--jobs",
        ),
    ] = "generated"
    vms: Annotated[str, option("VMS", VMS, show_default="by mode")] = ""
    beta: Annotated[float, option("X", "Weight of cost against mean duration, 0 to 1.")] = 1.0
    mode: Mode = "paper"
    changes: Annotated[
        list[str] | None,
        set_option(
            "Change a rule or the billing (billing.granularity_s=3600; rules.lookahead=shares); may be "
            "given several times."
        ),
    ] = None

    def spec(self) -> JobsSpec:
        """The jobs that the text means, see :func:`decima.systems.cloud.parse_placement_jobs`."""
        from decima.systems.cloud import parse_placement_jobs

        return parse_placement_jobs(self.jobs)

    def files(self) -> tuple[Path | None, ...]:
        """Files that are read, which no output may replace."""
        return (self.spec().path, Path(self.vms) if self.vms.endswith(".csv") else None)

    def settings(self) -> PlacementSettings:
        """VMs, billing, beta and rules.

        Raises:
            DecimaError: An option is out of range, or the file of VMs is not as expected.
        """
        from decima.systems.cloud import Billing, PlacementSettings, Rules, make_cluster

        texts = changed_texts(self.changes, "rules", "billing")
        rules = read_fields(texts["rules"], Rules, "--set rules.")
        billing = Billing(**read_fields(texts["billing"], Billing, "--set billing."))
        cluster = make_cluster(self.vms) if self.vms else None
        return PlacementSettings.of_mode(self.mode, cluster=cluster, beta=self.beta, billing=billing, **rules)


def checked(result: PlacementResult) -> PlacementResult:
    """The episode, of which every job must be placed."""
    return result.require_complete()


def all_schedulers() -> list[str]:
    """Names that are compared by default."""
    from decima.systems.cloud import list_placements

    return list_placements()


def result_fields(result: PlacementResult) -> dict[str, Any]:
    """What a result file has in addition to the parts of all systems."""
    common = ("label", "scheduler", "seed", "settings")
    values = {name: value for name, value in result.as_dict().items() if name not in common}
    return values | {"vms": result.vms().to_dict("records")}


def job_rows(result: PlacementResult) -> list[dict[str, Any]]:
    """A row per job for a result file."""
    return result.jobs().to_dict("records")


def scores(result: PlacementResult) -> dict[str, float]:
    """Scores by column of an objective."""
    from decima.systems.cloud.result import OBJECTIVES

    return {each.column: result.score(each) for each in OBJECTIVES.values()}


def task_table(result: PlacementResult) -> pandas.DataFrame:
    """Table for ``--log``: a row per executor with VM, times and cost of its job."""
    return result.executors()


@dataclass(frozen=True)
class OptimumOptions(Options):
    """Options of the search for the best placement."""

    nodes: Annotated[
        int, option("N", "Placements to try in a busy period; 0: no exact search.", min=0, max=100 * MOST)
    ] = 2_000_000
    budget: Annotated[int, option("N", "Plans to try in the search.", min=0, max=MOST)] = 100_000
    waits: Annotated[bool, typer.Option("--waits", help="Also search for voluntary waits before jobs.")] = False


@dataclass(frozen=True)
class TrainOptions:
    """Options of what is trained for."""

    vms: Annotated[str, option("VMS", "Lists of VMs, separated by ;.")] = "table4"
    betas: Annotated[str, option("X", "Weights of cost, 0 to 1, separated by ;.")] = "1"
    mode: Mode = "paper"
    reward: Annotated[
        str, option("per_job|table3", "Rewards: the share of each job in R_epi, or those of Table 3.")
    ] = "per_job"
    changes: Annotated[
        list[str] | None,
        set_option(
            "Change a field of rules, billing, recipe or architecture (recipe.lr_start=1e-3; "
            "architecture.masked=true); may be repeated."
        ),
    ] = None


OPTIONS: Mapping[str, type] = {
    "simulate": Options,
    "compare": Options,
    "optimum": OptimumOptions,
    "train": TrainOptions,
}
