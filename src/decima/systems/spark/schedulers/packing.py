"""Weighted fair sharing and packing heuristics for several classes, with their formulas in plain NumPy.

Graphene* holds troublesome stages back: those whose tasks are long for their job (``long``) or fit few executors
(``frag``). While a troublesome stage of a job is not available, because a parent still needs executors, all of them
come last in order. Weighted fair sharing of several classes is Graphene* without such stages. Both take the best fit
first: the best-fitting class is exhausted before any other, and the executors of all classes together do not exceed a
job's share, which is counted in executors or in memory. Tetris takes the best aligned pair of stage and class.

Source: appendix F; Grandl et al., "Graphene: Packing and dependency-aware scheduling for data-parallel clusters", OSDI
2016, section 4.1; Grandl et al., "Multi-resource packing for cluster schedulers" (Tetris), SIGCOMM 2014. Differs:
thresholds, order of jobs and the use of larger classes are not given in appendix F; ``decima tune graphene --grid``
searches them.
"""

from dataclasses import replace

import numpy as np

from decima.core.decision import CompiledDecision, Parameter, places
from decima.core.jit import njit
from decima.systems.spark.fields import ACTIVE, NONE, state_at
from decima.systems.spark.rules.choices import choose_class, choose_idle
from decima.systems.spark.rules.classes import fits_class
from decima.systems.spark.rules.frontier import stage_room
from decima.systems.spark.schedulers.class_sharing import (
    BY_MEMORY,
    LARGER,
    NEVER_HARD,
    NEVER_LONG,
    set_weighted_shares,
    share_classes,
)
from decima.systems.spark.schedulers.fields import rule_of
from decima.systems.spark.schedulers.interface import CompiledScheduler
from decima.systems.spark.schedulers.registry import BATCH, STREAM, Preset, register
from decima.systems.spark.schedulers.sharing import LEFTOVER, STAGE_RULE, STRICT, share_executors

# ---- weighted fair sharing -------------------------------------------------------------------------------------------

# Source: §7.1 (4) and (5): job i gets T_i^alpha / sum T^alpha of the executors. alpha = 0 is fair, 1 is naive weighted
# fair. The paper does not say which of the jobs below their share is served first, nor whether shares are strict: the
# preset ``paper`` serves by arrival and lets executors stay with their job.
ORDER = Parameter("order", 0, 0, 1, "jobs below their share are served 0: by arrival, 1: by total work, smallest first")
ALPHA = Parameter("alpha", -1.0, -5.0, 5.0, "exponent of a job's total work", tunable=True)
FAIR = (ALPHA, STRICT, STAGE_RULE, LEFTOVER, ORDER)
_FAIR = places(FAIR)
# The exponents lose least on the worse of two workloads, TPC-H and embedded; docs/scheduler-presets.md has the numbers.
_BEST = {"sticky": 0.0, "order": 1.0}
_FAIR_PRESETS = (
    Preset(
        BATCH, "strict shares, small jobs first; default where all jobs are there at the start", _BEST | {"alpha": -0.7}
    ),
    Preset(STREAM, "strict shares, small jobs first; default where jobs arrive over time", _BEST | {"alpha": 0.1}),
    Preset(
        "paper",
        "a reading of §7.1: jobs are served by arrival, executors stay with their job",
        {"sticky": 1.0, "order": 0.0, "alpha": -1.0},
    ),
)


@CompiledDecision.reading(FAIR)
def _weighted_fair(address):
    state = state_at(address)
    params = rule_of(state).params
    set_weighted_shares(state, params[_FAIR.alpha], params[_FAIR.order], False)
    share_executors(state, 1e9 * params[_FAIR.sticky], int(params[_FAIR.stage_rule]), int(params[_FAIR.leftover]))


@register("weighted_fair", presets=_FAIR_PRESETS)
def weighted_fair(**values) -> CompiledScheduler:
    """Shares proportional to (total work)^alpha."""
    return CompiledScheduler("weighted_fair", _weighted_fair, values)


@register("naive_weighted_fair")
def naive_weighted_fair(**values) -> CompiledScheduler:
    """Shares proportional to total work (alpha = 1)."""
    return CompiledScheduler("naive_weighted_fair", _weighted_fair, {"alpha": 1.0} | values)


# ---- formulas: what the compiled rules below compute ----------------------------------------------------------------


def long_scores(durations_ms: np.ndarray) -> np.ndarray:
    """Nominal task duration of each stage of a job over the longest of the job.

    Args:
        durations_ms: Nominal task duration of the stages, float64 [stages].

    Returns:
        float64 [stages], above 0 up to 1; 1 everywhere if all durations are 0.

    Source: Graphene, section 4.1, LongScore.
    """
    longest = np.max(durations_ms)
    return np.ones(len(durations_ms)) if longest <= 0.0 else np.asarray(durations_ms) / longest


def frag_scores(requests: np.ndarray, classes: np.ndarray, executors: np.ndarray) -> np.ndarray:
    """Share of the executors that a task of each stage fits.

    Args:
        requests: Memory and CPUs of a task of the stages, float64 [stages, 2].
        classes: Memory and CPUs of an executor of the classes, float64 [classes, 2].
        executors: Number of executors of the classes, int [classes].

    Returns:
        float64 [stages], from 0 to 1.

    Source: Graphene, section 4.1, FragScore. Differs: there it is the least time that a stage's work needs over the
    time of a greedy packer; with whole executors that is this share, but for rounding to whole waves of tasks.
    """
    return _fits(requests, classes) @ np.asarray(executors) / np.sum(executors)


