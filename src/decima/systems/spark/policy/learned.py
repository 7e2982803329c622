"""The learned policy as a registered scheduler; weights are read on construction.

Source: §5.1, §5.2.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from decima.core.errors import ConfigError
from decima.core.grammar import Option
from decima.learning.store import greedy_of, read_policy
from decima.systems.spark.schedulers.registry import BATCH, LEARNED, STREAM, ByArrivals, Preset, register
from decima.workload.jobs import Workload

if TYPE_CHECKING:
    from decima.systems.spark.policy.scheduler import LearnedScheduler

DEFAULT_POLICY = "tpch-batch"
OPTIONS = (
    Option("policy", "name of a stored policy, or path of its .weights.h5 (default: by the jobs)"),
    Option("greedy", "true: greedy, the most probable action; false: sampled (default: as in its card)", bool),
)
PRESETS = (
    Preset(BATCH, "pre-trained by imitation, on batches; default for such jobs", {"policy": DEFAULT_POLICY}),
    Preset(STREAM, "pre-trained by imitation, on streams; default for such jobs", {"policy": "tpch-stream"}),
    Preset("alone_batch", "trained on batches from scratch", {"policy": "tpch-batch-random"}),
    Preset("alone_stream", "trained on streams from scratch", {"policy": "tpch-stream-random-long"}),
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
