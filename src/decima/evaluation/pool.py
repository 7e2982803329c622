"""Many runs on the same workload or workloads, prepared once and distributed to workers."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np

from decima.core.checks import checked_seeds
from decima.core.errors import ConfigError, RecordError
from decima.core.objectives import Objective, Outcome
from decima.core.progress import progress_bar
from decima.core.system import (
    SystemScheduler,
    SystemSettings,
    SystemWorkload,
    objective_of,
    require_workload,
    system_of,
)
from decima.evaluation.workers import ThreadWorkers, make_workers

UNFINISHED = "unfinished"  # column of the number of unfinished jobs
TO_COME = "to_come"  # column of the number of jobs among them that had not arrived when the run was cut
DRAWN = "drawn"  # name of what says whether a run took chance


class _Runs:
    """Function from a workload's index and schedulers to the outcomes of their runs on it."""

    def __init__(
        self, workloads: Sequence[SystemWorkload], settings: SystemSettings, seeds: Sequence[int], keep: bool
    ) -> None:
        self._workloads, self._settings, self._seeds, self._keep = workloads, settings, seeds, keep
        self._states: dict[int, object] = {}

    def __getstate__(self) -> dict:
        return self.__dict__ | {"_states": {}}

    def __call__(self, item: tuple[int, Sequence[SystemScheduler]]) -> list[Outcome]:
        index, schedulers = item
        system = system_of(self._settings)
        state = self._states.get(index)
        if state is None:
            state = system.state(system.tables(self._workloads[index], self._settings), self._settings)
            if self._keep:
                self._states[index] = state
        outcomes = []
        for scheduler in schedulers:
            system.run(state, scheduler, self._seeds[index])
            outcomes.append(system.outcome(state))
        return outcomes


class RunPool:
    """Workloads on one cluster, ready for repeated runs.

    Args:
        workloads: W workloads, at least one.
        settings: The cluster, or the settings of another system.
        seeds: One seed per workload, 0..W-1 by default. Every scheduler meets the same seed on a workload, so that
            differences between schedulers are paired.
        workers: Workers, all cores by default. Results do not depend on it.
        backend: Where the workers are, see :func:`decima.evaluation.workers.make_workers`. Results do not depend on it.
        keep: Keep the states between calls; costs memory, saves their set-up.

    Raises:
        ConfigError: There is no workload, or the number of seeds differs.
    """

    def __init__(
        self,
        workloads: Sequence[SystemWorkload],
        settings: SystemSettings,
        *,
        seeds: Sequence[int] | None = None,
        workers: int | None = None,
        backend: str | None = None,
        keep: bool = True,
    ) -> None:
        self.system = system_of(settings)
        self.workloads = list(workloads)
        if not self.workloads:
            raise ConfigError("no workload given; expected at least one")
        for workload in self.workloads:
            require_workload(self.system, workload)
        self.seeds = list(range(len(self.workloads))) if seeds is None else checked_seeds(seeds)
        if len(self.seeds) != len(self.workloads):
            raise ConfigError(f"{len(self.seeds)} seeds for {len(self.workloads)} workloads; expected one each")
        self.settings = settings
        self._runs = _Runs(self.workloads, settings, self.seeds, keep)
        self._workers = make_workers(self._runs, backend, workers)

    def __len__(self) -> int:
        return len(self.workloads)

    def __enter__(self) -> RunPool:
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def close(self) -> None:
        """Free the workers; the pool can be used again."""
        self._workers.close()

    def measure(
        self,
        schedulers: Sequence[SystemScheduler],
        metrics: Sequence[str | Objective] = ("avg_jct",),
        *,
        progress: str | None = None,
    ) -> dict[str, np.ndarray]:
        """Run every scheduler on every workload.

        Args:
            schedulers: S schedulers. Those that may serve several runs at once (compiled ones) are run by the workers,
                others here, one run after the other: a user's object may keep notes about its run.
            metrics: Names of objectives.
            progress: Label of a progress bar; None for no bar.

        Returns:
            Scores, float64 [S, W], by column of the objective (``avg_jct_s``), and under ``unfinished`` and
            ``to_come``, int64 [S, W], the number of jobs that a time limit left unfinished, and of those among them
            that had not arrived. Runs that were cut are scored by :meth:`decima.core.objectives.Objective.measure`.
            Under ``drawn``, bool [S, W], whether the run took chance.

        Raises:
            ConfigError: There is no scheduler, or no objective of a name.
        """
        if not schedulers:
            raise ConfigError("no scheduler given; expected at least one")
        objectives = [objective_of(self.system, metric) for metric in metrics]
        shape = len(schedulers), len(self)
        values = {each.column: np.full(shape, np.nan) for each in objectives}
        values |= {name: np.zeros(shape, dtype=np.int64) for name in (UNFINISHED, TO_COME)}
        values[DRAWN] = np.ones(shape, dtype=bool)
        together = [row for row, scheduler in enumerate(schedulers) if getattr(scheduler, "concurrent", False)]
        apart = [row for row in range(len(schedulers)) if row not in together]
        with progress_bar(progress, len(self) * len(schedulers), "run") as bar:
            for rows, workers in ((together, self._workers), (apart, ThreadWorkers(self._runs, 1))):
                if not rows:
                    continue
                items = [(index, [schedulers[row] for row in rows]) for index in range(len(self))]
                done = itertools.count()

                def keep(column: list[Outcome], rows=rows, done=done) -> None:
                    index = next(done)
                    for row, outcome in zip(rows, column, strict=True):
                        for each in objectives:
                            values[each.column][row, index] = each.measure(outcome)
                        values[UNFINISHED][row, index] = outcome.num_unfinished
                        values[TO_COME][row, index] = outcome.num_to_come
                        values[DRAWN][row, index] = getattr(schedulers[row], "draws", row in apart or outcome.drawn)
                    if progress is not None:
                        means = values[objectives[0].column][rows, : index + 1].mean(axis=1)
                        named = [schedulers[row].name for row in rows]
                        bar.set_postfix_str(_best(objectives[0], named, means), refresh=False)
                    bar.update(len(rows))

                workers.map(items, keep)
        return values


