"""The learned policy under its name. Weights are read when it is made, not when schedulers are listed.

Source: §5.1, §5.2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from decima.exceptions import ConfigError
from decima.schedulers.registry import register

if TYPE_CHECKING:
    from decima.policy.scheduler import LearnedScheduler

DEFAULT_POLICY = "tpch-batch"
OPTIONS = {
    "policy": f"name of a stored policy or path of its .weights.h5 (default {DEFAULT_POLICY})",
    "greedy": "1: the likeliest action, 0: draw it from the policy's distribution (default: as the policy's card says)",
}


@register("decima", options=OPTIONS)
def decima(policy: str = DEFAULT_POLICY, greedy: bool | None = None, **unknown) -> LearnedScheduler:
    """A learned policy: a graph neural network chooses the next stage and the limit on its job's executors."""
    from decima.policy.store import load_policy

    if unknown:
        raise ConfigError(f"scheduler decima has no parameter {next(iter(unknown))!r}; it has: {', '.join(OPTIONS)}")
    if greedy not in (None, 0, 1):
        raise ConfigError(f"scheduler decima: greedy must be 0 or 1, got {greedy!r}")
    scheduler = load_policy(policy, greedy=None if greedy is None else bool(greedy))
    scheduler.name = "decima"
    scheduler.values = {"policy": str(policy), "greedy": int(scheduler.greedy)}
    return scheduler
