"""Settings of a simulated cluster; modes are sets of their values."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from decima.core.checks import LARGEST_MS, is_number, is_whole
from decima.core.errors import ConfigError
from decima.core.grammar import read_value

LEVEL_RULES = ("interpolate", "inverted", "left", "right")
DURATIONS = ("sampled", "mean")
EXECUTORS = 50
MAX_EXECUTORS = 1_000_000
MAX_CLASSES = 8
# Settings that make a cluster grow, shrink or fail; and what has an effect only with some of them.
LEAST_SHAPE = 0.1  # of Pareto's law; the factors of smaller ones leave the numbers of a computer
ELASTIC = ("dynamic", "loss_rate", "loss_times_ms", "straggler_share", "speculation")
_LOSSES = ("loss_rate", "loss_times_ms")
ELASTIC_SWITCHES = {
    **dict.fromkeys(("min_executors", "initial_executors", "backlog_timeout_ms", "sustained_timeout_ms"), ("dynamic",)),
    "idle_timeout_ms": ("dynamic",),
    **dict.fromkeys(("executor_cores", "executor_startup_ms", "shuffle_service"), ("dynamic", *_LOSSES)),
    "replacement_delay_ms": _LOSSES,
    "straggler_shape": ("straggler_share",),
    **dict.fromkeys(("speculation_quantile", "speculation_multiplier"), ("speculation",)),
    **dict.fromkeys(("speculation_interval_ms", "speculation_min_runtime_ms"), ("speculation",)),
}


class ExecutorClass(NamedTuple):
    """Executors of one size."""

    memory: float  # memory of each, in the unit of the requests of stages, above 0
    executors: int  # how many there are, at least 1
    cpu: float = 1.0  # CPUs of each, above 0

    @property
    def label(self) -> str:
        """Size in messages: ``0.25``, or ``0.25x2`` with two CPUs."""
        return f"{self.memory:g}" if self.cpu == 1.0 else f"{self.memory:g}x{self.cpu:g}"


def read_classes(text: str) -> tuple[ExecutorClass, ...]:
    """Read classes as the command line has them: ``0.25:50,1:50``, or ``0.25x1:50,1x4:50`` with CPUs.

    Raises:
        ConfigError: The text is not of that form.
    """
    classes = []
    for part in text.split(","):
        size, colon, executors = part.partition(":")
        memory, times, cpu = size.partition("x")
        if not (memory.strip() and colon and executors.strip() and bool(times) == bool(cpu.strip())):
            raise ConfigError(f"classes: {part!r} is not an executor class; expected MEMORY:EXECUTORS, such as 0.25:50")
        where = f"classes: {part.strip()!r}"
        sizes = [read_value(value, float, where) for value in (memory, cpu or "1")]
        classes.append(ExecutorClass(sizes[0], read_value(executors, int, where), sizes[1]))
    return tuple(classes)


def check_classes(classes: Sequence) -> tuple[ExecutorClass, ...]:
    """Classes in ascending order of memory, then of CPUs.

    Args:
        classes: One (memory, executors) or (memory, executors, CPUs) per class.

    Raises:
        ConfigError: A class is malformed or there twice, or there are more than `MAX_CLASSES`.
    """
    try:
        read = [ExecutorClass(*each) for each in classes]
    except TypeError:
        expected = "expected (memory, executors) or (memory, executors, CPUs) each"
        raise ConfigError(f"classes are {classes!r:.80}; {expected}") from None
    for each in read:
        if not all(is_number(size) and 0.0 < size < float("inf") for size in (each.memory, each.cpu)):
            raise ConfigError(f"class {tuple(each)!r:.80}: memory and CPUs must be finite numbers above 0")
        if not is_whole(each.executors) or each.executors < 1:
            number = each.executors
            raise ConfigError(f"class {each.label}: executors must be a whole number of at least 1, got {number!r}")
    read = sorted(
        (ExecutorClass(float(each.memory), int(each.executors), float(each.cpu)) for each in read),
        key=lambda each: (each.memory, each.cpu),
    )
    if len(read) > MAX_CLASSES:
        raise ConfigError(f"there are {len(read)} classes of executors; expected at most {MAX_CLASSES}")
    for one, other in pairwise(read):
        if (one.memory, one.cpu) == (other.memory, other.cpu):
            raise ConfigError(f"class {one.label} is given twice; give it once, with the executors of both")
    return tuple(read)


@dataclass(frozen=True)
class Settings:
    """Parameters of the simulated cluster. Times in ms.

    Mode ``paper`` is the default; :meth:`released` gives the rules of the authors' published simulator. Every
    difference between the two is one field here and one row of ``docs/deviations.md``.
    """

    # Executors (task slots), 1 to `MAX_EXECUTORS`; `EXECUTORS` when omitted, with `classes` those of all classes.
    executors: int | None = None
    mode: str = "paper"  # name of the set of rules, kept for titles and files
    durations: str = "sampled"  # ``"sampled"`` from the profile, or its ``"mean"`` (deterministic)
    moving_delay_ms: float = 2000.0  # idle time of an executor that changes jobs (§6.2, effect 2)
    warmup_delay_ms: float = 1000.0  # added to a first-wave duration where a new executor's own was not measured
    # How durations for an executor count between two profiled ones are found: ``"interpolate"`` (nearer level more
    # likely; mean durations linearly), ``"inverted"`` (released code: nearer level *less* likely), ``"left"`` or
    # ``"right"`` (released code without chance).
    level_rule: str = "interpolate"
    # The action's limit is the parallelism of the job (§5.2) instead of a number of offered executors.
    job_limit: bool = True
    # Re-offer idle executors when a stage becomes runnable or a job ends. Executors whose target stage has no task
    # left are offered, too, instead of being sent elsewhere by a fixed rule. Executors that wait for a stage of their
    # own job are reserved: they are offered when a stage of that job becomes runnable. When every stage of the frontier
    # was chosen and executors are left, the stages that can use more may be chosen again.
    reoffer: bool = True
    keep_warm: bool = True  # an executor that idles in its own job's pool keeps its JVM and is not "fresh" afterwards
    time_limit_applies: bool = True  # runs end at ``time_limit_ms``; the released simulator ignores its limit
    # When a stage drains, executors still running on it are offered along with the first free one.
    commit_ahead: bool = True
    runnable_only: bool = False  # the frontier holds runnable stages only, not those whose parents are merely saturated
    job_bound: bool = False  # executors stay with a job until it ends, they serve it alone; its limit never falls
    first_wave: bool = True  # effect 1 of §6.2, first waves slower than later ones
    startup: bool = True  # effect 2 of §6.2, moving delay and slower tasks on fresh executors
    inflation: bool = True  # effect 3 of §6.2, slower tasks at high parallelism; off: the lowest profiled level is used
    time_limit_ms: float = float("inf")  # end of the episode, infinite by default
    # Classes of executors, each an `ExecutorClass`, in ascending order of size; a stage runs where its request fits.
    # Without any the executors are alike and fit everything.
    classes: tuple = ()

    # ---- clusters that grow, shrink and fail, all off (docs/elastic.md) ---------------------------------------------
    # Task slots of a Spark executor, which come, go and fail together; counts of Spark executors below are of these.
    executor_cores: int = 1
    dynamic: bool = False  # dynamic allocation; `executors` are then the most task slots (`.rules.allocation`)
    min_executors: int = 0  # fewest Spark executors
    initial_executors: int | None = None  # Spark executors at time 0; None: the fewest
    backlog_timeout_ms: float = 1000.0  # tasks have waited so long when the first executors are requested
    sustained_timeout_ms: float | None = None  # and so long for each later request; None: as long
    idle_timeout_ms: float = 60_000.0  # a Spark executor without a task for so long is removed
    executor_startup_ms: float = 2000.0  # from the request of a Spark executor to its registration
    shuffle_service: bool = False  # outputs outlive their executor
    loss_rate: float = 0.0  # losses per hour and Spark executor (`.rules.faults`)
    loss_times_ms: tuple[float, ...] = ()  # times at which a Spark executor, drawn at random, is lost
    replacement_delay_ms: float = 0.0  # from the loss of a Spark executor to the request of another one
    straggler_share: float = 0.0  # share of tasks that take longer by a factor from Pareto's law
    straggler_shape: float = 2.0  # shape of that law, from 0.1; the smaller, the heavier its tail
    speculation: bool = False  # a task that runs long gets a copy (`.rules.speculation`)
    speculation_quantile: float = 0.9  # share of the tasks of a stage that must have ended before
    speculation_multiplier: float = 3.0  # so many times their median duration is long
    speculation_interval_ms: float = 100.0  # time between checks
    speculation_min_runtime_ms: float = 100.0  # shorter is never long

    def __post_init__(self) -> None:
        object.__setattr__(self, "classes", check_classes(self.classes))
        if self.classes:
            total = sum(each.executors for each in self.classes)
            if self.executors not in (None, total):
                raise ConfigError(f"executors is {self.executors!r}, and the classes have {total}; leave executors out")
            object.__setattr__(self, "executors", total)
        if self.executors is None:
            object.__setattr__(self, "executors", EXECUTORS)
        whole = is_number(self.executors) and self.executors == self.executors // 1  # not so of NaN and infinity
        if not whole or self.executors < 1:
            raise ConfigError(f"executors must be a whole number of at least 1, got {self.executors!r}")
        if self.executors > MAX_EXECUTORS:
            raise ConfigError(f"executors must be at most {MAX_EXECUTORS}, got {self.executors!r}")
        object.__setattr__(self, "executors", int(self.executors))
        if self.durations not in DURATIONS:
            raise ConfigError(f"durations must be one of {', '.join(DURATIONS)}, got {self.durations!r}")
        if self.level_rule not in LEVEL_RULES:
            raise ConfigError(f"level_rule must be one of {', '.join(LEVEL_RULES)}, got {self.level_rule!r}")
        for name in ("moving_delay_ms", "warmup_delay_ms"):
            value = getattr(self, name)
            if not (is_number(value) and 0.0 <= value <= LARGEST_MS):
                raise ConfigError(f"{name} must be a number from 0 to {LARGEST_MS:g}, got {value!r}")
        if not (is_number(self.time_limit_ms) and self.time_limit_ms > 0.0):
            raise ConfigError(f"time_limit_ms must be above 0, got {self.time_limit_ms!r}")
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(field.default, bool) and not isinstance(value, (bool, np.bool_)):
                raise ConfigError(f"{field.name} must be True or False, got {value!r}")
        self._check_elastic()
        self._check_pairs()

    def _check_elastic(self) -> None:
        """Raise ConfigError where a value for changing executors is out of range."""
        object.__setattr__(self, "loss_times_ms", tuple(self.loss_times_ms))
        above = ("backlog_timeout_ms", "sustained_timeout_ms", "straggler_shape", "speculation_interval_ms")
        least = ("idle_timeout_ms", "executor_startup_ms", "loss_rate", "replacement_delay_ms")
        least += ("speculation_multiplier", "speculation_min_runtime_ms")
        for name in (*above, *least):
            value = getattr(self, name)
            if value is None and name == "sustained_timeout_ms":
                continue
            if not (is_number(value) and 0.0 <= value <= LARGEST_MS) or (name in above and value == 0.0):
                raise ConfigError(f"{name} must be a number {'above' if name in above else 'from'} 0, got {value!r}")
        if self.straggler_shape < LEAST_SHAPE:
            raise ConfigError(f"straggler_shape must be at least {LEAST_SHAPE:g}, got {self.straggler_shape!r}")
        for name in ("straggler_share", "speculation_quantile"):
            if not (is_number(getattr(self, name)) and 0.0 <= getattr(self, name) <= 1.0):
                raise ConfigError(f"{name} must be a number from 0 to 1, got {getattr(self, name)!r}")
        if not all(is_number(time_ms) and 0.0 <= time_ms <= LARGEST_MS for time_ms in self.loss_times_ms):
            raise ConfigError(f"loss_times_ms must be times in ms of at least 0, got {self.loss_times_ms!r:.80}")
        if not is_whole(self.executor_cores) or self.executor_cores < 1 or self.executors % self.executor_cores:
            raise ConfigError(
                f"executor_cores is {self.executor_cores!r}; expected a whole number of at least 1 that divides the "
                f"{self.executors} executors (task slots)"
            )
        for name in ("min_executors", "initial_executors"):
            value = getattr(self, name)
            if value is not None and not (is_whole(value) and 0 <= value <= self.most_executors):
                raise ConfigError(f"{name} must be a whole number from 0 to {self.most_executors}, got {value!r}")
        if self.first_executors < self.min_executors:
            raise ConfigError(f"initial_executors is {self.initial_executors}, below min_executors")
        if not self.elastic:
            return
        wrongs = {"classes of executors": self.classes, "reoffer off": not self.reoffer, "job_bound": self.job_bound}
        for what, wrong in wrongs.items():
            if wrong:
                raise ConfigError(f"executors that come, go or fail are not simulated with {what}")

    def _check_pairs(self) -> None:
        """Raise ConfigError where a value has no effect, or two do not go together."""
        plain = type(self)
        for name, switch in ELASTIC_SWITCHES.items():
            value = getattr(self, name)
            if not any(getattr(self, each) for each in switch) and value != getattr(plain, name):
                raise ConfigError(f"{name} is {value!r} but has no effect without {' or '.join(switch)}")
        for name, switch, harmless in (
            ("moving_delay_ms", "startup", (0.0, plain.moving_delay_ms)),
            ("warmup_delay_ms", "startup", (0.0, plain.warmup_delay_ms)),
            ("time_limit_ms", "time_limit_applies", (plain.time_limit_ms,)),
        ):
            value = getattr(self, name)
            if not getattr(self, switch) and value not in harmless:
                raise ConfigError(f"{name} is {value!r} but has no effect in mode {self.mode} with {switch} off")
        if self.job_bound and len(self.classes) > 1:
            raise ConfigError(
                f"job_bound is on with {len(self.classes)} classes of executors: those too small for the stages left "
                "would wait in their job for ever; expected one class, or job_bound off"
            )

    @classmethod
    def paper(cls, **overrides) -> "Settings":
        """Rules as the paper states them."""
        return cls(**overrides)

    @classmethod
    def released(cls, **overrides) -> "Settings":
        """Rules of the published simulator, bit for bit."""
        rule = "left" if overrides.get("durations") == "mean" else "inverted"
        values = {
            "mode": "released",
            "level_rule": rule,
            "job_limit": False,
            "reoffer": False,
            "keep_warm": False,
            "time_limit_applies": False,
        }
        return cls(**(values | overrides))

    @classmethod
    def simplified(cls, **overrides) -> "Settings":
        """Environment of appendix H: no waves, start-up or moving cost, or slowdown by parallelism."""
        values = {"mode": "simplified", "durations": "mean", "first_wave": False, "startup": False, "inflation": False}
        return cls(**(values | overrides))

    @classmethod
    def of_mode(cls, mode: str, **overrides) -> "Settings":
        """Settings of the mode ``paper``, ``released`` or ``simplified``, some of them replaced."""
        makers = {"paper": cls.paper, "released": cls.released, "simplified": cls.simplified}
        if mode not in list(makers):
            raise ConfigError(f"mode must be one of {', '.join(makers)}, got {mode!r}")
        unknown = set(overrides) - {field.name for field in fields(cls)}
        if unknown:
            raise ConfigError(f"unknown simulator setting: {', '.join(sorted(unknown))}")
        settings = makers[mode](**overrides)
        plain = makers[mode](durations=settings.durations).level_rule  # every mode has one of its own
        if not settings.inflation and settings.level_rule != plain:
            rule = settings.level_rule
            raise ConfigError(f"level_rule is {rule!r} but has no effect in mode {settings.mode} with inflation off")
        return settings

    @property
    def elastic(self) -> bool:
        """Whether the cluster grows, shrinks or fails, or tasks straggle or have copies."""
        return any(getattr(self, name) for name in ELASTIC)

    def require_fixed(self, what: str) -> None:
        """Raise ConfigError that names what is done on clusters of a fixed size only."""
        if self.elastic:
            on = next(name for name in ELASTIC if getattr(self, name))
            raise ConfigError(f"{what} is for clusters whose executors neither come, go nor fail; leave {on} out")

    @property
    def most_executors(self) -> int:
        """Most Spark executors, of ``executor_cores`` slots each."""
        return self.executors // self.executor_cores

    @property
    def first_executors(self) -> int:
        """Spark executors at time 0."""
        if not self.dynamic:
            return self.most_executors
        return self.min_executors if self.initial_executors is None else self.initial_executors

    @property
    def draws(self) -> bool:
        """Whether task durations are drawn."""
        return self.durations == "sampled"

    @property
    def label(self) -> str:
        """For titles."""
        classes = f" in {len(self.classes)} classes" if len(self.classes) > 1 else ""
        most = "up to " if self.dynamic else ""
        return f"{most}{self.executors} executors{classes}, mode {self.mode}"

    def replace(self, **changes) -> "Settings":
        """A copy with some fields changed; other classes bring their executors."""
        if "classes" in changes and "executors" not in changes:
            changes["executors"] = None
        return replace(self, **changes)

    def as_dict(self) -> dict:
        """Fields by name, for cards and result files, without those of absent parts."""
        left = () if self.classes else ("classes",)
        left += () if self.elastic else tuple(ELASTIC_SWITCHES) + ELASTIC
        return {name: value for name, value in asdict(self).items() if name not in left}


def settings_from(
    mode: str,
    values: Mapping[str, Any],
    *,
    executors: int,
    classes: str | None = None,
    durations: str | None = None,
    time_limit_s: float | None = None,
) -> "Settings":
    """Settings of a mode from options and from further fields by name.

    Args:
        mode: Rules of the simulator.
        values: Fields that have no option of their own.
        executors: Executors of the cluster.
        classes: Text of :func:`read_classes`, instead of a number of executors.
        durations: ``sampled`` or ``mean``; None: by mode.
        time_limit_s: End of the run; None: when all jobs are done.

    Raises:
        ConfigError: A value has an option of its own, is unknown or out of range.
    """
    if taken := [name for name in ("executors", "mode", "durations", "classes") if name in values]:
        raise ConfigError(f"--set settings.{taken[0]}: use the option --{taken[0]} instead")
    options = {"durations": durations, "time_limit_ms": None if time_limit_s is None else 1000.0 * time_limit_s}
    options = {name: value for name, value in options.items() if value is not None}
    if classes is not None:
        options["classes"] = read_classes(classes)
    return Settings.of_mode(mode, executors=executors, **(options | values))


def cluster_settings(executors: int, *, fresh: bool = False, moving_delay_ms: float = 0.0, **changes) -> "Settings":
    """Settings of a simulated cluster with Spark's rules and one application.

    Decisions see runnable stages only and place one executor at a time; only new executors cost time to start.
    """
    values = {
        "mode": "spark",
        "runnable_only": True,
        "commit_ahead": False,
        "startup": fresh,
        "moving_delay_ms": moving_delay_ms,
        "warmup_delay_ms": 0.0,
    }
    values |= changes
    if not values["startup"]:
        values["moving_delay_ms"] = 0.0  # nothing starts
    return Settings.paper(executors=executors, **values)
