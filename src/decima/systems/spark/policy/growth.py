"""Warm-start a larger network so that it initially reproduces a stored policy.

Inputs that the stored network does not have get weights of 0, perceptrons that it does not have their usual start.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from decima.core.errors import ConfigError
from decima.systems.spark.policy.architecture import CLASS_INPUTS, SHAPE_FEATURES, Architecture
from decima.systems.spark.policy.features import JOB_FEATURES

if TYPE_CHECKING:
    from decima.learning.store import StoredPolicy


def grown_weights(stored: StoredPolicy, architecture: Architecture, seed: int) -> np.ndarray:
    """Weights of an architecture with more inputs or heads than a stored policy.

    Args:
        stored: The policy to begin with.
        architecture: The new network.
        seed: Source of the weights of perceptrons that the stored policy lacks.

    Returns:
        Float32 [architecture.num_parameters].

    Raises:
        ConfigError: The new network lacks an input of the stored one, a layer has another width, or the rule
            whose scores are added is another one.
    """
    if stored.architecture.residual != architecture.residual:
        raise ConfigError(
            f"start with policy {stored.name}: it has residual={stored.architecture.residual}, the new network "
            f"residual={architecture.residual}; expected the same"
        )
    weights = architecture.initial_weights(seed)
    parts, known = architecture.split(weights), stored.architecture.split(stored.weights)
    before, after = _inputs(stored.architecture), _inputs(architecture)
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


def _inputs(architecture: Architecture) -> dict[str, list[str]]:
    """Inputs of the perceptrons whose number depends on options, by name."""
    x = [feature.name for feature in architecture.stage_features]
    e, y, z = ([f"{part}{k}" for k in range(architecture.embedding)] for part in "eyz")
    shape = [f"head {name}" for name in SHAPE_FEATURES] if architecture.shape_width else []
    inputs_of_class = list(CLASS_INPUTS[: architecture.class_width])
    limit = [] if architecture.limit == "output" else ["limit"]
    if not architecture.graph_embedding:
        return {"q": x + inputs_of_class + shape, "w": x + shape + limit}
    context = e if architecture.limit_context == "embedding" else x[:JOB_FEATURES]
    return {
        "input": x,
        "job_f": x + e,
        "q": x + e + inputs_of_class + y + shape + z,
        "w": context + y + shape + z + limit,
    }
