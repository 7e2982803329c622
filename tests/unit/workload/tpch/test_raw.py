"""The reader of the published files, on files made by hand: no real data needed."""

import functools
import http.server
import io
import os
import pickle
import socket
import threading
import time

import numpy as np
import pytest

from decima.core import config
from decima.core.errors import ChecksumError, DataUnavailableError, WorkloadError
from decima.workload import pinned
from decima.workload.tpch import raw as tpch_raw
from tests.profiles import npy, write_set

# Two stages; levels are stored unsorted. Stage 1 has 1 task at the first stored level and 2 at the other.
TABLES = {
    0: {
        "fresh_durations": {20: [9, 9], 5: [9]},
        "first_wave": {20: [9, 8, 9, 9], 5: [9, 7]},
        "rest_wave": {20: [1], 5: [1, 2, 3]},
    },
    1: {"fresh_durations": {20: [], 5: [4]}, "first_wave": {20: [6], 5: [4]}, "rest_wave": {20: [], 5: [5]}},
}
ADJACENCY = np.array([[0.0, 1.0], [0.0, 0.0]])


@pytest.fixture
def raw(tmp_path, monkeypatch):
    """Folder with query 1 at 2g, and checksums to match."""
    write_set(tmp_path, monkeypatch, {"2g/adj_mat_1.npy": npy(ADJACENCY), "2g/task_duration_1.npy": npy(TABLES)})
    return tmp_path


def lists(arrays):
    return [array.tolist() for array in arrays]


def test_profile_follows_the_data_rules(raw):
    profile = tpch_raw.read_raw_profile(raw, "2g", 1)
    first, second = profile.stages
    assert (profile.name, profile.source) == ("q1-2g", "tpch")
    assert (first.name, first.parents, second.name, second.parents) == ("0", (), "1", (0,))
    assert (first.num_tasks, second.num_tasks) == (5, 1)  # at level 20, stored first, before cleaning
    assert first.levels == second.levels == (5, 20)
    assert lists(first.fresh) == [[9.0], [9.0, 9.0]]
    assert lists(first.first) == [[7.0], [8.0, 9.0]]
    assert lists(first.rest) == [[1.0, 2.0, 3.0], [1.0]]
    assert lists(second.first) == [[], [6.0]]  # nothing below level 5 to inherit
    assert first.mean_duration_ms == (9 + 9 + 9 + 7 + 8 + 9 + 1 + 2 + 3 + 1) / 10


class Exploit:
    """Unpickling this with plain pickle makes a folder."""

    def __init__(self, folder):
        self.folder = folder

    def __reduce__(self):
        return os.mkdir, (str(self.folder),)


def malicious(folder):
    return {
        "bare": header() + pickle.dumps(Exploit(folder)),
        "in an array": npy({0: Exploit(folder)}),
        "system": header() + b"cposix\nsystem\n(Vtouch x\ntR.",
        "eval": header() + b"cbuiltins\neval\n(V1+1\ntR.",
        "numpy's own loader": header() + b"cnumpy\nload\n(Vx.npy\ntR.",
        "dotted name": header() + pickle.dumps(None, 4)[:-2] + b"\x8c\x05numpy\x8c\x0bdtype.__new__\x93.",
        "persistent id": header() + b"Pabc\n.",
    }


def header():
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"shape": (), "fortran_order": False, "descr": "|O"})
    return stream.getvalue()


@pytest.mark.parametrize("kind", malicious(""))
def test_malicious_pickle_is_refused_before_it_runs(kind, tmp_path):
    folder = tmp_path / "made by the pickle"
    with pytest.raises(WorkloadError, match=r"bad\.npy"):
        tpch_raw.load_restricted(malicious(folder)[kind], "bad.npy")
    assert not folder.exists()


def test_refusal_names_what_was_asked_for():
    with pytest.raises(WorkloadError, match=r"asks for posix\.system, which profiles never need"):
        tpch_raw.load_restricted(header() + b"cposix\nsystem\n(Vtouch x\ntR.", "bad.npy")


