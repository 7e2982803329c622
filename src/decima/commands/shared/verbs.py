"""Verbs of the command line: one command per verb and system."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn

import typer
from typer.core import TyperGroup

from decima.commands.shared.examples import with_example
from decima.core.errors import ConfigError, DecimaError
from decima.core.extras import advice
from decima.core.grammar import hint, present_name

BAD_INPUT = 2
INTERRUPTED = 130  # 128 + SIGINT, as shells have it
DEFAULT_SYSTEM = "spark"
SYSTEMS = (DEFAULT_SYSTEM, "heterogeneous", "cloud")


@dataclass(frozen=True)
class Verb:
    """What one verb does for each system.

    Attributes:
        name: The word on the command line.
        forms: By system, makers of commands by method; the first method is the default, "" where there is but one.
        infer: System that the other words mean where `--system` is omitted; else it is the first.
        expand: What turns the words into those of the call that they mean; else they are that.
    """

    name: str
    forms: Mapping[str, Mapping[str, Callable[[], Callable[..., None]]]]
    infer: Callable[[list[str]], str | None] | None = None
    expand: Callable[[list[str]], list[str]] = list

    def command(self, system: str, method: str) -> Any:
        """The command of a system and a method."""
        app = typer.Typer(add_completion=False, rich_markup_mode=None)
        self.add_to(app, system, method)
        return typer.main.get_command(app)

    def add_to(self, app: typer.Typer, system: str, method: str | None = None) -> None:
        """Add the command of a system and method to an application."""
        methods = self.forms[system]
        name = self.name.split()[-1]
        if method is None or method == next(iter(methods)):
            app.command(name)(next(iter(methods.values()))())
        else:
            app.command(f"{name} {method}")(methods[method]())

    def resolve(self, words: list[str]) -> tuple[str, Any, list[str]]:
        """Choose the command that the words after the verb mean.

        Returns:
            Its name for messages, the command, and the words that are left for it.

        Raises:
            ConfigError: System or method is unknown, or an option belongs to another system.
        """
        system, words = _take_system(self.expand(words))
        if system is None:
            system = (self.infer and self.infer(words)) or next(iter(self.forms))
        system = present_name(system)
        if system not in SYSTEMS:
            raise ConfigError(f"unknown system {system!r}{hint(system, SYSTEMS)}; known: {', '.join(SYSTEMS)}")
        if system not in self.forms:
            raise ConfigError(
                f"'decima {self.name}' is not there for --system {system}; it is for: {', '.join(self.forms)}"
            )
        methods = self.forms[system]
        method = next(iter(methods))
        if words and (words[0] in methods):
            method, words = words[0], words[1:]
        elif words and (others := [other for other, known in self.forms.items() if words[0] in known]):
            raise ConfigError(f"'decima {self.name} {words[0]}' is there for --system {others[0]}, not for {system}")
        command = self.command(system, method)
        self._check_options(command, system, words)
        title = " ".join(filter(None, (self.name.split()[-1], method * (method != next(iter(methods))))))
        return title + (f" --system {system}" if system != next(iter(self.forms)) else ""), command, words

    def _check_options(self, command: Any, system: str, words: list[str]) -> None:
        """Name the system or method that has an option which the chosen command lacks."""
        known = _options(command)
        for word in words[: words.index("--")] if "--" in words else words:
            option = word.partition("=")[0]
            if not option.startswith("--") or option in known:
                continue
            for other, methods in self.forms.items():
                for number, method in enumerate(methods):
                    if option in _options(self.command(other, method)):
                        right = " ".join(filter(None, ("decima", self.name, method if number else "")))
                        raise ConfigError(f"{option} is an option of '{right} --system {other}', not of {system} here")


def _options(command: Any) -> set[str]:
    """Names of the options of a command."""
    return {"--help", *(name for each in command.params for name in (*each.opts, *each.secondary_opts))}


def _take_system(words: list[str]) -> tuple[str | None, list[str]]:
    """Value of `--system` (None where it is omitted) and the other words."""
    system, rest, left = None, [], iter(words)
    for word in left:
        option, equals, value = word.partition("=")
        if option != "--system":
            rest.append(word)
            continue
        system = value if equals else next(left, None)
        if system is None:
            raise ConfigError(f"Option '--system' requires an argument: one of {', '.join(SYSTEMS)}")
    return system, rest


# Commands of earlier versions, and what they are called now; by the first two words where the first has several.
RENAMED = {
    "bound": "optimum",
    "exhaustive": "optimum exhaustive",
    "idle-value": "optimum idle-value",
    "plan": "simulate --system heterogeneous",
    "plan schedule": "simulate --system heterogeneous --scheduler NAME",
    "plan compare": "compare --system heterogeneous",
    "plan optimum": "optimum --system heterogeneous",
    "plan bound": "optimum bound --system heterogeneous",
    "plan check": "workload check",
    "plan import": "workload write --system heterogeneous",
    "plan schedulers": "schedulers --system heterogeneous",
    "cloud": "simulate --system cloud",
    "cloud simulate": "simulate --system cloud",
    "cloud compare": "compare --system cloud",
    "cloud train": "train --system cloud",
    "cloud optimum": "optimum --system cloud",
    "cloud plan": "optimum --system cloud --log FILE",
    "cloud vms": "workload vms",
}
# Commands and options that are gone, with the last version that has them or what replaces them.
_LAST = "version 0.2.0 is the last one that has it"
REMOVED = {"bench duel": _LAST, "optimum --fluid": _LAST, "optimum --solver": "OR-Tools is used where it is installed"}
REMOVED |= {
    "tune --checkpoint": _LAST,
    "simulate --time-limit-s": "expected --set settings.time_limit_ms=MS",
    "optimum --best-only": _LAST,
    "optimum --runnable-only": _LAST,
    "models --json": "expected decima.models() in Python",
    "bench --many": "expected decima bench score DIR/*.py",
    "data --force": "damaged files are fetched again without it",
    "spark slim": _LAST,
    "workload import": "expected decima workload write --system heterogeneous --jobs FILE",
    "workload alibaba": "expected decima workload write alibaba:part=test --out FILE",
}
REMOVED |= dict.fromkeys(("simulate --service", "compare --service"), "expected --scheduler remote:HOST:PORT")


class VerbGroup(TyperGroup):
    """Command group with verbs."""

    verbs: ClassVar[Mapping[str, Verb]] = {}
    apart: ClassVar[Mapping[str, frozenset[str]]] = {}  # commands listed under a heading of their own

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List the commands, each with its first sentence."""
        commands = {name: command for name in self.list_commands(ctx) if (command := self.get_command(ctx, name))}
        elsewhere = frozenset().union(*self.apart.values())
        for heading, names in {"Commands": commands.keys() - elsewhere, **self.apart}.items():
            rows = [(name, each.get_short_help_str(200)) for name, each in commands.items() if name in names]
            with formatter.section(heading):
                formatter.write_dl(rows)

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Choose the command that the first words mean.

        Raises:
            ConfigError: As of :meth:`Verb.resolve`.
        """
        if args and args[0] in self.verbs:
            title, command, words = self.verbs[args[0]].resolve(args[1:])
            return title, with_example(command, f"{self.verbs[args[0]].name.rpartition(' ')[0]} {title}".strip()), words
        return super().resolve_command(ctx, args)


class DecimaGroup(VerbGroup):
    """Main command; an error is one line, with exit code 2, or 130 when interrupted."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of a name, with its example; None if there is none."""
        command = super().get_command(ctx, cmd_name)
        return command and with_example(command, cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Choose the command that the first words mean.

        Raises:
            ConfigError: The command has another name now or is gone, or as of :meth:`Verb.resolve`.
        """
        words = (f"{args[0]} {word.partition('=')[0]}" for word in args[1:] if word == args[1] or word.startswith("--"))
        if removed := next((each for each in words if each in REMOVED), None):
            raise ConfigError(f"'decima {removed}' is gone: {REMOVED[removed]}")
        if args and args[0] in RENAMED and args[0] not in self.verbs:
            old = " ".join(args[:2]) if " ".join(args[:2]) in RENAMED else args[0]
            raise ConfigError(f"'decima {old}' is now 'decima {RENAMED[old]}'")
        return super().resolve_command(ctx, args)

    def main(self, *args: Any, standalone_mode: bool = True, **options: Any) -> Any:
        """Run a command line; with `standalone_mode` the process exits, as usual with Typer."""
        if not standalone_mode:
            return super().main(*args, standalone_mode=False, **options)
        try:
            code = super().main(*args, standalone_mode=False, **options)
        except DecimaError as error:
            _fail(str(error), BAD_INPUT)
        except typer.TyperException as error:  # wrong options
            said, at = error.format_message(), getattr(error, "ctx", None)
            _fail(f"{said.rstrip('.')}; see '{at.command_path} --help'" if at and said[-1] != "?" else said, BAD_INPUT)
        except typer.Abort:
            _fail("interrupted", INTERRUPTED)
        except ModuleNotFoundError as error:
            if error.name is None or error.name.partition(".")[0] == "decima":
                raise
            general = f"{error.name} is not installed; 'decima doctor' lists missing parts and what needs them"
            _fail(advice(error.name) or general, BAD_INPUT)
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
