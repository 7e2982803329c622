"""`decima data`: fetch, prepare, status."""

import socket

import pytest

from decima.core import config
from decima.workload.tpch import raw as tpch_raw
from tests.unit.commands.calls import refuse, run, succeed
from tests.unit.workload.tpch.raw_files import write_set

FILES = {f"2g/adj_mat_{query}.npy": f"content {query}".encode() for query in range(1, 4)}


@pytest.fixture
def mirror(tmp_path, monkeypatch):
    """Mirror with three small files that the package expects; no data yet."""
    write_set(tmp_path / "mirror" / "tpch", monkeypatch, FILES)
    monkeypatch.setenv(config.MIRROR_VARIABLE, str(tmp_path / "mirror"))
    monkeypatch.setenv(config.DATA_DIR_VARIABLE, str(tmp_path / "data"))
    return tmp_path / "mirror" / "tpch"


def test_fetch_and_force(mirror, tmp_path):
    raw = tmp_path / "data" / "raw" / "tpch"
    expected = f"TPC-H: 3 files in {raw}, verified (source: {mirror.parent})"
    assert succeed("data", "fetch", "tpch") == expected
    first = {path: path.stat().st_ino for path in raw.rglob("*.npy")}
    assert {path.name: path.read_bytes() for path in first} == {
        name.partition("/")[2]: content for name, content in FILES.items()
    }
    assert succeed("data", "fetch", "tpch") == expected
    assert {path: path.stat().st_ino for path in raw.rglob("*.npy")} == first
    assert succeed("data", "fetch", "tpch", "--force") == expected
    assert {path: path.stat().st_ino for path in raw.rglob("*.npy")}.keys() == first.keys()
    assert all(path.stat().st_ino != inode for path, inode in first.items())
    assert [path.name for path in raw.parent.iterdir()] == ["tpch"]


def files_in(folder):
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def test_corrupted_download(mirror, tmp_path):
    (mirror / "2g" / "adj_mat_1.npy").write_bytes(b"an error page")
    assert "adj_mat_1.npy: got SHA-256" in refuse("data", "fetch", "tpch")
    assert files_in(tmp_path / "data") == []


def test_forced_fetch_that_fails_keeps_what_is_there(mirror, tmp_path):
    (tmp_path / "data" / "raw" / "tpch" / "2g").mkdir(parents=True)
    (tmp_path / "data" / "raw" / "tpch" / "2g" / "adj_mat_1.npy").write_bytes(b"content 1")
    (mirror / "2g" / "adj_mat_3.npy").unlink()
    assert "adj_mat_3.npy: No such file" in refuse("data", "fetch", "tpch", "--force")
    assert files_in(tmp_path / "data") == ["adj_mat_1.npy"]


def test_no_network(mirror, tmp_path, monkeypatch):
    with socket.socket() as unused:  # bound but not listening: connections are refused
        unused.bind(("127.0.0.1", 0))
        monkeypatch.delenv(config.MIRROR_VARIABLE)
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        monkeypatch.setattr(tpch_raw, "BASE_URL", f"http://127.0.0.1:{unused.getsockname()[1]}")
        sentence = refuse("data", "fetch", "tpch")
    assert "cannot fetch http://127.0.0.1" in sentence
    assert config.MIRROR_VARIABLE in sentence
    assert files_in(tmp_path) == files_in(mirror)


def test_status_tells_missing_and_damaged_files(tmp_path, monkeypatch):
    raw = tmp_path / "data" / "raw" / "tpch"
    write_set(raw, monkeypatch, FILES)
    monkeypatch.setenv(config.DATA_DIR_VARIABLE, str(tmp_path / "data"))
    monkeypatch.delenv(config.MIRROR_VARIABLE, raising=False)
    assert succeed("data", "status") == "TPC-H is ready to use"
    (raw / "2g" / "adj_mat_1.npy").write_bytes(b"damage")
    (raw / "2g" / "adj_mat_2.npy").unlink()
    result = run("data", "status")
    assert f"2 of 3 in {raw}, 1 damaged" in result.stdout
    assert f"none ({config.MIRROR_VARIABLE} is not set)" in result.stdout
    assert "not prepared" in result.stdout
    assert result.stdout.endswith("TPC-H is missing or damaged: run 'decima data fetch tpch'\n")


def test_prepare_and_status_of_the_real_profiles(tpch_data):
    assert succeed("data", "prepare", "tpch").startswith("TPC-H: profiles of 7 sizes x 22 queries in ")
    result = run("data", "status")
    assert f"{len(tpch_raw.checksums())} of {len(tpch_raw.checksums())} in " in result.stdout
    assert "tpch.parquet" in result.stdout
    assert result.stdout.endswith("TPC-H is ready to use\n")
