"""Learned placement as a scheduler, stored policies, and records of episodes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from decima.core.grammar import Option
from decima.core.record import Record
from decima.learning.dense import dense_layer
from decima.learning.store import greedy_of, read_policy
from decima.systems.cloud.policy import kernel as inference
from decima.systems.cloud.policy.architecture import PlacementArchitecture
from decima.systems.cloud.policy.kernel import NO_TEACHER, PLACEMENT_POLICY
from decima.systems.cloud.schedulers.registry import register_placement

_FOR_EVER = 1 << 60


@dataclass(frozen=True)
class PlacementRecord:
    """Decisions of one episode, D of them with R actions to choose from in all."""

    first: np.ndarray  # int64 [D + 1], first of the actions of each decision among all R
    action: np.ndarray  # int32 [R], 0 waits, i is VM i
    x: np.ndarray  # float32 [R, inputs], or of a vector [D, inputs]
    chosen: np.ndarray  # int32 [D], place among the actions of the decision
    log_prob: np.ndarray  # float32 [D]
    reward: np.ndarray  # float64 [D], from the decision up to the next one
    job: np.ndarray  # int64 [D]
    step: np.ndarray  # int64 [D], actions taken before
    jobs: int  # jobs of the episode
    steps: int  # actions of the episode
    complete: bool  # whether all jobs were placed
    cost: float  # NaN where not
    duration_s: float  # mean run time, NaN where not
    total: float  # sum of all rewards

    def __len__(self) -> int:
        return len(self.chosen)


class LearnedPlacement:
    """A network that places executors, inside the core.

    Args:
        architecture: Shape of the network.
        weights: Float32 [parameters].
        greedy: Take the best action; else draw it.
        name: What tables call it.

    Raises:
        ConfigError: The weights do not fit, or are not finite.
    """

    concurrent = True

    def __init__(
        self, architecture: PlacementArchitecture, weights: np.ndarray, greedy: bool = True, name: str = "learned"
    ) -> None:
        self.architecture, self.greedy, self.name = architecture, bool(greedy), name
        self.weights = architecture.checked(weights)
        self.values: dict[str, Any] = {}

    @property
    def draws(self) -> bool:
        """Whether it decides randomly, so that another seed is another run."""
        return not self.greedy

    def memory(self, state: Record, *, record: bool = False) -> Record:
        """Memory of the policy for one episode after the other on a state.

        Raises:
            ConfigError: The policy is made for another number of VMs.
        """
        shape, vms = self.architecture, state.num_vms
        shape.require_vms(vms)
        steps = len(state.action) if record else 0
        width = max(shape.perceptrons[0].widths)
        pairs = (steps + 1) * (vms + 1)
        layers = np.array(shape.layer_rows()["score"], dtype=np.int64).ravel()
        memory = Record(
            PLACEMENT_POLICY,
            {
                "weight": shape.num_parameters,
                "layer x 4": len(layers),
                "forced": len(state.action),
                "vm": vms,
                "action": vms + 1,
                "action x input": (vms + 1) * shape.inputs,
                "buffer": 2 * (vms + 1) * width,
                "decision": steps + 1,
                "decision + 1": steps + 2,
                "pair": pairs,
                "recorded input": shape.inputs * ((steps + 1) if shape.form == "vector" else pairs),
            },
        )
        memory.bind("layers", layers)
        memory.configure(
            net_dense=dense_layer.address,
            vector=shape.form == "vector",
            masked=shape.masked,
            most_waits=shape.waits,
            scaled=shape.scaled,
            num_layers=len(shape.hidden) + 1,
            inputs=shape.inputs,
            width=width,
            record=record,
            limit=_FOR_EVER,
        )
        self.show(memory)
        return memory

    def show(self, memory: Record) -> None:
        """Let a memory have the weights and the way to act."""
        memory.bind("weights", self.weights, copy=False)
        memory.configure(greedy=self.greedy)

    def run_episode(self, episode: Any) -> None:
        """Play an episode that has begun to its end, see :class:`decima.systems.cloud.system.Episode`."""
        play(episode.state, episode.other, self.memory(episode.state))


def learned(policy: str = "cloud-fast", greedy: bool | None = None) -> LearnedPlacement:
    """A stored policy as a rule.

    Args:
        policy: Its name, or the path of its .weights.h5.
        greedy: Take the best action; else draw it. When omitted, as the card says.

    Raises:
        PolicyError: There is no such policy, or its files are damaged.
    """
    stored = read_policy(policy, PlacementArchitecture)
    scheduler = LearnedPlacement(
        stored.architecture, stored.weights, greedy_of(stored, None if greedy is None else bool(greedy))
    )
    scheduler.values = {"policy": str(policy), "greedy": int(scheduler.greedy)}
    return scheduler


register_placement(
    "learned",
    "a trained network scores waiting and every VM, executor by executor",
    "Islam et al., TPDS 2022, section 6; the default policy is ours",
    learned,
    (
        Option("policy", "name of a stored policy, or path of its .weights.h5 (default cloud-fast)"),
        Option("greedy", "true: the best action; false: drawn at random (default: as its card says)", bool),
    ),
)


def play(state: Record, other: Record, memory: Record) -> None:
    """Continue an episode; see :func:`decima.systems.cloud.policy.kernel.play`."""
    mask = np.zeros(state.num_vms + 1, dtype=np.int8)
    inference.play(state.address, other.address, memory.address, mask)


def give_actions(memory: Record, actions: Sequence[int] | np.ndarray) -> None:
    """Let the next episode begin with some actions."""
    forced = np.zeros(len(memory.forced), dtype=np.int64)
    forced[: len(actions)] = actions
    memory.bind("forced", forced, copy=False)
    memory.configure(num_forced=len(actions))


def teach(memory: Record, teacher: int = NO_TEACHER, share: float = 1.0) -> None:
    """Say whose decisions are recorded, and how often the teacher's are carried out."""
    memory.configure(teacher=teacher, teacher_share=share)
