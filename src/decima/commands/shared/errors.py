"""Errors of the command line: one plain sentence on stderr and an exit code, never a traceback."""

from __future__ import annotations

import sys
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

from decima.core.errors import DecimaError

BAD_INPUT = 2
INTERRUPTED = 130  # 128 + SIGINT, as shells have it


class PlainErrors(TyperGroup):
    """Command group that reports errors in one line: exit code 2 for bad input, 130 when interrupted."""

    def main(self, *args: Any, standalone_mode: bool = True, **options: Any) -> Any:
        """Run a command line; with `standalone_mode` the process exits, as usual with Typer."""
        if not standalone_mode:
            return super().main(*args, standalone_mode=False, **options)
        try:
            code = super().main(*args, standalone_mode=False, **options)
        except DecimaError as error:
            _fail(str(error), BAD_INPUT)
        except typer.TyperException as error:  # wrong options
            _fail(error.format_message(), BAD_INPUT)
        except typer.Abort:
            _fail("interrupted", INTERRUPTED)
        except ModuleNotFoundError as error:
            if error.name is None or error.name.partition(".")[0] == "decima":
                raise
            _fail(f"{error.name} is not installed; 'decima doctor' says what is missing for what", BAD_INPUT)
        except MemoryError as error:
            _fail(f"not enough memory: {error or 'an allocation failed'}", BAD_INPUT)
        except OSError as error:
            _fail(f"{error.filename or 'system'}: {error.strerror or error}", BAD_INPUT)
        if code == INTERRUPTED:  # how Typer hands on a KeyboardInterrupt
            _fail("interrupted", INTERRUPTED)
        sys.exit(code if isinstance(code, int) else 0)


def _fail(message: str, code: int) -> NoReturn:
    typer.echo(f"error: {' '.join(message.split())}", err=True)
    sys.exit(code)