def _best(objective: Objective, names: Sequence[str], means: np.ndarray) -> str:
    """Name and mean score of the best scheduler, or "" if all scores are NaN."""
    if np.isnan(means).all():
        return ""
    row = int(np.nanargmin(objective.loss(means)))
    return f"best {names[row]} {objective.shown(means[row])}"


class _Candidates:
    """Function from a scheduler and named arrays to its run on one workload and seed."""

    def __init__(self, workload: SystemWorkload, settings: SystemSettings, seed: int) -> None:
        self._workload, self._settings, self._seed = workload, settings, seed
        self._forget()

    def _forget(self) -> None:
        self.tables = system_of(self._settings).tables(self._workload, self._settings)
        self._idle: list = []

    def __getstate__(self) -> dict:
        return {name: self.__dict__[name] for name in ("_workload", "_settings", "_seed")}

    def __setstate__(self, values: dict) -> None:
        self.__dict__ |= values
        self._forget()

    def __call__(self, item: tuple[SystemScheduler, Mapping[str, np.ndarray]]) -> Outcome:
        scheduler, arrays = item
        system = system_of(self._settings)
        try:
            state = self._idle.pop()  # no other thread has it
        except IndexError:
            state = system.state(self.tables, self._settings)
        system.give(state, arrays)
        system.run(state, scheduler, self._seed)
        outcome = system.outcome(state)
        self._idle.append(state)
        return outcome


class CandidatePool:
    """Pool that runs candidate schedules of one workload and seed, each on a private state.

    Args:
        workload: What to run.
        settings: The cluster.
        seed: Source of durations; without effect on mean durations.
        workers: Workers, all cores by default. Results do not depend on it.
        backend: Where the workers are, see :func:`decima.evaluation.workers.make_workers`. Results do not depend on it.
    """

    def __init__(
        self,
        workload: SystemWorkload,
        settings: SystemSettings,
        *,
        seed: int = 0,
        workers: int | None = None,
        backend: str | None = None,
    ) -> None:
        self._system = system_of(settings)
        self._candidates = _Candidates(workload, settings, seed)
        self._workers = make_workers(self._candidates, backend, workers)

    @property
    def tables(self):
        """What all runs share."""
        return self._candidates.tables

    def close(self) -> None:
        """Free the workers; the pool can be used again."""
        self._workers.close()

    def scores(
        self,
        schedulers: Sequence[SystemScheduler],
        arrays: Mapping[str, np.ndarray] | None = None,
        *,
        metric: str | Objective = "avg_jct",
    ) -> np.ndarray:
        """Score N candidates.

        Args:
            schedulers: One scheduler per candidate, by name or as an object; compiled ones for more than one worker.
            arrays: Float64 [N, length of the array] by name, see :meth:`decima.core.system.System.give`; each candidate
                gets its row. Of the Spark cluster they are the bound arrays of :mod:`.fields`.
            metric: Name of an objective.

        Returns:
            float64 [N].

        Raises:
            RecordError: An array is unknown, or has not one row of the right length per candidate.
        """
        objective = objective_of(self._system, metric)
        schedulers = [self._system.make_scheduler(scheduler) for scheduler in schedulers]
        rows = {}
        for name, values in (arrays or {}).items():
            try:
                rows[name] = np.asarray(values)
                got = f"shape {rows[name].shape}"
            except ValueError:
                got = "rows of different lengths"
            if name not in rows or rows[name].ndim != 2 or len(rows[name]) != len(schedulers):
                raise RecordError(f"array {name}: got {got}; expected a row for each of {len(schedulers)} candidates")
        items = [
            (scheduler, {name: values[index] for name, values in rows.items()})
            for index, scheduler in enumerate(schedulers)
        ]
        return np.array([objective.measure(outcome) for outcome in self._workers.map(items)])
