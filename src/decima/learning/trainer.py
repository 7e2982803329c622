"""The training loop: iterations of any algorithm within a budget, validated, logged and resumable."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import reprlib
import time
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from decima.core.errors import CheckpointError, ConfigError, TrainingError
from decima.core.files import atomic_path, atomic_write_text, sole_use
from decima.learning.algorithms.interface import Algorithm, AlgorithmState
from decima.learning.configuration import Budget, Progress
from decima.learning.logs import TrainingLog

COMMAND = "command.json"  # in the folder of a run: the words of the call that began it
_BEST, _ALGORITHM = "best", "algorithm."
_RUN_COLUMNS = ("iteration", "wall_s", "cpu_s")


@dataclass(frozen=True)
class Score:
    """Outcome of a validation."""

    score: float  # the number that selects weights
    mode: str  # how the policy acted when it had this score, as ``"greedy"`` or ``"sampled"``
    row: dict[str, float]  # values by column


class Validation(Protocol):
    """Measurement of weights, as the trainer sees it.

    Attributes:
        columns: Columns of the curve.
        lower_is_better: Direction of the score.
    """

    columns: tuple[str, ...]
    lower_is_better: bool

    @property
    def references(self) -> dict[str, float]:
        """Scores of the heuristics or the like that the policy is compared with, by name."""

    def measure(self, weights: np.ndarray) -> Score:
        """Score of weights, float32 [parameters]."""


@dataclass(frozen=True)
class Trained:
    """Outcome of a run."""

    weights: np.ndarray  # float32 [parameters], the best at validation, the later of equal ones; the last without one
    score: float  # validation score of these weights, NaN if there was none
    mode: str | None  # how the policy acted when it had that score, as the validation calls it; None if there was none
    iteration: int  # after how many iterations
    iterations: int  # iterations of the run
    curve: list[dict]  # rows of the curve
    references: dict[str, float]  # scores that the validation is compared with, by name


class Trainer:
    """Runs an algorithm until its budget is used and keeps the best weights.

    What is trained, and by which algorithm, it does not know: :class:`decima.learning.run.TrainingRun` makes a trainer
    for a policy on the simulated cluster.

    Args:
        algorithm: What makes the weights better; closed at the end of :meth:`train`.
        validation: What measures them.
        budget: When to stop, to validate and to write checkpoints.
        folder: Where checkpoint and curve go.
        identity: What is trained and how, JSON values; a run is only resumed by one with the same identity.
        gone: By part of the identity, fields of earlier versions and their values that stand for what this one does.
        progress: Show a progress bar.
        tensorboard: Write TensorBoard events.
        command: Words of the call that begins the run; stored in the folder, next to the first checkpoint.

    Raises:
        ConfigError: The run would never stop, or algorithm and validation use the same name for a column.
    """

    def __init__(
        self,
        algorithm: Algorithm,
        validation: Validation,
        budget: Budget,
        folder: str | Path,
        *,
        identity: dict,
        gone: Mapping[str, Mapping[str, Any]] | None = None,
        progress: bool = False,
        tensorboard: bool = True,
        command: Sequence[str] | None = None,
    ) -> None:
        if not budget.has_stop:
            raise ConfigError("nothing ends the training: set iterations, wall_seconds or cpu_seconds")
        self.columns = (*_RUN_COLUMNS, *algorithm.columns, *validation.columns)
        if twice := sorted({name for name in self.columns if self.columns.count(name) > 1}):
            raise ConfigError(f"two parts of the training have a column {twice[0]!r}; expected different names")
        self.algorithm, self.validation, self.budget = algorithm, validation, budget
        self.folder = Path(folder)
        self._identity, self._gone = identity, gone or {}
        self._progress, self._tensorboard, self._command = progress, tensorboard, command
        self._best = algorithm.weights
        self._curve: list[dict] = []
        self._counters = {
            "iteration": 0,
            "wall_s": 0.0,
            "cpu_s": 0.0,
            "best_score": None,
            "best_mode": None,
            "best_iteration": 0,
        }

    @property
    def iterations(self) -> int:
        """Iterations done."""
        return self._counters["iteration"]

    # ---- the loop -----------------------------------------------------------------------------------------------

    def train(self, resume: bool = False) -> Trained:
        """Run to the end of the budget.

        Args:
            resume: Continue from the checkpoint in the folder; the result is that of a run without interruption.

        Raises:
            CheckpointError: The folder already holds a run (or, to resume, none or another one), another process
                trains in it, or it cannot be written.
            TrainingError: The algorithm failed, as with a gradient that is not finite; the last good checkpoint stays.
        """
        try:
            with contextlib.ExitStack() as held:
                self._lock(held)
                self._open(resume)
                options = {"tensorboard": self._tensorboard, "progress": self._progress}
                log = TrainingLog(self.folder, self.columns, self._curve, **options)
                self._loop(held.enter_context(contextlib.closing(log)))
        finally:
            self.algorithm.close()
        return self._outcome()

    def _loop(self, log: TrainingLog) -> None:
        """Run whole iterations until the budget is used; checkpoints fall between them."""
        self._start = time.perf_counter() - self._counters["wall_s"], time.process_time() - self._counters["cpu_s"]
        over = self._is_over()
        if not over and self.iterations == 0:
            self.algorithm.begin()
        good = self._checkpoint()
        try:
            while not over:
                row = self.algorithm.iterate(Progress(self.iterations, self.iterations, self._budget_used()))
                if undeclared := sorted(set(row) - set(self.columns)):
                    raise TrainingError(f"the algorithm gave a value for {undeclared[0]!r}, a column not declared")
                row = {"iteration": self.iterations} | row
                self._counters["iteration"] += 1
                over = self._is_over()
                row |= self._validate(over)
                self._clock()
                row |= {name: self._counters[name] for name in ("wall_s", "cpu_s")}
                self._curve.append(row)
                log.add(row, self._budget_used(), self.algorithm.headline, self._counters["best_score"])
                good = self._checkpoint()
                if self.iterations % self.budget.checkpoint_every == 0:
                    good.save(self.folder)
        except TrainingError as error:
            good.save(self.folder)
            kept = f"; the last good checkpoint is {self.folder / FILE_NAME}" if self._has_checkpoint() else ""
            raise TrainingError(f"iteration {self.iterations}: {error}{kept}") from error
        except KeyboardInterrupt:
            good.save(self.folder)
            raise
        good.save(self.folder)

    def _validate(self, over: bool) -> dict:
        """Columns of a validation if one is due; keep the weights if best so far."""
        if not (over or self.algorithm.at_milestone or self.iterations % self.budget.validate_every == 0):
            return {}
        weights = self.algorithm.weights
        scores = self.validation.measure(weights)
        if not math.isfinite(scores.score):
            raise TrainingError(f"the score at validation is {scores.score}; expected a finite number")
        best = self._counters["best_score"]
        # Of equal scores the later weights are kept: they have learned for longer.
        if best is None or (scores.score <= best if self.validation.lower_is_better else scores.score >= best):
            self._best = weights
            self._counters |= {"best_score": scores.score, "best_mode": scores.mode, "best_iteration": self.iterations}
        return scores.row

    # ---- time and budget ----------------------------------------------------------------------------------------

    def _clock(self) -> tuple[float, float]:
        self._counters["wall_s"] = time.perf_counter() - self._start[0]
        self._counters["cpu_s"] = time.process_time() - self._start[1]
        return self._counters["wall_s"], self._counters["cpu_s"]

    def _is_over(self) -> bool:
        return self.budget.is_over(self.iterations, *self._clock())

    def _budget_used(self) -> float:
        return self.budget.used(self.iterations, self._counters["wall_s"], self._counters["cpu_s"])

    # ---- checkpoints --------------------------------------------------------------------------------------------

    def _has_checkpoint(self) -> bool:
        return (self.folder / FILE_NAME).exists()

    def _checkpoint(self) -> Checkpoint:
        state = self.algorithm.state()
        arrays = {_BEST: self._best} | {_ALGORITHM + name: values for name, values in state.arrays.items()}
        counters = self._counters | {"algorithm": state.counters}
        return Checkpoint(self._identity, counters, arrays, list(self._curve))

    def _lock(self, held: contextlib.ExitStack) -> None:
        """Keep other processes out of the folder: two runs would overwrite each other's checkpoints."""
        try:
            alone = held.enter_context(sole_use(self.folder))
        except OSError as error:
            raise CheckpointError(f"cannot write {self.folder}: {error.strerror or error}") from error
        if not alone:
            raise CheckpointError(f"another process trains in {self.folder}: wait for it, or choose another folder")

    def _open(self, resume: bool) -> None:
        if not resume:
            if self._has_checkpoint():
                raise CheckpointError(
                    f"{self.folder} already holds a training run: resume it, or choose another folder"
                )
            if self._command is not None:
                try:
                    atomic_write_text(self.folder / COMMAND, json.dumps(list(self._command)))
                except OSError as error:
                    raise CheckpointError(f"cannot write {self.folder}: {error.strerror or error}") from error
            self._checkpoint().save(self.folder)
            return
        stored = Checkpoint.load(self.folder)
        for name, mine in self._identity.items():
            there, gone = stored.about.get(name), self._gone.get(name, {})
            if isinstance(there, dict):
                there = {key: value for key, value in there.items() if gone.get(key, ...) != value}
            if there != mine:
                raise CheckpointError(
                    f"cannot resume {self.folder}: its {name} is another one ({_difference(there, mine)})"
                )
        try:
            self._best = stored.arrays.pop(_BEST)
            arrays = {name.removeprefix(_ALGORITHM): values for name, values in stored.arrays.items()}
            self.algorithm.restore(AlgorithmState(arrays, stored.counters.pop("algorithm")))
        except (LookupError, TypeError, ValueError, TrainingError) as error:
            raise CheckpointError(
                f"cannot resume {self.folder}: its checkpoint does not have this release's format ({error!r})"
            ) from error
        if stored.counters.keys() != self._counters.keys() or stored.counters["iteration"] != len(stored.curve):
            raise CheckpointError(
                f"cannot resume {self.folder}: the checkpoint has counters {stored.counters} after {len(stored.curve)} "
                f"iterations; expected {', '.join(self._counters)}"
            )
        self._counters, self._curve = stored.counters, stored.curve

    def _outcome(self) -> Trained:
        counters = self._counters
        scored = counters["best_score"] is not None
        return Trained(
            self._best if scored else self.algorithm.weights,
            counters["best_score"] if scored else float("nan"),
            counters["best_mode"],
            counters["best_iteration"] if scored else counters["iteration"],
            counters["iteration"],
            self._curve,
            self.validation.references,
        )


