"""Many runs on the same workloads: everything that can be prepared is prepared once, runs share threads."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np

from decima.evaluation.run import METRICS, run_state
from decima.exceptions import ConfigError, RecordError
from decima.schedulers import CompiledScheduler, Scheduler
from decima.schedulers.fields import rule_record
from decima.simulator.settings import Settings
from decima.simulator.state import ClusterState
from decima.simulator.tables import WorkloadTables
from decima.workload.jobs import Workload

_Item = TypeVar("_Item")
_Value = TypeVar("_Value")


def map_threads(
    function: Callable[[_Item], _Value], items: Sequence[_Item], threads: int | None, advance: Callable | None = None
) -> list[_Value]:
    """``[function(item) for item in items]`` in threads; ``advance()`` is called after each.

    An exception (Ctrl-C as well) drops what has not begun and is raised here.
    """

    def work(item):
        value = function(item)
        if advance is not None:
            advance()
        return value

    if threads is not None and (isinstance(threads, bool) or int(threads) != threads or threads < 1):
        raise ConfigError(f"threads must be a whole number of at least 1, got {threads!r}")
    count = min(int(threads or os.cpu_count() or 1), len(items))
    if count <= 1:
        return [work(item) for item in items]
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(work, items))


def compile_schedulers(schedulers: Sequence[Scheduler]) -> None:
    """Compile before threads start, which would otherwise do it side by side."""
    for scheduler in schedulers:
        if isinstance(scheduler, CompiledScheduler):
            _ = scheduler.decision.address


def check_metric(metric: str) -> None:
    """Raise ConfigError unless the metric is known."""
    if metric not in METRICS:
        raise ConfigError(f"metric must be one of {', '.join(METRICS)}, got {metric!r}")


class RunPool:
    """Workloads on one kind of cluster, ready to be run again and again.

    Args:
        workloads: W workloads, at least one.
        settings: The cluster.
        seeds: One seed per workload, 0..W-1 by default. Every scheduler meets the same seed on a workload, so that
            differences between schedulers are paired.
        threads: Workers, all cores by default. Results do not depend on it.
        keep: Keep the states between calls; costs memory, saves their set-up.

    Raises:
        ConfigError: There is no workload, or the number of seeds differs.
    """

    def __init__(
        self,
        workloads: Sequence[Workload],
        settings: Settings,
        *,
        seeds: Sequence[int] | None = None,
        threads: int | None = None,
        keep: bool = True,
    ) -> None:
        self.workloads = list(workloads)
        if not self.workloads:
            raise ConfigError("no workload given; expected at least one")
        for workload in self.workloads:
            if not isinstance(workload, Workload):
                raise ConfigError(f"expected a Workload, got {type(workload).__name__}")
        self.seeds = list(range(len(self.workloads))) if seeds is None else [int(seed) for seed in seeds]
        if len(self.seeds) != len(self.workloads):
            raise ConfigError(f"{len(self.seeds)} seeds for {len(self.workloads)} workloads; expected one each")
        self.settings = settings
        self.threads = threads
        self._keep = keep
        self._states: dict[int, ClusterState] = {}

    def __len__(self) -> int:
        return len(self.workloads)

    def _state(self, index: int) -> ClusterState:
        state = self._states.get(index)
        if state is None:
            state = ClusterState(WorkloadTables(self.workloads[index], self.settings), self.settings)
            if self._keep:
                self._states[index] = state
        return state

    def measure(
        self, schedulers: Sequence[Scheduler], metrics: Sequence[str] = ("avg_jct_s",), *, progress: str | None = None
    ) -> dict[str, np.ndarray]:
        """Run every scheduler on every workload.

        Args:
            schedulers: S schedulers. Compiled ones run in threads, others one run after the other.
            metrics: Names in ``METRICS``.
            progress: Label of a progress bar; None for no bar.

        Returns:
            float64 [S, W] per metric.
        """
        from tqdm.auto import tqdm

        if not schedulers:
            raise ConfigError("no scheduler given; expected at least one")
        for metric in metrics:
            check_metric(metric)
        compile_schedulers(schedulers)
        values = {metric: np.full((len(schedulers), len(self)), np.nan) for metric in metrics}
        bar = tqdm(total=len(self) * len(schedulers), desc=progress, unit="run", disable=None if progress else True)

        def run_all(index: int, compiled: bool) -> None:
            state = self._state(index)
            for row, scheduler in enumerate(schedulers):
                if isinstance(scheduler, CompiledScheduler) == compiled:
                    run_state(state, scheduler, self.seeds[index])
                    for metric in metrics:
                        values[metric][row, index] = METRICS[metric](state)
                    bar.update()

        with bar:
            if any(isinstance(scheduler, CompiledScheduler) for scheduler in schedulers):
                map_threads(lambda index: run_all(index, True), range(len(self)), self.threads)
            if not all(isinstance(scheduler, CompiledScheduler) for scheduler in schedulers):
                # A user's object may keep notes about its run: it must not see two runs at once.
                for index in range(len(self)):
                    run_all(index, False)
        return values


class CandidatePool:
    """One workload and one seed, many candidate schedules at once, each on a state that no other thread uses.

    Args:
        workload: What to run.
        settings: The cluster.
        seed: Source of durations; without effect on mean durations.
        threads: Workers, all cores by default. Results do not depend on it.
    """

    def __init__(self, workload: Workload, settings: Settings, *, seed: int = 0, threads: int | None = None) -> None:
        self.tables = WorkloadTables(workload, settings)
        self._settings = settings
        self._seed = seed
        self._threads = threads
        self._idle: list[ClusterState] = []

    def scores(
        self,
        schedulers: Sequence[Scheduler],
        arrays: Mapping[str, np.ndarray] | None = None,
        *,
        metric: str = "avg_jct_s",
    ) -> np.ndarray:
        """Score N candidates.

        Args:
            schedulers: One compiled scheduler per candidate.
            arrays: Given arrays of :mod:`decima.schedulers.fields` by name, float64 [N, length of the array].
            metric: Name in ``METRICS``.

        Returns:
            float64 [N].

        Raises:
            RecordError: An array is unknown, or has not one row of the right length per candidate.
        """
        check_metric(metric)
        compile_schedulers(schedulers)
        arrays = {name: np.asarray(rows) for name, rows in (arrays or {}).items()}
        for name, rows in arrays.items():
            if rows.ndim != 2 or len(rows) != len(schedulers):
                raise RecordError(
                    f"array {name}: got shape {rows.shape}; expected a row for each of {len(schedulers)} candidates"
                )

        def score(index: int) -> float:
            try:
                state = self._idle.pop()
            except IndexError:
                state = ClusterState(self.tables, self._settings)
            record = rule_record(state)
            record.release(*record.given - arrays.keys())
            for name, rows in arrays.items():
                record.bind(name, rows[index])
            run_state(state, schedulers[index], self._seed)
            value = METRICS[metric](state)
            self._idle.append(state)
            return value

        return np.array(map_threads(score, range(len(schedulers)), self._threads))
