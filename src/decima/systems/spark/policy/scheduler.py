"""``LearnedScheduler``: a trained network wherever a scheduler is wanted; ``record_episode`` for training."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from decima.core.decision import names_read
from decima.core.errors import ConfigError
from decima.core.grammar import Option
from decima.core.record import Record
from decima.learning.dense import dense_layer
from decima.learning.quiet import import_tensorflow
from decima.learning.store import greedy_of, read_policy
from decima.systems.spark.policy.architecture import SHAPE_FEATURES, Architecture
from decima.systems.spark.policy.features import OF_RUNNING
from decima.systems.spark.policy.fields import POLICY, POLICY_SLOT
from decima.systems.spark.policy.kernel.embedding import GROUP, ROWS
from decima.systems.spark.policy.kernel.inference import decide_learned, decide_outside
from decima.systems.spark.policy.kernel.layout import OFFER_KEPT, pack_layout
from decima.systems.spark.policy.kernel.observation import KEPT
from decima.systems.spark.policy.record import (
    CAPACITIES,
    EpisodeRecord,
    RecordFullError,
    bind_buffers,
    buffer_extents,
    collect_record,
    enlarge_buffers,
    policy_record,
    record_width,
)
from decima.systems.spark.schedulers.interface import (
    GAP,
    RUNNING,
    CompiledScheduler,
    Decision,
    Observation,
    Scheduler,
    decision_parts,
    fields_in,
    run_decision,
)
from decima.systems.spark.schedulers.registry import BATCH, LEARNED, STREAM, ByArrivals, Preset, register
from decima.systems.spark.state import ClusterState, offers, spawn_generators
from decima.workload.jobs import Workload

if TYPE_CHECKING:
    from decima.systems.spark.policy.network import DecimaNetwork


class LearnedScheduler(CompiledScheduler):
    """A policy network as a scheduler: inside the core like a heuristic, or through ``decide``.

    One object may serve many states in many threads: it never changes, whatever does lies in the state.

    Args:
        architecture: Shape of the network.
        weights: Float32 [architecture.num_parameters], in the order of ``architecture.shapes``.
        greedy: Take the most probable stage and number of executors; else sample both.
        name: Name in results.
        record: Record every decision, see :func:`record_episode`.
        teacher: A scheduler to imitate; its choices are recorded. Decisions in which it idles or delays a stage are not
            recorded. All others are recorded with r = 0 and are excluded from the loss of d. A teacher that is not
            compiled decides outside of the core, in :func:`record_episode`.
        teacher_idles: Record also that the teacher idles or does not, if it does so in the way of the architecture:
            the r nearest to its slot, 0 where it could have delayed the stage and did not; where it holds, r = 1 for a
            stage of the policy's own.
        teacher_share: Probability that the teacher's decision is carried out, not the policy's own.
        interarrival_s: Mean interarrival time in seconds for a policy with that feature; taken
            from the workload when omitted, which then needs jobs that arrive over time.

    Raises:
        ConfigError: The weights do not fit the architecture, or are not finite; an argument is out of range.
    """

    decision = decide_learned

    def __init__(
        self,
        architecture: Architecture,
        weights: np.ndarray,
        greedy: bool = True,
        name: str = "decima",
        record: bool = False,
        teacher: Scheduler | None = None,
        teacher_share: float = 1.0,
        interarrival_s: float | None = None,
        teacher_idles: bool = False,
    ) -> None:
        self._architecture = architecture
        self.weights = weights
        self.greedy = bool(greedy)
        self.name = name
        self.record = bool(record)
        self.teacher = teacher
        self.teacher_share = teacher_share
        self.teacher_idles = bool(teacher_idles)
        self.interarrival_s = interarrival_s
        self.values = {}
        self._layout = pack_layout(architecture)
        if teacher is not None and not isinstance(teacher, Scheduler):
            raise ConfigError(f"the teacher must be a scheduler, got {type(teacher).__name__}")
        if getattr(teacher, "decision", None) is decide_learned:
            raise ConfigError(f"the teacher is the learned policy {teacher.name}, which would teach itself")
        self._inside = teacher if isinstance(teacher, CompiledScheduler) else None
        if not 0.0 <= teacher_share <= 1.0:
            raise ConfigError(f"teacher_share must be from 0 to 1, got {teacher_share!r}")
        if interarrival_s is not None and not 0.0 <= interarrival_s < math.inf:
            raise ConfigError(f"interarrival_s must be a finite number of at least 0, got {interarrival_s!r}")

    __eq__ = object.__eq__
    __hash__ = object.__hash__

    @property
    def architecture(self) -> Architecture:
        """Shape of the network."""
        return self._architecture

    @property
    def weights(self) -> np.ndarray:
        """Weights, float32 [architecture.num_parameters], read-only; others may be set."""
        return self._weights

    @weights.setter
    def weights(self, weights: np.ndarray) -> None:
        self._weights = self._architecture.checked(weights)

    def network(self) -> DecimaNetwork:
        """The same network as a Keras model, with a copy of these weights.

        It is called with the tensors of a :class:`decima.systems.spark.policy.batch.GraphBatch`. Changes of its weights
        do not change this scheduler.

        Raises:
            MissingExtraError: TensorFlow is not installed.
        """
        import_tensorflow()
        from decima.systems.spark.policy.network import make_network

        return make_network(self.architecture, weights=self.weights)

    def __setstate__(self, state: dict) -> None:
        self.__dict__ |= state
        self._weights.setflags(write=False)

    def __repr__(self) -> str:
        shown = "greedy" if self.greedy else "sampled"
        return f"LearnedScheduler({self.name!r}, architecture {self.architecture.name!r}, {shown})"

    @property
    def reads(self) -> frozenset[str]:
        """What its features read; the rest is reported by every client."""
        shape = self.architecture
        reads = fields_in(name for each in shape.stage_features for name in names_read((each.compute, each.of_job)))
        if reads & OF_RUNNING or (shape.delays > 0 and shape.idle == "hold"):
            reads = reads - OF_RUNNING | {RUNNING}
        if shape.interarrival_hint:
            reads |= {GAP}
        return reads

    def bind(self, state: ClusterState, hint_ms: float | None = None) -> None:
        """Bind the policy to a state, before or during a run.

        Args:
            state: Of the run.
            hint_ms: Mean interarrival time given to the policy, where the state does not know what is to arrive.

        Raises:
            ConfigError: The cluster is larger than the policy was made for, or has another number of classes; or the
                policy has the mean interarrival time as a feature, is not given it, and no job arrives later.
        """
        executors = state.settings.executors
        if executors > self.architecture.max_executors:
            raise ConfigError(
                f"the policy {self.name} is made for at most {self.architecture.max_executors} executors, "
                f"the cluster has {executors}"
            )
        wanted = self.architecture.executor_classes
        if wanted not in (0, state.num_classes):
            raise ConfigError(
                f"the policy {self.name} is made for {wanted} classes of executors, the cluster has {state.num_classes}"
            )
        self._bind_teacher(state)
        known = state.policy.architecture if isinstance(state.policy, LearnedScheduler) else None
        if known != self.architecture:
            state.attach(POLICY_SLOT, Record(POLICY, _extents(self.architecture, self._layout, state)))
        record = policy_record(state)
        # In the middle of a run what is known of the jobs stays, if an equal network found it.
        hint_ms, bound = self._hint_ms(state) if hint_ms is None else hint_ms, record.net_weights
        alike = (record.net_record, record.net_hint_ms) == (self.record, hint_ms)
        if not (alike and (bound is self.weights or np.array_equal(bound, self.weights))):
            record.configure(net_ready=0)
        record.bind("net_layout", self._layout, copy=False)
        record.bind("net_levels", self.architecture.limit_levels(executors), copy=False)
        record.bind("net_weights", self.weights, copy=False)
        if self.record and record_width(state) != self.architecture.num_features:
            bind_buffers(state, self.architecture.num_features)
        record.configure(
            net_dense=dense_layer.address,
            net_teacher=self._teacher_address,
            net_ask=self._ask_address,
            net_greedy=self.greedy,
            net_record=self.record,
            net_teacher_idles=self.teacher_idles,
            net_num_levels=(len(record.net_level_end) - 1) // 2,
            net_teacher_share=self.teacher_share,
            net_hint_ms=hint_ms,
        )
        state.policy = self

    @property
    def _teacher_address(self) -> int:
        """Address of the function that the core asks for the teacher's decision, 0 for none."""
        if self.teacher is None:
            return 0
        return (decide_outside if self._inside is None else self._inside.decision).address

    @property
    def _ask_address(self) -> int:
        """Address of the function in Python that computes the scores, 0 where compiled code does."""
        if not self.architecture.network:
            return 0
        from decima.systems.spark.policy.python_scores import compute_scores

        return compute_scores.address

    def _bind_teacher(self, state: ClusterState) -> None:
        if self._inside is not None:
            self._inside.bind(state)

    def _hint_ms(self, state: ClusterState) -> float:
        if not self.architecture.interarrival_hint:
            return 0.0
        if self.interarrival_s is not None:
            return 1000.0 * self.interarrival_s
        later = len(state.arrival_order)
        last_ms = float(state.job_arrival_ms.max()) if later else 0.0
        if not last_ms > 0.0:
            raise ConfigError(
                f"the policy {self.name} needs the mean gap between arrivals, and these jobs have none: they are all "
                "there at the start; expected jobs that arrive over time"
            )
        return last_ms / later

    def reset(self, rng: np.random.Generator) -> None:
        """Nothing to forget: the state notices that a run begins."""

    def decide(self, observation: Observation) -> Decision:
        """The same decision as inside the core.

        Raises:
            InvalidDecisionError: A score of the network is not a finite number, or a network in Python fails.
        """
        state = observation.state
        if state.policy is not self:
            observation.admit(self)
            self.bind(state)
        else:
            self._bind_teacher(state)
        decision = run_decision(self.decision, state)
        if state.no_answer:
            raise state.invalid()
        return decision


