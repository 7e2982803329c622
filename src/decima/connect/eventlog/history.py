"""Event logs of a Spark history server, through its REST interface.

Source: Spark's "Monitoring and Instrumentation", REST API: ``/api/v1/applications`` and
``/api/v1/applications/ID/logs``, a zip of the logs of all attempts.
"""

from __future__ import annotations

import json
import os
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

from decima.connect.eventlog.files import unpack
from decima.core.errors import ConfigError, DataUnavailableError, EventLogError

#: Environment variables with the user and the password of the server.
USER, PASSWORD = "DECIMA_HISTORY_USER", "DECIMA_HISTORY_PASSWORD"
_API = "/api/v1/applications"
_TIMEOUT_S = 60.0


class Listed(NamedTuple):
    """One application in the list of a server."""

    app_id: str  # Spark's id
    name: str  # the application's name
    seconds: float  # duration of its last attempt
    completed: bool  # whether that attempt has ended


def is_server(text: str) -> bool:
    """Whether a text is an address rather than a path."""
    return text.startswith(("http://", "https://"))


def read_address(text: str) -> tuple[str, str | None]:
    """Address of a server, and the application that the text names after it.

    ``http://HOST:18080/ID``, the address of a browser (``.../history/ID/jobs/``) and that of the REST interface do.

    Raises:
        ConfigError: There is no host, or the address has a user or password.
    """
    parts = urlsplit(text)
    if "@" in parts.netloc:
        raise ConfigError(f"user and password do not belong in an address; expected them in {USER} and {PASSWORD}")
    if not parts.hostname:
        raise ConfigError(f"{text} names no host; expected http://HOST:18080 or http://HOST:18080/APPLICATION")
    words = [word for word in parts.path.split("/") if word not in ("", "api", "v1", "applications", "history")]
    return f"{parts.scheme}://{parts.netloc}", words[0] if words else None


def list_applications(server: str) -> list[Listed]:
    """Applications that a server knows, as it lists them, the latest first.

    Raises:
        DataUnavailableError: No history server answers there.
        EventLogError: Its answer is not a list of applications.
    """
    with _get(server, _API) as answer:
        try:
            return [_listed(entry) for entry in _list(json.loads(answer.content))]
        except (ValueError, TypeError, KeyError, IndexError):
            what = "no list of applications; is it a Spark history server?"
            raise EventLogError(f"{server} answers with {what}") from None


def _list(value: Any) -> list:
    """The value, if it is a list."""
    if not isinstance(value, list):
        raise TypeError
    return value


def _listed(entry: dict[str, Any]) -> Listed:
    last = entry["attempts"][0]
    return Listed(str(entry["id"]), str(entry["name"]), float(last["duration"]) / 1000.0, bool(last["completed"]))


@contextmanager
def local_logs(logs: Sequence[str | os.PathLike]) -> Iterator[list[Path]]:
    """Paths of logs, those on a server as folders that last like the context.

    Raises:
        ConfigError: An address names no application; the message lists those of its server.
        DataUnavailableError: No history server answers there, it has no such application, or the disk cannot keep its
            log.
        EventLogError: Its answer holds no log.
    """
    with ExitStack() as stack:
        paths = []
        for log in map(str, logs):
            if not is_server(log):
                paths.append(Path(log))
                continue
            server, app_id = read_address(log)
            if app_id is None:
                raise ConfigError(f"{server} has several logs; expected one of {_shown(server)}")
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="decima-history-")))
            _fetch(server, app_id, folder)
            paths.append(folder)
        yield paths


def _shown(server: str) -> str:
    """Addresses of the first completed applications, for a message."""
    ended = [each for each in list_applications(server) if each.completed]
    if not ended:
        raise EventLogError(f"{server} has no completed application")
    shown = ", ".join(f"{server}/{each.app_id} ({each.name}, {each.seconds:.0f} s)" for each in ended[:8])
    return shown + (f", and {len(ended) - 8} more" if len(ended) > 8 else "")


def _fetch(server: str, app_id: str, folder: Path) -> None:
    """Unpack the logs of an application into a folder."""
    try:
        with tempfile.NamedTemporaryFile() as packed:
            with _get(server, f"{_API}/{quote(app_id, safe='')}/logs") as answer:
                for part in answer.iter_content(1 << 20):
                    packed.write(part)
            packed.flush()
            if not zipfile.is_zipfile(packed.name):
                raise EventLogError(f"{server} answers with no zip of the log of {app_id}")
            try:
                unpack(Path(packed.name), folder)
            except EventLogError as error:
                raise EventLogError(f"{server} answers with no zip of the log of {app_id}, which {error}") from None
    except OSError as error:
        why = error.strerror or error
        raise DataUnavailableError(f"cannot keep the log of {app_id} in {folder.parent}: {why}") from None
    if not any(folder.iterdir()):
        raise EventLogError(f"{server} has no log of {app_id}")


@contextmanager
def _get(server: str, path: str) -> Iterator[Any]:
    """Answer to a request, with user and password of the environment."""
    import requests

    user = os.environ.get(USER)
    auth = None if user is None else (user, os.environ.get(PASSWORD, ""))
    try:
        answer = requests.get(server + path, auth=auth, timeout=_TIMEOUT_S, stream=True)
    except (requests.RequestException, ValueError) as error:
        raise DataUnavailableError(f"no history server answers at {server} ({type(error).__name__})") from None
    with answer:
        if answer.status_code in (401, 403):
            why = f"it refuses access ({answer.status_code}); user and password are read from {USER} and {PASSWORD}"
            raise DataUnavailableError(f"no event log from {server}: {why}")
        if answer.status_code != 200:
            raise DataUnavailableError(f"no event log from {server}: it answers {answer.status_code} for {path}")
        try:
            yield answer
        except requests.RequestException as error:
            raise DataUnavailableError(f"{server} stopped within an answer ({type(error).__name__})") from None
