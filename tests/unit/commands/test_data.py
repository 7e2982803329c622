"""`decima data`: fetch, prepare, status."""

from decima.core import config
from decima.workload.tpch import raw as tpch_raw
from tests.unit.commands.calls import run, succeed
from tests.unit.workload.tpch.raw_files import write_set

FILES = {f"2g/adj_mat_{query}.npy": f"content {query}".encode() for query in range(1, 4)}


def test_fetch_and_force(tmp_path, monkeypatch):
    mirror, raw = tmp_path / "mirror", tmp_path / "data" / "raw" / "tpch"
    write_set(mirror / "tpch", monkeypatch, FILES)
    monkeypatch.setenv(config.MIRROR_VARIABLE, str(mirror))
    monkeypatch.setenv(config.DATA_DIR_VARIABLE, str(tmp_path / "data"))
    expected = f"TPC-H: 3 files in {raw}, verified (source: {mirror})"
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
