"""Copies of a running cluster in which candidates for a plan are tried."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import NamedTuple

import numpy as np

from decima.core.errors import ConfigError, InvalidDecisionError
from decima.core.interrupts import check_stop
from decima.core.record import BOUND
from decima.core.system import form_for
from decima.systems.spark import engine
from decima.systems.spark.fields import ARRAYS
from decima.systems.spark.lookahead.projection import Future, Projection, SharedChance
from decima.systems.spark.policy.architecture import NO_RESIDUAL
from decima.systems.spark.policy.fields import POLICY_SLOT
from decima.systems.spark.policy.scheduler import LearnedScheduler
from decima.systems.spark.schedulers.fields import rule_record
from decima.systems.spark.schedulers.interface import CompiledScheduler, Scheduler
from decima.systems.spark.schedulers.registry import ByArrivals
from decima.systems.spark.state import ClusterState

# Extents of tables that all clusters with these profiles share; all others depend on the jobs.
_OF_PROFILES = ("row", "row + 1", "edge", "grid cell", "duration list", "duration", "class", "group")


class Plan(NamedTuple):
    """Parameters of the rule, and factors of every job in the system."""

    parameters: np.ndarray  # float64 [parameters], in the order of the rule
    factors: np.ndarray  # float64 [factors, jobs], natural logarithms, as in ``FACTORS``


def _tables(state: ClusterState, jobs: int, stages: int) -> SimpleNamespace:
    """Tables with room for so many jobs and stages, with the profiles of a cluster."""
    extents = {name: state.extents[name] for name in _OF_PROFILES}
    extents |= {"job": jobs, "job + 1": jobs + 1, "stage": stages, "arrival": jobs}
    arrays = {
        name: np.zeros(extents[field.extent], field.dtype) if field.extent not in _OF_PROFILES else getattr(state, name)
        for name, field in ARRAYS.items()
        if field.storage == BOUND
    }
    return SimpleNamespace(
        num_jobs=jobs, num_stages=stages, num_tasks=0, grid_width=state.grid_width, extents=extents, arrays=arrays
    )


class Draw:
    """One draw of what is not known, and memory for candidates that begin there.

    Args:
        state: The cluster, for its profiles and settings.
        base: The rule that decides, or a policy.
        jobs: Most jobs.
        stages: Most stages of them.
    """

    def __init__(self, state: ClusterState, base: CompiledScheduler, jobs: int, stages: int) -> None:
        self._begin = begin = ClusterState(_tables(state, jobs + 1, stages + 1), state.settings)
        self._base = base
        self._projection = Projection(len(state.job_state), len(state.stage_job), len(state.executor_job))
        self._run = run = ClusterState(begin.tables, begin.settings)
        bind_copy(base, run, state)
        rule = rule_record(run)
        self._parameters = np.zeros(len(base.parameters))
        if base.parameters:
            rule.bind("params", self._parameters, copy=False)
        self._factors = [np.zeros(len(run.job_state)) for _ in FACTORS]
        for name, values in zip(FACTORS, self._factors, strict=True):
            rule.bind(name, values, copy=False)
        self._drawn, self._chance = SharedChance(begin), SharedChance(run)
        self._seed = 0

    def begin(self, state: ClusterState, jobs: np.ndarray, future: Future, seed: int) -> None:
        """Take over the state that a cluster is in.

        Args:
            state: The cluster, at a decision.
            jobs: Jobs in the system, in order of arrival, int32 [jobs].
            future: Jobs that are assumed to come.
            seed: Chance of this draw, below 2**64.
        """
        begin = self._begin
        begin.restart()
        begin.put(
            decide_fn=self._base.decision.address,
            time_limit_ms=np.inf,
            moving_delay_ms=state.moving_delay_ms,
            num_executors=state.num_executors,
        )
        self._drawn.set(seed)
        self._projection.project(state, begin, jobs, future, self._drawn.word)
        self._seed = int(self._drawn.word[0])

    def cost_ms(self, plan: Plan) -> float:
        """Sum of the jobs' remaining times in the system under a plan, ms.

        Args:
            plan: Parameters of the rule and factors of the jobs that were given to :meth:`begin`.

        Returns:
            Infinity where the plan leaves jobs unfinished for ever.

        Raises:
            InvalidDecisionError: The rule chose what cannot be chosen.
        """
        state = self._run
        self._begin.copy_run_into(state)
        if isinstance(self._base, LearnedScheduler):  # it knows nothing of the jobs of a run that begins anew
            state.attached[POLICY_SLOT].put(net_ready=0)
        self._parameters[:] = plan.parameters
        for values, factors in zip(self._factors, plan.factors, strict=True):
            values[1 : 1 + len(factors)] = factors
            values[1 + len(factors) :] = 0.0
        self._chance.set(self._seed)
        while (code := engine.advance(state.address)) == engine.PAUSED:
            check_stop()
        if code == engine.INVALID:
            raise InvalidDecisionError(state.describe_invalid())
        return float("inf") if state.num_active else state.area_ms


# ---- what can be planned: compiled rules that read the factors of jobs, and residual policies, which add to one -----

# The factors of a residual policy act on its rule: they change the order of jobs and the amounts that the network's
# scores are added to. The parameters of that rule belong to the trained network and stay as they are.


#: Arrays of a rule that a plan consists of; the first orders the jobs, the second weighs their shares.
FACTORS = ("job_order_factor", "job_share_factor")
BASE = "capped_srw"


def _names_read(function: Callable) -> set[str]:
    """Names of attributes that a function reads, and the compiled functions that it calls."""
    names, left, seen = set(), [function], set()
    while left:
        current = left.pop()
        if current in seen:
            continue
        seen.add(current)
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
    """Initial parameters of a rule, or of the rule of a policy; float64 [parameters]."""
    rule = base
    if isinstance(base, LearnedScheduler):
        rule = form_for(base.architecture.make_rule(), streaming)
    return np.array([rule.values[item.name] for item in rule.parameters])


def bind_copy(base: CompiledScheduler, copy: ClusterState, original: ClusterState) -> None:
    """Bind a rule or policy to a copy as it is bound to the original.

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
