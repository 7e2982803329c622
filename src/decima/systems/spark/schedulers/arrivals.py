"""Schedulers whose default is one form for batches and another for jobs that arrive over time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from decima.systems.spark.schedulers.interface import CompiledScheduler, Decision, Observation
from decima.workload.jobs import Workload

if TYPE_CHECKING:
    # Rules of heuristics must not be compiled anew whenever the simulator is edited.
    from decima.systems.spark.state import ClusterState

BATCH, STREAM = "batch", "stream"


class ByArrivals(CompiledScheduler):
    """Two forms of one compiled scheduler, of which a run gets the one for its kind of arrivals.

    Args:
        name: Name in the registry.
        batch: The form for jobs that are all there at the start.
        stream: The form for jobs of which some arrive later. Its compiled function is that of the other form.
        values: What was chosen for both, by name.
    """

    def __init__(
        self, name: str, batch: CompiledScheduler, stream: CompiledScheduler, values: Mapping[str, Any]
    ) -> None:
        self.name = name
        self.decision = batch.decision
        self.values = dict(values)
        self.forms = {BATCH: batch, STREAM: stream}
        self._bound = None

    def __repr__(self) -> str:
        return f"ByArrivals({self.forms[BATCH]!r}, {self.forms[STREAM]!r})"

    def of(self, *, streaming: bool) -> CompiledScheduler:
        """The form for one kind of arrivals."""
        return self.forms[STREAM if streaming else BATCH]

    def form_for(self, jobs: Workload | Iterable[Workload] | bool) -> CompiledScheduler:
        """The form on some jobs, see :func:`decima.core.system.form_for`."""
        if isinstance(jobs, bool):
            return self.of(streaming=jobs)
        workloads = [jobs] if isinstance(jobs, Workload) else jobs
        return self.of(streaming=any((each.arrival_ms[~each.initial] > 0.0).any() for each in workloads))

    def _of(self, state: ClusterState) -> CompiledScheduler:
        return self.of(streaming=bool(np.any(state.job_arrival_ms > 0.0)))

    def bind(self, state: ClusterState) -> None:
        """Hand what the form for the state's jobs needs to the state; see the form."""
        self._of(state).bind(state)

    def reset(self, rng: np.random.Generator) -> None:
        """Forget the last run."""
        for form in self.forms.values():
            form.reset(rng)

    def decide(self, observation: Observation) -> Decision:
        """Make the decision of the form for the observed jobs."""
        return self._of(observation.state).decide(observation)
