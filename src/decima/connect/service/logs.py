"""Log of the service: one line per event, with fields, as text or JSON."""

from __future__ import annotations

import json
import logging
import sys
import time

#: Lines per second; a client that is refused again and again must not fill a disk.
MOST_PER_S = 50
_ROOM = logging.getLogger("decima.connect.service")


def set_up(level: str, form: str) -> None:
    """Write the service's log to stderr from now on.

    Args:
        level: ``debug``, ``info``, ``warning`` or ``error``.
        form: ``text`` or ``json``.
    """
    handler = _Stderr()
    handler.setFormatter(_Line(form == "json"))
    handler.addFilter(_Throttle())
    _ROOM.handlers = [handler]
    _ROOM.setLevel(level.upper())


def event(logger: logging.Logger, level: int, message: str, **named: object) -> None:
    """Log what happened, with fields."""
    logger.log(level, message, extra={"named": named})


class _Stderr(logging.StreamHandler):
    """Handler for whatever stderr is when a line is written."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)

    @property
    def stream(self):
        return sys.stderr


class _Line(logging.Formatter):
    """Time in UTC, level, message and fields of an event, in one line."""

    def __init__(self, as_json: bool) -> None:
        super().__init__()
        self._as_json = as_json

    def format(self, record: logging.LogRecord) -> str:
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z"
        fields = dict(getattr(record, "named", {}))
        if record.exc_info:
            fields["trace"] = self.formatException(record.exc_info)
        if self._as_json:
            return json.dumps(
                {"time": at, "level": record.levelname.lower(), "message": record.getMessage(), **fields}, default=str
            )
        shown = "".join(f" {name}={_word(value)}" for name, value in fields.items())
        return f"{at} {record.levelname.lower()} {record.getMessage()}{shown}"


def _word(value: object) -> str:
    """Value as one word, in quotes if it could be taken for more."""
    text = str(value)
    plain = text.isascii() and text.isprintable() and not set(' "=') & set(text) and text
    return text if plain else json.dumps(text)


class _Throttle(logging.Filter):
    """Limit of lines per second; the next line has the number of lines left out."""

    def __init__(self) -> None:
        super().__init__()
        self._second, self._lines, self._left_out = 0, 0, 0

    def filter(self, record: logging.LogRecord) -> bool:
        second = int(record.created)
        if second != self._second:
            self._second, self._lines = second, 0
        self._lines += 1
        if self._lines > MOST_PER_S:
            self._left_out += 1
            return False
        if self._left_out:
            record.named = getattr(record, "named", {}) | {"lines_left_out": self._left_out}
            self._left_out = 0
        return True
