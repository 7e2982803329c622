"""Settings of executor placement: VMs, billing, weight of cost, and rules."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from decima.core.checks import is_number, is_whole
from decima.core.errors import ConfigError
from decima.systems.cloud.catalog import RELEASED, TABLE_4, Billing, Cluster

MODES = ("paper", "released")
LOOKAHEAD = ("none", "shares")


@dataclass(frozen=True)
class Rules:
    """Rules that paper and published code differ in, and rewards; defaults: mode ``paper``.

    Raises:
        ConfigError: One is out of range or unknown.
    """

    clock_goes_back: bool = False  # after a job is placed the clock is the next arrival, even an earlier time
    # Whether placing ends the episode unless the job shown next fits: not at all, or in shares of executors.
    lookahead: str = "none"
    wait_frees_one: bool = False  # a wait frees one job, not all that end at that moment
    penalty_in_cost_max: bool = True  # Cost_max of Eq. 7 has the worst durations, not the best ones
    partial_wait_reward: float = -200.0  # waiting with a job partly placed, which ends the episode (Table 3)
    penalty_percent: float = 30.0  # how much longer a badly placed job runs
    wait_reward: float = -1.0  # Table 3
    placement_reward: float = 1.0  # Table 3
    invalid_reward: float = -200.0  # Table 3
    fixed_reward: float = 10_000.0  # R_fixed of Eq. 14 (Table 5)
    idle_waits: int = 0  # waits of an episode until one while nothing runs ends it

    def __post_init__(self) -> None:
        if self.lookahead not in LOOKAHEAD:
            raise ConfigError(f"rules.lookahead must be {' or '.join(LOOKAHEAD)}, got {self.lookahead!r:.60}")
        for each in fields(self):
            value = getattr(self, each.name)
            if each.type == "float" and (not is_number(value) or not abs(value) <= 1e9):
                raise ConfigError(f"rules.{each.name} is {value!r}; expected a number of at most 1e+09")
            if each.type == "bool" and not isinstance(value, bool):
                raise ConfigError(f"rules.{each.name} must be true or false, got {value!r}")
        if not is_whole(self.idle_waits) or not 0 <= self.idle_waits <= 1_000_000:
            raise ConfigError(f"rules.idle_waits is {self.idle_waits!r}; expected a whole number of at most 1e+06")
        if not 1e-3 <= self.penalty_percent <= 1000.0:
            raise ConfigError(f"rules.penalty_percent is {self.penalty_percent!r}; expected 0.001 to 1000")


#: What the published environment does, commit 8990646 of ``tawfiqul-islam/RM_DeepRL``.
RELEASED_RULES = Rules(
    clock_goes_back=True, lookahead="shares", wait_frees_one=True, penalty_in_cost_max=False, partial_wait_reward=-50.0
)


@dataclass(frozen=True)
class PlacementSettings:
    """What executors are placed on, and what is wanted.

    Raises:
        ConfigError: A value is out of range.
    """

    draws = False  # schedulers alone may take chance

    cluster: Cluster = TABLE_4
    beta: float = 1.0  # weight of cost against mean duration (Eq. 6), 0 to 1
    billing: Billing = field(default_factory=Billing)
    rules: Rules = field(default_factory=Rules)
    mode: str = "paper"  # where the rules come from, for titles

    def __post_init__(self) -> None:
        for name, record in (("cluster", Cluster), ("billing", Billing), ("rules", Rules)):
            if not isinstance(getattr(self, name), record):
                raise ConfigError(f"{name} is {getattr(self, name)!r:.60}; expected a {record.__name__}")
        if not is_number(self.beta) or not 0.0 <= self.beta <= 1.0:
            raise ConfigError(f"beta is {self.beta!r}; expected the weight of cost, from 0 to 1")
        if self.mode not in MODES:
            raise ConfigError(f"mode must be one of {', '.join(MODES)}, got {self.mode!r}")

    @classmethod
    def of_mode(
        cls,
        mode: str = "paper",
        *,
        cluster: Cluster | None = None,
        beta: float = 1.0,
        billing: Billing | None = None,
        **rules: Any,
    ) -> PlacementSettings:
        """Settings of a mode, some rules changed.

        Args:
            mode: ``"paper"``: the clock only goes forward; ``"released"``: the published environment.
            cluster: VMs; those of Table 4, or the released ones, when omitted.
            beta: Weight of cost.
            billing: Per second when omitted.
            **rules: Fields of :class:`Rules`.

        Raises:
            ConfigError: The mode is unknown or a value out of range.
        """
        released = mode == "released"
        return cls(
            cluster=(RELEASED if released else TABLE_4) if cluster is None else cluster,
            beta=beta,
            billing=Billing() if billing is None else billing,
            rules=replace(RELEASED_RULES if released else Rules(), **rules),
            mode=mode,
        )

    @property
    def label(self) -> str:
        """A few words for titles."""
        cluster = f"{self.cluster.label}, {len(self.cluster)} VMs, {self.billing.label}"
        return f"{cluster}, beta {self.beta:g}" + (", mode released" if self.mode == "released" else "")

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready values by name."""
        return asdict(self)
