"""Replay of logged decisions instead of a scheduler.

A run is repeated exactly when workload, settings and seed are those of the logged one. The log answers whenever
executors are offered, also when the frontier is empty; there its rows say to idle.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from decima.exceptions import DataUnavailableError, InvalidDecisionError

if TYPE_CHECKING:
    from decima.simulator.state import ClusterState

#: (job, stage inside the job, limit); job and stage are None to leave the offered executors idle.
LoggedDecision = tuple[int | None, int | None, int]

_FORM = "expected [job, stage, limit], or a row of eight with these three at position 4"
_LARGEST_LIMIT = 2**31 - 1


def read_decisions(path: str | os.PathLike) -> list[LoggedDecision]:
    """Read logged decisions from JSON.

    Args:
        path: a list of rows, or an object with such a list under `decisions`, as result files have it. A row is
            `[job, stage, limit]`, or eight columns as the decision log has them.

    Raises:
        DataUnavailableError: there is no readable file.
        InvalidDecisionError: the content is not of that form; names the row.
    """
    path = Path(path)
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataUnavailableError(f"no decisions to read at {path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise InvalidDecisionError(f"{path} is not JSON text: {error}") from error
    rows = content.get("decisions") if isinstance(content, dict) else content
    if not isinstance(rows, list):
        raise InvalidDecisionError(f"{path}: expected a list of decisions, or an object with one under 'decisions'")
    return [_decision(f"{path}: decision {index}", row) for index, row in enumerate(rows)]


def replay(state: ClusterState, decisions: Sequence[LoggedDecision]) -> None:
    """Run a started state to its end by logged decisions.

    Raises:
        InvalidDecisionError: a decision cannot be carried out in the state it meets, or there are too few or too
            many of them.
        DeadlockError: the decisions parked every executor.
    """
    asked = 0
    while state.advance():
        if asked == len(decisions):
            raise InvalidDecisionError(
                f"the run asks for decision {asked} at {state.now_ms / 1000:.3f} s, but only {asked} are logged"
            )
        job, stage, limit = decisions[asked]
        state.decide(-1 if job is None else _stage_id(state, asked, job, stage), limit)
        asked += 1
    if asked < len(decisions):
        raise InvalidDecisionError(
            f"{len(decisions)} decisions are logged, but the run ended after {asked} at {state.now_ms / 1000:.3f} s"
        )


def _stage_id(state: ClusterState, index: int, job: int, stage: int) -> int:
    if job >= state.num_jobs:
        raise InvalidDecisionError(f"decision {index}: there is no job {job}; expected 0 to {state.num_jobs - 1}")
    first, end = (int(bound) for bound in state.job_first_stage[job : job + 2])
    if stage >= end - first:
        raise InvalidDecisionError(f"decision {index}: job {job} has no stage {stage}; expected 0 to {end - first - 1}")
    return first + stage


def _decision(where: str, row: Any) -> LoggedDecision:
    if not isinstance(row, list) or len(row) not in (3, 8):
        raise InvalidDecisionError(f"{where} is {json.dumps(row)}; {_FORM}")
    job, stage, limit = row if len(row) == 3 else row[4:7]
    idle = job is None and stage is None
    if not (idle or (_is_index(job) and _is_index(stage))) or not _is_index(limit) or limit > _LARGEST_LIMIT:
        raise InvalidDecisionError(
            f"{where} is [{json.dumps(job)}, {json.dumps(stage)}, {json.dumps(limit)}]; expected whole numbers of at "
            "least 0, job and stage null to idle"
        )
    return job, stage, limit


def _is_index(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
