"""Logs that a training run writes while it runs: curve.csv, TensorBoard events, a progress bar."""

import csv
import io
import time
from collections.abc import Sequence
from importlib.util import find_spec
from numbers import Real
from pathlib import Path

import numpy as np

from decima.core.errors import CheckpointError
from decima.core.files import atomic_write_text
from decima.core.progress import progress_bar

CURVE_NAME = "curve.csv"
EVENTS_NAME = "events"


class EventFile:
    """Numbers of iterations as TensorBoard reads them; TensorFlow is not needed.

    Args:
        folder: Where to write; every run and every resumed run has a file of its own there.

    Raises:
        CheckpointError: It cannot be written.
    """

    def __init__(self, folder: Path) -> None:
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary
        from tensorboard.summary.writer.record_writer import RecordWriter

        self._event, self._summary = Event, Summary
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._file = open(folder / f"events.out.tfevents.{time.time_ns()}", "wb")  # noqa: SIM115  closed by close
        except OSError as error:
            raise CheckpointError(f"cannot write {folder}: {error.strerror or error}") from error
        self._writer = RecordWriter(self._file)
        self._writer.write(Event(wall_time=time.time(), file_version="brain.Event:2").SerializeToString())

    def add(self, row: dict) -> None:
        """Write the numbers of an iteration by column; what float32 cannot hold becomes infinite."""
        numbers_of = {name: value for name, value in row.items() if name != "iteration" and isinstance(value, Real)}
        with np.errstate(over="ignore"):
            values = [
                self._summary.Value(tag=name, simple_value=float(np.float32(value)))
                for name, value in numbers_of.items()
            ]
        event = self._event(wall_time=time.time(), step=row["iteration"], summary=self._summary(value=values))
        self._writer.write(event.SerializeToString())
        self._writer.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class TrainingLog:
    """Rows of the curve, on disk and on the terminal.

    Args:
        folder: Where to write.
        columns: Columns of the curve; a value that an iteration does not have is left empty.
        rows: Rows of the run so far; a file with other rows is replaced.
        tensorboard: Write TensorBoard events too, where it is installed.
        progress: Show a progress bar.
    """

    def __init__(
        self,
        folder: Path,
        columns: Sequence[str],
        rows: list[dict],
        *,
        tensorboard: bool = True,
        progress: bool = False,
    ) -> None:
        self._path = folder / CURVE_NAME
        self._columns = columns
        self._write(rows, anew=True)
        self._events = None
        if tensorboard and find_spec("tensorboard") is not None:
            self._events = EventFile(folder / EVENTS_NAME)
        self._bar = progress_bar("train", 1.0, share=True) if progress else None

    def _write(self, rows: list[dict], *, anew: bool) -> None:
        """Write rows to the curve, behind those that it has or as all there are."""
        text = io.StringIO()
        writer = csv.DictWriter(text, self._columns, restval="", lineterminator="\n")
        if anew:
            writer.writeheader()
        writer.writerows(rows)
        try:
            if anew:
                atomic_write_text(self._path, text.getvalue())
            else:
                with open(self._path, "a", encoding="utf-8", newline="") as file:
                    file.write(text.getvalue())
        except OSError as error:
            raise CheckpointError(f"cannot write {self._path}: {error.strerror or error}") from error

    def add(self, row: dict, budget_used: float, headline: str = "", best: float | None = None) -> None:
        """Write the row of one more iteration.

        Args:
            row: Values by column.
            budget_used: Share of the budget that is used, 0 to 1.
            headline: Column that the bar shows, where the row has it.
            best: Best score at validation so far, for the bar.
        """
        self._write([row], anew=False)
        if self._events is not None:
            self._events.add(row)
        if self._bar is not None:
            shown = {"iteration": row["iteration"] + 1}
            if headline in row:
                shown[headline] = f"{row[headline]:.1f}"
            if best is not None:
                shown["best"] = f"{best:.2f}"
            self._bar.set_postfix(shown, refresh=False)
            self._bar.update(budget_used - self._bar.n)

    def close(self) -> None:
        """Finish the files and the bar."""
        if self._events is not None:
            self._events.close()
        if self._bar is not None:
            self._bar.close()
