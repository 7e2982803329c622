"""Architecture of a network that chooses nodes: one record for TensorFlow and for compiled code."""

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np

from decima.core.checks import is_whole
from decima.core.errors import ConfigError
from decima.learning.perceptron import NetworkShape, Perceptron
from decima.systems.heterogeneous.schedulers.priorities import CHANGING, RANKS, SETS

#: Sums over the nodes of a job and over jobs enter the summaries divided by these, which the weights could do as well.
NODES, JOBS = 10.0, 50.0
# Perceptrons in order, and the numbers of a layout: an entry begins with the number of layers and the width of the
# output; then come four numbers per layer: index of the kernel, index of the bias, width of its input, of its output.
NETS = ("input", "f", "g", "h", "job_f", "job_g", "cluster_f", "cluster_g", "q")
HEAD, MAX_LAYERS = 2, 6
NET_SIZE = HEAD + 4 * MAX_LAYERS


@dataclass(frozen=True)
class NodeArchitecture(NetworkShape):
    """Shape of the network and the options of ablations.

    Notation of section IV-A: x features of a node, e its embedding, y and z summaries of its job and of all jobs,
    a features of an edge.

    Raises:
        ConfigError: A value is out of range, or two contradict each other.
    """

    system: ClassVar[str] = "heterogeneous"
    constants: ClassVar[dict[str, Any]] = {"executor_summary": False}

    name: str = "paper"  # ``"paper"``, ``"fast"``, ``"decima"`` or a name of your own
    features: str = "paper"  # a name in :data:`decima.systems.heterogeneous.schedulers.priorities.SETS`
    feature_log: bool = False  # features enter as logarithms
    embedding: int = 16  # width of e, y and z
    hidden: tuple[int, ...] = (16,)  # hidden widths of the functions of Eq. 7 and of the summaries
    score_hidden: tuple[int, ...] = (32, 16, 8)  # hidden widths of the score network (section V-A)
    # Layers of Eq. 7, all with the same weights; 0: messages go all the way up, as in Decima.
    layers: int = 3
    edge_features: bool = True  # off: no h, no a
    ranks: bool = True  # off: no rank_up, no rank_down
    graph: bool = True  # off: a score sees x only
    message_f: bool = False  # children's embeddings are transformed before they are summed, as in Decima's Eq. 1

    def __post_init__(self) -> None:
        if self.features not in SETS:
            raise ConfigError(f"features must be one of {', '.join(SETS)}, got {self.features!r:.60}")
        self.check_widths("embedding", "hidden", "score_hidden")
        for name in ("hidden", "score_hidden"):
            if not 1 <= len(getattr(self, name)) < MAX_LAYERS:
                raise ConfigError(f"{name} must have 1 to {MAX_LAYERS - 1} widths, got {getattr(self, name)}")
        if not is_whole(self.layers) or not 0 <= self.layers <= 100:
            raise ConfigError(f"layers must be a whole number from 0 to 100, got {self.layers!r:.60}")

    @property
    def node_features(self) -> tuple[str, ...]:
        """Names of the features x of a node, in order."""
        return tuple(name for name in SETS[self.features] if self.ranks or name not in RANKS)

    @cached_property
    def perceptrons(self) -> tuple[Perceptron, ...]:
        """The networks in the order of the flat weight vector; absent ones are left out."""
        x, e = len(self.node_features), self.embedding
        nets = []
        if self.graph:
            nets.append(Perceptron("input", (x, e)))
            nets += [Perceptron("f", (e, *self.hidden, e))] if self.message_f else []
            nets.append(Perceptron("g", (e, *self.hidden, e)))
            nets += [Perceptron("h", (1, *self.hidden, e))] if self.edge_features else []
            nets += [Perceptron("job_f", (x + e, *self.hidden, e))] if self.message_f else []
            nets.append(Perceptron("job_g", (e, *self.hidden, e)))
            nets += [Perceptron("cluster_f", (e, *self.hidden, e))] if self.message_f else []
            nets.append(Perceptron("cluster_g", (e, *self.hidden, e)))
        width = x + (3 * e if self.graph else 0)
        nets.append(Perceptron("q", (width, *self.score_hidden, 1)))
        return tuple(nets)

    def layout(self) -> np.ndarray:
        """Where the layers of each perceptron of :data:`NETS` are, int64; absent ones have none."""
        layout = np.zeros(NET_SIZE * len(NETS), dtype=np.int64)
        for name, rows in self.layer_rows().items():
            at = NET_SIZE * NETS.index(name)
            layout[at : at + HEAD] = len(rows), rows[-1][-1]
            layout[at + HEAD : at + HEAD + 4 * len(rows)] = np.ravel(rows)
        return layout

    def changing_columns(self) -> np.ndarray:
        """Column of each feature of :data:`.CHANGING`, -1 for none, int64."""
        names = self.node_features
        return np.array([names.index(name) if name in names else -1 for name in CHANGING], dtype=np.int64)


_VARIANTS = {
    "paper": {},
    "fast": {"features": "extended", "feature_log": True},
    "decima": {
        "features": "decima",
        "feature_log": True,
        "layers": 0,
        "edge_features": False,
        "ranks": False,
        "message_f": True,
        "hidden": (32, 16),
        "score_hidden": (32, 16),
    },
}
for _name, _values in _VARIANTS.items():
    NodeArchitecture.variants.add(_name, partial(NodeArchitecture, **({"name": _name} | _values)))
