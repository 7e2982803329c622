"""Parts of the networks of all systems: perceptrons, and the flat vector of their weights.

No TensorFlow here: running a stored policy needs only its architecture and its weights.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Self

from decima.core.checks import is_whole
from decima.core.errors import ConfigError
from decima.core.registry import Registry

if TYPE_CHECKING:  # lists of policies need no arrays
    import numpy as np

# Slope of the leaky rectifier for negative inputs; the released code's value.
LEAK = 0.2
MAX_WIDTH = 65_536  # of a layer


@dataclass(frozen=True)
class Perceptron:
    """One fully connected network: widths from input to output, and which layers have what."""

    name: str  # name in the weight file
    widths: tuple[int, ...]  # input width, hidden widths, output width
    output_activation: bool = False  # whether the last layer is rectified too
    output_bias: bool = True  # whether the last layer has a bias

    @property
    def shapes(self) -> list[tuple[str, tuple[int, ...]]]:
        """(name, shape) of its arrays in order: kernel [in, out], bias [out], layer by layer."""
        shapes: list[tuple[str, tuple[int, ...]]] = []
        for layer, (rows, columns) in enumerate(pairwise(self.widths)):
            shapes.append((f"{self.name}/{layer}/kernel", (rows, columns)))
            if self.output_bias or layer < len(self.widths) - 2:
                shapes.append((f"{self.name}/{layer}/bias", (columns,)))
        return shapes


class NetworkShape:
    """Base of architectures: frozen dataclasses whose fields are the parts of a network.

    A subclass has defaults for all fields, a field ``name``, ``perceptrons`` and ``system``. Weights of all systems are
    stored by :mod:`decima.learning.store`.

    Attributes:
        system: Name of the system that the network decides in, as cards of stored policies have it.
        perceptrons: The networks in the order of the flat weight vector.
        constants: Fields of earlier versions by name, with the only value that this version has.
        variants: Functions of changed fields that make the architectures with names of their own.
    """

    of_system: ClassVar[dict[str, type[NetworkShape]]] = {}  # the architecture of every system that is imported
    constants: ClassVar[dict[str, Any]] = {}
    system: ClassVar[str]
    variants: ClassVar[Registry[Callable[..., Self]]]
    name: str
    perceptrons: tuple[Perceptron, ...]

    def __init_subclass__(cls, **options) -> None:
        super().__init_subclass__(**options)
        if "system" in vars(cls):
            NetworkShape.of_system[cls.system] = cls
            group = "decima.networks" if cls.system == "spark" else f"decima.{cls.system}.networks"
            cls.variants = Registry("architecture", group=group, adopt=cls._adopted)

    @classmethod
    def _adopted(cls, name: str, item: Any) -> Callable[..., Self]:
        """What makes an architecture from outside: its copies, or a function of changed fields."""
        if not isinstance(item, cls) and (not callable(item) or (isinstance(item, type) and not issubclass(item, cls))):
            raise ConfigError(f"{name} is {item!r:.60}; expected {cls.__name__}, or a function that makes one")
        return item if callable(item) else lambda *about, **changes: item.replace(**changes)

    @classmethod
    def named(cls, name: str, /, *about: Any, **changes: Any) -> Self:
        """The architecture of a name, some fields replaced.

        Args:
            name: A member of ``variants``.
            about: What the variants of the system follow from: the number of VMs of the cloud.
            changes: Fields by name.

        Raises:
            ConfigError: The name or a field is unknown, or a value out of range.
        """
        make = cls.variants.find(name)
        if unknown := set(changes) - {field.name for field in fields(cls)}:
            raise ConfigError(f"unknown option of an architecture: {', '.join(sorted(unknown))}")
        if not isinstance(network := make(*about, **changes), cls):
            raise ConfigError(f"architecture {name} is made as {network!r:.60}; expected {cls.__name__}")
        return network

    def as_dict(self) -> dict[str, Any]:
        """Fields by name, JSON-ready."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}

    def replace(self, **changes) -> Self:
        """A copy with some fields changed."""
        return replace(self, **changes)

    @property
    def shapes(self) -> list[tuple[str, tuple[int, ...]]]:
        """Pairs (name, shape) of the weight arrays, concatenated row by row in the flat vector."""
        return [shape for net in self.perceptrons for shape in net.shapes]

    @cached_property
    def num_parameters(self) -> int:
        """Length of the flat weight vector."""
        return sum(math.prod(shape) for _, shape in self.shapes)

    def layer_rows(self) -> dict[str, list[tuple[int, int, int, int]]]:
        """Layers by perceptron: where kernel and bias (-1: none) begin, inputs, outputs."""
        rows: dict[str, list[tuple[int, int, int, int]]] = {}
        first = 0
        for net in self.perceptrons:
            of_net = rows[net.name] = []
            for layer, (inputs, outputs) in enumerate(pairwise(net.widths)):
                kernel, first = first, first + inputs * outputs
                biased = net.output_bias or layer < len(net.widths) - 2
                of_net.append((kernel, first if biased else -1, inputs, outputs))
                first += outputs if biased else 0
        return rows

    def check_widths(self, *names: str, most: int = MAX_WIDTH) -> None:
        """Raise ConfigError unless these fields hold whole numbers from 1 to ``most``; lists become tuples."""
        for name in names:
            value = getattr(self, name)
            widths = tuple(value) if isinstance(value, (list, tuple)) else (value,)
            if isinstance(value, list):
                object.__setattr__(self, name, widths)
            for width in widths:
                if not is_whole(width) or not 1 <= width <= most:
                    raise ConfigError(f"{name} must be in whole numbers from 1 to {most}, got {width!r:.60}")

    def checked(self, weights: np.ndarray) -> np.ndarray:
        """A read-only copy of a flat vector, float32 [num_parameters].

        Raises:
            ConfigError: It is of another type or length, or not finite.
        """
        import numpy as np

        if not isinstance(weights, np.ndarray) or weights.dtype != np.float32:
            shown = weights.dtype if isinstance(weights, np.ndarray) else type(weights).__name__
            raise ConfigError(f"weights must be a float32 array, got {shown}")
        self.check_length(weights)
        if not np.isfinite(weights).all():
            index = int(np.flatnonzero(~np.isfinite(weights))[0])
            raise ConfigError(f"weights must be finite, number {index} is {weights[index]}")
        weights = np.array(weights)
        weights.setflags(write=False)
        return weights

    def check_length(self, weights: np.ndarray) -> None:
        """Raise ConfigError unless the flat vector is as long as the network needs."""
        if weights.shape != (self.num_parameters,):
            raise ConfigError(
                f"architecture {self.name} has {self.num_parameters} weights, got an array of shape {weights.shape}"
            )

    def split(self, weights: np.ndarray) -> dict[str, np.ndarray]:
        """Views of the flat vector, float32 [num_parameters], by array name.

        Raises:
            ConfigError: The vector has another length.
        """
        self.check_length(weights)
        parts, first = {}, 0
        for name, shape in self.shapes:
            size = math.prod(shape)
            parts[name] = weights[first : first + size].reshape(shape)
            first += size
        return parts

    def initial_weights(self, seed: int) -> np.ndarray:
        """Random weights, float32 [num_parameters]: Glorot-uniform kernels, zero biases."""
        import numpy as np

        rng = np.random.default_rng(seed)
        parts = []
        for _, shape in self.shapes:
            bound = np.sqrt(6.0 / sum(shape)) if len(shape) == 2 else 0.0
            parts.append(rng.uniform(-bound, bound, size=shape).astype(np.float32).reshape(-1))
        return np.concatenate(parts)
