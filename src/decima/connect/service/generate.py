"""Generator of the protocol's Python code; `python -m decima.connect.service.generate` runs it."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from decima.core.errors import ConfigError
from decima.core.files import atomic_write_text

_HERE = Path(__file__).parent
_SOURCES = _HERE.parents[1]
PROTO = _HERE / "scheduler.proto"
_HEADER = "# ruff: noqa\n"


def generated_files() -> dict[str, str]:
    """Content of the generated modules by file name.

    Raises:
        ConfigError: The protocol is not valid; the compiler's words are on stderr.
    """
    with tempfile.TemporaryDirectory() as folder:
        outputs = [f"--{output}_out={folder}" for output in ("python", "pyi")]
        # In a process of its own: the compiler and TensorFlow, each with a protobuf of its own, crash in one.
        command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{_SOURCES}", *outputs, str(PROTO)]
        if subprocess.run(command, check=False).returncode != 0:
            raise ConfigError(f"protoc refused {PROTO}")
        paths = sorted(Path(folder).rglob("scheduler_pb2*"))
        return {path.name: _HEADER + path.read_text(encoding="utf-8") for path in paths}


if __name__ == "__main__":
    for name, text in generated_files().items():
        atomic_write_text(_HERE / name, text)
