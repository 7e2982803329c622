"""Which files are a log, and reading them whatever they are compressed with, up to where they are damaged."""

import gzip
import shutil

import pyarrow
import pytest

from decima.connect.eventlog import files
from decima.connect.eventlog.files import Damage, find_logs, read_lines
from decima.core.errors import ConfigError, DataUnavailableError
from tests.unit.connect.event_lines import LOGS

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


def test_gzip(tmp_path):
    path = tmp_path / "log.gz"
    path.write_bytes(gzip.compress((LOGS / "plain").read_bytes()))
    assert read(path)[0] == read(LOGS / "plain")[0]


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


def test_lzf_is_refused_in_one_sentence(tmp_path):
    path = tmp_path / "log.lzf"
    path.write_bytes(b"ZV\x01\x00\x05")
    lines, damage = read(path)
    assert lines == []
    assert "lzf, which is not supported" in damage.files["log.lzf"]


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


def test_folder_of_logs(tmp_path):
    rolled(tmp_path / "eventlog_v2_app-1", 2)
    shutil.copy(LOGS / "plain", tmp_path / "app-2")
    (tmp_path / "README.md").write_text("about")
    (tmp_path / ".hidden").write_text("x")
    (tmp_path / "empty").touch()
    assert [log.path.name for log in find_logs([tmp_path])] == ["app-2", "eventlog_v2_app-1"]


def test_a_log_given_twice_is_read_once(tmp_path):
    shutil.copy(LOGS / "plain", tmp_path / "app-2")
    assert len(find_logs([tmp_path, tmp_path / "app-2"])) == 1


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
