"""Files of Spark event logs: where they are, and their lines, compressed or not.

A log is one file, or a folder `eventlog_v2_<application>` of rolled files `events_<number>_<application>`. The
compression is told from the first bytes of a file, so renamed and unfinished (`.inprogress`) files are read, too.
The block formats that Spark writes with lz4 and snappy differ from these libraries' own.

Source: `LZ4BlockOutputStream` of lz4-java and `SnappyOutputStream` of snappy-java.
"""

from __future__ import annotations

import gzip
import io
import os
import re
import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import cramjam

from decima.core.errors import ConfigError, DataUnavailableError, EventLogError

MAX_LINE_BYTES = 256 * 2**20
_ROLLED = re.compile(r"events_(\d+)_.+")
_FIRST_EVENT = re.compile(rb'\s*\{\s*"Event"')
_CHUNK_BYTES = 2**18
_ZSTD, _LZ4, _SNAPPY, _GZIP, _LZF = b"\x28\xb5\x2f\xfd", b"LZ4Block", b"\x82SNAPPY\x00", b"\x1f\x8b", b"ZV"


@dataclass(frozen=True)
class LogFiles:
    """Files that make up the event log of one application."""

    path: Path  # what the user would call the log: a file or an `eventlog_v2_` folder
    files: tuple[Path, ...]  # to be read in this order
    compacted: bool = False  # Spark removed events of finished jobs from the first files ("compaction")

    @property
    def size(self) -> int:
        """Bytes of all files; 0 for those that are gone."""
        return sum(path.stat().st_size for path in self.files if path.exists())


@dataclass
class Damage:
    """Record of what could not be read of a log."""

    # Per damaged file, what went wrong; the lines before the damage were read.
    files: dict[str, str] = field(default_factory=dict)
    long_lines: int = 0  # lines of more than `MAX_LINE_BYTES`, which were left out
    cut_line: bool = False  # the last line of a file has no end, as when Spark was killed while writing it


def find_logs(paths: Iterable[str | os.PathLike]) -> list[LogFiles]:
    """Find the logs behind paths: files, `eventlog_v2_` folders, or folders that hold some of these.

    Files in folders that do not begin like a log are passed over.

    Raises:
        DataUnavailableError: a path does not exist, or a folder holds no log.
        ConfigError: a path is neither a file nor a folder.
    """
    logs: list[LogFiles] = []
    for path in map(Path, paths):
        if path.is_file():
            logs.append(LogFiles(path, (path,)))
        elif path.is_dir():
            logs += [_rolled(path)] if _rolled_files(path) else _inside(path)
        elif path.exists():
            raise ConfigError(f"cannot read {path}: it is neither a file nor a folder")
        elif address := re.match(r"(\w{2,}):/+", str(path)):
            why = f"{address[1]}:// is no folder of this machine; copy the logs here first"
            raise DataUnavailableError(f"no event log at {path}: {why}")
        else:
            raise DataUnavailableError(f"no event log at {path}")
    return list({log.path.resolve(): log for log in logs}.values())


def read_lines(log: LogFiles, damage: Damage, progress: Callable[[int], object] = lambda size: None) -> Iterator[bytes]:
    """Read the lines of a log with their line ends; `damage` lists unreadable parts.

    `progress` is called with the bytes that were read, of a compressed file with all at its end.

    Raises:
        DataUnavailableError: a file cannot be opened or read.
        EventLogError: a file is compressed in a way that is not supported.
    """
    for path in log.files:
        try:
            with _open(path, damage) as stream:
                left = path.stat().st_size
                plain = not isinstance(stream.raw, _Chunks)
                for line in _lines(stream, damage):
                    yield line
                    if plain:
                        progress(len(line))
                        left -= len(line)
                progress(left)
        except OSError as error:
            raise DataUnavailableError(f"cannot read {path}: {error.strerror or error}") from error


def _lines(stream: io.BufferedIOBase, damage: Damage) -> Iterator[bytes]:
    long = False
    line = b""
    while piece := stream.readline(MAX_LINE_BYTES):
        whole = piece.endswith(b"\n")
        if long or (not whole and len(piece) == MAX_LINE_BYTES):
            damage.long_lines += not long
            long = not whole
            continue
        line = piece
        yield line
    damage.cut_line |= bool(line) and not line.endswith(b"\n")


def _rolled_files(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if _ROLLED.fullmatch(path.name) and not path.name.endswith(".crc")]


def _rolled(folder: Path) -> LogFiles:
    numbered = sorted(
        (int(_ROLLED.fullmatch(path.name)[1]), path.name.endswith(".compact"), path) for path in _rolled_files(folder)
    )
    # A compacted file stands for itself and all files before it.
    compacted = [index for index, (_, compact, _) in enumerate(numbered) if compact]
    first = compacted[-1] if compacted else 0
    return LogFiles(folder, tuple(path for *_, path in numbered[first:]), bool(compacted))


def _inside(folder: Path) -> list[LogFiles]:
    logs: list[LogFiles] = []
    for path in sorted(folder.iterdir()):
        if path.is_dir() and _rolled_files(path):
            logs.append(_rolled(path))
        elif (
            path.is_file()
            and not path.name.startswith((".", "_", "appstatus_"))
            and not path.name.endswith(".crc")
            and _begins_like_a_log(path)
        ):
            logs.append(LogFiles(path, (path,)))
    if not logs:
        raise DataUnavailableError(f"no event log in the folder {folder}")
    return logs


