"""Training task of a policy on heterogeneous executors, and its training episodes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from decima.core.checks import is_number, is_whole
from decima.core.errors import ConfigError
from decima.core.grammar import hint, read_fields, read_value, split_options
from decima.core.registry import Registry
from decima.learning.recipe import FAST, register_recipe
from decima.learning.rollout import SEQUENCE_SEED, VALIDATION_SEED, RolloutJob
from decima.systems.heterogeneous.generators import PAPER_SIZES, tpch_instance
from decima.systems.heterogeneous.policy.architecture import NodeArchitecture
from decima.systems.heterogeneous.policy.planner import NodeRecord, PolicyPlanner
from decima.systems.heterogeneous.schedulers.priorities import COEFFICIENTS, linear_priority, rank_up
from decima.systems.heterogeneous.schedulers.static import best_rule_priority
from decima.systems.heterogeneous.settings import Rules
from decima.systems.heterogeneous.workload import Instance
from decima.workload.sources import get_source

if TYPE_CHECKING:
    from decima.learning.recipe import Recipe
    from decima.learning.training import TrainingRequest

RUN = "NodeRun"  # class in ``run.py``
COMPILES = False  # whether gradients need no TensorFlow
KINDS = ("lachesis-batch", "lachesis-stream")
#: Rules whose order a policy can imitate: priorities of an instance, where nodes are decided in a way.
TEACHERS: Registry[Callable[[Instance, Rules], np.ndarray]] = Registry(
    "rule to imitate", group="decima.heterogeneous.teachers", adopt=lambda name, item: item
)
TEACHERS.add("linear_rank", lambda instance, rules: linear_priority(instance, COEFFICIENTS[rules.decision]))
TEACHERS.add("discounted_rank", lambda instance, rules: rank_up(instance, transfers=0.25))
TEACHERS.add("high_rank_up_deft", lambda instance, rules: rank_up(instance))
TEACHERS.add("best_rule", best_rule_priority)  # another one for every instance
REFERENCES = tuple(TEACHERS.loaded())
# Instances whose planners a process keeps, for all its threads.
_KEPT = 8


@dataclass(frozen=True)
class NodeSequence:
    """Description of one instance, enough to draw it anywhere."""

    seed: int
    jobs: int
    ccr: float
    executors: int
    interarrival_s: float | None = None  # None for a batch


@dataclass(frozen=True)
class NodeTask:
    """Jobs and clusters to draw, and when nodes are decided.

    A pair is a range: numbers of jobs and executors and gaps are drawn evenly, the ratio of communication to
    computation evenly on a logarithmic scale.

    Raises:
        ConfigError: A value is out of range.
    """

    kind: str = "lachesis-batch"  # or ``"lachesis-stream"``, where jobs arrive over time
    source: str = "tpch"  # name of a workload source with TPC-H profiles
    jobs: tuple[int, int] = (5, 100)
    ccr: tuple[float, float] = (0.3, 10.0)
    executors: tuple[int, int] = (10, 50)
    interarrival_s: tuple[float, float] = (5.0, 45.0)  # of streams
    decision: str = ""  # when nodes are decided; empty: ``plan`` for batches, ``idle`` for streams
    slots: str = ""  # empty: ``insertion`` with ``plan``, else ``append``
    duplicate: bool = True

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ConfigError(f"the kind of the task must be {' or '.join(KINDS)}, got {self.kind!r:.60}")
        get_source(self.source)
        checks = (("jobs", is_whole, 1), ("executors", is_whole, 1), ("ccr", is_number, 0))
        checks += (("interarrival_s", is_number, 0),)
        for name, is_right, least in checks:
            pair = getattr(self, name)
            pair = tuple(pair) if isinstance(pair, (tuple, list)) else (pair, pair)
            right = len(pair) == 2 and all(is_right(each) for each in pair)
            if not right or not least <= pair[0] <= pair[1] < float("inf") or (least == 0 and pair[0] <= 0):
                raise ConfigError(f"{name} must be a low and a high number of at least {least}, got {pair!r:.60}")
            object.__setattr__(self, name, pair)
        object.__setattr__(self, "decision", self.decision or ("idle" if self.streaming else "plan"))
        object.__setattr__(self, "slots", self.slots or ("insertion" if self.decision == "plan" else "append"))
        _ = self.rules

    @property
    def streaming(self) -> bool:
        """Whether jobs arrive over time."""
        return self.kind == "lachesis-stream"

    @property
    def rules(self) -> Rules:
        """When and where nodes are placed."""
        return Rules(self.decision, self.slots, self.duplicate)

    metric = "above_bound"  # makespan over the lower bound, which selects weights

    @property
    def label(self) -> str:
        """A few words for people."""
        jobs, executors = ("-".join(str(each) for each in dict.fromkeys(pair)) for pair in (self.jobs, self.executors))
        gaps, ccr = ("-".join(f"{each:g}" for each in dict.fromkeys(pair)) for pair in (self.interarrival_s, self.ccr))
        gaps = f" at {gaps} s" if self.streaming else ""
        label = get_source(self.source).label
        return f"{label}, {jobs} jobs{gaps}, {executors} executors, CCR {ccr}, {self.decision}"

    @property
    def data_version(self) -> str:
        """Source of the jobs and digest of the data behind it."""
        return f"{self.source} sha256:{get_source(self.source).digest()}"

    def as_dict(self) -> dict[str, Any]:
        """Fields by name, JSON-ready."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}

    def instance(self, sequence: NodeSequence) -> Instance:
        """Draw an instance."""
        return tpch_instance(
            sequence.jobs,
            sequence.seed,
            edges=sequence.ccr,
            executors=sequence.executors,
            interarrival_s=sequence.interarrival_s,
            source=self.source,
        )

    def training_sequences(self, seed: int, iteration: int, count: int) -> list[NodeSequence]:
        """Instances of one iteration, a function of the arguments alone."""
        rng = np.random.default_rng([seed, iteration, 0])
        numbers = SEQUENCE_SEED + rng.integers(2**31 - SEQUENCE_SEED, size=count)
        return [self._sequence(int(number), rng.random(4)) for number in numbers]

    def validation_sequences(self, count: int) -> list[NodeSequence]:
        """The same instances at every validation."""
        rng = np.random.default_rng([VALIDATION_SEED, 3])
        places = [(rng.permutation(count) + 0.5) / count for _ in range(4)]
        return [self._sequence(VALIDATION_SEED + k, [fraction[k] for fraction in places]) for k in range(count)]

    def _sequence(self, seed: int, places) -> NodeSequence:
        def whole(pair, fraction):
            return min(pair[1], pair[0] + int(fraction * (pair[1] - pair[0] + 1)))

        low, high = np.log(self.ccr)
        gap = self.interarrival_s[0] + places[3] * (self.interarrival_s[1] - self.interarrival_s[0])
        return NodeSequence(
            seed,
            whole(self.jobs, places[0]),
            float(np.exp(low + places[1] * (high - low))),
            whole(self.executors, places[2]),
            float(gap) if self.streaming else None,
        )

    def depth(self) -> int:
        """Nodes on the longest path of any job that can be drawn."""
        universe = get_source(self.source).batch(1, 0, PAPER_SIZES).universe
        return int(max(profile.longest_path_down(np.ones(len(profile.stages))).max() for profile in universe))


