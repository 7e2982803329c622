"""Clusters of executors that differ in speed and exchange data at fixed rates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from decima.core.checks import check_whole, is_name, is_number, is_whole
from decima.core.errors import ConfigError, WorkloadError
from decima.systems.heterogeneous.checking import frozen, number, numbers

#: Speeds of the paper's executors in GHz: a table of Intel frequencies from 2.1 to 3.6, read as steps of 0.1.
PAPER_SPEEDS = tuple(round(2.1 + 0.1 * step, 1) for step in range(16))
#: Rate in MB/s of a network of 1 Gbit/s; the paper gives none.
GIGABIT = 125.0


@dataclass(frozen=True, eq=False)
class Cluster:
    """Executors with their speeds, or a matrix of execution times, and the network between them.

    An executor of speed v needs w / v seconds for a node of work w. Data of size e needs ``latency_s`` + e / rate from
    one executor to another, and no time on the same one; transfers do not disturb each other (Eqs. 1 and 2).

    Raises:
        WorkloadError: There is no executor, a speed, rate or time is zero, negative or not a number, or a matrix is of
            the wrong shape.
    """

    speeds: Sequence[float] | None = None  # float64 [executors], above 0; None where ``costs`` is given
    rate: float | Sequence[Sequence[float]] = None  # one for all pairs, or [sender, receiver]; the diagonal is not read
    latency_s: float = 0.0  # of each transfer between two executors, however little is sent
    # Execution times in seconds, float64 [nodes, executors]; infinite where an executor cannot execute a node.
    costs: Sequence[Sequence[float]] | None = None
    names: Sequence[str] = ()  # of the executors; "0", "1", ... when omitted

    def __post_init__(self) -> None:
        if (self.speeds is None) == (self.costs is None):
            raise WorkloadError("a cluster has either speeds or a matrix of costs; expected exactly one of them")
        if self.speeds is not None:
            object.__setattr__(self, "speeds", numbers("speeds", self.speeds, strictly=True))
            executors = len(self.speeds)
        else:
            costs = numbers("costs", self.costs, infinite=True, ndim=2)
            if (alone := np.isinf(costs).all(axis=1)).any() and costs.shape[1]:
                raise WorkloadError(f"costs: no executor can execute node {np.argmax(alone)}; expected a finite time")
            object.__setattr__(self, "costs", costs)
            executors = costs.shape[1]
        if not executors:
            raise WorkloadError("the cluster has no executor; expected at least one")
        object.__setattr__(self, "rate", _rates(self.rate, executors))
        object.__setattr__(self, "latency_s", number("latency_s", self.latency_s))
        if wrong := [name for name in self.names if not (is_name(name) or is_whole(name))]:
            raise WorkloadError(f"an executor's name is {wrong[0]!r:.60}; expected a non-empty Unicode text")
        names = tuple(str(name) for name in self.names) or tuple(str(index) for index in range(executors))
        if len(names) != executors or len(set(names)) < executors:
            raise WorkloadError(f"{len(names)} names for {executors} executors; expected a different one for each")
        object.__setattr__(self, "names", names)

    def __len__(self) -> int:
        return len(self.names)

    @property
    def uniform(self) -> bool:
        """Whether one rate holds for all pairs."""
        return isinstance(self.rate, float)

    @cached_property
    def mean_speed(self) -> float:
        """Mean of the speeds; 1 where execution times replace them."""
        return 1.0 if self.speeds is None else float(np.mean(self.speeds))

    @cached_property
    def mean_rate(self) -> float:
        """Mean of the finite rates between two different executors; infinite where there is none."""
        if self.uniform:
            return self.rate
        finite = self.rate[~np.eye(len(self), dtype=bool) & np.isfinite(self.rate)]
        return float(finite.mean()) if len(finite) else np.inf

    @cached_property
    def best_rate(self) -> float:
        """Largest rate between two different executors; infinite where there is one executor only."""
        if self.uniform:
            return self.rate
        others = ~np.eye(len(self), dtype=bool)
        return float(self.rate[others].max()) if others.any() else np.inf

    def mean_transfer_s(self, data: np.ndarray) -> np.ndarray:
        """Mean transfer time in seconds of data of these sizes, same shape."""
        return self.latency_s + data / self.mean_rate

    def least_transfer_s(self, data: np.ndarray) -> np.ndarray:
        """Shortest transfer time in seconds of data of these sizes, same shape."""
        return self.latency_s + data / self.best_rate

    @classmethod
    def drawn(
        cls,
        executors: int = 50,
        seed: int = 0,
        *,
        speeds: Sequence[float] = PAPER_SPEEDS,
        rate: float = GIGABIT,
        latency_s: float = 0.0,
    ) -> Cluster:
        """Cluster whose speeds are drawn from a table, each entry as likely as the others.

        Args:
            executors: Number of executors.
            seed: 0 or more.
            speeds: The table.
            rate: Rate between any two executors, data per second.
            latency_s: Latency of a transfer.

        Raises:
            ConfigError: ``executors`` or ``seed`` is out of range.

        Source: Section V-B, 50 executors of 2.1 to 3.6 GHz.
        """
        check_whole("executors", executors, least=1)
        check_whole("seed", seed, least=0)
        table = numbers("speeds", speeds, strictly=True)
        if not len(table):
            raise ConfigError("the table of speeds is empty; expected at least one")
        drawn = np.random.default_rng([seed, 1]).choice(table, size=executors)
        return cls(drawn, rate, latency_s)

    def as_dict(self) -> dict[str, Any]:
        """Content as JSON-ready values, from which ``from_dict`` makes the cluster again."""
        body: dict[str, Any] = {}
        if self.speeds is not None:
            body["speeds"] = self.speeds.tolist()
        else:
            body["costs"] = _json_ready(self.costs)
        body["rate"] = _json_ready(np.asarray(self.rate))
        return body | {"latency_s": self.latency_s, "names": list(self.names)}


def _json_ready(values: np.ndarray) -> Any:
    return np.where(np.isinf(values), "inf", values.astype(object)).tolist()


def _rates(rate: Any, executors: int) -> float | np.ndarray:
    if rate is None:
        if executors == 1:
            return np.inf
        raise WorkloadError("the cluster has no transfer rate; expected one number, or one for each pair of executors")
    if not isinstance(rate, (list, tuple, np.ndarray)):
        return number("rate", rate, strictly=True, infinite=True)
    try:
        if not isinstance(rate, np.ndarray):
            rate = [[np.nan if each is None else each for each in row] for row in rate]
            if any(not is_number(each) for row in rate for each in row):
                raise ValueError("no number")
        matrix = np.array(rate, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise WorkloadError("rate: expected one number, or a row of numbers for each executor") from error
    if matrix.shape != (executors, executors):
        shape = " x ".join(str(each) for each in matrix.shape)
        raise WorkloadError(f"rate is a matrix of {shape}; expected {executors} x {executors}")
    np.fill_diagonal(matrix, np.inf)
    if np.isnan(matrix).any():
        sender, receiver = np.argwhere(np.isnan(matrix))[0]
        raise WorkloadError(f"the rate from executor {sender} to executor {receiver} is missing")
    return frozen(numbers("rate", matrix, strictly=True, infinite=True, ndim=2))
