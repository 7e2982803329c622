"""Settings of a simulated cluster: one record of named switches; the two modes are two sets of values."""

from dataclasses import asdict, dataclass, fields, replace

import numpy as np

from decima.checks import LARGEST_MS, is_number
from decima.exceptions import ConfigError

LEVEL_RULES = ("interpolate", "inverted", "left", "right")
DURATIONS = ("sampled", "mean")
TIMER_ENDS = ("offer", "assign")
MAX_EXECUTORS = 1_000_000


@dataclass(frozen=True)
class Settings:
    """Parameters of the simulated cluster. Times in ms.

    Mode ``paper`` is the default; :meth:`released` gives the rules of the authors' published simulator. Every
    difference between the two is one field here and one row of ``docs/deviations.md``.
    """

    executors: int = 50  # identical executors (task slots), 1 to `MAX_EXECUTORS`
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
    # Idle executors are called up, that is offered again, whenever a stage becomes runnable or a job ends, and
    # executors that find their destination drained are offered instead of being sent elsewhere by a fixed rule.
    # Executors that wait for a stage of their own job are reserved: they are offered when a stage of that job becomes
    # runnable. When every stage of the frontier was chosen and executors are left, the stages that can use more may be
    # chosen again.
    reoffer: bool = True
    keep_warm: bool = True  # an executor that idles in its own job's pool keeps its JVM and is not "fresh" afterwards
    time_limit_applies: bool = True  # runs end at ``time_limit_ms``; the released simulator ignores its limit
    # When a stage drains, executors still running on it are offered along with the first free one.
    commit_ahead: bool = True
    runnable_only: bool = False  # the frontier holds runnable stages only, not those whose parents are merely saturated
    # What happens when the slot of a delayed stage ends: ``"offer"``: the idle executors are offered, and the scheduler
    # decides anew; ``"assign"``: idle executors go to the stage up to the limit it was delayed with, what is left is
    # offered.
    timer_end: str = "offer"
    delay_once: bool = True  # a stage may be delayed once only
    job_bound: bool = False  # executors stay with a job until it ends: they are offered to its own stages only
    first_wave: bool = True  # effect 1 of §6.2, first waves slower than later ones
    startup: bool = True  # effect 2 of §6.2, moving delay and slower tasks on fresh executors
    inflation: bool = True  # effect 3 of §6.2, slower tasks at high parallelism; off: the lowest profiled level is used
    time_limit_ms: float = float("inf")  # end of the episode, infinite by default

    def __post_init__(self) -> None:
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
        if self.timer_end not in TIMER_ENDS:
            raise ConfigError(f"timer_end must be one of {', '.join(TIMER_ENDS)}, got {self.timer_end!r}")
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

    @classmethod
    def paper(cls, **overrides) -> "Settings":
        """Rules as the paper states them."""
        return cls(**overrides)

    @classmethod
    def released(cls, **overrides) -> "Settings":
        """Rules of the published simulator, bit for bit; mean durations take the left level, as its reference runs."""
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
        """The environment of appendix H: no waves, no start-up or moving cost, no slowdown by parallelism."""
        values = {
            "mode": "simplified",
            "durations": "mean",
            "first_wave": False,
            "startup": False,
            "inflation": False,
        }
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
        return makers[mode](**overrides)

    @classmethod
    def chosen(
        cls, cluster: "Settings | None", executors: int | None = None, mode: str | None = None, **overrides
    ) -> "Settings":
        """A cluster that is given whole as it is, else that of a mode with some fields replaced.

        Raises:
            ConfigError: Both were given, or a field is unknown or out of range.
        """
        named = {"executors": executors, "mode": mode}
        given = {name: value for name, value in named.items() if value is not None} | overrides
        if cluster is None:
            return cls.of_mode(given.pop("mode", "paper"), **given)
        if given:
            raise ConfigError(f"{', '.join(given)} cannot be given beside cluster; use cluster.replace(...)")
        return cluster

    @property
    def label(self) -> str:
        """For titles."""
        return f"{self.executors} executors, mode {self.mode}"

    def replace(self, **changes) -> "Settings":
        """A copy with some fields changed."""
        return replace(self, **changes)

    def as_dict(self) -> dict:
        """Fields by name, for cards and result files."""
        return asdict(self)