def _extents(architecture: Architecture, layout: np.ndarray, state: ClusterState) -> dict[str, int]:
    """Lengths of the arrays of the policy's record, by extent; no room for recorded decisions.

    Args:
        architecture: Shape of the network.
        layout: The same as integers.
        state: The cluster.
    """
    stages, jobs = state.tables.num_stages, state.tables.num_jobs
    executors = state.settings.executors
    features, embedding = architecture.num_features, architecture.embedding
    width = max(max(net.widths) for net in architecture.perceptrons)
    group = min(stages, GROUP + int(np.diff(state.job_first_stage).max()))
    choices = stages * max(1, architecture.executor_classes)
    levels = len(architecture.limit_levels(executors))
    limits = levels or executors + 1
    rows = max(choices, limits, architecture.delays + 1)
    kept = KEPT if layout[OFFER_KEPT] else 0
    shape, kinds = len(SHAPE_FEATURES), architecture.class_width
    return buffer_extents(dict.fromkeys(CAPACITIES, 0), features) | {
        "stage": stages,
        "job": jobs,
        "choice": choices,
        "choice x class": choices * kinds,
        "layout entry": len(layout),
        "level": levels,
        "weight": architecture.num_parameters,
        "stage x (x, e)": stages * (features + embedding),
        "job x y": jobs * embedding,
        "job x kept": jobs * kept,
        "job x kept y": jobs * kept * 2 * embedding,
        "stage x kept e": stages * kept * embedding,
        "job x shape": jobs * shape,
        "embedding": embedding,
        "group": group,
        "2 levels + 1": 2 * (int(state.row_level.max()) + 1) + 1,
        "group x (x, e)": group * (features + embedding),
        "group x e": group * embedding,
        "hidden": 2 * ROWS * width,
        "input": choices * (features + 2 * embedding + kinds + shape) + 3 * embedding + shape,
        "width": width,
        "first": max(rows * width, architecture.max_executors),
        "score": rows,
        "limit": limits,
        "sum": max(jobs, embedding),
    }


