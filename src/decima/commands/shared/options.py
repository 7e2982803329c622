"""Options that several commands share, so that they are called and mean the same everywhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from decima.core.errors import ConfigError
from decima.core.grammar import key_values, read_fields

if TYPE_CHECKING:
    from decima.systems.spark.settings import Settings

MOST = 10_000_000  # numbers beyond need more memory than machines have

Jobs = Annotated[
    str,
    typer.Option(
        "--jobs",
        metavar="JOBS",
        help="A source with options (tpch; embedded:n=5,sizes=2g+10g; synthetic:n=200,interarrival_s=25), see "
        "'decima workload sources'; or a file (.json, .parquet).",
    ),
]
Seed = Annotated[int, typer.Option(metavar="N", help="Source of all chance; the same seed gives the same result.")]
Executors = Annotated[int, typer.Option(metavar="N", max=MOST, help="Executors of the cluster.")]
Classes = Annotated[
    str | None,
    typer.Option(
        metavar="MEMORY:N,...",
        help="Classes of executors (0.25:50,0.5:50,1:100; with CPUs 0.5x2:50), instead of --executors.",
        show_default="one that fits all",
    ),
]
Mode = Annotated[
    str,
    typer.Option(
        metavar="paper|released|simplified",
        help="Rules of the paper, of the published simulator, or of appendix H.",
    ),
]
Durations = Annotated[
    str | None,
    typer.Option(metavar="sampled|mean", help="Draw task durations or use their means.", show_default="by mode"),
]
Changes = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="GROUP.KEY=VALUE",
        help="Change a setting (settings.moving_delay_ms=0); may be given several times.",
    ),
]
SchedulerText = Annotated[
    str,
    typer.Option(
        metavar="SCHEDULER",
        help="A name, with a preset or parameters (weighted_fair:paper; weighted_fair:alpha=-1; decima:tpch-stream; "
        "remote:HOST:PORT; replay:FILE), see 'decima schedulers'; or a .json that 'decima tune' wrote.",
    ),
]
Metric = Annotated[
    str,
    typer.Option(
        metavar="NAME", help="What counts: avg_jct, makespan, p50_jct, p90_jct, p95_jct, p99_jct or slowdown."
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(
        "--workers", "--threads", metavar="N", min=1, help="Workers; no result depends on it.", show_default="all"
    ),
]
Backend = Annotated[
    str | None,
    typer.Option(
        metavar="threads|processes|ray",
        help="Where workers run; no result depends on it.",
        show_default="ray if RAY_ADDRESS is set, else threads",
    ),
]
Threads = Annotated[
    int | None, typer.Option(metavar="N", min=1, help="Worker threads; no result depends on it.", show_default="all")
]


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Decorate a command so that a keyword-only parameter whose type is a dataclass appears as the fields of that.

    The command gets the dataclass made of what was given, so that options which belong together are listed once.
    """
    hints = get_type_hints(command, include_extras=True)
    groups = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    parameters: list[Parameter] = []
    for parameter in signature(command).parameters.values():
        name = parameter.name
        if name in groups:
            types = get_type_hints(groups[name], include_extras=True)
            parameters += [
                Parameter(field.name, Parameter.KEYWORD_ONLY, default=field.default, annotation=types[field.name])
                for field in fields(groups[name])
            ]
        else:
            parameters.append(parameter.replace(kind=Parameter.KEYWORD_ONLY, annotation=hints[name]))

    @wraps(command)
    def call(**values) -> None:
        for name, group in groups.items():
            values[name] = group(**{field.name: values.pop(field.name) for field in fields(group)})
        command(**values)

    # What Typer reads; it must not look behind the wrapper.
    del call.__wrapped__
    call.__signature__ = Signature(parameters)
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return call


def changed_texts(pairs: list[str] | None, *groups: str) -> dict[str, dict[str, str]]:
    """Texts by group and key of what `--set group.key=value` gave.

    Args:
        pairs: The texts `group.key=value`.
        *groups: Names of the groups.

    Raises:
        ConfigError: A text is not of that form, or its group is another one.
    """
    texts: dict[str, dict[str, str]] = {group: {} for group in groups}
    for key, text in key_values(pairs or (), "--set").items():
        group, dot, name = key.partition(".")
        if not dot or group not in texts:
            expected = " or ".join(f"{each}." for each in groups)
            raise ConfigError(f"--set {key}={text}: expected a key that begins with {expected}")
        texts[group][name] = text
    return texts


@dataclass(frozen=True)
class Cluster:
    """Options of the simulated cluster; whatever is not given has the value of the mode."""

    executors: Executors = 50
    mode: Mode = "paper"
    durations: Durations = None
    classes: Classes = None
    changes: Changes = None

    def settings(self, time_limit_s: float | None = None) -> Settings:
        """Make the settings of the simulator.

        Raises:
            ConfigError: An option is out of range, or has no effect in that mode.
        """
        from decima.systems.spark.settings import Settings

        texts = changed_texts(self.changes, "settings")["settings"]
        return self.of_values(read_fields(texts, Settings, "--set settings."), time_limit_s)

    def of_values(self, values: dict[str, Any], time_limit_s: float | None = None) -> Settings:
        """Make the settings of the simulator, some of them given by name.

        Raises:
            ConfigError: As :meth:`settings`, or a value has an option of its own.
        """
        from decima.systems.spark.settings import Settings, read_classes

        if taken := [name for name in ("executors", "mode", "durations", "classes") if name in values]:
            raise ConfigError(f"--set settings.{taken[0]}: this has an option of its own, --{taken[0]}")
        if time_limit_s is not None and self.mode == "released":
            raise ConfigError("--time-limit-s has no effect in mode released, whose rules never cut a run")
        given = {"durations": self.durations, "time_limit_ms": None if time_limit_s is None else 1000.0 * time_limit_s}
        given = {name: value for name, value in given.items() if value is not None}
        if self.classes is not None:
            given["classes"] = read_classes(self.classes)
        return Settings.of_mode(self.mode, executors=self.executors, **(given | values))
