"""One training of Decima's policy on the simulated Spark cluster: learner, agent, validation, run."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from decima.core.errors import ConfigError
from decima.core.objectives import get_objective
from decima.evaluation.pool import RunPool
from decima.learning.agent import RolloutAgent, Stretch, StretchJob, numbered
from decima.learning.backward import compiled_code
from decima.learning.gradient import Learner
from decima.learning.loss import PROBABILITIES, STREAMS, Loss
from decima.learning.recipe import COMPILED, TENSORFLOW
from decima.learning.returns import Episode
from decima.learning.rollout import VALIDATION_SEED, Rollouts, Teacher
from decima.learning.run import TrainingRun
from decima.learning.store import StoredPolicy, read_policy
from decima.learning.trainer import Score, ratio
from decima.systems.spark.policy.architecture import Architecture
from decima.systems.spark.policy.batch import GraphBatch
from decima.systems.spark.policy.episodes import NUM_JOB_INPUTS, NUM_WORK_INPUTS, Episodes
from decima.systems.spark.policy.kernel.gradient import Chunk, Options, chunk_gradient
from decima.systems.spark.policy.kernel.inference import decide_learned
from decima.systems.spark.policy.kernel.layout import pack_layout
from decima.systems.spark.policy.kernel.observation import NUM_SUMMARY
from decima.systems.spark.policy.record import EpisodeRecord
from decima.systems.spark.policy.scheduler import LearnedScheduler
from decima.systems.spark.policy.task import JobSequence, Task, children_of, sequences_of_rollouts
from decima.systems.spark.schedulers import Scheduler, make_scheduler
from decima.systems.spark.schedulers.registry import LEARNED

# What a chunk needs stays in the cache.
CHUNK = 128
_HORIZON_S = 1500.0  # to which the inputs of the critic are scaled


class DecimaLearner(Learner):
    """Weights, their gradients in compiled code, and Adam.

    Args:
        architecture: Shape of the network.
        weights: Float32 [parameters], where to start.
        chunk: Most decisions per chunk; changes results in the last digits only.
        threads: Chunks computed at once.
    """

    def __init__(
        self, architecture: Architecture, weights: np.ndarray, *, chunk: int = CHUNK, threads: int = 1
    ) -> None:
        super().__init__(weights, chunk, threads=threads)
        self._layout = pack_layout(architecture)
        self._code = compiled_code()

    def chunk_gradient(
        self, batch: GraphBatch, decisions: np.ndarray, advantages: np.ndarray, log_prob: np.ndarray, loss: Loss
    ) -> tuple[np.ndarray, np.ndarray]:
        """Gradient of a chunk; see :meth:`.Learner.chunk_gradient`."""
        options = Options(loss.ratio, float(loss.clip), float(loss.entropy_weight), loss.effect_classes)
        chunk = Chunk(**batch.tensors(decisions))
        return chunk_gradient(self._code, self._layout, self._flat, chunk, advantages, log_prob, options)


class DecimaAgent(RolloutAgent):
    """Decima's network on the simulated Spark cluster.

    Args:
        task: Jobs, cluster and objective.
        architecture: Shape of the network.
        seed: Source of sequences and of all chance in episodes, and of the initial weights.
        backend: Where episodes run; closed with the agent.
        ends: What has an end of its own, one of :data:`decima.learning.algorithms.parts.ENDS`.
        gradient: What computes gradients, :data:`decima.learning.recipe.COMPILED` or ``TENSORFLOW``.
        weights: Float32 [parameters] to begin with; None: random ones.
        threads: Threads of the gradient.
    """

    columns = ("decisions", "episode_s", "jct_s")
    headline = "jct_s"
    summary_width = NUM_SUMMARY

    def __init__(
        self,
        task: Task,
        architecture: Architecture,
        seed: int,
        backend: Rollouts,
        *,
        ends: str = "sequence",
        gradient: str = COMPILED,
        weights: np.ndarray | None = None,
        threads: int = 1,
    ) -> None:
        super().__init__(task, architecture, seed, backend)
        self.streaming, self._ends = task.streaming, ends
        *self._children, levels = children_of(task)
        weights = architecture.initial_weights(seed) if weights is None else weights
        self.learner: Learner
        if gradient == COMPILED:
            self.learner = DecimaLearner(architecture, weights, threads=threads)
        else:
            from decima.learning.automatic import KerasLearner
            from decima.systems.spark.policy.network import make_network

            self.learner = KerasLearner(make_network(architecture, levels), weights, threads=threads)

    def collect(
        self, iteration: int, sequences: int, rollouts: int, mean_length_s: float | None, teacher: Teacher | None = None
    ) -> list[EpisodeRecord]:
        """Run episodes; see :meth:`decima.learning.agent.Agent.collect`."""
        length_s = mean_length_s if self.streaming else None
        drawn = self.task.training_sequences(self.seed, iteration, sequences, length_s)
        runs = sequences_of_rollouts(drawn, rollouts, self._ends, length_s, self.seed, iteration)
        return self.run(iteration, runs, teacher)

    @property
    def learns(self) -> tuple[str, ...]:
        """Probabilities, and streams where the jobs' times are summed and executors stay."""
        task = self.task
        sums = task.objective == "avg_jct" and not task.cluster.elastic
        return (PROBABILITIES, STREAMS) if sums else (PROBABILITIES,)

    @property
    def job_widths(self) -> dict[str, int]:
        """Inputs of a critic per job, by what it sees, from few to many."""
        widths = {"work": NUM_WORK_INPUTS, "executors": NUM_JOB_INPUTS}
        if self.architecture.graph_embedding:
            widths["embedding"] = NUM_JOB_INPUTS + self.architecture.embedding
        return widths

    @property
    def stream_s(self) -> float:
        """Mean arrival of the last job of a stream at its highest rate, else 0."""
        return self.task.jobs * float(np.min(self.task.interarrival_s)) if self.streaming else 0.0

    def stream(self, number: int, pace: float) -> JobSequence:
        """A stream by its number, or a batch.

        Args:
            number: From 0.
            pace: Rate of its arrivals, as a share of the task's.
        """
        (drawn,) = self.task.training_sequences(self.seed, number, 1)
        return replace(drawn, interarrival_s=drawn.interarrival_s / pace) if self.streaming else drawn

    def stretches(self, jobs: Sequence[StretchJob]) -> list[Stretch]:
        """Run stretches of streams with the present weights."""
        return self._backend.collect(self.architecture, self.learner.weights, jobs)

    def episodes(self, records: Sequence[EpisodeRecord]) -> list[Episode]:
        """Episodes with rewards of the task's objective, times in seconds."""
        rewards = get_objective(self.task.objective).rewards([record.progress for record in records])
        return [
            Episode(record.time_ms / 1000.0, record.end_ms / 1000.0, values, record.critic.astype(np.float64))
            for record, values in zip(records, rewards, strict=True)
        ]

    def batch(self, records: Sequence[EpisodeRecord]) -> GraphBatch:
        """The records as one graph."""
        return GraphBatch(records, *self._children)

    def useful_decisions(self, records: Sequence[EpisodeRecord]) -> list[np.ndarray]:
        """Decisions with a choice; see :func:`useful_decisions`."""
        return useful_decisions(records)

    def recorded_log_prob(self, records: Sequence[EpisodeRecord], effect_classes: bool) -> np.ndarray:
        """Log-probabilities of all decisions; see :func:`recorded_log_prob`."""
        return np.concatenate([recorded_log_prob(record, effect_classes) for record in records])

    def describe(self, records: Sequence[EpisodeRecord]) -> dict[str, float]:
        """Number of decisions, mean episode length, mean JCT of finished jobs."""
        jct_ms = np.concatenate([record.completion_ms - record.arrival_ms for record in records])
        finished = jct_ms[~np.isnan(jct_ms)]
        return {
            "decisions": int(sum(len(record.choice) for record in records)),
            "episode_s": float(np.mean([record.end_ms for record in records])) / 1000.0,
            "jct_s": float(finished.mean()) / 1000.0 if len(finished) else float("nan"),
        }