def record_episode(state: ClusterState, scheduler: LearnedScheduler, seed: int) -> EpisodeRecord:
    """Run one episode and return its record; repeated where buffers are too small.

    Args:
        state: The cluster; it may be used again and again, which saves the buffers' set-up.
        scheduler: A scheduler with ``record`` on.
        seed: Source of durations and of the policy's choices, as in ``decima.simulate``.

    Raises:
        ConfigError: The scheduler does not record.
        DeadlockError: The teacher parked every executor.
        SchedulerError: A teacher that is not compiled returned no decision.
    """
    if not scheduler.record:
        raise ConfigError(f"the scheduler {scheduler.name} does not record; make it with record=True")
    while True:
        scheduler.bind(state)
        rng, policy_rng = spawn_generators(seed)
        if scheduler.teacher is None or isinstance(scheduler.teacher, CompiledScheduler):
            state.start(rng, policy_rng, scheduler.decision.address)
            state.advance()
        else:
            _run_taught(state, scheduler, rng, policy_rng)
        try:
            return collect_record(state)
        except RecordFullError:
            enlarge_buffers(state, scheduler.architecture.num_features)


def _run_taught(
    state: ClusterState, scheduler: LearnedScheduler, rng: np.random.Generator, policy_rng: np.random.Generator
) -> None:
    """Run an episode to its end, asking a teacher that is not compiled."""
    state.start(rng, policy_rng)
    scheduler.teacher.reset(policy_rng)
    observation = Observation(state)
    for _ in offers(state):
        state.decide(*decision_parts(scheduler.teacher.decide(observation)))
        run_decision(scheduler.decision, state)  # puts what is carried out in the place of what the teacher said