def _begins_like_a_log(path: Path) -> bool:
    with open(path, "rb") as file:
        head = file.read(64)
    return head.startswith((_ZSTD, _LZ4, _SNAPPY, _GZIP, _LZF)) or bool(_FIRST_EVENT.match(head))


def _open(path: Path, damage: Damage) -> io.BufferedReader:
    with open(path, "rb") as raw:
        head = raw.read(8)
    if head.startswith(_LZF):
        raise EventLogError(
            f"{path} is compressed with lzf, which is not supported; write it anew with "
            "spark.eventLog.compression.codec=zstd (lz4, snappy, gzip and plain text are read, too)"
        )
    if head.startswith(_ZSTD):
        chunks = _zstd(path)
    elif head.startswith(_LZ4):
        chunks = lz4_blocks(path)
    elif head.startswith(_SNAPPY):
        chunks = snappy_blocks(path)
    elif head.startswith(_GZIP):
        chunks = _gzip(path)
    else:
        return open(path, "rb")
    return io.BufferedReader(_Chunks(path, chunks, damage), _CHUNK_BYTES)


class _Chunks(io.RawIOBase):
    """Raw stream over decompressed pieces; it ends where the file is damaged, and notes that."""

    def __init__(self, path: Path, chunks: Iterator[bytes], damage: Damage) -> None:
        self._path = path
        self._chunks = chunks
        self._damage = damage
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int:
        while not len(self._rest):
            try:
                chunk = next(self._chunks, None)
            except (OSError, EOFError, ValueError) as error:
                self._damage.files[self._path.name] = str(error) or type(error).__name__
                chunk = None
            if chunk is None:
                self._chunks = iter(())
                return 0
            self._rest = memoryview(chunk)
        size = min(len(buffer), len(self._rest))
        buffer[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size


def _zstd(path: Path) -> Iterator[bytes]:
    import pyarrow

    with open(path, "rb") as file, pyarrow.CompressedInputStream(pyarrow.PythonFile(file), "zstd") as stream:
        while chunk := stream.read(_CHUNK_BYTES):
            yield chunk


def _gzip(path: Path) -> Iterator[bytes]:
    import zlib

    with gzip.open(path, "rb") as stream:
        try:
            while chunk := stream.read1(_CHUNK_BYTES):
                yield chunk
        except zlib.error as error:
            raise ValueError(str(error)) from error


MAX_BLOCK_BYTES = 2**26  # lz4-java allows 32 MiB; damaged lengths must not ask for gigabytes
_LZ4_HEADER = struct.Struct("<8sBIII")
_LZ4_RAW, _LZ4_PACKED = 0x10, 0x20
_SNAPPY_HEADER_BYTES = 16


def lz4_blocks(path: Path) -> Iterator[bytes]:
    """Decompress the blocks of an lz4 file one by one, without verifying checksums (xxHash).

    Raises:
        ValueError: the file is damaged or cut; the blocks before that place have been given.
    """
    with open(path, "rb") as file:
        while header := file.read(_LZ4_HEADER.size):
            if len(header) < _LZ4_HEADER.size:
                raise ValueError("cut inside the header of an lz4 block")
            magic, token, packed, size, _ = _LZ4_HEADER.unpack(header)
            method = token & 0xF0
            if magic != _LZ4 or method not in (_LZ4_RAW, _LZ4_PACKED):
                raise ValueError("an lz4 block has no valid header")
            block = _body(file, packed, size, "lz4")
            if method == _LZ4_PACKED:
                block = _decompress(cramjam.lz4.decompress_block, block, size, output_len=size)
            if block:  # an empty one marks the end of a stream; another may follow
                yield block


def snappy_blocks(path: Path) -> Iterator[bytes]:
    """Decompress the blocks of a snappy file one by one.

    Raises:
        ValueError: the file is damaged or cut; the blocks before that place have been given.
    """
    with open(path, "rb") as file:
        while head := file.read(4):
            if head == _SNAPPY[:4]:
                if not (head + file.read(_SNAPPY_HEADER_BYTES - 4)).startswith(_SNAPPY):
                    raise ValueError("a snappy stream has no valid header")
                continue
            if len(head) < 4:
                raise ValueError("cut inside the length of a snappy block")
            block = _body(file, int.from_bytes(head, "big"), 0, "snappy")
            size = _decompress(cramjam.snappy.decompress_raw_len, block, None)
            if size > MAX_BLOCK_BYTES:
                raise ValueError(f"a snappy block claims {size} bytes")
            yield _decompress(cramjam.snappy.decompress_raw, block, size)


def _body(file: BinaryIO, packed: int, size: int, codec: str) -> bytes:
    if max(packed, size) > MAX_BLOCK_BYTES:
        raise ValueError(f"an {codec} block claims {max(packed, size)} bytes")
    block = file.read(packed)
    if len(block) < packed:
        raise ValueError(f"cut inside a block of {codec}")
    return block


def _decompress(function, block: bytes, size: int | None, **options):
    try:
        result = function(block, **options)
    except cramjam.DecompressionError as error:
        raise ValueError(f"a block cannot be decompressed: {error}") from error
    if isinstance(result, int):
        return result
    if len(result) != size:
        raise ValueError(f"a block has {len(result)} bytes; its header says {size}")
    return bytes(result)