def useful_decisions(records: Sequence[EpisodeRecord]) -> list[np.ndarray]:
    """Per episode, the decisions with a choice, numbered through all records; int64.

    A decision with one stage to choose, one effect of every limit and no idle slot to choose has probability 1 whatever
    the weights are.
    """
    return numbered(
        (np.diff(record.decision_candidates) > 1) | (record.classes > 1) | (record.delay_free > 0) for record in records
    )


def recorded_log_prob(record: EpisodeRecord, effect_classes: bool) -> np.ndarray:
    """Log-probability of the recorded decisions, float32 [D]."""
    limit = record.log_prob_class if effect_classes else record.log_prob_limit
    log_prob = record.log_prob_stage + np.where(record.classes > 1, limit, np.float32(0.0))
    return log_prob + np.where(record.delay_free > 0, record.log_prob_delay, np.float32(0.0))


class TaskValidation:
    """Scores on fixed sequences and seeds, the same for all policies and heuristics.

    Args:
        task: Jobs, cluster and objective.
        architecture: Shape of the network.
        sequences: Number of sequences.
        runs: Runs of the sampled policy per sequence; 0: only the greedy policy is measured, once.
        threads: Threads; no score depends on it.
    """

    def __init__(
        self, task: Task, architecture: Architecture, sequences: int, runs: int, threads: int | None = None
    ) -> None:
        workloads = [task.workload(sequence) for sequence in task.validation_sequences(sequences)]
        copies = max(1, runs)
        count = len(workloads) * copies
        self._modes = {"greedy": True} | ({"sampled": False} if runs > 0 else {})
        self._task, self._architecture = task, architecture
        self._objective = get_objective(task.objective)
        self.lower_is_better = self._objective.direction == "min"
        self._pool = RunPool(
            workloads * copies,
            task.cluster,
            seeds=range(VALIDATION_SEED, VALIDATION_SEED + count),
            workers=threads,
            backend="threads",  # a few runs; rollouts may have taken all cores of a Ray cluster
        )
        ratios = (f"val_ratio_{name}" for name in task.reference_schedulers())
        self.columns = (*(f"val_{mode}" for mode in self._modes), *ratios)
        self._references: dict[str, float] | None = None

    @property
    def references(self) -> dict[str, float]:
        """Mean score of each reference heuristic, computed once."""
        if self._references is None:
            named = self._task.reference_schedulers()
            self._references = dict(zip(named, self._mean(list(named.values())), strict=True))
        return self._references

    def measure(self, weights: np.ndarray) -> Score:
        """Mean scores of the greedy and the sampled policy, with ratios to references."""
        policies = [LearnedScheduler(self._architecture, weights, greedy=greedy) for greedy in self._modes.values()]
        scores = dict(zip(self._modes, self._mean(policies), strict=True))
        mode = min(scores, key=lambda name: self._objective.loss(scores[name]))
        row = {f"val_{name}": score for name, score in scores.items()}
        ratios = {f"val_ratio_{name}": ratio(scores[mode], score) for name, score in self.references.items()}
        return Score(scores[mode], mode, row | ratios)

    def _mean(self, schedulers) -> list[float]:
        scores = self._pool.measure(schedulers, (self._objective,))[self._objective.column]
        return [float(value) for value in scores.mean(axis=1)]