@dataclass(frozen=True)
class NodeEpisode:
    """A recorded run, and what it was a run of."""

    sequence: NodeSequence
    record: NodeRecord


class NodeEpisodes:
    """Function from (architecture, weights, job) to a recorded run; several threads may call it.

    Args:
        task: What instances are drawn from.
    """

    def __init__(self, task: NodeTask) -> None:
        self._task = task
        self._lock = threading.Lock()
        self._idle: dict[tuple[NodeArchitecture, NodeSequence], tuple[Instance, list[PolicyPlanner]]] = {}

    def __reduce__(self) -> tuple:
        return NodeEpisodes, (self._task,)

    def __call__(self, item: tuple[NodeArchitecture, np.ndarray, RolloutJob]) -> NodeEpisode:
        """Run the episode."""
        architecture, weights, job = item
        instance, idle = self._prepared(architecture, job.sequence)
        try:
            planner = idle.pop()
        except IndexError:
            planner = PolicyPlanner(instance, self._task.rules, architecture)
        rng = np.random.default_rng(job.seed)
        if job.teacher is None:
            planner.run(weights, rng=rng)
        else:
            priority = TEACHERS.find(job.teacher.name)(instance, self._task.rules)
            planner.run(weights, rng=rng, teacher=priority, share=job.teacher.share)
        record = planner.done()
        idle.append(planner)
        return NodeEpisode(job.sequence, record)

    def _prepared(self, architecture: NodeArchitecture, sequence: NodeSequence) -> tuple[Instance, list[PolicyPlanner]]:
        key = architecture, sequence
        with self._lock:
            entry = self._idle.pop(key, None) or (self._task.instance(sequence), [])
            self._idle[key] = entry
            while len(self._idle) > _KEPT:
                del self._idle[next(iter(self._idle))]
        return entry


