"""Files of Spark event logs: which belong together, and their lines.

A log is one file or several: `events_<number>_<application>` of Spark in one folder, or files whose first line has the
number and the context of Databricks. Compression and archives are recognised by the first bytes of a file, so
renamed and unfinished (`.inprogress`) files are also read. The block formats that Spark writes with lz4 and snappy
differ from these libraries' own.

Source: `LZ4BlockOutputStream` of lz4-java and `SnappyOutputStream` of snappy-java.
"""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import re
import shutil
import struct
import tarfile
import tempfile
import weakref
import zipfile
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import BinaryIO

import cramjam

from decima.core.errors import ConfigError, DataUnavailableError, EventLogError

MAX_LINE_BYTES = 64 * 2**20
MAX_VALUES = 4_000_000  # of a line, which take a hundred times its bytes in memory
_MAX_RATIO = 250  # of the size after decompression and before; event logs reach about 60
_ALWAYS_BYTES = 64 * 2**20  # a small file may unpack to that much
_ROLLED = re.compile(r"events_(\d+)_([^.]+).*")
_EVENT = re.compile(rb'\s*\{.{0,4000}?"Event"\s*:', re.DOTALL)
_TIME = re.compile(rb'"(?:Timestamp|Submission Time|Completion Time|Launch Time|Finish Time|time)":(\d{12,14})\b')
_TASK_ID = re.compile(rb'"Task ID":(\d{1,15})\b')
_HEAD_LINES, _HEAD_BAD, _HEAD_TIMES = 200, 5, 20  # lines to look at, lines before the first event, times
_CHUNK_BYTES = 2**18
_BOM = b"\xef\xbb\xbf"
_ZSTD, _LZ4, _SNAPPY, _GZIP, _LZF = b"\x28\xb5\x2f\xfd", b"LZ4Block", b"\x82SNAPPY\x00", b"\x1f\x8b", b"ZV"
_BZIP2, _XZ, _ZIP = b"BZh", b"\xfd7zXZ\x00", (b"PK\x03\x04", b"PK\x05\x06")
_DAMAGE = (OSError, EOFError, ValueError, lzma.LZMAError, zlib.error)