@dataclass(frozen=True)
class DecimaRun(TrainingRun):
    """A training of Decima's network for a task on the Spark cluster.

    Raises:
        ConfigError: The task's cluster is larger than the architecture allows, or has another number of classes; the
            recipe's teacher is unknown or learned; or its gradients are compiled and those of the network are not.
    """

    task: Task
    architecture: Architecture

    def __post_init__(self) -> None:
        super().__post_init__()
        allowed = self.architecture.max_executors
        if self.task.executors > allowed:
            raise ConfigError(f"the task has {self.task.executors} executors, the architecture allows {allowed}")
        wanted, classes = self.architecture.executor_classes, max(1, len(self.task.cluster.classes))
        if wanted not in (0, classes):
            raise ConfigError(f"the architecture is for {wanted} classes of executors, the task has {classes}")
        if self.architecture.network and not self.uses_tensorflow:
            raise ConfigError(
                f"recipe.gradient={COMPILED} differentiates Decima's network only; {self.architecture.network} needs "
                f"recipe.gradient={TENSORFLOW}"
            )

    @property
    def uses_tensorflow(self) -> bool:
        """Whether the recipe wants TensorFlow's gradients."""
        return self.recipe.adam.gradient == TENSORFLOW

    def check_teacher(self, name: str, parameters: dict[str, float]) -> None:
        """Refuse an unknown scheduler, a wrong parameter, or a policy that would teach itself."""
        if getattr(make_scheduler(name, **parameters), "decision", None) is decide_learned:
            raise ConfigError(f"{name!r} is a learned policy, which would teach itself; expected a heuristic")

    def make_scheduler(self, path: Path) -> Scheduler:
        """The stored policy as a scheduler of the Spark cluster."""
        return make_scheduler(LEARNED, policy=str(path))

    def rollout_work(self) -> Episodes:
        """Episodes of the task."""
        horizon_s = getattr(self.recipe.learning, "horizon_s", None) or _HORIZON_S
        return Episodes(self.task, 0.001 * _HORIZON_S / horizon_s)

    def agent(self, backend: Rollouts, threads: int) -> DecimaAgent:
        """Agent on the cluster, from the recipe's stored policy if there is one."""
        start = self.recipe.imitation.start_policy
        weights: np.ndarray | None = None
        if start is not None:
            weights = grown_weights(read_policy(start, Architecture), self.architecture, self.seed)
        return DecimaAgent(
            self.task,
            self.architecture,
            self.seed,
            backend,
            ends=self.recipe.imitation.ends,
            gradient=self.recipe.adam.gradient,
            threads=threads,
            weights=weights,
        )

    def validation(self, threads: int) -> TaskValidation:
        """Mean objective on fixed sequences."""
        budget = self.recipe.budget
        return TaskValidation(
            self.task, self.architecture, budget.validation_sequences, budget.validation_seeds, threads
        )


