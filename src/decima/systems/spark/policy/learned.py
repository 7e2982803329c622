"""The learned policy under its name. Weights are read when it is made, not when schedulers are listed.

Source: §5.1, §5.2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from decima.core.errors import ConfigError
from decima.core.grammar import Option
from decima.systems.spark.schedulers.arrivals import BATCH, STREAM
from decima.systems.spark.schedulers.registry import LEARNED, Preset, register

if TYPE_CHECKING:
    from decima.systems.spark.policy.scheduler import LearnedScheduler

DEFAULT_POLICY = "tpch-batch"
OPTIONS = (
    Option("policy", "name of a stored policy, or path of its .weights.h5 (default: by the jobs)"),
    Option("greedy", "true: the likeliest action; false: drawn at random (default: as its card says)", bool),
)
PRESETS = (
    Preset(BATCH, "trained on batches; default where all jobs are there at the start", {"policy": DEFAULT_POLICY}),
    Preset(STREAM, "trained on streams; default where jobs arrive over time", {"policy": "tpch-stream"}),
    Preset("busy", "trained at one job every 14 s, a cluster that is 83 % busy", {"policy": "tpch-stream-busy"}),
)


@register(LEARNED, options=OPTIONS, presets=PRESETS)
def decima(policy: str = DEFAULT_POLICY, greedy: bool | None = None, **unknown) -> LearnedScheduler:
    """A learned policy: a graph neural network chooses the next stage and the limit on its job's executors."""
    from decima.learning.store import load_policy

    if unknown:
        known = ", ".join(option.name for option in OPTIONS)
        raise ConfigError(f"scheduler {LEARNED} has no parameter {next(iter(unknown))!r}; it has: {known}")
    if greedy not in (None, 0, 1):
        raise ConfigError(f"scheduler {LEARNED}: greedy must be 0 or 1, got {greedy!r}")
    scheduler = load_policy(policy, greedy=None if greedy is None else bool(greedy))
    scheduler.name = LEARNED
    scheduler.values = {"policy": str(policy), "greedy": int(scheduler.greedy)}
    return scheduler
