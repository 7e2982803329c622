"""State of a training run in one file, replaced atomically: kills leave a complete file."""

from __future__ import annotations

import hashlib
import json
import math
import reprlib
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from decima.core.errors import CheckpointError
from decima.core.files import atomic_path

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
