"""Words of titles and captions about a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from decima import plotting
from decima.plotting.words import count
from decima.workload.sources import get_source
from experiments.params import resolve_run, run_params

if TYPE_CHECKING:
    import pandas

Tables = Mapping[str, "pandas.DataFrame"]
INTERVAL = "95 % confidence interval of the mean"
# The workload that jobs of the committed event logs belong to.
SPARK_WORKLOAD = "TPC-H on Spark"


@dataclass(frozen=True)
class Run:
    """A run of ``params.yaml``."""

    workload: str  # label of the workload
    executors: int  # of the cluster
    policies: Mapping[str, str]  # names of stored policies by what they are for: batch, stream, warm_batch, ...
    params: Mapping[str, Any]  # parameters of its experiments by their names

    @classmethod
    def named(cls, run: str) -> Run:
        """The run ``run`` of ``params.yaml``; ``"auto"`` is the default run."""
        params = run_params(resolve_run(run))
        return cls(get_source(params["workload"]).label, params["executors"], params["policies"], params)

    @property
    def cluster(self) -> str:
        """Text of captions about the cluster."""
        return f"{self.executors} executors"


def distinct(table: pandas.DataFrame, column: str, noun: str) -> str:
    """Text of how many different values a column has, with a noun."""
    return count(table[column].nunique(), noun)


def learned_words(run: Run, rows: Iterable[str], use: str, *others: str) -> str:
    """Words of captions about stored policies: how one acts, names of others.

    Args:
        run: The run.
        rows: Names of rows; among them that of the other mode of the first policy, greedy or sampled.
        use: As in :func:`experiments.comparisons.learned_schedulers`.
        *others: As there; the part before ``_`` is how the policy learned.
    """
    mode = "greedy" if any(name.endswith("_sampled") for name in rows) else "sampled"
    how = {"warm": "imitation-pretrained", "entry": "executor-entry cost"}
    words = [f"{how[other.partition('_')[0]]}: {run.policies[other]}" for other in others]
    return "; ".join([f"policy {run.policies[use]}, {mode}", *words])


def untuned(scores: pandas.DataFrame) -> pandas.DataFrame:
    """Scores of schedulers that were not tuned, weighted fair under a name that says so."""
    return scores.replace({"scheduler": {"weighted_fair": "weighted_fair_default"}})


def presets(schedulers: Iterable[str]) -> str:
    """Sentence of captions about untuned schedulers; empty where there is none."""
    of = ("weighted_fair_default", "capped_srw")
    named = [plotting.style.scheduler_style(name).label for name in dict.fromkeys(schedulers) if name in of]
    return f" Not tuned: {', '.join(named)}." if named else ""


def against_labels(changes: pandas.DataFrame) -> pandas.DataFrame:
    """Paired changes whose baselines are named as in legends."""
    labels = [f"against {plotting.style.scheduler_style(name).label}" for name in changes["against"]]
    return changes.assign(against=labels)
