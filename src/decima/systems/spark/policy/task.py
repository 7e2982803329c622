"""What a policy is trained for: jobs, cluster, objective, sequences."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from decima.core.checks import check_whole, is_number
from decima.core.errors import ConfigError
from decima.core.files import plain
from decima.core.grammar import read_fields
from decima.core.objectives import get_objective
from decima.learning.recipe import FAST, TENSORFLOW, register_recipe
from decima.learning.rollout import SEQUENCE_SEED, VALIDATION_SEED, sequence_seed
from decima.systems.spark.policy.architecture import Architecture
from decima.systems.spark.settings import Settings, settings_from
from decima.systems.spark.tables import WorkloadTables, stage_levels
from decima.workload.jobs import Workload
from decima.workload.sources import get_source, parse_jobs

if TYPE_CHECKING:
    from decima.learning.recipe import Recipe
    from decima.learning.training import TrainingRequest

RUN = "DecimaRun"  # class in ``run.py``
COMPILES = True  # whether gradients need no TensorFlow
KINDS = ("batch", "stream")
# What validation is compared with: parameters tuned on sequences that no test sees.
REFERENCES: dict[str, dict[str, dict[str, Any]]] = {
    "batch": {
        "weighted_fair": {"alpha": -1.3, "order": 1, "stage_rule": 0, "sticky": 1},
        "capped_srw": {"preset": "batch"},
    },
    "stream": {
        "weighted_fair": {"alpha": 0.1, "order": 1, "stage_rule": 0, "sticky": 0},
        "capped_srw": {"preset": "stream"},
    },
}


@dataclass(frozen=True)
class JobSequence:
    """Description of one workload, enough to draw it anywhere."""

    seed: int  # seed of the workload
    interarrival_s: float | None = None  # mean gap of a stream; None for a batch
    time_limit_s: float | None = None  # end of the episode; None: when all jobs are done


@dataclass(frozen=True)
class Task:
    """Jobs, cluster and objective.

    Raises:
        ConfigError: A value is out of range.
    """

    kind: str = "batch"  # ``"batch"`` (all jobs at the start) or ``"stream"`` (one at the start, others arrive)
    source: str = "tpch"  # name of a workload source, ``"tpch"`` for example
    jobs: int | None = None  # jobs of a batch; of a stream, those that arrive later (at most)
    # Mean gap of a stream, or the lowest and highest mean: each sequence then has its own in between.
    interarrival_s: float | tuple[float, float] = 25.0
    sizes: str = "paper"  # job sizes to draw from
    executors: int = 50  # executors of the cluster
    mode: str = "paper"  # rules of the simulator
    objective: str = "avg_jct"  # name of a registered objective
    settings: dict = field(default_factory=dict)  # further fields of :class:`decima.systems.spark.settings.Settings`
    options: dict = field(default_factory=dict)  # further options of the workload source

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ConfigError(f"kind must be 'batch' or 'stream', got {self.kind!r}")
        get_source(self.source)
        jobs = self.jobs if self.jobs is not None else {"batch": 20, "stream": 200}[self.kind]
        check_whole("jobs", jobs, least=1)
        object.__setattr__(self, "jobs", int(jobs))
        gaps = self.interarrival_s
        gaps = tuple(gaps) if isinstance(gaps, (tuple, list)) else (gaps, gaps)
        if len(gaps) != 2 or not all(is_number(gap) for gap in gaps) or not 0.0 < gaps[0] <= gaps[1] < float("inf"):
            raise ConfigError(
                f"interarrival_s must be a number above 0, or a low and a high one, got {self.interarrival_s!r}"
            )
        object.__setattr__(self, "interarrival_s", gaps[0] if gaps[0] == gaps[1] else gaps)
        object.__setattr__(self, "objective", get_objective(self.objective).name)
        _ = self.cluster

    @classmethod
    def of_jobs(cls, text: str, **values) -> Task:
        """Make a task from the text that names jobs.

        Args:
            text: A workload source with options, as :func:`decima.workload.sources.parse_jobs` takes it.
            **values: The other fields.

        Raises:
            ConfigError: The text means no jobs that can be drawn for training, or a value is out of range.
        """
        spec = parse_jobs(text)
        if spec.source is None:
            raise ConfigError(f"jobs {text!r}: expected a source to draw from; a file has the same jobs for every seed")
        if spec.arrivals == "trace":
            raise ConfigError(f"jobs {text!r}: a trace has its own arrivals; expected n or interarrival_s, to draw")
        if spec.initial != 1:
            raise ConfigError(f"jobs {text!r}: a stream to train on begins with one job, got initial={spec.initial}")
        options = dict(spec.options) | ({} if spec.requests == "none" else {"requests": spec.requests})
        return cls(
            "batch" if spec.arrivals == "batch" else "stream",
            source=spec.source.name,
            jobs=spec.n,
            interarrival_s=spec.interarrival_s,
            sizes=options.pop("sizes", "paper"),
            options=options,
            **values,
        )

    @classmethod
    def on(cls, cluster: Settings, **fields) -> Task:
        """Make a task on a cluster.

        Args:
            cluster: Settings of one of the modes, with any changes.
            **fields: The other fields of the task.
        """
        mode = Settings.of_mode(cluster.mode, executors=cluster.executors).as_dict()
        changes = {name: value for name, value in cluster.as_dict().items() if value != mode.get(name)}
        return cls(executors=cluster.executors, mode=cluster.mode, settings=changes, **fields)

    @cached_property
    def cluster(self) -> Settings:
        """Settings of the simulated cluster without a time limit."""
        cluster = Settings.of_mode(self.mode, executors=self.executors, **self.settings)
        loses = cluster.loss_rate or cluster.loss_times_ms
        if cluster.speculation and loses and not cluster.shuffle_service:
            # A stage would run again for a copy, and be left without an unfinished child when the copy is not needed.
            raise ConfigError("training with speculation and losses of executors needs shuffle_service in the settings")
        return cluster

    @property
    def metric(self) -> str:
        """Column of the score that selects checkpoints, that of the objective."""
        return get_objective(self.objective).column

    @property
    def streaming(self) -> bool:
        """Whether jobs arrive over time."""
        return self.kind == "stream"

    @property
    def label(self) -> str:
        """Description for logs and cards."""
        arrivals = ""
        if self.streaming:
            gaps = np.atleast_1d(self.interarrival_s)
            arrivals = " at " + "-".join(f"{gap:g}" for gap in gaps) + " s"
        label = get_source(self.source).label
        return f"{label}, {self.kind} of {self.jobs} jobs{arrivals}, {self.executors} executors"

    @property
    def data_version(self) -> str:
        """Workload source and digest of the data behind it."""
        options = {name: value for name, value in self.options.items() if name != "requests"}
        return f"{self.source} sha256:{get_source(self.source).digest(**options)}"

    def as_dict(self) -> dict:
        """Fields by name, JSON-ready."""
        values = asdict(self)
        if isinstance(self.interarrival_s, tuple):
            values["interarrival_s"] = list(self.interarrival_s)
        values["settings"] = plain(self.settings)  # classes of executors are tuples
        if not self.options:  # as in cards from before there were any
            del values["options"]
        return values

    @classmethod
    def from_dict(cls, values: dict) -> Task:
        """Inverse of :meth:`as_dict`."""
        unknown = set(values) - {item.name for item in fields(cls)}
        if unknown:
            raise ConfigError(f"unknown field of a task: {', '.join(sorted(unknown))}")
        return cls(**values)

    def sequence_settings(self, sequence: JobSequence) -> Settings:
        """The cluster for one sequence.

        Raises:
            ConfigError: The sequence has a time limit that the rules ignore.
        """
        if sequence.time_limit_s is None:
            return self.cluster
        if not self.cluster.time_limit_applies:
            raise ConfigError(
                f"mode {self.mode} never ends an episode early; set episode_start_s to none in the recipe, "
                "or time_limit_applies in the settings"
            )
        return self.cluster.replace(time_limit_ms=1000.0 * sequence.time_limit_s)

    def workload(self, sequence: JobSequence) -> Workload:
        """Draw the jobs; with a time limit those in time and one more."""
        source = get_source(self.source)
        if not self.streaming:
            return source.batch(self.jobs, sequence.seed, self.sizes, **self.options)
        workload = source.stream(self.jobs, sequence.interarrival_s, sequence.seed, self.sizes, **self.options)
        if sequence.time_limit_s is None:
            return workload
        kept = 1 + int(np.searchsorted(workload.arrival_ms, 1000.0 * sequence.time_limit_s, side="right"))
        if kept >= len(workload):
            return workload
        return Workload(workload.jobs[:kept], workload.label, workload.universe)

    def training_sequences(
        self, seed: int, iteration: int, count: int, mean_length_s: float | None = None
    ) -> list[JobSequence]:
        """Sequences of one iteration, a function of the arguments alone.

        Args:
            seed: Seed of the training run.
            iteration: From 0.
            count: Number of sequences.
            mean_length_s: Mean of the exponential episode length (line 3 of Algorithm 1); None: no end.
        """
        rng = np.random.default_rng([seed, iteration, 0])
        sequences = []
        for _ in range(count):
            number = sequence_seed(rng)
            position, length = rng.uniform(), rng.exponential()
            limit_s = None if mean_length_s is None else max(mean_length_s * length, 1.0)
            sequences.append(JobSequence(number, self._gap(position), limit_s))
        return sequences

    def validation_sequences(self, count: int) -> list[JobSequence]:
        """The same sequences at every validation; mean gaps spread evenly."""
        if count > SEQUENCE_SEED - VALIDATION_SEED:
            raise ConfigError(f"at most {SEQUENCE_SEED - VALIDATION_SEED} validation sequences, got {count}")
        return [JobSequence(VALIDATION_SEED + k, self._gap((k + 0.5) / count)) for k in range(count)]

    def _gap(self, position: float) -> float | None:
        if not self.streaming:
            return None
        low, high = np.broadcast_to(self.interarrival_s, 2)
        return float(low + position * (high - low))

    def reference_schedulers(self) -> dict:
        """Heuristics that validation is compared with, by name."""
        from decima.systems.spark.schedulers import make_scheduler

        return {name: make_scheduler(name, **values) for name, values in REFERENCES[self.kind].items()}


def sequences_of_rollouts(
    sequences: list[JobSequence], rollouts: int, ends: str, mean_length_s: float | None, seed: int, iteration: int
) -> list[JobSequence]:
    """Sequence of every rollout of an iteration, with its end.

    Args:
        sequences: As :meth:`Task.training_sequences` draws them.
        rollouts: Rollouts of each.
        ends: One of :data:`decima.learning.algorithms.parts.ENDS`.
        mean_length_s: Mean length of the episodes of streams; None: no end.
        seed: Seed of the training run.
        iteration: From 0.
    """
    repeated = [sequence for sequence in sequences for _ in range(rollouts)]
    if mean_length_s is None or ends == "sequence":
        return repeated
    lengths = np.ones(len(repeated))
    if ends == "rollout":
        lengths = np.random.default_rng([seed, iteration, 3]).exponential(size=len(repeated))
    limits_s = np.maximum(mean_length_s * lengths, 1.0)
    return [replace(each, time_limit_s=float(limit_s)) for each, limit_s in zip(repeated, limits_s, strict=True)]


def children_of(task: Task) -> tuple[np.ndarray, np.ndarray, int]:
    """``child_offset`` and ``child`` of the task's profiles, stages on the longest path."""
    workload = task.workload(task.validation_sequences(1)[0])
    tables = WorkloadTables(workload, task.cluster)
    depth = 1 + max(max(stage_levels(profile)) for profile in workload.universe)
    return tables.arrays["child_offset"], tables.arrays["child"], depth


