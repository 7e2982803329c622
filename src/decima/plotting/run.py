"""What titles and captions say of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pandas

from decima.evaluation.experiments import read_params, resolve_run
from decima.plotting.style import count
from decima.workload.sources import find_source

Tables = Mapping[str, pandas.DataFrame]
INTERVAL = "95 % confidence interval of the mean"


@dataclass(frozen=True)
class Run:
    """A run of ``params.yaml``.

    Attributes:
        workload: Label of the workload.
        executors: Executors of the cluster.
        policies: Stored policies by what they are for: batch, stream, released.
    """

    workload: str
    executors: int
    policies: Mapping[str, str]

    @classmethod
    def named(cls, run: str) -> Run:
        """The run ``run`` of ``params.yaml``; ``"auto"`` is the default run."""
        params = read_params()[resolve_run(run)]
        return cls(find_source(params["workload"]).label, params["executors"], params["policies"])

    @property
    def cluster(self) -> str:
        """For captions."""
        return f"{self.executors} executors"


def distinct(table: pandas.DataFrame, column: str, noun: str) -> str:
    """How many different values a column has, with a noun."""
    return count(table[column].nunique(), noun)


def decima_mode(scores: pandas.DataFrame) -> str:
    """How the policy acts that is called Decima: the other way has a row of its own."""
    return "greedy" if "decima_sampled" in set(scores["scheduler"]) else "sampled"
