"""Scheduler that repeats the FIFO order of a real Spark in the simulator."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from decima.core.decision import CompiledDecision
from decima.systems.spark.fields import NONE, state_at
from decima.systems.spark.rules.choices import choose, choose_idle
from decima.systems.spark.rules.frontier import stage_room
from decima.systems.spark.schedulers import CompiledScheduler
from decima.systems.spark.schedulers.fields import rule_of, rule_record
from decima.systems.spark.state import ClusterState


@CompiledDecision.reading((), ("stage_rank",))
def _first_in_order(address):
    state = state_at(address)
    rank = rule_of(state).stage_rank
    best = NONE
    for stage in range(state.num_stages):
        if state.stage_in_frontier[stage] and (best == NONE or rank[stage] < rank[best]):
            best = stage
    if best == NONE:
        choose_idle(state)
    else:
        choose(state, best, min(stage_room(state, best), state.num_source))


class RecordedOrder(CompiledScheduler):
    """Scheduler that serves the first runnable stage in an order of all stages.

    Ordered by Spark job, then by Spark stage, this is Spark's FIFO, except that Spark decides anew after every task
    (see `measure.fidelity.variants.one_task_per_stage`).
    """

    def __init__(self, rank: Sequence[float]) -> None:
        super().__init__("recorded_order", _first_in_order)
        self.rank = np.asarray(rank, dtype=np.float64)

    def bind(self, state: ClusterState) -> None:
        """Hand the order to a state before its run starts.

        Raises:
            RecordError: there is not one rank per stage of the workload.
        """
        rule_record(state).bind("stage_rank", self.rank)
        super().bind(state)