@pytest.mark.parametrize(
    "content",
    [b"", b"\x93NUMPY", b"not numpy at all", npy(TABLES)[:-40], npy(np.zeros(3)), header(), b"\x93NUMPY\x02\x00"],
)
def test_truncated_or_other_file(content):
    with pytest.raises(WorkloadError, match=r"some\.npy"):
        tpch_raw.load_restricted(content, "some.npy")


def test_changed_file_fails_its_checksum_before_it_is_parsed(raw):
    folder = raw / "made"
    path = raw / "2g" / "task_duration_1.npy"
    path.write_bytes(npy({0: Exploit(folder)}))
    with pytest.raises(ChecksumError, match=r"task_duration_1\.npy: got SHA-256 [0-9a-f]{64} .*expected [0-9a-f]{64}"):
        tpch_raw.read_raw_profile(raw, "2g", 1)
    assert not folder.exists()


@pytest.mark.parametrize(
    ("adjacency", "tables", "message"),
    [
        (np.zeros((2, 3)), TABLES, "expected a square matrix of 0 and 1"),
        (ADJACENCY * 2, TABLES, "expected a square matrix of 0 and 1"),
        (np.eye(3, k=1), TABLES, "one table for each of 3 stages"),
        (ADJACENCY, {0: TABLES[0], 1: {}}, "job 'q1-2g', stage '1': expected one table for each of first_wave"),
        (ADJACENCY, {0: TABLES[0], 1: {**TABLES[1], "rest_wave": {5: []}}}, "not profiled at the same levels"),
        (ADJACENCY.T + ADJACENCY, TABLES, "stages form a cycle"),
    ],
)
def test_malformed_content(tmp_path, monkeypatch, adjacency, tables, message):
    files = {"2g/adj_mat_1.npy": npy(adjacency), "2g/task_duration_1.npy": npy(tables)}
    write_set(tmp_path, monkeypatch, files)
    with pytest.raises(WorkloadError, match=message):
        tpch_raw.read_raw_profile(tmp_path, "2g", 1)


def test_package_keeps_a_checksum_of_every_file():
    names = {
        f"{size}/{kind}_{query}.npy"
        for size in ("2g", "5g", "10g", "20g", "50g", "80g", "100g")
        for kind in ("adj_mat", "task_duration")
        for query in range(1, 23)
    }
    assert set(tpch_raw.checksums()) == names
    assert all(len(digest) == 64 for digest in tpch_raw.checksums().values())


# Fetching from a mirror and over HTTP (a server on this machine), and every way it can fail.


FILES = {f"2g/adj_mat_{query}.npy": f"content {query}".encode() for query in range(1, 12)}


@pytest.fixture
def mirror(tmp_path, monkeypatch):
    """Mirror with a few files, set by the environment; the data folder is empty."""
    folder = tmp_path / "mirror"
    write_set(folder / "tpch", monkeypatch, FILES)
    monkeypatch.setenv(config.MIRROR_VARIABLE, str(folder))
    monkeypatch.setenv(config.DATA_DIR_VARIABLE, str(tmp_path / "data"))
    return folder / "tpch"


@pytest.fixture
def server(mirror, monkeypatch):
    """The same files over HTTP, and no mirror. Yields the list of requested paths."""
    requested = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def do_GET(self):
            requested.append(self.path)
            super().do_GET()

        def log_message(self, *args):
            pass

    handler = functools.partial(Handler, directory=str(mirror))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as httpd:
        thread = threading.Thread(target=httpd.serve_forever)
        thread.start()
        monkeypatch.delenv(config.MIRROR_VARIABLE)
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        monkeypatch.setattr(tpch_raw, "BASE_URL", f"http://127.0.0.1:{httpd.server_port}")
        try:
            yield requested
        finally:
            httpd.shutdown()
            thread.join()


def fetched():
    """Content of every file below the data folder, hidden and half-written ones included."""
    root = config.data_root()
    return {
        str(path.relative_to(root / "raw" / "tpch")): path.read_bytes() for path in root.rglob("*") if path.is_file()
    }


