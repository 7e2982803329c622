"""Which files are a log, and reading them whatever they are compressed with, up to where they are damaged."""

import bz2
import gzip
import io
import lzma
import os
import shutil
import tarfile
import zipfile

import pyarrow
import pytest

from decima.connect.eventlog import application, files
from decima.connect.eventlog.application import read_event_logs
from decima.connect.eventlog.files import Damage, find_logs, read_lines
from decima.core.errors import ConfigError, DataUnavailableError, EventLogError
from tests.unit.connect.event_lines import (
    LOGS,
    application_end,
    application_start,
    line,
    small_log,
    write,
)

REAL = ("plain", "queries.zstd", "broadcast.lz4", "unnamed.snappy")
END = b'"SparkListenerApplicationEnd"'


def read(path):
    damage = Damage()
    (log,) = find_logs([path])
    return list(read_lines(log, damage)), damage


@pytest.mark.parametrize("name", REAL)
def test_every_format_spark_wrote_is_read_to_its_end_whatever_its_name(name, tmp_path):
    lines, damage = read(LOGS / name)
    assert lines[0].startswith(b'{"Event":"SparkListenerLogStart","Spark Version":"4.')
    assert END in lines[-1]
    assert damage == Damage()
    assert read(shutil.copy(LOGS / name, tmp_path / "app-1.inprogress")) == (lines, damage)


LZ4, SNAPPY = "broadcast.lz4", "unnamed.snappy"


@pytest.mark.parametrize("name", REAL[1:])
def test_cut_compressed_log_gives_the_lines_before(name, tmp_path):
    whole, complete = (LOGS / name).read_bytes(), read(LOGS / name)[0]
    path, counts = tmp_path / name, []
    for share in (0.3, 0.6, 0.9, 0.999):
        path.write_bytes(whole[: int(share * len(whole))])
        lines, damage = read(path)
        assert b"".join(complete).startswith(b"".join(lines))
        assert list(damage.files) == [name]
        counts.append(len(lines))
    if name == LZ4:  # of many blocks
        assert 0 < counts[0] < counts[1] < counts[2] < len(complete)


@pytest.mark.parametrize(("name", "place"), [(LZ4, 3), (LZ4, 8), (LZ4, 12), (LZ4, 16), (SNAPPY, 3), (SNAPPY, 16)])
def test_damaged_header_of_a_block_is_noted(name, place, tmp_path):
    # The second copy of the file stands for a later stream of it.
    content = bytearray((LOGS / name).read_bytes() * 2)
    content[len(content) // 2 + place] ^= 0xFF
    path = tmp_path / name
    path.write_bytes(content)
    lines, damage = read(path)
    assert lines == read(LOGS / name)[0]
    assert list(damage.files) == [name]


def rolled(folder, parts):
    folder.mkdir()
    lines = (LOGS / "plain").read_bytes().splitlines(keepends=True)
    size = -(-len(lines) // parts)
    for number in range(parts):
        with pyarrow.CompressedOutputStream(str(folder / f"events_{number + 1}_app-1.zstd"), "zstd") as stream:
            stream.write(b"".join(lines[number * size : (number + 1) * size]))
    (folder / "appstatus_app-1").touch()
    (folder / ".events_1_app-1.zstd.crc").write_bytes(b"crc")
    return folder, lines


def test_rolled_files_are_read_in_the_order_of_their_numbers(tmp_path):
    folder, lines = rolled(tmp_path / "eventlog_v2_app-1", 11)
    assert read(folder)[0] == lines


def test_compacted_file_replaces_those_before(tmp_path):
    folder, lines = rolled(tmp_path / "eventlog_v2_app-1", 3)
    with pyarrow.CompressedOutputStream(str(folder / "events_2_app-1.zstd.compact"), "zstd") as stream:
        stream.write(lines[0])
    (log,) = find_logs([folder])
    assert log.compacted
    assert [path.name for path in log.files] == ["events_2_app-1.zstd.compact", "events_3_app-1.zstd"]


def test_paths_that_hold_no_log(tmp_path):
    with pytest.raises(DataUnavailableError, match="no event log at"):
        find_logs([tmp_path / "missing"])
    with pytest.raises(DataUnavailableError, match="no event log in the folder"):
        find_logs([tmp_path])
    with pytest.raises(ConfigError, match="neither a file nor a folder"):
        find_logs(["/dev/null"])


def test_cut_last_line_is_given_and_noted(tmp_path):
    path = tmp_path / "log"
    path.write_bytes(b'{"a": 1}\n{"b"')
    lines, damage = read(path)
    assert lines == [b'{"a": 1}\n', b'{"b"']
    assert damage.cut_line


@pytest.mark.parametrize("extra", [0, 1, 7, 8, 9])
def test_lines_beyond_the_limit_are_left_out_one_by_one(extra, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "MAX_LINE_BYTES", 8)
    path = tmp_path / "log"
    path.write_bytes(b"short\n" + b"x" * (8 + extra) + b"\n" + b"after\n" + b"y" * 30 + b"\nend\n")
    lines, damage = read(path)
    assert lines == [b"short\n", b"after\n", b"end\n"]
    assert damage.long_lines == 2
    assert not damage.cut_line


@pytest.mark.parametrize("name", REAL)
def test_progress_adds_up_to_the_size(name, tmp_path):
    folder = tmp_path / "eventlog_v2_app"
    folder.mkdir()
    for number in (1, 2):
        shutil.copy(LOGS / name, folder / f"events_{number}_app")
    (log,) = find_logs([folder])
    read = []
    lines = list(read_lines(log, Damage(), read.append))
    assert sum(read) == log.size == 2 * (LOGS / name).stat().st_size
    assert len(read) == (4 if name == "plain" else 2)  # of a plain file also within it
    assert len(lines) > 20


PLAIN = (LOGS / "plain").read_bytes()


def archive(mode):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode=mode) as tar:
        info = tarfile.TarInfo("../logs/app-1")
        info.size = len(PLAIN)
        tar.addfile(info, io.BytesIO(PLAIN))
        link = tarfile.TarInfo("logs/link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
    return packed.getvalue()


def zipped(files):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive_:
        for name, content in files.items():
            archive_.writestr(name, content)
    return packed.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        bz2.compress(PLAIN),
        lzma.compress(PLAIN),
        b"\xef\xbb\xbf" + PLAIN,
        b"\n" + PLAIN,
        gzip.compress(PLAIN) * 1,
        archive("w"),
        archive("w:gz"),
        archive("w:xz"),
        zipped({"logs/app-1": PLAIN, "logs/README": b"about"}),
        zipped({"a/b/app-1.gz": gzip.compress(PLAIN)}),
    ],
    ids=["bz2", "xz", "byte order mark", "empty line first", "gz", "tar", "tar.gz", "tar.xz", "zip", "zip of gz"],
)
@pytest.mark.parametrize("deep", [False, True])
def test_compressed_and_packed_logs_in_a_file_and_in_folders(content, deep, tmp_path):
    folder = tmp_path / "deep" / "2024" / "01"
    folder.mkdir(parents=True)
    (folder / "log.any").write_bytes(content)
    lines, damage = read(tmp_path if deep else folder / "log.any")
    assert [each for each in lines if each != b"\n"] == PLAIN.splitlines(keepends=True)
    assert damage == Damage()


