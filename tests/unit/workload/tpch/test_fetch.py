"""Fetching from a mirror and over HTTP (a server on this machine), and every way it can fail."""

import functools
import http.server
import os
import socket
import threading
import time

import pytest

from decima.core import config
from decima.core.errors import ChecksumError, DataUnavailableError
from decima.workload import pinned
from decima.workload.tpch import raw
from tests.unit.workload.tpch.raw_files import write_set

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
        monkeypatch.setattr(raw, "BASE_URL", f"http://127.0.0.1:{httpd.server_port}")
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
    assert raw.fetch_tpch(progress=False) == config.raw_tpch_dir()
    assert fetched() == FILES


def test_all_files_come_over_http(server):
    raw.fetch_tpch(progress=False)
    assert fetched() == FILES
    assert sorted(server) == sorted(f"/{name}" for name in FILES)


def test_verified_files_are_kept_and_damaged_ones_replaced(server):
    write_set_again = config.raw_tpch_dir() / "2g"
    write_set_again.mkdir(parents=True)
    (write_set_again / "adj_mat_1.npy").write_bytes(FILES["2g/adj_mat_1.npy"])
    (write_set_again / "adj_mat_2.npy").write_bytes(b"half a fi")
    raw.fetch_tpch(progress=False)
    assert fetched() == FILES
    assert "/2g/adj_mat_1.npy" not in server
    assert "/2g/adj_mat_2.npy" in server
    server.clear()
    raw.fetch_tpch(progress=False)
    assert server == []


def test_mirror_without_a_file(mirror):
    (mirror / "2g" / "adj_mat_7.npy").unlink()
    with pytest.raises(DataUnavailableError, match=r"no readable file .*adj_mat_7\.npy: No such file"):
        raw.fetch_tpch(progress=False)
    assert fetched().items() <= FILES.items()


def test_mirror_that_does_not_exist(mirror, monkeypatch):
    monkeypatch.setenv(config.MIRROR_VARIABLE, str(mirror / "nowhere"))
    with pytest.raises(DataUnavailableError, match="nowhere has no readable file"):
        raw.fetch_tpch(progress=False)
    assert fetched() == {}


@pytest.mark.parametrize("number", [1, 7])
def test_corrupted_file_of_the_mirror(mirror, number):
    (mirror / "2g" / f"adj_mat_{number}.npy").write_bytes(b"something else")
    with pytest.raises(
        ChecksumError, match=rf"adj_mat_{number}\.npy: got SHA-256 [0-9a-f]{{64}} .* expected [0-9a-f]{{64}}"
    ):
        raw.fetch_tpch(progress=False)
    assert fetched().items() <= FILES.items()
    assert f"2g/adj_mat_{number}.npy" not in fetched()


def test_corrupted_download(server, mirror):
    (mirror / "2g" / "adj_mat_3.npy").write_bytes(b"an error page")
    with pytest.raises(ChecksumError, match=r"http://127.0.0.1:\d+/2g/adj_mat_3\.npy: got SHA-256"):
        raw.fetch_tpch(progress=False)
    assert fetched().items() <= FILES.items()


def test_file_missing_on_the_server(server, mirror, monkeypatch):
    monkeypatch.setattr(pinned.time, "sleep", lambda seconds: None)
    (mirror / "2g" / "adj_mat_5.npy").unlink()
    with pytest.raises(DataUnavailableError, match=r"adj_mat_5\.npy: HTTP status 404"):
        raw.fetch_tpch(progress=False)
    assert server.count("/2g/adj_mat_5.npy") == pinned.ATTEMPTS


def test_no_network_is_one_quick_error_that_names_both_ways(mirror, monkeypatch):
    with socket.socket() as unused:  # bound but not listening: connections are refused
        unused.bind(("127.0.0.1", 0))
        monkeypatch.delenv(config.MIRROR_VARIABLE)
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        monkeypatch.setattr(raw, "BASE_URL", f"http://127.0.0.1:{unused.getsockname()[1]}")
        start = time.perf_counter()
        with pytest.raises(DataUnavailableError) as caught:
            raw.fetch_tpch(progress=False)
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
        raw.fetch_tpch(progress=False)
    assert fetched() == {}