def read_parts(
    jobs: str,
    request: TrainingRequest,
    *,
    architecture: str = "paper",
    executors: int = 50,
    mode: str = "paper",
    objective: str = "avg_jct",
    classes: str | None = None,
    durations: str | None = None,
) -> tuple[Task, Recipe, Architecture]:
    """Plan a training on the Spark cluster, see :func:`decima.learning.training.train`.

    Args:
        jobs: A workload source with options.
        request: Recipe, changes of settings, recipe and architecture, limits and seed.
        architecture: ``paper``, ``released``, ``classes``, or ``file.py:NAME`` of a Keras model.
        executors: Executors of the cluster.
        mode: Rules of the simulator.
        objective: Objective to optimise.
        classes: Classes of executors, ``0.25:50,1:100``, instead of their number.
        durations: ``sampled`` or ``mean``; None: by mode.

    Returns:
        Task, recipe and network.

    Raises:
        ConfigError: A name is unknown or a value out of range.
    """
    groups = request.groups("settings", "recipe", "architecture")
    switches = read_fields(groups["settings"], Settings, "--set settings.")
    cluster = settings_from(mode, switches, executors=executors, classes=classes, durations=durations)
    if cluster.classes:
        switches["classes"] = [list(each) for each in cluster.classes]
    if durations is not None:
        switches["durations"] = durations
    task = Task.of_jobs(jobs, executors=cluster.executors, mode=mode, objective=objective, settings=switches)
    network = Architecture.named(
        architecture, **read_fields(groups["architecture"], Architecture, "--set architecture.")
    )
    gradient = {"gradient": TENSORFLOW} if network.network else {}
    return task, request.recipe_for(task.kind, gradient | groups["recipe"]), network