def test_rolled_files_of_a_zip_are_one_log(tmp_path):
    folder, lines = rolled(tmp_path / "eventlog_v2_app-1", 3)
    content = {f"eventlog_v2_app-1/{path.name}": path.read_bytes() for path in sorted(folder.iterdir())}
    (tmp_path / "logs.zip").write_bytes(zipped(content))
    assert read(tmp_path / "logs.zip")[0] == lines
    (log,) = find_logs([tmp_path / "logs.zip"])
    assert log.path == tmp_path / "logs.zip" / "eventlog_v2_app-1"


def halves(tmp_path, name="eventlog", **metadata):
    """Log of two queries as Databricks cuts it; with metadata, its first line in each part."""
    first = [application_start(), *small_log()]
    second = [*small_log(at=5000, query="r#0", first_id=1)[1:], application_end(9000)]
    lines = [*first, *second]
    cut = len(first) - 2
    for number, part in enumerate((lines[:cut], lines[cut:])):
        facts = {"Rollover Number": number, **metadata}
        begin = [line("DBCEventLoggingListenerMetadata", **facts)] if metadata else []
        write(tmp_path / f"{name}-{1 - number}", [*begin, *part])
    return len(lines)


@pytest.mark.parametrize("metadata", [{}, {"SparkContext Id": 8270}])
def test_parts_of_databricks_are_one_application_whatever_they_are_called(metadata, tmp_path):
    halves(tmp_path, **metadata)
    (log,) = read_event_logs([tmp_path])
    assert log.key.app_id == "app-1"
    assert log.queries.skipped.tolist() == ["", ""]
    assert log.report.completeness.least == 1.0


def test_part_that_is_lost_is_named(tmp_path):
    halves(tmp_path, **{"SparkContext Id": 8270})
    (tmp_path / "eventlog-1").unlink()
    logs = read_event_logs([tmp_path])
    assert ("file of the log that is not there", "0") in [(note.reason, note.detail) for note in logs.report.notices]
    folder, _ = rolled(tmp_path / "eventlog_v2_app-1", 4)
    (folder / "events_2_app-1.zstd").unlink()
    assert [log.lost for log in find_logs([folder])] == [(2,)]


def test_parts_of_two_applications_in_a_folder_are_joined_to_their_own(tmp_path):
    halves(tmp_path, "one", **{"SparkContext Id": 1})
    halves(tmp_path, "two", **{"SparkContext Id": 2})
    assert [len(log.files) for log in find_logs([tmp_path])] == [2, 2]


def test_log_without_a_start_is_no_part_of_one_that_ended_or_has_its_tasks(tmp_path):
    write(tmp_path / "a", [application_start(), *small_log(), application_end(900)])
    write(tmp_path / "b", small_log(at=5000, query="r#0", first_id=1))
    assert [log.key.app_id for log in read_event_logs([tmp_path])] == ["app-1", "b"]
    write(tmp_path / "a", [application_start(), *small_log()])
    assert [log.key.app_id for log in read_event_logs([tmp_path])] == ["app-1"]
    write(tmp_path / "b", small_log(at=5000, query="r#0"))
    assert [log.key.app_id for log in read_event_logs([tmp_path])] == ["app-1", "b"]