class _Unpacked:
    """Folder for an archive, which goes with this object."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="decima-logs-"))
        weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)


@dataclass(frozen=True)
class LogFiles:
    """Files that make up an event log."""

    path: Path  # what the user would call the log: a file, a folder of rolled files, or a member of an archive
    files: tuple[Path, ...]  # to be read in this order
    compacted: bool = False  # Spark removed events of finished jobs from the first files ("compaction")
    lost: tuple[int, ...] = ()  # numbers of files that are not there
    started: bool = True  # whether it has the start of an application, or says what it belongs to
    time_ms: int | None = None  # latest time of its first lines
    tasks: tuple[int, ...] = ()  # ids of tasks of its first lines
    keep: tuple[_Unpacked, ...] = ()  # they exist as long as these

    @property
    def size(self) -> int:
        """Bytes of all files; 0 for those that are gone."""
        return sum(path.stat().st_size for path in self.files if path.exists())


@dataclass
class Damage:
    """Record of what could not be read of a log."""

    # Per damaged file, what went wrong; the lines before the damage were read.
    files: dict[str, str] = field(default_factory=dict)
    long_lines: int = 0  # lines of more than `MAX_LINE_BYTES` or `MAX_VALUES`, which were left out
    cut_line: bool = False  # the last line of a file has no end, as when Spark was killed while writing it


@dataclass
class _Head:
    """Facts from the first lines of a file."""

    is_log: bool = False
    started: bool = False
    context: str = ""  # of Databricks; its files have a number each
    number: int = 0
    time_ms: int | None = None
    tasks: tuple[int, ...] = ()


def find_logs(paths: Iterable[str | os.PathLike], left_out: dict[str, str] | None = None) -> list[LogFiles]:
    """Find the logs of files, archives (.zip, .tar) and folders at any depth.

    Files in folders that do not begin like a log are passed over; `left_out` receives those that cannot be read, with
    the reason.

    Raises:
        DataUnavailableError: a path does not exist, or a folder holds no log.
        ConfigError: a path is neither a file nor a folder.
    """
    left_out = {} if left_out is None else left_out
    files: dict[Path, tuple[Path, Path, bool]] = {}  # real path -> file, name to show, whether the user named it
    keep: list[_Unpacked] = []
    folders = []
    for path in map(Path, paths):
        folders.append(path)
        if path.is_file():
            candidates = [(path, path, True)]
        elif path.is_dir():
            candidates = [(each, each, False) for each in _walk(path, left_out)]
        elif path.exists():
            raise ConfigError(f"cannot read {path}: it is neither a file nor a folder")
        elif address := re.match(r"(\w{2,}):/+", str(path)):
            why = f"{address[1]}:// is not a folder of this machine; copy the logs here first"
            raise DataUnavailableError(f"no event log at {path}: {why}")
        else:
            raise DataUnavailableError(f"no event log at {path}")
        for file, shown, named in candidates:
            if _is_archive(file):
                keep.append(_Unpacked())
                folder = keep[-1].folder
                try:
                    unpack(file, folder)
                except (EventLogError, OSError) as error:
                    left_out[str(shown)] = str(error)
                inside = [(each, shown / each.relative_to(folder), False) for each in _walk(folder, left_out)]
                files.update((each[0].resolve(), each) for each in inside)
            else:
                files.setdefault(file.resolve(), (file, shown, named))
    logs = _grouped(files.values(), tuple(keep), left_out)
    if not logs and not left_out:
        raise DataUnavailableError(f"no event log in the folder {', '.join(map(str, folders))}")
    return logs


def _walk(folder: Path, left_out: dict[str, str]) -> Iterator[Path]:
    """Regular files of a folder and those below it, each folder once."""
    seen = set()
    folders = [folder]
    while folders:
        folder = folders.pop()
        try:
            status = folder.stat()
            inside = sorted(folder.iterdir())
        except OSError as error:
            left_out[str(folder)] = f"cannot be read: {error.strerror or error}"
            continue
        if (status.st_dev, status.st_ino) in seen:
            continue
        seen.add((status.st_dev, status.st_ino))
        for path in inside:
            if path.name.startswith((".", "_", "appstatus_")) or path.name.endswith(".crc"):
                continue
            if path.is_file():
                yield path
            elif path.is_dir():
                folders.append(path)


def _grouped(files: Iterable[tuple[Path, Path, bool]], keep: tuple, left_out: dict[str, str]) -> list[LogFiles]:
    """Logs of files, the parts of each in order."""
    parts: dict[tuple, list[tuple[int, bool, Path, Path]]] = defaultdict(list)
    heads: dict[tuple, _Head] = {}
    for file, shown, named in files:
        rolled = _ROLLED.fullmatch(file.name)
        try:
            head = _head(file)
        except EventLogError as error:
            if not named:
                left_out[str(shown)] = str(error)
                continue
            head = _Head(started=True)  # reading it says what is wrong
        if head.context:
            key, number = (head.context,), head.number
        elif rolled and (head.is_log or named):
            key, number = (file.parent, rolled[2]), int(rolled[1])
        elif head.is_log or named:
            key, number = (file,), 0
        else:
            continue
        parts[key].append((number, file.name.endswith(".compact"), file, shown))
        heads.setdefault(key, head)
    logs = []
    for key, members in parts.items():
        members.sort()
        head = heads[key]
        # A compacted file stands for itself and all files before it.
        first = max((index for index, part in enumerate(members) if part[1]), default=0)
        members, compacted = members[first:], members[first][1]
        numbered = bool(head.context) or len(key) == 2
        begin = members[0][0] if compacted or not numbered else 0 if head.context else 1
        lost = set(range(begin, members[-1][0])) - {part[0] for part in members}
        path = members[0][3].parent if len(key) == 2 else members[0][3]
        started = head.started or numbered
        names = tuple(part[2] for part in members)
        logs.append(LogFiles(path, names, compacted, tuple(sorted(lost)), started, head.time_ms, head.tasks, keep))
    return logs


def _head(path: Path) -> _Head:
    """Read the first lines of a file.

    Raises:
        EventLogError: it cannot be read; the message continues a sentence about the file.
    """
    head, times, tasks, damage = _Head(), [], [], Damage()
    try:
        with _open(path, damage) as stream:
            for number, line in enumerate(islice(_lines(stream, damage), _HEAD_LINES)):
                head.is_log |= bool(_EVENT.match(line))
                if not head.is_log and number >= _HEAD_BAD:
                    break
                if b"SparkListenerApplicationStart" in line[:200]:
                    head.started = True
                    break
                if b'"Rollover Number"' in line:
                    try:
                        event = json.loads(line)
                        head.number, head.context = int(event["Rollover Number"]), str(event["SparkContext Id"])
                    except (ValueError, TypeError, KeyError, RecursionError):
                        continue
                    break
                if len(times) < _HEAD_TIMES:
                    times += map(int, _TIME.findall(line)[:4])
                    tasks += map(int, _TASK_ID.findall(line)[:1])
    except OSError as error:
        raise EventLogError(f"cannot be read: {error.strerror or error}") from None
    if damage.files and not head.is_log:
        raise EventLogError(f"is {damage.files[path.name]}")
    head.time_ms, head.tasks = max(times, default=None), tuple(tasks)
    return head


def read_lines(log: LogFiles, damage: Damage, progress: Callable[[int], object] = lambda size: None) -> Iterator[bytes]:
    """Read the lines of a log with their line ends; `damage` lists unreadable parts.

    `progress` is called with the bytes that were read.
    """
    for path in log.files:
        done = 0
        try:
            size = path.stat().st_size
            with _open(path, damage) as stream:
                plain = isinstance(stream.raw, io.FileIO)
                for number, line in enumerate(_lines(stream, damage)):
                    yield line
                    if plain and number % 1024 == 0:
                        progress(stream.tell() - done)
                        done = stream.tell()
        except OSError as error:
            damage.files[path.name] = f"cannot be read: {error.strerror or error}"
        except EventLogError as error:
            damage.files[path.name] = str(error)
        else:
            progress(size - done)


def _lines(stream: io.BufferedIOBase, damage: Damage) -> Iterator[bytes]:
    long = False
    line = b""
    first = True
    while piece := stream.readline(MAX_LINE_BYTES):
        if first:
            piece, first = piece.removeprefix(_BOM), False
        whole = piece.endswith(b"\n")
        if long or (not whole and len(piece) == MAX_LINE_BYTES):
            damage.long_lines += not long
            long = not whole
            continue
        if len(piece) > MAX_VALUES and piece.count(b",") > MAX_VALUES:
            damage.long_lines += 1
            continue
        line = piece
        yield line
    damage.cut_line |= bool(line) and not line.endswith(b"\n")


def _is_archive(path: Path) -> bool:
    """Whether a file is a zip or, compressed or not, a tar."""
    try:
        with open(path, "rb") as raw:
            if raw.read(4) in _ZIP:
                return True
        with _open(path, Damage()) as stream:
            return stream.read(512)[257:262] == b"ustar"
    except (OSError, EventLogError):
        return False


def unpack(path: Path, folder: Path) -> None:
    """Unpack the regular files of a zip or tar, compressed or not, into a folder.

    Raises:
        EventLogError: the archive is damaged, or unpacks to far more than its size; what came before was unpacked.
    """
    most = max(_ALWAYS_BYTES, _MAX_RATIO * path.stat().st_size)
    damage = Damage()
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as packed:
                infos = [info for info in packed.infolist() if not info.is_dir()]
                if sum(info.file_size for info in infos) > most:
                    raise EventLogError(f"unpacks to more than {_MAX_RATIO} times its size")
                for info in infos:
                    with packed.open(info) as source:
                        _keep(source, folder, info.filename)
        else:
            with _open(path, damage) as stream, tarfile.open(fileobj=stream, mode="r|") as packed:
                for member in packed:
                    if member.isfile() and not member.issparse():
                        _keep(packed.extractfile(member), folder, member.name)
    except (tarfile.TarError, zipfile.BadZipFile, NotImplementedError, RuntimeError, *_DAMAGE[1:]) as error:
        why = next(iter(damage.files.values()), str(error))
        raise EventLogError(f"is an archive that cannot be unpacked: {why}") from None
    if damage.files:
        raise EventLogError(f"is an archive that cannot be unpacked: {next(iter(damage.files.values()))}")


def _keep(source: BinaryIO, folder: Path, name: str) -> None:
    inside = [part for part in PurePosixPath(name.replace("\\", "/")).parts if part not in ("/", "..")]
    if not inside:
        return
    target = folder.joinpath(*inside)
    target.parent.mkdir(parents=True, exist_ok=True)
    with open(target, "wb") as copy:
        shutil.copyfileobj(source, copy)


def _open(path: Path, damage: Damage) -> io.BufferedReader:
    """Open a file for reading what it holds, decompressed.

    Raises:
        EventLogError: it is compressed with lzf.
    """
    with open(path, "rb") as raw:
        head = raw.read(8)
    if head.startswith(_LZF):
        raise EventLogError(
            "is compressed with lzf, which is not supported; write it anew with "
            "spark.eventLog.compression.codec=zstd (lz4, snappy, gzip, bzip2, xz and plain text are also read)"
        )
    for magic, pieces in _CODECS.items():
        if head.startswith(magic):
            return io.BufferedReader(_Chunks(path, pieces(path), damage), _CHUNK_BYTES)
    return open(path, "rb")


class _Chunks(io.RawIOBase):
    """Raw stream over decompressed pieces; it ends where the file is damaged, and notes that."""

    def __init__(self, path: Path, chunks: Iterator[bytes], damage: Damage) -> None:
        self._path = path
        self._chunks = chunks
        self._damage = damage
        self._rest = memoryview(b"")
        self._left = max(_ALWAYS_BYTES, _MAX_RATIO * path.stat().st_size)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int:
        while not len(self._rest):
            try:
                chunk = next(self._chunks, None)
                self._left -= len(chunk or b"")
                if self._left < 0:
                    raise ValueError(f"unpacks to more than {_MAX_RATIO} times its size")
            except _DAMAGE as error:
                self._damage.files[self._path.name] = f"damaged: {str(error) or type(error).__name__}"
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


def _library(module) -> Callable[[Path], Iterator[bytes]]:
    """Decompress with a module of Python."""

    def pieces(path: Path) -> Iterator[bytes]:
        with module.open(path, "rb") as stream:
            while chunk := stream.read1(_CHUNK_BYTES):
                yield chunk

    return pieces


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


_CODECS = {
    _ZSTD: _zstd, _LZ4: lz4_blocks, _SNAPPY: snappy_blocks, _GZIP: _library(gzip), _BZIP2: _library(bz2),
    _XZ: _library(lzma),
}  # fmt: skip
