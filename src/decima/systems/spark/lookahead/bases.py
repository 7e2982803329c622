"""What can be planned: compiled rules that read the factors of jobs, and residual policies, which add to such a rule.

The factors of a residual policy act on its rule: they change the order of jobs and the amounts that the network's
scores are added to. The parameters of that rule belong to the trained network and stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import numpy as np

from decima.core.errors import ConfigError
from decima.core.system import form_for
from decima.systems.spark.policy.architecture import NO_RESIDUAL
from decima.systems.spark.policy.fields import POLICY_SLOT
from decima.systems.spark.policy.scheduler import LearnedScheduler
from decima.systems.spark.schedulers.arrivals import ByArrivals
from decima.systems.spark.schedulers.interface import CompiledScheduler, Scheduler
from decima.systems.spark.state import ClusterState

#: Arrays of a rule that a plan consists of; the first orders the jobs, the second weighs their shares.
FACTORS = ("job_order_factor", "job_share_factor")
BASE = "capped_srw"


def _names_read(function: Callable) -> set[str]:
    """Names of attributes that a function reads, and the compiled functions that it calls."""
    names, left, found = set(), [function], set()
    while left:
        current = left.pop()
        if current in found:
            continue
        found.add(current)
        names |= set(current.__code__.co_names)
        used = [current.__globals__.get(name) for name in current.__code__.co_names]
        # Functions of an imported module are attributes of it.
        modules = [each for each in used if isinstance(each, ModuleType)]
        used += [getattr(module, name, None) for module in modules for name in current.__code__.co_names]
        left += [each.py_func for each in used if hasattr(each, "py_func")]
    return names


def require_factors(base: Scheduler) -> CompiledScheduler:
    """Return a rule or a policy if it can be planned.

    Raises:
        ConfigError: It does not read the factors of jobs.
    """
    forms = list(base.forms.values()) if isinstance(base, ByArrivals) else [base]
    if all(_reads_factors(form) for form in forms):
        return base
    if any(isinstance(form, LearnedScheduler) for form in forms):
        raise ConfigError(
            f"the policy {base.name} has no factors that could be planned; expected a residual one, trained with "
            f"residual={BASE} (decima:policy=NAME), whose rule is steered"
        )
    raise ConfigError(
        f"scheduler {base.name} has no factors that could be planned; expected a compiled rule that reads "
        f"{' and '.join(FACTORS)}, such as {BASE}"
    )


def _reads_factors(base: Scheduler) -> bool:
    if isinstance(base, LearnedScheduler):
        return base.architecture.residual != NO_RESIDUAL
    return isinstance(base, CompiledScheduler) and set(FACTORS) <= _names_read(base.decision.function)


def rule_parameters(base: CompiledScheduler, streaming: bool) -> np.ndarray:
    """Values of the parameters with which a rule begins, float64 [parameters]; of a policy those of its rule."""
    rule = base
    if isinstance(base, LearnedScheduler):
        rule = form_for(base.architecture.make_rule(), streaming)
    return np.array([rule.values[item.name] for item in rule.parameters])


def bind_copy(base: CompiledScheduler, copy: ClusterState, original: ClusterState) -> None:
    """Give a copy what a rule or a policy needs to decide there as it does in the original.

    A policy is told there what it is told here, whatever jobs the copy is to hold; there must be room for any of them.
    """
    if not isinstance(base, LearnedScheduler):
        base.bind(copy)
        return
    if original.policy is not base:
        base.bind(original)
    kept = copy.job_first_stage.copy()
    copy.job_first_stage[:] = 0
    copy.job_first_stage[-1] = copy.num_stages  # the largest job that there could be
    base.bind(copy, original.net_hint_ms)
    copy.job_first_stage[:] = kept
    copy.attached[POLICY_SLOT].bind("net_rule_params", original.net_rule_params)


def forget_jobs(base: CompiledScheduler, copy: ClusterState) -> None:
    """Let a policy know nothing of the jobs of a copy, which begins anew."""
    if isinstance(base, LearnedScheduler):
        copy.attached[POLICY_SLOT].put(net_ready=0)
