"""Options that several commands share, so that they are called and mean the same everywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import fields, is_dataclass
from functools import wraps
from importlib import import_module
from inspect import Parameter, Signature, signature
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Annotated, Any, get_type_hints

import typer

from decima.commands.shared.compilation import watch_compilation
from decima.commands.shared.verbs import DEFAULT_SYSTEM, SYSTEMS
from decima.core.errors import ConfigError
from decima.core.grammar import MOST as MOST


def option(value: str, text: str, *names: str, **more: Any) -> Any:
    """Option with a value.

    Args:
        value: What the help calls the value.
        text: What the help says.
        *names: Names that differ from that of the parameter.
        **more: Further arguments of ``typer.Option``.
    """
    return typer.Option(*names, metavar=value, help=text, **more)


def set_option(text: str) -> Any:
    """Option `--set` with its text of help."""
    return option("GROUP.KEY=VALUE", text, "--set")


Seed = Annotated[int, option("N", "Seed of all random numbers; the same seed gives the same result.")]
SchedulerText = Annotated[
    str,
    option(
        "SCHEDULER",
        "A name, with a preset or parameters (weighted_fair:paper; weighted_fair:alpha=-1; decima:tpch-stream; "
        "heft:decision=idle; ilp_beta:beta=0.5), see 'decima schedulers'; or a .json that 'decima tune' wrote.",
    ),
]
METRICS = "Objective to report: avg_jct, makespan, p95_jct, slowdown, cost, above_bound and others."
Learned = Annotated[str, option("NAME", "Objective to learn: avg_jct, makespan, p95_jct, slowdown and others.")]
Workers = Annotated[
    int | None,
    option("N", "Number of workers (does not affect results).", "--workers", "--threads", min=1, show_default="all"),
]
Backend = Annotated[
    str | None,
    option(
        "threads|processes|ray",
        "Type of workers (does not affect results).",
        show_default="ray if RAY_ADDRESS is set, else threads",
    ),
]
Threads = Annotated[
    int | None, option("N", "Number of worker threads (does not affect results).", min=1, show_default="all")
]


TableOut = Annotated[Path | None, option("FILE", "Write the table (.csv or .parquet).")]
ResultOut = Annotated[Path | None, option("FILE", "Write the result (.json).")]
Gantt = Annotated[Path | None, option("FILE", "Draw the schedule (.png, .pdf, .svg; .html to explore).")]
_System = Annotated[str, option("|".join(SYSTEMS), "System to schedule.", "--system")]


class SystemOptions:
    """Placeholder for the options of a system, whose dataclasses are in ``decima.commands.systems``."""


def module_of(system: str) -> ModuleType:
    """Module of the options of a system."""
    return import_module(f"decima.commands.systems.{system}")


def registry_of(system: str) -> ModuleType:
    """Module with the schedulers of a system (``SCHEDULERS``) and their grammar."""
    return import_module(f"decima.systems.{system}.schedulers.registry")


def maker(command: Callable[..., None], system: str, verb: str) -> Callable[[], Callable[..., None]]:
    """Function that gives a command the options of a system when it is needed.

    Args:
        command: Function of the system's name and of options; a keyword-only parameter annotated with
            :class:`SystemOptions` gets those of the system.
        system: Name of the system. Its module has a dataclass per verb, ``OPTIONS[verb]``, and may have ``DEFAULTS``
            of the other parameters.
        verb: Name of the verb.
    """

    def make() -> Callable[..., None]:
        module: Any = module_of(system)
        defaults = getattr(module, "DEFAULTS", {})
        return grouped(command, system=system, record=module.OPTIONS[verb], defaults=defaults)

    return make


def grouped(
    command: Callable[..., None],
    *,
    system: str | None = None,
    record: type | None = None,
    defaults: Mapping[str, Any] = MappingProxyType({}),
    compiles: bool = True,
) -> Callable[..., None]:
    """Decorate a command so that a dataclass parameter appears as its fields.

    The command gets the dataclass made of what was given, so that options which belong together are listed once.

    Args:
        command: The command.
        system: Its system; the command then lists the option ``--system``, which has chosen it.
        record: Dataclass that replaces :class:`SystemOptions`.
        defaults: Defaults by parameter that go before those of the signature.
        compiles: Whether it may compile, which is announced.
    """
    hints = get_type_hints(command, include_extras=True)
    hints = {name: record if hint is SystemOptions else hint for name, hint in hints.items()}
    groups = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    parameters: list[Parameter] = []
    for parameter in signature(command).parameters.values():
        name = parameter.name
        if name == "system" and system is not None:
            continue
        if name in groups:
            types = get_type_hints(groups[name], include_extras=True)
            parameters += [
                Parameter(field.name, Parameter.KEYWORD_ONLY, default=field.default, annotation=types[field.name])
                for field in fields(groups[name])
            ]
        else:
            default = defaults.get(name, parameter.default)
            parameters.append(parameter.replace(kind=Parameter.KEYWORD_ONLY, annotation=hints[name], default=default))
    if system is not None:
        parameters.append(Parameter("system", Parameter.KEYWORD_ONLY, default=system, annotation=_System))

    @wraps(command)
    def call(**values) -> None:
        if system is not None:
            values["system"] = system
            if compiles:
                watch_compilation()
        for name, group in groups.items():
            values[name] = group(**{field.name: values.pop(field.name) for field in fields(group)})
        command(**values)

    # What Typer reads; it must not look behind the wrapper.
    del call.__wrapped__
    call.__signature__ = Signature(parameters)
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return call


def require_different(texts: Sequence[str]) -> None:
    """Raise ConfigError if a text is repeated."""
    for text in texts:
        if text.isdigit():
            raise ConfigError(f"{text!r} is not a scheduler; did you mean '--executors {text}'?")
        if texts.count(text) > 1:
            raise ConfigError(f"scheduler {text!r} is given twice")


@contextmanager
def opened(texts: Sequence[str], system: str = DEFAULT_SYSTEM) -> Iterator[dict[str, Any]]:
    """Make schedulers of a system from texts and close them when the block ends.

    Raises:
        UnknownSchedulerError: No scheduler has that name.
        ConfigError: A text is given twice, or is not as expected.
    """
    from decima.core.system import get_system

    require_different(texts)
    with ExitStack() as stack:
        schedulers = {text: get_system(system).make_scheduler(text) for text in texts}
        for scheduler in schedulers.values():
            if hasattr(scheduler, "__exit__"):
                stack.enter_context(scheduler)
        yield schedulers


def say_remarks(schedulers: Iterable[Any], workloads: Sequence[Any]) -> None:
    """Print what schedulers say about their runs, such as which stored policy ``decima`` took."""
    for scheduler in schedulers:
        if hasattr(scheduler, "remark"):
            typer.echo(scheduler.remark(workloads))