def read_task(text: str) -> NodeTask:
    """Understand ``lachesis-batch`` or ``lachesis-stream``, with fields behind it: ``:jobs=5-100,ccr=0.3-10``.

    Raises:
        ConfigError: A name is unknown, or a value out of range.
    """
    kind, texts = split_options(text)
    values: dict[str, Any] = {}
    for name, value in texts.items():
        where = f"{kind}: {name}"
        if name in ("jobs", "executors", "ccr", "interarrival_s"):
            number = int if name in ("jobs", "executors") else float
            values[name] = tuple(read_value(part, number, where) for part in value.split("-"))
            values[name] *= 2 if len(values[name]) == 1 else 1
        elif name in ("source", "decision", "slots", "duplicate"):
            values[name] = read_value(value, bool if name == "duplicate" else str, where)
        else:
            known = [each.name for each in fields(NodeTask) if each.name != "kind"]
            raise ConfigError(f"{kind} has no field {name!r}{hint(name, known)}; it has: {', '.join(known)}")
    return NodeTask(kind, **values)


def draws(jobs: str) -> bool:
    """Whether jobs to train on are for heterogeneous executors."""
    return jobs.partition(":")[0] in KINDS


def read_parts(
    jobs: str, request: TrainingRequest, *, architecture: str = "paper"
) -> tuple[NodeTask, Recipe, NodeArchitecture]:
    """Plan a training for heterogeneous executors, see :func:`decima.learning.training.train`.

    Args:
        jobs: Text of :func:`read_task`.
        request: Recipe, changes of recipe and architecture, limits and seed.
        architecture: ``paper``, ``fast`` or ``decima``.

    Returns:
        Task, recipe and network.

    Raises:
        ConfigError: A name is unknown or a value out of range.
    """
    groups = request.groups("recipe", "architecture")
    task = read_task(jobs)
    network = NodeArchitecture.named(
        architecture, **read_fields(groups["architecture"], NodeArchitecture, "--set architecture.")
    )
    return task, request.recipe_for(task.kind, groups["recipe"]), network


# ---- recipes: that of the paper (Algorithm 1), and ours --------------------------------------------------------------


_FAST = FAST | {
    "teacher": "linear_rank",
    "teacher_iterations": 80,
    "teacher_sequences": 6,
    "teacher_lr": 3e-3,
    "teacher_lr_end": 5e-4,
    "sequences": 4,
    "lr_start": 3e-4,
    "lr_end": 5e-5,
    "normalise": "sequence",
    "reward_scale_s": 1.0,
    "validation_sequences": 40,
    "validation_seeds": 0,
    "iterations": 180,
}
# Algorithm 1, where episodes begin with 50 decisions and grow by 2 per iteration.
_PAPER = {
    "algorithm": "actor_critic",
    "episode_start_s": 50.0,
    "episode_end_s": 1000.0,
    "episode_growth_s": 2.0,
    "validation_seeds": 0,
    "validate_every": 20,
    "validation_sequences": 40,
    "iterations": 800,
}
register_recipe("paper-lachesis-batch", **_PAPER)
register_recipe("paper-lachesis-stream", **_PAPER)
register_recipe("fast-lachesis-batch", **_FAST)
register_recipe("fast-lachesis-stream", **_FAST)
