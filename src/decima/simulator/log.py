"""Log of a run, task by task and decision by decision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from decima.simulator.decision import DECISION_COLUMNS, NONE_COLUMNS

if TYPE_CHECKING:
    import pandas

    from decima.simulator.state import ClusterState

WAVE_NAMES = ("fresh", "first", "rest")


@dataclass(frozen=True, eq=False)
class EpisodeLog:
    """Log of one run; a copy, independent of the state it came from."""

    job: np.ndarray  # int32 [tasks], in order of launch
    stage: np.ndarray  # int32 [tasks], index inside the job
    executor: np.ndarray  # int32 [tasks]
    wave: np.ndarray  # int32 [tasks], 0 fresh, 1 first, 2 rest
    start_ms: np.ndarray  # float64 [tasks]
    finish_ms: np.ndarray  # float64 [tasks]
    decisions: np.ndarray  # float64 [decisions, columns], columns of ``DECISION_COLUMNS``, -1 for none

    @classmethod
    def of_state(cls, state: ClusterState) -> EpisodeLog:
        """Copy the logs of a state that has run with both logs on."""
        count = state.num_tasks_logged
        stage = state.task_stage[:count]
        job = state.stage_job[stage]
        return cls(
            job=job,
            stage=stage - state.job_first_stage[job],
            executor=state.task_executor[:count].copy(),
            wave=state.task_wave[:count].copy(),
            start_ms=state.task_start_ms[:count].copy(),
            finish_ms=state.task_finish_ms[:count].copy(),
            decisions=state.logged_decisions.copy(),
        )

    def tasks(self) -> pandas.DataFrame:
        """Table with one row per task: job, stage, executor, wave, start_s, finish_s."""
        import pandas

        return pandas.DataFrame(
            {
                "job": self.job,
                "stage": self.stage,
                "executor": self.executor,
                "wave": pandas.Categorical.from_codes(self.wave, WAVE_NAMES),
                "start_s": self.start_ms / 1000.0,
                "finish_s": self.finish_ms / 1000.0,
            }
        )

    def decision_lists(self) -> list[list]:
        """Write decisions as the reference runs do: a list per decision, with None where there is no job or stage."""
        maybe = [name in NONE_COLUMNS for name in DECISION_COLUMNS[1:]]
        return [
            [row[0]] + [None if none and value < 0 else int(value) for none, value in zip(maybe, row[1:], strict=True)]
            for row in self.decisions.tolist()
        ]