def _fits(requests: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Whether tasks of each stage run on executors of each class, bool [stages, classes]."""
    return (np.asarray(requests)[:, None, :] <= np.asarray(classes)[None, :, :]).all(axis=2)


def troublesome(
    durations_ms: np.ndarray, requests: np.ndarray, classes: np.ndarray, executors: np.ndarray, long: float, frag: float
) -> np.ndarray:
    """Stages of a job, long or hard to pack, that should run simultaneously.

    Args:
        durations_ms: As :func:`long_scores`.
        requests: As :func:`frag_scores`.
        classes: As there.
        executors: As there.
        long: Threshold on the length score of troublesome stages; above 1 it is off.
        frag: Largest fragmentation score of one; below 0 none is too hard to pack.

    Returns:
        bool [stages].

    Source: Graphene, section 4.1. Differs: the group is not completed by the stages between its members: one below
    another could never be in the frontier together with it.
    """
    return (long_scores(durations_ms) >= long) | (frag_scores(requests, classes, executors) <= frag)


def alignment(requests: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Dot product of request and executor, minus infinity where it does not fit.

    Args:
        requests: Memory and CPUs of a task of the stages, float64 [stages, 2].
        classes: Memory and CPUs of an executor of the classes, float64 [classes, 2].

    Returns:
        float64 [stages, classes].

    Source: Tetris, section 3.2; appendix F.
    """
    products = np.asarray(requests, dtype=np.float64) @ np.asarray(classes, dtype=np.float64).T
    return np.where(_fits(requests, classes), products, -np.inf)


# ---- Graphene*, and weighted fair sharing with the best fit first, the tuned weighted fair heuristic of section 7.2 --


SHARES = (ALPHA, ORDER, LARGER, BY_MEMORY, replace(STRICT, default=0), STAGE_RULE, LEFTOVER)
GRAPHENE = (
    Parameter(
        "long", 0.8, 0.0, 2.0, "threshold on the length score for troublesome stages; > 1 disables it", tunable=True
    ),
    Parameter("frag", 0.25, -1.0, 1.0, "most fragmentation score of one; below 0: none is hard to pack", tunable=True),
    *SHARES,
)
_GRAPHENE = places(GRAPHENE)
_SHARE = places(SHARES)
_FIRST_SHARE = len(GRAPHENE) - len(SHARES)


@njit
def _share(state, first, long, frag):
    """Give executors by weighted shares, whose parameters begin at ``first``."""
    params = rule_of(state).params
    by_memory = params[first + _SHARE.by_memory] > 0.0
    set_weighted_shares(state, params[first + _SHARE.alpha], params[first + _SHARE.order], by_memory)
    stage_rule, leftover = int(params[first + _SHARE.stage_rule]), int(params[first + _SHARE.leftover])
    larger, stay = int(params[first + _SHARE.larger]), 1e9 * params[first + _SHARE.sticky]
    share_classes(state, stay, stage_rule, leftover, larger, 0.0, by_memory, long, frag)


@CompiledDecision.reading(SHARES)
def _weighted_best_fit(address):
    _share(state_at(address), 0, NEVER_LONG, NEVER_HARD)


@CompiledDecision.reading(GRAPHENE)
def _graphene(address):
    state = state_at(address)
    params = rule_of(state).params
    _share(state, _FIRST_SHARE, params[_GRAPHENE.long], params[_GRAPHENE.frag])


@register("weighted_best_fit")
def weighted_best_fit(**values) -> CompiledScheduler:
    """Shares proportional to (total work)^alpha over several classes of executors, best fit first."""
    return CompiledScheduler("weighted_best_fit", _weighted_best_fit, values)


@register("graphene")
def graphene(**values) -> CompiledScheduler:
    """Graphene*: troublesome stages of a job together, tuned weighted fair shares, best fit."""
    return CompiledScheduler("graphene", _graphene, values)


# ---- Tetris: the best aligned pair, then as much parallelism as the stage can use ------------------------------------

# Differs: only pairs that fit count; runnable stages go before those that could only be given executors ahead of time;
# among equals the job that came first, and in it the first stage.
TETRIS = (
    Parameter("sticky", 0, 0, 1, "1: executors stay with their job while it can use them; 0: they follow the packing"),
)
_TETRIS = places(TETRIS)


@njit
def _best_pair(state, job, stage, executor_class, score):
    """Better of a pair and a job's best pair, scored; unrunnable stages score below 0."""
    for each in range(state.job_first_stage[job], state.job_first_stage[job + 1]):
        if not state.stage_in_frontier[each]:
            continue
        behind = 0.0 if state.stage_runnable[each] else 1e9
        for size in range(state.num_classes):
            if state.class_offers[size] == 0 or not fits_class(state, each, size):
                continue
            product = (
                state.stage_memory[each] * state.class_memory[size] + state.stage_cpu[each] * state.class_cpu[size]
            )
            if stage == NONE or product - behind > score:
                stage, executor_class, score = each, size, product - behind
    return stage, executor_class, score


@CompiledDecision.reading(TETRIS)
def _tetris(address):
    state = state_at(address)
    stage, executor_class, score = NONE, NONE, 0.0
    job = state.source_job
    if rule_of(state).params[_TETRIS.sticky] > 0.0 and job != NONE and state.job_state[job] == ACTIVE:
        stage, executor_class, score = _best_pair(state, job, stage, executor_class, score)
    if stage == NONE:
        for index in range(state.num_active):
            if state.job_frontier[state.active[index]] > 0:
                stage, executor_class, score = _best_pair(state, state.active[index], stage, executor_class, score)
    if stage == NONE:
        choose_idle(state)
        return
    choose_class(state, stage, min(stage_room(state, stage), state.class_offers[executor_class]), executor_class)


@register("tetris")
def tetris(**values) -> CompiledScheduler:
    """Stage and class with the largest dot product of request and executor, maximally parallel."""
    return CompiledScheduler("tetris", _tetris, values)