def test_all_files_come_from_the_mirror(mirror):
    assert tpch_raw.fetch_tpch(progress=False) == config.raw_tpch_dir()
    assert fetched() == FILES


def test_all_files_come_over_http(server):
    tpch_raw.fetch_tpch(progress=False)
    assert fetched() == FILES
    assert sorted(server) == sorted(f"/{name}" for name in FILES)


def test_verified_files_are_kept_and_damaged_ones_replaced(server):
    write_set_again = config.raw_tpch_dir() / "2g"
    write_set_again.mkdir(parents=True)
    (write_set_again / "adj_mat_1.npy").write_bytes(FILES["2g/adj_mat_1.npy"])
    (write_set_again / "adj_mat_2.npy").write_bytes(b"half a fi")
    tpch_raw.fetch_tpch(progress=False)
    assert fetched() == FILES
    assert "/2g/adj_mat_1.npy" not in server
    assert "/2g/adj_mat_2.npy" in server
    server.clear()
    tpch_raw.fetch_tpch(progress=False)
    assert server == []


def test_mirror_without_a_file(mirror):
    (mirror / "2g" / "adj_mat_7.npy").unlink()
    with pytest.raises(DataUnavailableError, match=r"no readable file .*adj_mat_7\.npy: No such file"):
        tpch_raw.fetch_tpch(progress=False)
    assert fetched().items() <= FILES.items()


@pytest.mark.parametrize("number", [1, 7])
def test_corrupted_file_of_the_mirror(mirror, number):
    (mirror / "2g" / f"adj_mat_{number}.npy").write_bytes(b"something else")
    with pytest.raises(
        ChecksumError, match=rf"adj_mat_{number}\.npy: got SHA-256 [0-9a-f]{{64}} .* expected [0-9a-f]{{64}}"
    ):
        tpch_raw.fetch_tpch(progress=False)
    assert fetched().items() <= FILES.items()
    assert f"2g/adj_mat_{number}.npy" not in fetched()


def test_corrupted_download(server, mirror):
    (mirror / "2g" / "adj_mat_3.npy").write_bytes(b"an error page")
    with pytest.raises(ChecksumError, match=r"http://127.0.0.1:\d+/2g/adj_mat_3\.npy: got SHA-256"):
        tpch_raw.fetch_tpch(progress=False)
    assert fetched().items() <= FILES.items()


def test_file_missing_on_the_server(server, mirror, monkeypatch):
    monkeypatch.setattr(pinned.time, "sleep", lambda seconds: None)
    (mirror / "2g" / "adj_mat_5.npy").unlink()
    with pytest.raises(DataUnavailableError, match=r"adj_mat_5\.npy: HTTP status 404"):
        tpch_raw.fetch_tpch(progress=False)
    assert server.count("/2g/adj_mat_5.npy") == pinned.ATTEMPTS


def test_no_network_is_one_quick_error_that_names_both_ways(mirror, monkeypatch):
    with socket.socket() as unused:  # bound but not listening: connections are refused
        unused.bind(("127.0.0.1", 0))
        monkeypatch.delenv(config.MIRROR_VARIABLE)
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        monkeypatch.setattr(tpch_raw, "BASE_URL", f"http://127.0.0.1:{unused.getsockname()[1]}")
        start = time.perf_counter()
        with pytest.raises(DataUnavailableError) as caught:
            tpch_raw.fetch_tpch(progress=False)
    assert time.perf_counter() - start < 5.0
    message = str(caught.value)
    assert "cannot fetch http://127.0.0.1" in message
    assert "DECIMA_DATA_MIRROR" in message
    assert "network access" in message
    assert "\n" not in message
    assert fetched() == {}


def test_bytes_are_in_place_only_when_whole(mirror, monkeypatch):
    """A process that dies while it writes leaves no file under the final name."""

    def die(handle):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", die)
    with pytest.raises(KeyboardInterrupt):
        tpch_raw.fetch_tpch(progress=False)
    assert fetched() == {}