@pytest.mark.parametrize("packed", [False, True])
def test_two_applications_in_one_file_are_two(packed, tmp_path):
    logs = [
        [line("SparkListenerLogStart", **{"Spark Version": version}), application_start(app, at), *small_log(at=at)]
        for app, at, version in (("app-1", 0, "3.5.1"), ("app-2", 9000, "4.0.0"))
    ]
    if packed:
        content = zipped({f"logs/{number}": b"".join(lines) for number, lines in enumerate(logs)})
        (tmp_path / "both").write_bytes(content)
    else:
        write(tmp_path / "both", [each for lines in logs for each in lines])
    read_ = read_event_logs([tmp_path / "both"])
    assert [(log.key.app_id, log.spark_version, len(log.tasks)) for log in read_] == [
        ("app-1", "3.5.1", 3),
        ("app-2", "4.0.0", 3),
    ]


def test_one_log_twice_in_a_file_counts_once(tmp_path):
    lines = [line("SparkListenerLogStart"), application_start(), *small_log()]
    (log,) = read_event_logs([write(tmp_path / "log", lines * 2)])
    assert log.tasks.use.tolist() == ["used"] * 3
    assert log.executors.slots.tolist() == [1]


BAD = {
    "lzf": b"ZV\x01\x00\x05",
    "zstd": b"\x28\xb5\x2f\xfd\xff\xff\xff\xff",
    "gzip": gzip.compress(PLAIN)[:15],
    "other": line("SparkListenerBlockManagerAdded", Timestamp=1),
    "zip": zipped({"a": PLAIN})[:-40],
    "tar.gz": archive("w:gz")[:700],
}


@pytest.mark.parametrize(("name", "why"), [
    ("lzf", "is compressed with lzf"), ("zstd", "is damaged"), ("gzip", "is damaged"), ("other", "1 lines not needed"),
    ("tar.gz", "is an archive that cannot be unpacked"),
])  # fmt: skip
def test_bad_file_of_a_folder_is_left_out_and_named(name, why, tmp_path):
    write(tmp_path / "good", [application_start(), *small_log()])
    (tmp_path / name).write_bytes(BAD[name])
    logs = read_event_logs([tmp_path])
    assert [log.key.app_id for log in logs] == ["app-1"]
    (note,) = [note for note in logs.report.notices if note.reason.startswith("left out")]
    assert why in note.reason
    assert note.detail == str(tmp_path / name)
    with pytest.raises(EventLogError, match=why):
        read_event_logs([tmp_path / name])


def test_pipes_devices_and_links_in_circles_end(tmp_path):
    folder, lines = rolled(tmp_path / "eventlog_v2_app-1", 2)
    os.mkfifo(folder / "events_3_app-1")
    (folder / "events_4_app-1").symlink_to("/dev/zero")
    (folder / "events_5_app-1").symlink_to(folder / "events_5_app-1")
    (folder / "again").symlink_to(tmp_path)
    assert read(tmp_path)[0] == lines


@pytest.mark.parametrize("kind", ["gzip", "zip", "tar.gz"])
def test_bombs_end_with_a_sentence(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_ALWAYS_BYTES", 2**16)
    monkeypatch.setattr(files, "_MAX_RATIO", 100)
    zeros = bytes(2**23)
    packed = io.BytesIO()
    if kind == "tar.gz":
        with tarfile.open(fileobj=packed, mode="w:gz") as tar:
            info = tarfile.TarInfo("log")
            info.size = len(zeros)
            tar.addfile(info, io.BytesIO(zeros))
    content = {"gzip": gzip.compress(PLAIN + zeros), "zip": zipped({"log": zeros}), "tar.gz": packed.getvalue()}[kind]
    (tmp_path / "bomb").write_bytes(content)
    if kind == "gzip":
        assert "more than 100 times its size" in read(tmp_path / "bomb")[1].files["bomb"]
    else:
        with pytest.raises(EventLogError, match="more than 100 times its size"):
            read_event_logs([tmp_path])


def test_endless_empty_lines_are_not_read_to_their_end(tmp_path, monkeypatch):
    monkeypatch.setattr(application, "_WINDOW", 1000)
    write(tmp_path / "log", [*small_log(), b"\n" * 50_000, *small_log(at=900, query="r#0", first_id=1)])
    (log,) = read_event_logs([tmp_path / "log"])
    assert len(log.tasks) == 3
    assert any("hardly an event" in note.reason for note in log.report.notices)


def test_line_of_too_many_values_is_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "MAX_VALUES", 100)
    write(tmp_path / "log", [*small_log(), line("SparkListenerJobStart", x=[[]] * 200)])
    (log,) = read_event_logs([tmp_path / "log"])
    assert any("or 100 values" in note.reason or "values" in note.reason for note in log.report.notices)
    assert log.report.notices[0].count == 6