# ---- recipes ---------------------------------------------------------------------------------------------------------


_FAST: dict[str, Any] = FAST | {
    "sequences": 4,
    "lr_start": 5e-4,
    "lr_end": 5e-5,
    "trace_s": 10.0,
    "trace_end_s": 100.0,
    "normalise": "all",
    "teacher": "capped_srw",
    "teacher_iterations": 40,
    "teacher_lr": 3e-3,
    "teacher_lr_end": 3e-3,
    "validation_sequences": 40,
    "iterations": 320,
}
_CONTINUING: dict[str, Any] = {
    "algorithm": "continuing",
    "epochs": 2,
    "minibatches": 8,
    "lr_start": 1e-3,
    "lr_end": 1e-4,
    "lr_shape": "geometric",
    "gradient_norm": 1.0,
    "loss_reduction": "mean",
    "entropy_start": 0.02,
    "entropy_end": 0.0,
    "entropy_iterations": 150,
    "effect_classes": True,
    "validate_every": 25,
}
# Every ingredient's worth is in the training report.
_RECIPES: dict[str, dict[str, Any]] = {
    "fast-batch": _FAST
    | {
        "lr_end": 2e-4,
        "trace_s": 30.0,
        "teacher_iterations": 80,
        "iterations": 200,
        "teacher_parameters": {"c0": 2.71, "c1": -0.157, "power": 0.307, "release": 2.036},
    },
    "fast-stream": _FAST
    | {
        "sequences": 2,
        "minibatches": 8,
        "teacher_sequences": 8,
        "validation_sequences": 20,
        "iterations": 220,
        "teacher_parameters": {"c0": 1.33, "c1": 0.3, "power": 0.141, "release": 1.093},
    },
    # From random weights on streams, by windows that never end for the learner.
    "continuing-stream": _CONTINUING | {"load_start": 0.5, "validation_sequences": 8, "iterations": 400},
    # The same on batches: windows of 40 s, a batch takes about five minutes.
    "continuing-batch": _CONTINUING
    | {
        "window_s": 40.0,
        "step_s": 1.0,
        "warm_up_s": 0.0,
        "horizon_s": 3000.0,
        "critic_step_s": 2.0,
        "critic_trace_s": 100.0,
        "validation_sequences": 40,
        "iterations": 500,
    },
    # For policies with idle slots: a linear rule that idles is the teacher. Its weights here are where tuning begins;
    # those of a workload are better (`decima tune idle_rule`). What a slot costs or gains shows after a long job.
    "idle": _FAST
    | {
        "lr_end": 1e-4,
        "trace_s": 200.0,
        "trace_end_s": 600.0,
        "teacher": "idle_rule",
        "teacher_idles": True,
        "teacher_parameters": {
            "c0": 30.0, "c1": 10.0, "power": 0.0, "release": 10.0, "base": -3.5, "soon": 3.0, "length": 1.0,
        },
        "teacher_lr_end": 1e-3,
        "teacher_iterations": 100,
        "teacher_sequences": 8,
        "validation_sequences": 60,
        "validation_seeds": 0,
        "iterations": 300,
    },
}  # fmt: skip
for _name, _values in _RECIPES.items():
    register_recipe(_name, **_values)
