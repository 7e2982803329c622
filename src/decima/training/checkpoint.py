"""The state of a training run in one file, replaced atomically: a killed run leaves the old or the new one."""

from __future__ import annotations

import json
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from decima.exceptions import CheckpointError
from decima.files import atomic_path

VERSION = 2
FILE_NAME = "checkpoint.npz"


@dataclass
class Checkpoint:
    """Everything that the next iteration depends on. Chance is not here: it is a function of seed and iteration."""

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
        try:
            # Array by array, so that a large replay memory is not held twice.
            with atomic_path(path) as temporary, open(temporary, "wb") as file:
                np.savez(file, document=document, **self.arrays)
        except OSError as error:
            kept = "; the last good checkpoint is intact" if path.exists() else ""
            raise CheckpointError(f"cannot write {path}: {error.strerror or error}{kept}") from error

    @classmethod
    def load(cls, folder: Path) -> Checkpoint:
        """Read from the folder.

        Raises:
            CheckpointError: There is no checkpoint, or it is damaged or of another version.
        """
        path = folder / FILE_NAME
        if not path.is_file():
            raise CheckpointError(f"cannot resume: there is no {path}")
        try:
            with open(path, "rb") as file, np.load(file, allow_pickle=False) as content:
                arrays = {name: content[name] for name in content.files}
            document = json.loads(arrays.pop("document").tobytes().decode("utf-8"))
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
            raise CheckpointError(f"{path} is damaged or no checkpoint: {error}") from error
        if document.get("version") != VERSION:
            raise CheckpointError(f"{path} has version {document.get('version')!r}, expected {VERSION}")
        return cls(document["about"], document["counters"], arrays, document["curve"])
