"""Architecture of a policy network, for TensorFlow and the compiled core alike.

No TensorFlow here: running a stored policy needs only its architecture and its weights.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from decima.core.checks import is_whole
from decima.core.errors import ConfigError
from decima.learning.perceptron import NetworkShape, Perceptron
from decima.systems.spark.policy.features import (
    AS_LOGARITHMS,
    CODES,
    FEATURES,
    JOB_FEATURES,
    SETS,
    WITHOUT_DURATIONS,
    Feature,
)
from decima.systems.spark.settings import MAX_CLASSES, MAX_EXECUTORS

LIMITS = ("input", "output", "stage", "none")
IDLES = ("timer", "hold")
DELAY_CONTEXTS = ("job", "embedding")
JOB_SHAPES = ("auto", "none", "heads", "replaced")
#: The numbers of :mod:`decima.systems.spark.policy.features` that say what shape a job has.
SHAPE_FEATURES = ("job_path", "job_width")
NETWORK = "decima.systems.spark.policy.network.DecimaNetwork"
MAX_DELAYS = 1000  # lengths of slots to choose from
MAX_LEVELS = 1000  # of a grid of limits
#: What q sees of the class of a pair (stage, class).
CLASS_INPUTS = (
    "memory of the class, of the largest one's",
    "CPUs of the class, of the largest one's",
    "log(1 + executors of the class on offer)",
    "classes above the smallest one that the stage fits",
)
# Chance of no slot before anything is learned.
NO_DELAY_CHANCE = 0.98
# Limits enter the score function divided by this.
LIMIT_SCALE = 50.0
# On a grid their logarithms do, times this.
LOG_SCALE = 0.25


@dataclass(frozen=True)
class Architecture(NetworkShape):
    """Shape of a policy network (§5.1, §5.2, §6.1) and the options of the paper's ablations.

    Notation: x features of a stage, e its embedding, y embedding of its job, z of the cluster, l a parallelism limit.
    """

    system: ClassVar[str] = "spark"
    constants: ClassVar[dict[str, Any]] = {
        "runnable_feature": False,
        "delay_length": "task",
        "residual": "none",
        "residual_temperature": 1.0,
    }
    name: str = "paper"  # ``"paper"``, ``"released"`` or a name of your own
    # Features that a stage has at least, a name in :data:`.SETS`: those of §6.1 or those of the
    # published code.
    features: str = "paper"
    feature_log: bool = False  # tasks and durations of the paper's features enter as logarithms
    embedding: int = 16  # width of e, y and z
    hidden: tuple[int, ...] = (32, 16)  # hidden widths of the transformations f and g
    score_hidden: tuple[int, ...] = (32, 16)  # hidden widths of the score functions q and w
    linear_input: bool = True  # x enters through one linear layer; else through a perceptron with ``hidden``
    rectified_outputs: bool = False  # the transformations rectify their outputs too
    summary_g: bool = True  # the job and cluster summaries have a second transformation g, as in Eq. (1)
    score_output_bias: bool = False  # q and w have a bias at their output
    # What w sees besides y, z and l: the chosen stage's embedding (``"embedding"``) or the three job features of the
    # published code (``"job"``).
    limit_context: str = "embedding"
    graph_embedding: bool = True  # off: q and w see x only (§7.4, "no graph embedding")
    two_level: bool = True  # off: messages are summed without the second transformation g (appendix E)
    # How limits are encoded (Figure 15a): ``"input"`` of w, one ``"output"`` of w per limit, a limit for the
    # ``"stage"`` instead of its job, or ``"none"`` at all (§7.4, "no parallelism control").
    limit: str = "input"
    durations: bool = True  # off: task durations are hidden (appendix J)
    interarrival_hint: bool = False  # the mean interarrival time is a further feature (§7.4, Table 2)
    # Largest cluster the policy may be used on; the number of outputs if ``limit`` is ``"output"``.
    max_executors: int = 200
    more_features: tuple[str, ...] = ()  # further entries of :data:`.FEATURES`, by name
    # Deliberate idle slots (Duan and Wu): g; above 0 a third head d chooses r from 0 to g for a chosen stage that may
    # be delayed, and r > 0 delays it by r l / g, where l is the nominal duration of one task. Differs: they speak of g
    # outputs for the g + 1 values.
    delays: int = 0
    # What idling means: ``"timer"`` delays the stage; ``"hold"``, for ``delays`` 1 only, leaves all offered executors
    # idle until the next event, and is chosen only while some executor is at work.
    idle: str = "timer"
    delay_context: str = "job"  # d sees y and z (``"job"``), or the stage's ``"embedding"`` e too
    # Where the critical path and the average width of jobs enter: appended at the ``"heads"`` q, w and d, among the
    # features x in the places of two others (``"replaced"``), or not at all (``"none"``); ``"auto"``: at
    # the heads where there is d and durations are seen.
    job_shape: str = "auto"
    replaced_seed: int = 0  # which two of ``features`` they replace, drawn by this seed
    # Number of executor classes that the policy is made for; above 0 it chooses among pairs (stage, class) that fit and
    # are on offer, by one softmax (§7.3), and q sees the class (:data:`CLASS_INPUTS`). 0: classes are left to best fit.
    executor_classes: int = 0
    # Number of limits to choose from, on a geometric grid from 1 to the size of the cluster
    # (:meth:`limit_levels`); their logarithms are the input of w. 0: every limit.
    limit_grid: int = 0
    # z is made of the mean over jobs, not of the sum, so that it does not grow with the cluster and its jobs.
    cluster_mean: bool = False
    # ``file.py:NAME`` or ``package.module:NAME`` of a subclass of
    # :class:`decima.systems.spark.policy.network.DecimaNetwork`, which decides in Python; empty: Decima's network.
    network: str = ""

    def __post_init__(self) -> None:
        choices = {"limit": LIMITS, "features": SETS, "idle": IDLES, "delay_context": DELAY_CONTEXTS}
        for name, allowed in (choices | {"job_shape": JOB_SHAPES}).items():
            if getattr(self, name) not in allowed:
                raise ConfigError(f"{name} must be one of {', '.join(allowed)}, got {getattr(self, name)!r:.60}")
        more = self.more_features
        object.__setattr__(self, "more_features", (more,) if isinstance(more, str) else tuple(more))
        for name in self.more_features:
            if name not in CODES:
                raise ConfigError(f"more_features: unknown feature {name!r}; known: {', '.join(CODES)}")
        if self.limit_context not in ("embedding", "job"):
            raise ConfigError(f"limit_context must be 'embedding' or 'job', got {self.limit_context!r}")
        if self.limit_context == "job" and self.features != "released":
            raise ConfigError("limit_context 'job' needs the features of the published code")
        if self.feature_log and self.features != "paper":
            raise ConfigError("feature_log needs the features of the paper")
        self._check_idling()
        self._check_classes()
        self.check_widths("max_executors", most=MAX_EXECUTORS)
        self.check_widths("embedding", "hidden", "score_hidden")
        if self.network:
            _ = self.network_class

    @classmethod
    def _adopted(cls, name: str, item: Any) -> Callable[..., Architecture]:
        """What makes an architecture from outside; a class is that of a network."""
        if isinstance(item, type) and not issubclass(item, cls):
            return lambda **changes: cls(**({"name": item.__name__, "network": name} | changes))
        return super()._adopted(name, item)

    @property
    def network_class(self) -> type:
        """Class that ``network`` names.

        Raises:
            ConfigError: There is none of that name, or it is not a subclass of Decima's network.
            MissingExtraError: TensorFlow is not installed.
        """
        from decima.core.registry import load_object
        from decima.learning.quiet import import_tensorflow

        import_tensorflow()
        loaded = load_object(self.network)
        if not isinstance(loaded, type) or not hasattr(loaded, "further_weights"):
            raise ConfigError(f"{self.network} is {loaded!r:.60}; expected a subclass of {NETWORK}")
        return loaded

    def as_dict(self) -> dict[str, Any]:
        """Fields by name, JSON-ready; an empty ``network`` is left out, as in earlier cards."""
        values = super().as_dict()
        return {name: value for name, value in values.items() if name != "network" or value}

    @property
    def shapes(self) -> list[tuple[str, tuple[int, ...]]]:
        """Pairs (name, shape) of the weight arrays, perceptrons before further layers."""
        return [*super().shapes, *((f"further/{index}", shape) for index, shape in enumerate(self._further_shapes))]

    @cached_property
    def _further_shapes(self) -> list[tuple[int, ...]]:
        return [values.shape for values in self.network_class.further_weights(self, 0)] if self.network else []

    def _check_idling(self) -> None:
        """Refuse options of idle slots that are out of range or contradict each other."""
        if not is_whole(self.delays) or not 0 <= self.delays <= MAX_DELAYS:
            raise ConfigError(f"delays must be a whole number from 0 to {MAX_DELAYS}, got {self.delays!r:.60}")
        if self.idle == "hold" and self.delays != 1:
            raise ConfigError(f"idle 'hold' is a choice of yes or no, it needs delays=1, got delays={self.delays}")
        if not is_whole(self.replaced_seed) or self.replaced_seed < 0:
            raise ConfigError(f"replaced_seed must be a whole number from 0 on, got {self.replaced_seed!r:.60}")
        if self.job_shape == "heads" and not self.durations:
            raise ConfigError("job_shape 'heads' shows task durations, which durations=False hides")

    def _check_classes(self) -> None:
        """Refuse invalid options of executor classes and of limits on a grid."""
        for name, most in (("executor_classes", MAX_CLASSES), ("limit_grid", MAX_LEVELS)):
            value = getattr(self, name)
            if not is_whole(value) or (value != 0 and not 2 <= value <= most):
                raise ConfigError(f"{name} must be 0 or a whole number from 2 to {most}, got {value!r:.60}")
        if self.limit_grid and self.limit not in ("input", "stage"):
            raise ConfigError(f"limit_grid needs the limit as an input of w, got limit={self.limit!r}")
        if self.delays and (self.executor_classes or self.limit_grid):
            raise ConfigError("idle slots (delays) work neither with executor_classes nor with limit_grid")

    @classmethod
    def paper(cls, **changes) -> Architecture:
        """12,736 parameters (§6.1), in the reading that gives exactly this number."""
        return cls(**changes)

    @classmethod
    def released(cls, **changes) -> Architecture:
        """4,770 parameters: the network of the published code with its features."""
        values = {
            "name": "released",
            "features": "released",
            "embedding": 8,
            "hidden": (16, 8),
            "score_hidden": (32, 16, 8),
            "linear_input": False,
            "rectified_outputs": True,
            "summary_g": False,
            "score_output_bias": True,
            "limit_context": "job",
        }
        return cls(**(values | changes))

    @classmethod
    def classes(cls, **changes) -> Architecture:
        """The paper's network for executors of four classes and clusters of any size (§7.3)."""
        values = {
            "name": "classes",
            "features": "classes",
            "executor_classes": 4,
            "limit_grid": 60,
            "cluster_mean": True,
            "max_executors": MAX_EXECUTORS,
        }
        return cls(**(values | changes))

    @cached_property
    def stage_features(self) -> tuple[Feature, ...]:
        """The features x of a stage, in order."""
        names = SETS[self.features]
        shape = SHAPE_FEATURES if self.durations else ("hidden",) * len(SHAPE_FEATURES)
        if self.job_shape == "replaced":
            places = np.random.default_rng(self.replaced_seed).choice(len(names), len(shape), replace=False)
            shape_at = dict(zip(sorted(places.tolist()), shape, strict=True))
            names = tuple(shape_at.get(index, name) for index, name in enumerate(names))
        for exchange, wanted in ((AS_LOGARITHMS, self.feature_log), (WITHOUT_DURATIONS, not self.durations)):
            names = tuple(exchange.get(name, name) if wanted else name for name in names)
        names += ("interarrival",) * self.interarrival_hint
        names += ("delayed",) * (self.delays > 0 and self.idle == "timer")
        return tuple(FEATURES[CODES[name]] for name in (*names, *self.more_features))

    @property
    def num_features(self) -> int:
        """Width of x."""
        return len(self.stage_features)

    @property
    def class_width(self) -> int:
        """Numbers of the class of a pair (stage, class) among the inputs of q."""
        return len(CLASS_INPUTS) if self.executor_classes else 0

    def limit_levels(self, executors: int) -> np.ndarray:
        """Limits to choose from, int32 [l] ascending; empty: every limit.

        The grid is geometric from 1 to ``executors``, rounded, its lower end stretched so that all levels differ.
        """
        count = min(self.limit_grid, executors)
        steps = np.arange(count)
        levels = np.rint(float(executors) ** (steps / max(1, count - 1)))
        return (np.maximum.accumulate(levels - steps) + steps).astype(np.int32)

    @property
    def shape_width(self) -> int:
        """Numbers of the shape of a job that are appended at the heads."""
        shown = self.job_shape == "heads" or (self.job_shape == "auto" and self.delays > 0 and self.durations)
        return len(SHAPE_FEATURES) if shown else 0

    @cached_property
    def inputs(self) -> dict[str, tuple[str, ...]]:
        """Inputs of the perceptrons whose number depends on options, by name of the perceptron.

        q sees [x, e, c, y, s, z], or [x, c, s]; w [e, y, s, z, l], [job features, y, s, z, l], or [x, s, l]; d
        [y, s, z], [e, y, s, z], or [x, s]. s is the shape of the job if the heads see it, c the class of the pair if
        there are classes; l is left out if w has an output per limit.
        """
        x = tuple(feature.name for feature in self.stage_features)
        e, y, z = (tuple(f"{part}{k}" for k in range(self.embedding)) for part in "eyz")
        s = tuple(f"head {name}" for name in SHAPE_FEATURES[: self.shape_width])
        c = CLASS_INPUTS[: self.class_width]
        limit = () if self.limit == "output" else ("limit",)
        if not self.graph_embedding:
            return {"q": x + c + s, "w": x + s + limit, "d": x + s}
        context = e if self.limit_context == "embedding" else x[:JOB_FEATURES]
        return {
            "input": x,
            "job_f": x + e,
            "q": x + e + c + y + s + z,
            "w": context + y + s + z + limit,
            "d": (e if self.delay_context == "embedding" else ()) + y + s + z,
        }

    @cached_property
    def perceptrons(self) -> tuple[Perceptron, ...]:
        """The networks in the order of the flat weight vector; absent ones are left out."""
        e, bias = self.embedding, self.score_output_bias
        widths = {name: len(inputs) for name, inputs in self.inputs.items()}

        def transformation(name: str) -> Perceptron:
            shape = (widths.get(name, e), *self.hidden, e)
            return Perceptron(name, shape, output_activation=self.rectified_outputs)

        def score(name: str, outputs: int, bias: bool) -> Perceptron:
            return Perceptron(name, (widths[name], *self.score_hidden, outputs), output_bias=bias)

        nets = []
        if self.graph_embedding:
            summary_g = self.summary_g and self.two_level
            nets.append(Perceptron("input", (widths["input"], e)) if self.linear_input else transformation("input"))
            names = ["stage_f", *["stage_g"] * self.two_level, "job_f", *["job_g"] * summary_g]
            names += ["cluster_f", *["cluster_g"] * summary_g]
            nets += map(transformation, names)
        nets.append(score("q", 1, bias))
        if self.limit != "none":
            nets.append(score("w", self.max_executors if self.limit == "output" else 1, bias))
        if self.delays > 0:
            nets.append(score("d", self.delays + 1, True))
        return tuple(nets)

    def initial_weights(self, seed: int) -> np.ndarray:
        """Random weights, float32 [num_parameters]: Glorot-uniform kernels, zero biases.

        The last layer of d is such that r = 0 has the chance :data:`NO_DELAY_CHANCE` in every state, all others one
        chance: a policy that slots at random is too bad to learn from. Further layers of ``network`` begin as
        they say.
        """
        if self.network:
            further = [values.reshape(-1) for values in self.network_class.further_weights(self, seed)]
            return np.concatenate([self.replace(network="").initial_weights(seed), *further])
        weights = super().initial_weights(seed)
        if self.delays > 0:
            outputs = self.delays + 1
            last = outputs * (self.perceptrons[-1].widths[-2] + 1)  # numbers in the last kernel and its bias
            weights[-last:] = 0.0
            weights[-outputs] = np.log(NO_DELAY_CHANCE / (1.0 - NO_DELAY_CHANCE) * self.delays)
        return weights


for _make in (Architecture.paper, Architecture.released, Architecture.classes):
    Architecture.variants.add(_make.__name__, _make)
