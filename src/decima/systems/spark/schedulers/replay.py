"""Replay of logged decisions.

A run is repeated exactly when workload, settings and seed are those of the logged one. The log has a row for every
offer of executors, also where no stage could be chosen; there a run idles without asking, and the row must say so.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from decima.core.checks import LARGEST_MS, is_number
from decima.core.errors import ConfigError, DataUnavailableError, InvalidDecisionError
from decima.core.files import read_json
from decima.core.grammar import Option
from decima.systems.spark import decision
from decima.systems.spark.schedulers.interface import Decision, Observation
from decima.systems.spark.schedulers.registry import register

if TYPE_CHECKING:
    from decima.systems.spark.state import ClusterState

#: (job, stage inside the job, limit, ...); job and stage are None to leave the offered executors idle.
LoggedDecision = tuple[float | None, ...]

_ROW = ("job", *(part.name for part in decision.PARTS))
# Numbers of entries that a row may have. Parts that came later are missing in older files: they have their defaults.
_SHORT, _LOGGED = range(decision.LIMIT + 2, len(_ROW) + 1), range(decision.USED_COLUMN + 1, decision.NUM_COLUMNS + 1)
_FORM = (
    f"expected [{', '.join(_ROW[: _SHORT[0]])}] and if wanted {' and '.join(_ROW[_SHORT[0] :])}, or the columns of "
    f"a log: {', '.join(decision.DECISION_COLUMNS)}"
)
_LARGEST = 2**31 - 1


def read_decisions(path: str | os.PathLike) -> list[LoggedDecision]:
    """Read logged decisions from JSON.

    Args:
        path: a list of rows, or an object with such a list under `decisions`, as result files have it. A row is
            `[job, stage, limit]` with further parts of a decision behind (`delay_ms`), or the columns of the decision
            log. Missing parts have their defaults.

    Raises:
        DataUnavailableError: there is no readable file.
        InvalidDecisionError: the content is not of that form; names the row.
    """
    path = Path(path)
    try:
        content = read_json(path)
    except OSError as error:
        raise DataUnavailableError(f"no decisions to read at {path}: {error.strerror}") from error
    except ValueError as error:
        raise InvalidDecisionError(f"{path} is not JSON text: {error}") from error
    rows = content.get("decisions") if isinstance(content, dict) else content
    if not isinstance(rows, list):
        raise InvalidDecisionError(f"{path}: expected a list of decisions, or an object with one under 'decisions'")
    return [_decision(f"{path}: decision {index}", row) for index, row in enumerate(rows)]


class Replay:
    """Scheduler that repeats the decisions of a file; a context manager checks completeness.

    Args:
        file: What :func:`read_decisions` reads.

    Raises:
        DataUnavailableError: There is no readable file.
        InvalidDecisionError: The content is not of the right form.
    """

    name = "replay"

    def __init__(self, file: str | os.PathLike) -> None:
        self.values = {"file": str(file)}
        self._decisions = read_decisions(file)
        self._next = 0
        self._state: ClusterState | None = None

    def reset(self, rng: np.random.Generator) -> None:
        """Begin anew with the first decision."""
        self._next = 0

    def decide(self, observation: Observation) -> Decision:
        """Give the logged decision.

        Raises:
            InvalidDecisionError: Nothing is logged for this offer, or there is no such stage.
        """
        state = self._state = observation.state
        asked = int(state.num_decisions)
        self._pass_over(asked)
        if asked >= len(self._decisions):
            raise self._error(self._too_few(asked))
        self._next = asked + 1
        job, stage, *options = self._decisions[asked]
        if job is None:
            return Decision.idle()
        chosen = {part.attribute: value for part, value in zip(decision.OPTION_PARTS, options, strict=True)}
        return Decision(self._stage_id(state, asked, job, stage), **chosen)

    def __enter__(self) -> Replay:
        return self

    def __exit__(self, error_type, *_) -> None:
        if error_type is not None or self._state is None:
            return
        taken = int(self._state.num_decisions)
        self._pass_over(taken)
        if taken > len(self._decisions):
            raise self._error(self._too_few(taken - 1))
        if taken < len(self._decisions):
            raise self._error(
                f"{len(self._decisions)} decisions are logged, but the run ended after {taken} at "
                f"{self._state.now_ms / 1000:.3f} s"
            )

    def _pass_over(self, end: int) -> None:
        for index, (job, stage, *_) in enumerate(self._decisions[self._next : end], self._next):
            if job is not None:
                self._stage_id(self._state, index, job, stage)
                raise self._error(f"decision {index}: cannot choose stage {stage} of job {job}; no stage can be chosen")
        self._next = end

    def _too_few(self, asked: int) -> str:
        return (
            f"the run asks for decision {asked} at {self._state.now_ms / 1000:.3f} s, but only {len(self._decisions)} "
            "are logged"
        )

    def _stage_id(self, state: ClusterState, index: int, job: int, stage: int) -> int:
        if job >= state.num_jobs:
            raise self._error(f"decision {index}: there is no job {job}; expected 0 to {state.num_jobs - 1}")
        first, end = (int(bound) for bound in state.job_first_stage[job : job + 2])
        if stage >= end - first:
            raise self._error(f"decision {index}: job {job} has no stage {stage}; expected 0 to {end - first - 1}")
        return first + stage

    def _error(self, message: str) -> InvalidDecisionError:
        return InvalidDecisionError(f"{self.values['file']}: {message}")


@register("replay", options=[Option("file", "result file of 'decima simulate', or a list of decisions", required=True)])
def replay(file: str | os.PathLike | None = None, **unknown) -> Replay:
    """Logged decisions of another run, followed one by one."""
    if file is None or unknown:
        raise ConfigError("scheduler 'replay' follows logged decisions; expected their file: replay:FILE")
    return Replay(file)


def _decision(where: str, row: Any) -> LoggedDecision:
    if not isinstance(row, list) or (len(row) not in _SHORT and len(row) not in _LOGGED):
        raise InvalidDecisionError(f"{where} is {json.dumps(row)}; {_FORM}")
    if len(row) in _LOGGED:
        row = [row[column] for column in (decision.JOB_COLUMN, *decision.PART_COLUMNS) if column < len(row)]
    job, stage, *parts = row
    options = [*parts, *decision.DEFAULTS[1 + len(parts) :]]
    for index, part in enumerate(decision.OPTION_PARTS):
        if options[index] is None and part.column in decision.NONE_COLUMNS:
            options[index] = part.default
    idle = job is None and stage is None
    valid = all(
        (_is_option(value) if part.whole else _is_time(value)) or value == part.default
        for part, value in zip(decision.OPTION_PARTS, options, strict=True)
    )
    if not (valid and (idle or (_is_index(job) and _is_index(stage)))):
        shown = ", ".join(map(json.dumps, (job, stage, *parts)))
        raise InvalidDecisionError(
            f"{where} is [{shown}]; expected whole numbers of at least 0 (a delay: any such number), "
            "job and stage null to idle"
        )
    return job, stage, *options


def _is_option(value: Any) -> bool:
    return _is_index(value) and value <= _LARGEST


def _is_time(value: Any) -> bool:
    return is_number(value) and 0 <= value <= LARGEST_MS


def _is_index(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
