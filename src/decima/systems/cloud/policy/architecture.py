"""Shapes of placement networks: a scorer shared by all VMs, or the paper's vector."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from decima.core.checks import is_whole
from decima.core.errors import ConfigError
from decima.learning.perceptron import NetworkShape, Perceptron

FORMS = ("shared", "vector")
#: Inputs of the shared scorer for one action, in order. Waiting has the first one and those of the job and of waiting.
FEATURES = (
    "waits",
    # of a VM; a is the run time of the job when well placed, its unit of cost a x cores x the mean price of a core
    "room",  # executors of the job that fit, log(1 + n) / 2
    "room_share",  # the same up to the executors left, over these
    "room_for_all",
    "free_cores",  # over 16
    "free_memory",  # over 64 GB
    "cores_left_over",  # when as many executors as fit are here
    "memory_left_over",
    "on",  # rented now
    "busy",  # log(1 + seconds until its last job ends / a)
    "busy_long_enough",  # at least a
    "added_cost",  # of using it for a, log(1 + c), in units of cost
    "added_cost_bad",  # of using it for the run time when badly placed
    "core_price",  # over the mean price of a core
    "cores",  # over 16
    "executors_here",  # of the job, over its executors
    "may_be_good",  # an executor here leaves the job well placed so far
    "planned",  # executors that the per-job program with beta would put here, over those left
    "is_planned",
    "loss",  # what using it takes from R_epi, log(1 + l), as a share of what the job takes at least
    # of waiting
    "next_end",  # log(1 + seconds until the next completion / a)
    "fits",  # the job could be placed now
    "voluntary",  # voluntary waits before this job
    # of the job and the moment
    "cpu_bound",
    "memory_bound",
    "network_bound",
    "executor_cores",  # over 4
    "executor_memory",  # over 16 GB
    "executors",  # over 8
    "executors_left",  # over its executors
    "run_time",  # log(a / 60)
    "waited",  # log(1 + minutes since its arrival)
    "running",  # jobs, over 10
    "first",  # no executor of the job is placed
    "good_so_far",
    "beta",
    "cost_share",  # weight of its cost against that of its run time in R_epi
    "queue",  # log(1 + jobs that have arrived behind it)
    "gap",  # log(1 + mean gap between arrivals so far in minutes)
    "free_share",  # of all cores
)


@dataclass(frozen=True)
class PlacementArchitecture(NetworkShape):
    """Shape of a network that scores the actions of executor placement.

    Scores are logits of a policy (REINFORCE) or values (DQN).

    Raises:
        ConfigError: A field is out of range, or fields contradict each other.
    """

    system: ClassVar[str] = "cloud"
    constants: ClassVar[dict[str, Any]] = {"prices": False, "job_id": "id"}
    name: str = "shared"
    # ``"shared"``: one scorer for every VM and for waiting, on any cluster; ``"vector"``: the paper's, whose state is
    # one vector (section 4) and which has an output for every action.
    form: str = "shared"
    hidden: tuple[int, ...] = (32, 16)  # hidden widths; the paper's "200 fully connected" are one layer of 200
    masked: bool = True  # invalid actions are never chosen; else they end the episode (Table 3)
    waits: int = 1  # most voluntary waits before a job, where masked
    vms: int = 0  # VMs of the cluster that a vector describes; 0 with the shared scorer
    scaled: bool = False  # numbers of the vector are divided by the largest on the cluster and in the trace

    def __post_init__(self) -> None:
        if self.form not in FORMS:
            raise ConfigError(f"form must be {' or '.join(FORMS)}, got {self.form!r:.60}")
        self.check_widths("hidden")
        if not is_whole(self.waits) or not 0 <= self.waits <= 10**6:
            raise ConfigError(f"waits must be a whole number of at least 0, got {self.waits!r:.60}")
        least = 1 if self.form == "vector" else 0
        if not is_whole(self.vms) or not least <= self.vms <= least * 10**5:
            expected = "the number of VMs, from 1" if least else "0 with the shared scorer"
            raise ConfigError(f"vms must be {expected}, got {self.vms!r:.60}")

    def require_vms(self, count: int) -> None:
        """Raise ConfigError unless the network can decide for ``count`` VMs."""
        if self.form == "vector" and self.vms != count:
            raise ConfigError(f"the policy is made for {self.vms} VMs, the cluster has {count}")

    @property
    def inputs(self) -> int:
        """Width of the input: of one action (shared), or of the state."""
        return len(FEATURES) if self.form == "shared" else 2 * self.vms + 4

    @property
    def outputs(self) -> int:
        """Width of the output: 1 (shared), or one per action."""
        return 1 if self.form == "shared" else self.vms + 1

    @cached_property
    def perceptrons(self) -> tuple[Perceptron, ...]:
        """The one network."""
        return (Perceptron("score", (self.inputs, *self.hidden, self.outputs)),)


def _paper(vms: int, **changes) -> PlacementArchitecture:
    values = {"name": "paper", "form": "vector", "hidden": (200,), "masked": False, "vms": vms}
    return PlacementArchitecture(**(values | changes))


PlacementArchitecture.variants.add("shared", lambda vms, **changes: PlacementArchitecture(**changes))
PlacementArchitecture.variants.add("paper", _paper)
