"""Logs from a history server: a small server on loopback with its answers, good and bad."""

import base64
import errno
import io
import json
import os
import threading
import zipfile
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from decima.connect.eventlog.application import read_event_log, read_event_logs
from decima.connect.eventlog.history import list_applications, local_logs, read_address
from decima.core.errors import ConfigError, DataUnavailableError, EventLogError
from tests.unit.commands.calls import refuse, succeed
from tests.unit.connect.event_lines import LOGS

APP = "app-20261101120000-0001"
LISTED = [
    {"id": APP, "name": "queries", "attempts": [{"duration": 61_000, "completed": True}]},
    {"id": "local-2", "name": "runs", "attempts": [{"duration": 5, "completed": False}]},
]


def zipped():
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as logs:
        logs.write(LOGS / "queries.zstd", f"{APP}.zstd")
    return packed.getvalue()


@contextmanager
def serving(listed=None, logs=None, word=None):
    """Address of a server with a list and a log; with a word, only for those who send it."""
    answers = {"/api/v1/applications": json.dumps(LISTED).encode() if listed is None else listed}
    answers[f"/api/v1/applications/{APP}/logs"] = zipped() if logs is None else logs

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            body = answers.get(self.path)
            code = 404 if body is None else 200
            if word is not None and self.headers.get("Authorization") != f"Basic {word}":
                code = 401
            self.send_response(code)
            self.end_headers()
            self.wfile.write(body or b"") if code == 200 else None

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def test_addresses():
    for path in (APP, f"history/{APP}/jobs/", f"api/v1/applications/{APP}"):
        assert read_address(f"http://host:18080/{path}") == ("http://host:18080", APP)
    assert read_address("https://host/") == ("https://host", None)
    with pytest.raises(ConfigError, match="names no host"):
        read_address("http://")


def test_a_log_is_read_as_the_file_is_and_removed_afterwards(no_user):
    with serving() as server:
        assert [each.completed for each in list_applications(server)] == [True, False]
        with local_logs([f"{server}/{APP}", LOGS / "queries.zstd"]) as paths:
            remote, local = map(read_event_log, paths)
            assert len(read_event_logs(paths)) == 1
    assert remote.tasks.equals(local.tasks)
    assert paths[1] == LOGS / "queries.zstd"
    assert not paths[0].exists()


@pytest.fixture
def no_user(monkeypatch):
    monkeypatch.delenv("DECIMA_HISTORY_USER", raising=False)


def test_user_and_password_come_from_the_environment_and_appear_nowhere(monkeypatch):
    word = base64.b64encode(b"ann:secret").decode()
    monkeypatch.setenv("DECIMA_HISTORY_USER", "ann")
    with serving(word=word) as server:
        monkeypatch.setenv("DECIMA_HISTORY_PASSWORD", "wrong one")
        message = refuse("capacity", f"{server}/{APP}")
        assert "it refuses access (401)" in message
        assert "wrong" not in message
        monkeypatch.setenv("DECIMA_HISTORY_PASSWORD", "secret")
        assert len(list_applications(server)) == 2
    assert "secret" not in refuse("capacity", "http://ann:secret@host:18080/app")


def test_capacity_from_a_server(no_user):
    with serving() as server:
        assert f"expected one of {server}/{APP} (queries, 61 s)" in refuse("capacity", server)
        assert "with spark_fifo (knee)" in succeed("capacity", f"{server}/{APP}", "--executors", 2, "--draws", 1)


def test_nonsense_gives_a_sentence(no_user):
    for listed in (b"<html>", b"{}", b"[1]", b'[{"id": "a", "name": "b", "attempts": []}]', b"\xff"):
        with serving(listed=listed) as server, pytest.raises(EventLogError, match="no list of applications"):
            list_applications(server)
    with serving(listed=b"[]") as server:
        assert "has no completed application" in refuse("capacity", server)
    broken = bytearray(zipped())
    broken[80:90] = bytes(10)  # its packed bytes
    for logs in (b"", b"PK\x03\x04 no zip", zipped()[:-30], bytes(broken)):
        with serving(logs=logs) as server:
            assert "answers with no zip of the log" in refuse("capacity", f"{server}/{APP}")
    with serving() as server:
        assert "it answers 404 for /api/v1/applications/no-such/logs" in refuse("capacity", f"{server}/no-such")
    with pytest.raises(DataUnavailableError, match="no history server answers at"):
        list_applications(server)


@pytest.mark.parametrize("where", ["decima.connect.eventlog.files._keep", "tempfile.NamedTemporaryFile"])
def test_a_full_disk_is_called_so_and_leaves_nothing(where, no_user, monkeypatch, tmp_path):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(where, full)
    with serving() as server:
        message = refuse("capacity", f"{server}/{APP}")
    assert f"cannot keep the log of {APP} in {tmp_path}: No space left on device" in message
    assert list(tmp_path.iterdir()) == []
