"""Architecture as integers that give the compiled policy its options and offsets of its weights.

One compiled function serves every architecture: nothing of it is known when it is compiled.
"""

import numpy as np

from decima.core.errors import ConfigError
from decima.core.jit import njit
from decima.systems.spark.policy.architecture import LIMITS, SHAPE_FEATURES, Architecture
from decima.systems.spark.policy.features import CODES, JOB_FEATURES, OFFER_FEATURES

# Positions of the options in the layout.
NUM_FEATURES, EMBEDDING, GRAPH, LIMIT, CONTEXT, WIDTH = range(6)
DELAYS, HOLD, DELAY_CONTEXT, SHAPE_WIDTH, SHAPE_SEEN = range(6, 11)
CLASS_WIDTH, LIMIT_GRID, CLUSTER_MEAN, OFFER_KEPT = range(11, 15)
# Perceptrons in order; the first begins at FIRST_NET, each takes NET_SIZE entries. One that is absent passes its input
# on. An entry begins with the number of layers, whether the output is rectified and the width of the output; then come
# four numbers per layer: index of the kernel, index of the bias (-1: none), width of its input, width of its output.
NETS = ("input", "stage_f", "stage_g", "job_f", "job_g", "cluster_f", "cluster_g", "q", "w", "d")
INPUT, STAGE_F, STAGE_G, JOB_F, JOB_G, CLUSTER_F, CLUSTER_G, Q, W, D = range(len(NETS))
FIRST_NET, NET_HEAD, MAX_LAYERS = 15, 4, 8
NET_SIZE = NET_HEAD + 4 * MAX_LAYERS
# Then one number per feature: its place among all known ones.
FIRST_FEATURE = FIRST_NET + NET_SIZE * len(NETS)
# Numbers of options with names.
LIMIT_INPUT, LIMIT_OUTPUT, LIMIT_STAGE, LIMIT_NONE = range(len(LIMITS))
# What w or d sees of the chosen stage: its embedding, the first features of its job, nothing.
CONTEXT_EMBEDDING, CONTEXT_JOB, CONTEXT_NONE = range(3)


@njit
def entry_of(net):
    """Where a perceptron begins in the layout."""
    return FIRST_NET + NET_SIZE * net


@njit
def context_parts(layout, context):
    """Widths of the parts x, e, y, s and z that w or d sees."""
    width, shape = layout[EMBEDDING], layout[SHAPE_WIDTH]
    if not layout[GRAPH]:
        return layout[NUM_FEATURES], 0, 0, shape, 0
    if context == CONTEXT_EMBEDDING:
        return 0, width, width, shape, width
    return (JOB_FEATURES if context == CONTEXT_JOB else 0), 0, width, shape, width


def pack_layout(architecture: Architecture) -> np.ndarray:
    """The architecture as int32, in the order above.

    Raises:
        ConfigError: A perceptron has more layers than there is room for.
    """
    layout = np.zeros(FIRST_FEATURE + architecture.num_features, dtype=np.int32)
    layout[FIRST_FEATURE:] = [CODES[feature.name] for feature in architecture.stage_features]
    layout[NUM_FEATURES] = architecture.num_features
    layout[EMBEDDING] = architecture.embedding
    layout[GRAPH] = architecture.graph_embedding and not architecture.network
    layout[LIMIT] = LIMITS.index(architecture.limit)
    layout[CONTEXT] = CONTEXT_JOB if architecture.limit_context == "job" else CONTEXT_EMBEDDING
    layout[DELAYS] = architecture.delays
    layout[HOLD] = architecture.idle == "hold"
    layout[DELAY_CONTEXT] = CONTEXT_EMBEDDING if architecture.delay_context == "embedding" else CONTEXT_NONE
    layout[SHAPE_WIDTH] = architecture.shape_width
    names = {feature.name for feature in architecture.stage_features}
    layout[SHAPE_SEEN] = architecture.shape_width > 0 or not names.isdisjoint(SHAPE_FEATURES)
    layout[OFFER_KEPT] = architecture.graph_embedding and not names.isdisjoint(OFFER_FEATURES)
    layout[CLASS_WIDTH] = architecture.class_width
    layout[LIMIT_GRID] = architecture.limit_grid
    layout[CLUSTER_MEAN] = architecture.cluster_mean
    layout[WIDTH] = max(max(net.widths[1:]) for net in architecture.perceptrons)
    for index in range(len(NETS)):
        layout[FIRST_NET + NET_SIZE * index + 2] = architecture.embedding
    for net, rows in zip(architecture.perceptrons, architecture.layer_rows().values(), strict=True):
        if len(rows) > MAX_LAYERS:
            raise ConfigError(f"a perceptron may have {MAX_LAYERS} layers, {net.name} has {len(rows)}")
        at = FIRST_NET + NET_SIZE * NETS.index(net.name)
        layout[at : at + 3] = len(rows), net.output_activation, net.widths[-1]
        layout[at + NET_HEAD : at + NET_HEAD + 4 * len(rows)] = np.ravel(rows)
    return layout