def grown_weights(stored: StoredPolicy, architecture: Architecture, seed: int) -> np.ndarray:
    """Weights of a larger architecture that decides like a stored policy at first.

    Inputs that the stored network does not have get weights of 0, perceptrons that it does not have their usual start.

    Args:
        stored: The policy to begin with.
        architecture: The new network.
        seed: Source of the weights of perceptrons that the stored policy lacks.

    Returns:
        Float32 [architecture.num_parameters].

    Raises:
        ConfigError: The new network lacks an input of the stored one, or a layer has another width.
    """
    weights = architecture.initial_weights(seed)
    parts, known = architecture.split(weights), stored.architecture.split(stored.weights)
    before, after = stored.architecture.inputs, architecture.inputs
    for name, values in known.items():
        net, layer, part = name.split("/")
        here = f"start with policy {stored.name}: {name}"
        if name not in parts:
            raise ConfigError(f"{here} is not in the new network, which must have all that the policy has")
        if (layer, part) == ("0", "kernel") and net in before:
            if missing := [label for label in before[net] if label not in after[net]]:
                raise ConfigError(f"{here} has an input {missing[0]}, which the new network lacks")
            rows = [after[net].index(label) for label in before[net]]
            if parts[name].shape[1] != values.shape[1]:
                raise ConfigError(f"{here} has width {values.shape[1]}, the new network {parts[name].shape[1]}")
            parts[name][:] = 0.0
            parts[name][rows] = values
        elif parts[name].shape != values.shape:
            raise ConfigError(f"{here} has shape {values.shape}, in the new network {parts[name].shape}")
        else:
            parts[name][:] = values
    return weights