DEFAULT_POLICY = "tpch-batch"
OPTIONS = (
    Option("policy", "name of a stored policy, or path of its .weights.h5 (default: by the jobs)"),
    Option("greedy", "true: greedy, the most probable action; false: sampled (default: as in its card)", bool),
)
PRESETS = (
    Preset(BATCH, "pre-trained by imitation, on batches; default for such jobs", {"policy": DEFAULT_POLICY}),
    Preset(STREAM, "pre-trained by imitation, on streams; default for such jobs", {"policy": "tpch-stream"}),
    Preset("alone_batch", "trained on batches from scratch", {"policy": "tpch-batch-random"}),
    Preset("alone_stream", "trained on streams from scratch", {"policy": "tpch-stream-continuing"}),
)

# Stored policy that ``decima`` alone takes, by label of the workload and by arrivals; for all others, the presets.
TRAINED_ON = {
    "TPC-H": {BATCH: DEFAULT_POLICY, STREAM: "tpch-stream"},
    "TPC-H extrapolated from Spark": {BATCH: "embedded-batch", STREAM: "embedded-stream"},
}


class ByWorkload(ByArrivals):
    """The stored policy that was trained on the workload; else the default."""

    def remark(self, workloads: Iterable[Workload]) -> str:
        """Name the stored policy for the jobs of each workload, one per line."""
        lines = []
        for arrivals, label in dict.fromkeys((self._arrivals([each]), each.label) for each in workloads):
            jobs = f"{'batches' if arrivals == BATCH else 'streams'} of {label}"
            known = arrivals in TRAINED_ON.get(label, {})
            text = (
                f"trained on {jobs}"
                if known
                else f"the default; no default is trained on {jobs} (decima:NAME takes another)"
            )
            lines.append(f"{self.name}: policy {self._form(arrivals, {label}).values['policy']}, {text}")
        return "\n".join(lines)

    def _form(self, arrivals: str, labels: set[str]) -> LearnedScheduler:
        default = self.forms[arrivals]
        trained = TRAINED_ON.get(next(iter(labels)), {}) if len(labels) == 1 else {}
        policy = trained.get(arrivals, default.values["policy"])
        if policy == default.values["policy"]:
            return default
        return self.forms.get(policy) or self.forms.setdefault(policy, decima(policy, **self.values))


def load_policy(name_or_path: str | os.PathLike, *, greedy: bool | None = None) -> LearnedScheduler:
    """A stored policy as a scheduler of the simulated Spark cluster.

    Example:
        >>> policy = load_policy("embedded-batch")
        >>> policy.greedy, policy.architecture.num_parameters
        (False, 12736)

    Args:
        name_or_path: A name among :func:`decima.learning.store.list_policies`, or a path with a folder or one of the
            two endings.
        greedy: Take the most probable decision; else sample. When omitted, as in the card, else greedy.

    Raises:
        PolicyError: No such policy, it is of another system, or its files are damaged or do not belong together.
    """
    from decima.systems.spark.policy.architecture import Architecture
    from decima.systems.spark.policy.scheduler import LearnedScheduler

    stored = read_policy(name_or_path, Architecture)
    return LearnedScheduler(stored.architecture, stored.weights, greedy=greedy_of(stored, greedy), name=stored.name)


@register(LEARNED, options=OPTIONS, presets=PRESETS, forms=ByWorkload)
def decima(policy: str = DEFAULT_POLICY, greedy: bool | None = None, **unknown) -> LearnedScheduler:
    """A learned policy: a graph neural network chooses stage and executor limit."""
    if unknown:
        known = ", ".join(option.name for option in OPTIONS)
        raise ConfigError(f"scheduler {LEARNED} has no parameter {next(iter(unknown))!r}; it has: {known}")
    if greedy not in (None, 0, 1):
        raise ConfigError(f"scheduler {LEARNED}: greedy must be 0 or 1, got {greedy!r}")
    scheduler = load_policy(policy, greedy=None if greedy is None else bool(greedy))
    scheduler.name = LEARNED
    scheduler.values = {"policy": str(policy), "greedy": int(scheduler.greedy)}
    return scheduler
