"""Tasks of training: jobs, VMs, weights of cost, and their traces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from decima import __version__
from decima.core.checks import is_number
from decima.core.errors import ConfigError
from decima.core.grammar import read_fields
from decima.learning.recipe import register_recipe
from decima.learning.rollout import VALIDATION_SEED, sequence_seed
from decima.systems.cloud.catalog import Billing, make_cluster
from decima.systems.cloud.policy.architecture import PlacementArchitecture
from decima.systems.cloud.settings import PlacementSettings, Rules
from decima.systems.cloud.sources import SOURCES, JobsSpec, parse_placement_jobs
from decima.systems.cloud.workload import PlacementWorkload

if TYPE_CHECKING:
    from decima.learning.recipe import Recipe
    from decima.learning.training import TrainingRequest

RUN = "PlacementRun"  # class in ``run.py``
COMPILES = False  # whether gradients need no TensorFlow
REWARDS = ("per_job", "table3")
FAMILY = "placement"


@dataclass(frozen=True)
class PlacementSequence:
    """One trace on one list of VMs, enough to draw it anywhere."""

    source: int  # which of the task's sources of jobs
    vms: int  # which of its lists of VMs
    beta: float
    seed: int  # of the jobs


@dataclass(frozen=True)
class PlacementTask:
    """Jobs, VMs and weights of cost; of several, every sequence has one of each, drawn.

    Raises:
        ConfigError: A value is out of range.
    """

    jobs: tuple[str, ...] = ("generated",)  # texts of :mod:`decima.systems.cloud.sources`
    vms: tuple[str, ...] = ("table4",)  # lists of VMs, as :func:`decima.systems.cloud.catalog.make_cluster` takes them
    betas: tuple[float, ...] = (1.0,)  # weights of cost
    mode: str = "paper"  # rules
    # ``"per_job"``: what every job takes from R_epi, which sums to R_epi less a constant; the time of an episode counts
    # jobs. ``"table3"``: the rewards of Table 3; time counts steps. In recipes, seconds are these.
    reward: str = "per_job"
    rules: dict = field(default_factory=dict)  # fields of :class:`decima.systems.cloud.settings.Rules` to change
    billing: dict = field(default_factory=dict)  # fields of :class:`decima.systems.cloud.catalog.Billing` to change

    def __post_init__(self) -> None:
        for name in ("jobs", "vms", "betas"):
            stated = getattr(self, name)
            values = tuple(stated) if isinstance(stated, (list, tuple)) else (stated,)
            if not values:
                raise ConfigError(f"{name} is empty; expected at least one")
            object.__setattr__(self, name, values)
        if self.reward not in REWARDS:
            raise ConfigError(f"reward must be {' or '.join(REWARDS)}, got {self.reward!r}")
        for beta in self.betas:
            if not is_number(beta) or not 0.0 <= beta <= 1.0:
                raise ConfigError(f"betas hold {beta!r}; expected weights of cost, from 0 to 1")
        object.__setattr__(self, "betas", tuple(float(beta) for beta in self.betas))
        _ = self.specs, self.settings

    @cached_property
    def specs(self) -> list[JobsSpec]:
        """The sources of jobs."""
        return [parse_placement_jobs(text) for text in self.jobs]

    @cached_property
    def settings(self) -> list[PlacementSettings]:
        """Settings on every list of VMs, with the first beta."""
        return [
            PlacementSettings.of_mode(
                self.mode, cluster=make_cluster(vms), beta=self.betas[0], billing=Billing(**self.billing), **self.rules
            )
            for vms in self.vms
        ]

    metric = "loss_ratio"  # what selects weights, see :mod:`decima.systems.cloud.policy.run`

    @property
    def label(self) -> str:
        """A few words for logs and cards."""
        betas = ", ".join(f"{beta:g}" for beta in self.betas)
        return f"{' and '.join(self.jobs)} on {' and '.join(self.vms)}, beta {betas}"

    @property
    def data_version(self) -> str:
        """Sources of the jobs and a digest of what they draw first."""
        return "; ".join(
            f"{text} ({spec.workload(0).signature()[:16]}, {__version__})"
            for text, spec in zip(self.jobs, self.specs, strict=True)
        )

    def as_dict(self) -> dict[str, Any]:
        """Fields by name, JSON-ready."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}

    # ---- sequences ----------------------------------------------------------------------------------------------

    def workload(self, sequence: PlacementSequence) -> PlacementWorkload:
        """The jobs of a sequence; a trace or a file is read and checked once."""
        return self.specs[sequence.source].workload(sequence.seed)

    def settings_of(self, sequence: PlacementSequence) -> PlacementSettings:
        """VMs, rules and the weight of cost of a sequence."""
        return replace(self.settings[sequence.vms], beta=sequence.beta)

    def training_sequences(self, seed: int, iteration: int, count: int) -> list[PlacementSequence]:
        """Sequences of one iteration; a trace or a file has seed 0.

        Args:
            seed: Seed of the training run.
            iteration: From 0.
            count: Number of sequences.
        """
        rng = np.random.default_rng([seed, iteration, 0])
        sequences = []
        for _ in range(count):
            number = sequence_seed(rng)
            source, vms, beta = (int(rng.integers(len(part))) for part in (self.jobs, self.vms, self.betas))
            number = number if self.specs[source].drawn else 0
            sequences.append(PlacementSequence(source, vms, self.betas[beta], number))
        return sequences

    def validation_sequences(self, count: int) -> list[PlacementSequence]:
        """Sequences of every validation: sources, lists of VMs and betas in turn."""
        sequences: dict[tuple, PlacementSequence] = {}
        for k in range(count):
            beta = self.betas[k // (len(self.jobs) * len(self.vms)) % len(self.betas)]
            source, vms = k % len(self.jobs), k // len(self.jobs) % len(self.vms)
            seed = VALIDATION_SEED + k if self.specs[source].drawn else 0
            sequences.setdefault((source, vms, beta, seed), PlacementSequence(source, vms, beta, seed))
        return list(sequences.values())


def texts(values: Sequence[str] | str) -> tuple[str, ...]:
    """Several texts out of one with semicolons between them."""
    return tuple(part.strip() for part in values.split(";")) if isinstance(values, str) else tuple(values)


def draws(jobs: str) -> bool:
    """Whether jobs to train on are to be placed on VMs."""
    first = texts(jobs)[0]
    return first.endswith(".csv") or SOURCES.split(first)[0] in SOURCES.names()


def read_parts(
    jobs: str,
    request: TrainingRequest,
    *,
    architecture: str = "shared",
    vms: str = "table4",
    betas: str = "1",
    mode: str = "paper",
    reward: str = "per_job",
) -> tuple[PlacementTask, Recipe, PlacementArchitecture]:
    """Plan a training of placement, see :func:`decima.learning.training.train`.

    Args:
        jobs: Sources of jobs, ``;`` between them.
        request: Recipe, changes of rules, billing, recipe and architecture, limits and seed.
        architecture: ``shared`` (one scorer for all VMs) or ``paper``.
        vms: Lists of VMs, ``;`` between them.
        betas: Weights of cost from 0 to 1, ``;`` between them.
        mode: Rules.
        reward: ``per_job`` or ``table3``.

    Returns:
        Task, recipe and network.

    Raises:
        ConfigError: A name is unknown or a value out of range.
    """
    groups = request.groups("rules", "billing", "recipe", "architecture")
    try:
        weights = tuple(float(beta) for beta in texts(str(betas)))
    except ValueError as error:
        raise ConfigError(f"--betas {betas}: expected numbers with ; between") from error
    task = PlacementTask(
        texts(jobs),
        texts(vms),
        weights,
        mode,
        reward,
        read_fields(groups["rules"], Rules, "--set rules."),
        read_fields(groups["billing"], Billing, "--set billing."),
    )
    network = PlacementArchitecture.named(
        architecture,
        len(task.settings[0].cluster),
        **read_fields(groups["architecture"], PlacementArchitecture, "--set architecture."),
    )
    return task, request.recipe_for(FAMILY, groups["recipe"]), network


# ---- recipes: those of the paper (Table 5, Algorithms 1 and 2), and ours ---------------------------------------------


_REINFORCE = {
    "sequences": 1,
    "episode_start_s": None,
    "differential": False,
    "entropy_start": 0.0,
    "entropy_end": 0.0,
    "entropy_iterations": None,
}
#: One policy for all lists of VMs and betas: imitation of the per-job program with beta, then PPO without discount.
FAST = _REINFORCE | {
    "algorithm": "ppo",
    "sequences": 8,
    "rollouts": 8,
    "epochs": 2,
    "minibatches": 4,
    "lr_start": 1e-2,
    "lr_end": 1e-3,
    "lr_shape": "geometric",
    "gradient_norm": 1.0,
    "loss_reduction": "mean",
    "entropy_start": 0.05,
    "trace_s": 5.0,
    "normalise": "sequence",
    "reward_scale_s": 1.0,
    "teacher": "ilp_beta",
    "teacher_iterations": 6,
    "teacher_sequences": 8,
    "validate_every": 10,
    "validation_sequences": 24,
    "validation_seeds": 0,
    "checkpoint_every": 20,
    "iterations": 120,
}
#: Algorithm 2 with Table 5: ten episodes per iteration, learning rate 0.001, discount 0.9 per step, no baseline.
PAPER_REINFORCE = _REINFORCE | {
    "algorithm": "reinforce",
    "rollouts": 10,
    "baseline": "none",
    "normalise": "all",
    "horizon_s": 9.491221581029903,
    "reward_scale_s": 1.0,
    "validate_every": 1000,
    "validation_seeds": 0,
    "checkpoint_every": 1000,
    "iterations": 10_000,
}
#: Algorithm 1 with Table 5: ten steps per iteration, batches of 64 out of 10,000 transitions, eps 0.001.
PAPER_DQN = {
    "algorithm": "dqn",
    "validate_every": 1000,
    "validation_seeds": 0,
    "checkpoint_every": 1000,
    "iterations": 10_000,
}
register_recipe("fast-placement", **FAST)
register_recipe("paper-placement", **PAPER_REINFORCE)
register_recipe("paper-dqn-placement", **PAPER_DQN)
