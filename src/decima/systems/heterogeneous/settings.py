"""Settings of the system and of its list schedulers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from decima.core.errors import ConfigError
from decima.systems.heterogeneous.cluster import Cluster

DECISIONS = ("plan", "event", "idle")
SLOTS = ("append", "insertion")
TRANSFERS = ("finish", "decision")


@dataclass(frozen=True)
class Settings:
    """Settings of the system; executors come with each instance unless set here."""

    cluster: Cluster | None = None  # replaces the executors of every instance
    draws = False  # the system takes no chance

    @classmethod
    def of_mode(cls, mode: str = "paper", **fields: Any) -> Settings:
        """Settings of the mode ``paper``, the only one.

        Raises:
            ConfigError: Mode or field is unknown.
        """
        if mode != "paper":
            raise ConfigError(f"mode must be paper for heterogeneous executors, got {mode!r}")
        if unknown := sorted(set(fields) - {"cluster"}):
            raise ConfigError(f"unknown setting of heterogeneous executors: {', '.join(unknown)}; expected cluster")
        return cls(**fields)

    @property
    def label(self) -> str:
        """For titles."""
        return "executors of the instance" if self.cluster is None else f"{len(self.cluster)} heterogeneous executors"

    def as_dict(self) -> dict[str, Any]:
        """Fields by name, for cards and result files."""
        if self.cluster is None:
            return {"cluster": None}
        names = ("speeds", "rate", "latency_s")
        values = {name: getattr(self.cluster, name) for name in names}
        return {"cluster": {name: np.asarray(value).tolist() for name, value in values.items()}}


@dataclass(frozen=True)
class Rules:
    """How nodes are decided and placed, whatever the order in which they are taken.

    Raises:
        ConfigError: A value is unknown, or two of them contradict each other.
    """

    # ``plan``: at the job's arrival, as soon as the parents are assigned. ``event``: when the parents have finished, on
    # any executor. ``idle``: when the parents have finished and an executor is free, on a free one.
    decision: str = "plan"
    slots: str = "append"  # ``append`` behind what an executor was given, or ``insertion`` into the first gap that fits
    duplicate: bool = True  # whether a further copy of one parent may be placed in front of a node (Eq. 10)
    # When data is sent: at the ``finish`` of the parent to wherever it is needed later, or after the ``decision`` only.
    transfers: str = "finish"
    # Whether copies that nothing reads are dropped at the end, and what follows moves up; with ``plan`` only.
    drop_unread: bool = False

    def __post_init__(self) -> None:
        for name, known in (("decision", DECISIONS), ("slots", SLOTS), ("transfers", TRANSFERS)):
            if getattr(self, name) not in known:
                raise ConfigError(f"{name} is {getattr(self, name)!r}; expected {' or '.join(known)}")
        if self.decision == "idle" and self.slots == "insertion":
            raise ConfigError("slots=insertion has no effect with decision=idle: a free executor has no gaps to come")
        if self.drop_unread and self.decision != "plan":
            raise ConfigError("drop_unread needs decision=plan: elsewhere the copy may have been executed already")
