"""Placement heuristics by name, and the texts that name them: ``rr``, ``ilp_beta:beta=0.5``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import numpy as np

from decima.core.checks import is_number
from decima.core.errors import ConfigError, SchedulerError, UnknownSchedulerError
from decima.core.grammar import Option, read_options, split_options
from decima.core.record import Record
from decima.core.registry import Registry, SchedulerEntry
from decima.core.system import scheduler_elsewhere
from decima.systems.cloud.schedulers import compiled
from decima.systems.cloud.schedulers.compiled import added_costs
from decima.systems.cloud.settings import PlacementSettings
from decima.systems.cloud.workload import PlacementJob, PlacementWorkload

_PAPER = "Islam et al., TPDS 2022, section 7"
_JAVA = "java of tawfiqul-islam/RM-Simulator"


@dataclass(frozen=True)
class CompiledRule:
    """A rule that runs inside the compiled environment."""

    name: str
    code: int  # number of the rule in :mod:`decima.systems.cloud.schedulers.compiled`
    parameter: float = -1.0  # below 0: not given
    values: Mapping[str, float] = field(default_factory=dict, hash=False)
    concurrent: bool = True

    @property
    def draws(self) -> bool:
        """Whether it decides randomly, so that another seed is another run."""
        return self.code in (compiled.RANDOM, compiled.RANDOM_PLACING)


SCHEDULERS: Registry[SchedulerEntry] = Registry(
    "scheduler",
    modules={"learned": "decima.systems.cloud.policy.scheduler"},
    error=UnknownSchedulerError,
    group="decima.cloud.schedulers",
    adopt=lambda name, item: SchedulerEntry.adopted(name, item, "decide", "run_episode"),
    elsewhere=scheduler_elsewhere,
    gone={"ilp_highs": "expected 'ilp', which solves the same program"},
)


def register_placement(
    name: str, doc: str, source: str, make: Callable[..., PlacementScheduler], options: tuple[Option, ...] = ()
) -> None:
    """Make a rule known; one of the same name is replaced.

    Args:
        name: What texts call it.
        doc: What it does, in a few words.
        source: Where it was published.
        make: Function of the options that makes it.
        options: What may be set.
    """
    SCHEDULERS.add(name, SchedulerEntry(name, make, options, source=source, description=doc))


def _ilp_beta(beta: float | None = None) -> CompiledRule:
    if beta is None:
        return CompiledRule("ilp_beta", compiled.ILP_BETA)
    if not is_number(beta) or not 0.0 <= beta <= 1.0:
        raise ConfigError(f"scheduler ilp_beta: beta is {beta!r}; expected the weight of cost, from 0 to 1")
    return CompiledRule("ilp_beta", compiled.ILP_BETA, float(beta), {"beta": float(beta)})


for _name, _code, _doc, _source in (
    ("rr", compiled.RR, "round robin over VMs, from the first one for every job", f"{_PAPER}; RRScheduler.{_JAVA}"),
    (
        "rr_continuing",
        compiled.RR_CONTINUING,
        "round robin that continues where it stopped",
        "Apache Spark's standalone master",
    ),
    ("rrc", compiled.RRC, "VMs by free cores ascending, each filled", f"{_PAPER}; RRConsolidate.{_JAVA}"),
    ("ff", compiled.FF, "VMs that run first, then by price, each filled", f"{_PAPER}; FirstFitScheduler.{_JAVA}"),
    ("fill", compiled.FILL, "VMs by number, each filled", "reference runs of the published environment"),
    ("aep", compiled.AEP, "network-bound jobs packed (rrc), others spread (rr)", _PAPER),
    ("aep_inverted", compiled.AEP_INVERTED, "network-bound jobs spread, others packed", f"AEPScheduler.{_JAVA}"),
    ("gio", compiled.GIO, "each executor where it adds least cost", f"GIOScheduler.{_JAVA}"),
    (
        "ilp",
        compiled.ILP,
        "least added cost per job, exactly; blind to the effect of placement",
        f"{_PAPER}; ILPScheduler.{_JAVA}",
    ),
    ("ilp_exact", compiled.ILP_EXACT, "least added cost per job, exactly; knows the effect of placement", _PAPER),
    ("good_first", compiled.GOOD_FIRST, "the cheapest good placement where there is one", "ours"),
    ("random", compiled.RANDOM, "random valid actions, waits among them", "section 7 compares with none; ours"),
    ("random_placing", compiled.RANDOM_PLACING, "random VMs with room, no voluntary waits", "ours"),
):
    register_placement(_name, _doc, _source, partial(CompiledRule, _name, _code))
register_placement(
    "ilp_beta",
    "least loss of R_epi per job: cost and duration weighed by beta",
    "ours",
    _ilp_beta,
    (Option("beta", "weight of cost (default: that of the settings)", float),),
)


def list_placements() -> list[str]:
    """Names of all registered rules, sorted."""
    return SCHEDULERS.names()


def make_placement(scheduler: str | PlacementScheduler, **parameters: Any) -> Any:
    """A rule by its text with further parameters; a scheduler as it is.

    Raises:
        UnknownSchedulerError: No rule has that name.
        SchedulerError: The object is not a heuristic.
        ConfigError: A parameter is unknown or out of range.
    """
    if not isinstance(scheduler, str):
        known = callable(getattr(scheduler, "decide", None)) or callable(getattr(scheduler, "run_episode", None))
        if not isinstance(scheduler, CompiledRule) and not known:
            raise SchedulerError(f"{scheduler!r:.60} is not a placement scheduler: expected a name and decide(view)")
        if parameters:
            raise ConfigError("parameters are for rules given by name")
        return scheduler
    name, _ = SCHEDULERS.split(scheduler)
    entry = SCHEDULERS.find(name)
    _, texts = split_options(scheduler, name=name)
    values = read_options(texts, entry.options, f"scheduler {scheduler!r}")
    if unknown := [key for key in parameters if key not in entry.keys]:
        known = ", ".join(entry.keys) or "none"
        raise ConfigError(f"scheduler {name} has no parameter {unknown[0]!r}; it has: {known}")
    return make_placement(entry.make(values | parameters))


class PlacementScheduler(Protocol):
    """A rule in Python: a name and one method; nothing has to be subclassed.

    A true attribute ``concurrent`` says that one object may serve several runs at the same time; a false one ``draws``,
    that it takes no chance, so that another seed is the same run.
    """

    name: str

    def decide(self, view: View) -> list[int] | None:
        """VM of every executor of the job, from 0; None waits for a completion."""


@dataclass(frozen=True)
class View:
    """State at a decision: the executors of a job are to be placed, or wait.

    Attributes:
        workload: All jobs; a rule that looks at later ones is offline.
        settings: VMs, billing, beta.
    """

    workload: PlacementWorkload
    settings: PlacementSettings
    _state: Record

    @property
    def now_s(self) -> float:
        """The clock in seconds."""
        return self._state.now_s

    @property
    def job(self) -> PlacementJob:
        """The job that is shown."""
        return self.workload.jobs[self._state.job]

    @property
    def may_wait(self) -> bool:
        """Whether something runs, so that waiting leads somewhere."""
        return self._state.running > 0

    @property
    def free_cores(self) -> np.ndarray:
        """int64 [VMs]."""
        return self._state.free_cores.copy()

    @property
    def free_memory_mib(self) -> np.ndarray:
        """int64 [VMs]."""
        return self._state.free_memory.copy()

    @property
    def room(self) -> np.ndarray:
        """int64 [VMs], executors of the job that fit on each."""
        job = self.job
        return np.minimum(self.free_cores // job.cores, self.free_memory_mib // job.memory_mib)

    @property
    def fits(self) -> bool:
        """Whether all executors of the job can be placed now."""
        return int(self.room.sum()) >= self.job.executors

    def added_cost(self, run_s: float) -> np.ndarray:
        """float64 [VMs], cost of using each VM from now for a run time."""
        costs = np.empty(self._state.num_vms)
        added_costs(self._state.address, float(run_s), costs)
        return costs
