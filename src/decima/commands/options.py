"""Options that several commands share, so that they are called and mean the same everywhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_type_hints

import typer

from decima.exceptions import ConfigError

if TYPE_CHECKING:
    from decima.simulator.settings import Settings

LEARNED = "decima"
MOST = 10_000_000  # numbers beyond need more memory than machines have

JobsFile = Annotated[
    Path | None,
    typer.Option("--jobs", metavar="FILE", help="Workload to read: a .json of jobs or a .parquet of profiles."),
]
Kind = Annotated[
    str | None,
    typer.Option(
        metavar="KIND",
        help="Workload to draw instead: tpch, embedded, measured or synthetic, with -batch or -poisson.",
        show_default="tpch-batch",
    ),
]
NumJobs = Annotated[
    int | None,
    typer.Option(
        "--n", metavar="N", max=MOST, help="Jobs to draw; of a Poisson stream, those that arrive.", show_default="20"
    ),
]
InterarrivalS = Annotated[
    float | None,
    typer.Option("--interarrival-s", metavar="S", help="Mean gap of a Poisson stream in seconds.", show_default="25"),
]
Initial = Annotated[
    int | None,
    typer.Option(metavar="N", max=MOST, help="Jobs of a Poisson stream that are present at time 0.", show_default="1"),
]
Sizes = Annotated[
    str | None,
    typer.Option(
        metavar="SIZES",
        help="Job sizes to draw from: paper (six), released (seven) or a list such as 2g,10g (synthetic: xs,s).",
        show_default="paper",
    ),
]
Seed = Annotated[int, typer.Option(metavar="N", help="Source of all chance; the same seed gives the same result.")]
Executors = Annotated[int, typer.Option(metavar="N", max=MOST, help="Executors of the cluster.")]
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
MovingDelay = Annotated[
    float | None,
    typer.Option("--moving-delay", metavar="MS", help="Time to join another job.", show_default="2000"),
]
WarmupDelay = Annotated[
    float | None,
    typer.Option(
        "--warmup-delay",
        metavar="MS",
        help="Added to a first task where a fresh executor's was not measured.",
        show_default="1000",
    ),
]
ProfileKey = Annotated[
    str | None,
    typer.Option(
        metavar="left|right|inverted|interpolate",
        help="Durations for an executor count between two profiled ones.",
        show_default="by mode",
    ),
]
SchedulerName = Annotated[
    str,
    typer.Option(metavar="NAME", help="See 'decima schedulers'; or a .json that 'decima tune' wrote."),
]
Metric = Annotated[str, typer.Option(metavar="avg_jct_s|makespan_s", help="What is to be small.")]
Parameters = Annotated[
    list[str] | None,
    typer.Option("--param", metavar="NAME=VALUE", help="Parameter of the scheduler; may be given several times."),
]
Policy = Annotated[
    str | None,
    typer.Option(
        metavar="NAME|FILE",
        help="Stored policy of scheduler decima: a name of models/, or a .weights.h5 file.",
        show_default="tpch-batch",
    ),
]
Sampled = Annotated[
    bool | None,
    typer.Option(
        "--sampled/--greedy",
        help="Scheduler decima draws its actions, or takes the likeliest.",
        show_default="as the policy's card says",
    ),
]
Threads = Annotated[
    int | None, typer.Option(metavar="N", min=1, help="Worker threads; no result depends on it.", show_default="all")
]


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Decorator: a keyword-only parameter whose type is a dataclass of options appears as these options.

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


@dataclass(frozen=True)
class Cluster:
    """The options of the simulated cluster; what was not given is as the mode has it."""

    executors: Executors = 50
    mode: Mode = "paper"
    durations: Durations = None
    moving_delay: MovingDelay = None
    warmup_delay: WarmupDelay = None
    profile_key: ProfileKey = None

    def settings(self, time_limit_s: float | None = None) -> Settings:
        """Settings of the simulator.

        Raises:
            ConfigError: an option is out of range, or has no effect in that mode.
        """
        from decima.simulator.settings import Settings

        if time_limit_s is not None and self.mode == "released":
            raise ConfigError("--time-limit-s has no effect in mode released, whose rules never cut a run")
        given = {
            "durations": self.durations,
            "moving_delay_ms": self.moving_delay,
            "warmup_delay_ms": self.warmup_delay,
            "level_rule": self.profile_key,
            "time_limit_ms": None if time_limit_s is None else 1000.0 * time_limit_s,
        }
        given = {name: value for name, value in given.items() if value is not None}
        return Settings.of_mode(self.mode, executors=self.executors, **given)


@dataclass(frozen=True)
class Learned:
    """The options of the learned scheduler."""

    policy: Policy = None
    sampled: Sampled = None

    def values(self, *names: str) -> dict[str, float | str]:
        """Parameters of the learned scheduler: those that were given, and the name of its policy.

        Args:
            names: The schedulers of the command.

        Raises:
            ConfigError: an option was given, and none of them is the learned one.
        """
        from decima.schedulers.learned import DEFAULT_POLICY

        if LEARNED not in names and (self.policy, self.sampled) != (None, None):
            option = "--policy" if self.policy is not None else "--sampled" if self.sampled else "--greedy"
            raise ConfigError(f"{option} has no meaning for {', '.join(names)}; it is for scheduler {LEARNED!r}")
        mode = {} if self.sampled is None else {"greedy": int(not self.sampled)}
        return {"policy": DEFAULT_POLICY if self.policy is None else self.policy} | mode


def parameter_values(pairs: list[str] | None) -> dict[str, float | str]:
    """Values by name from `name=value` texts: numbers, and the name of a policy.

    Raises:
        ConfigError: a text is not of that form, or a name is given twice.
    """
    values: dict[str, float | str] = {}
    for pair in pairs or ():
        name, _, text = pair.partition("=")
        try:
            value = text if name == "policy" and text else float(text)
        except ValueError:
            raise ConfigError(f"parameter {pair!r}: expected NAME=NUMBER, for example alpha=-1") from None
        if not name or name in values:
            raise ConfigError(f"parameter {pair!r}: " + ("the name is missing" if not name else "given twice"))
        values[name] = value
    return values


def named_scheduler(name: str, values: dict[str, float | str], learned: Learned | None = None):
    """Scheduler by registered name, or from a card of tuned parameters when the name ends in .json.

    Args:
        name: Name or path.
        values: Its parameters.
        learned: Parameters of the learned scheduler that are not among the values.

    Raises:
        UnknownSchedulerError: no scheduler has that name.
        ConfigError: the file is no card, or a parameter is unknown or out of range.
    """
    from decima.schedulers import make_scheduler

    if name == LEARNED:
        values = (learned or Learned()).values(name) | values
    if not name.endswith(".json"):
        return make_scheduler(name, **values)
    from decima.evaluation.tuning import load_card

    tuned = load_card(name)
    return make_scheduler(tuned.name, **(tuned.values | values)) if values else tuned


def parse_scheduler(text: str, learned: Learned | None = None):
    """Scheduler from `name`, `name:parameter=value,...` or the path of a card; else as :func:`named_scheduler`."""
    name, _, parameters = text.partition(":")
    return named_scheduler(name, parameter_values(parameters.split(",") if parameters else None), learned)


def parse_schedulers(texts: list[str], learned: Learned = Learned()) -> dict:
    """Schedulers by the text that names them.

    Raises:
        UnknownSchedulerError: no scheduler has that name.
        ConfigError: a text is given twice, or is not as expected.
    """
    for text in texts:
        if texts.count(text) > 1:
            raise ConfigError(f"scheduler {text!r} is given twice")
    learned.values(*(text.partition(":")[0] for text in texts))
    return {text: parse_scheduler(text, learned) for text in texts}