def ratio(score: float, reference: float) -> float:
    """A score over that of a reference; NaN where that is 0."""
    return score / reference if reference else float("nan")


def _difference(stored, mine) -> str:
    if isinstance(stored, dict) and isinstance(mine, dict):
        for name in sorted(set(stored) | set(mine)):
            if stored.get(name) != mine.get(name):
                return f"{name} is {stored.get(name)!r} there, {mine.get(name)!r} here"
    return f"{stored!r} there, {mine!r} here"


# ---- state of a run in one file, replaced atomically: kills leave a complete file ------------------------------------


VERSION = 4  # 4: the version of the data belongs to what a resumed run must share
FILE_NAME = "checkpoint.npz"


@dataclass
class Checkpoint:
    """Everything that the next iteration depends on, except chance (a function of seed and iteration)."""

    about: dict  # what is trained and how: task, recipe, architecture, seed (JSON)
    counters: dict  # iteration, elapsed times, best validation and the like (JSON)
    # Best weights and whatever the algorithm keeps: weights, state of an optimiser, a replay memory.
    arrays: dict[str, np.ndarray]
    curve: list[dict] = field(default_factory=list)  # one row per iteration, numbers by column

    def save(self, folder: Path) -> None:
        """Write into the folder.

        Raises:
            CheckpointError: The file cannot be written; an earlier one is as it was.
        """
        path = folder / FILE_NAME
        text = json.dumps({"version": VERSION, "about": self.about, "counters": self.counters, "curve": self.curve})
        document = np.frombuffer(text.encode("utf-8"), dtype=np.uint8)
        checksum = np.frombuffer(_checksum(document, self.arrays), dtype=np.uint8)
        try:
            # Array by array, so that a large replay memory is not held twice.
            with atomic_path(path) as temporary, open(temporary, "wb") as file:
                np.savez(file, document=document, checksum=checksum, **self.arrays)
        except OSError as error:
            kept = "; the last good checkpoint is intact" if path.exists() else ""
            raise CheckpointError(f"cannot write {path}: {error.strerror or error}{kept}") from error

    @classmethod
    def load(cls, folder: Path) -> Checkpoint:
        """Read from the folder.

        Raises:
            CheckpointError: There is no checkpoint, or it is damaged, edited or of another version.
        """
        path = folder / FILE_NAME
        if not path.is_file():
            raise CheckpointError(f"cannot resume: there is no {path}")
        try:
            with zipfile.ZipFile(path) as content:
                _require_plain(content, path.stat().st_size)
            with open(path, "rb") as file, np.load(file, allow_pickle=False) as content:
                arrays = {name: content[name] for name in content.files}
            text = arrays.pop("document")
            document = json.loads(text.tobytes().decode("utf-8"))
            version = document["version"]
        except Exception as error:  # of damaged bytes, zipfile and numpy raise whatever comes of them
            raise CheckpointError(f"{path} is damaged or no checkpoint: {error!r:.200}") from error
        if version != VERSION:
            raise CheckpointError(
                f"{path} has version {reprlib.repr(version)}, expected {VERSION}: it is of another release"
            )
        checksum = arrays.pop("checksum", None)
        if checksum is None or checksum.tobytes() != _checksum(text, arrays):
            raise CheckpointError(f"{path} is damaged or was edited: its checksum is that of another content")
        return cls(document["about"], document["counters"], arrays, document["curve"])


def _checksum(document: np.ndarray, arrays: dict[str, np.ndarray]) -> bytes:
    digest = hashlib.sha256(document.tobytes())
    for name, values in sorted(arrays.items()):
        values = np.asarray(values)
        digest.update(repr((name, values.dtype.str, values.shape)).encode())
        digest.update(values.tobytes())
    return digest.digest()


def _require_plain(content: zipfile.ZipFile, size: int) -> None:
    """Refuse compressed entries and arrays longer than their data, which could exhaust the memory."""
    for entry in content.infolist():
        if entry.compress_type != zipfile.ZIP_STORED or entry.file_size > size:
            raise ValueError(f"entry {entry.filename!r:.60} is compressed")
        with content.open(entry) as file:
            major, _ = np.lib.format.read_magic(file)
            read = np.lib.format.read_array_header_1_0 if major == 1 else np.lib.format.read_array_header_2_0
            shape, _, dtype = read(file)
            if math.prod(shape) * dtype.itemsize > entry.file_size:
                raise ValueError(f"array {entry.filename!r:.60} has shape {shape}, but {entry.file_size} bytes")
