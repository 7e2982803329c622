"""Formulas of packing heuristics, in plain NumPy: what the compiled schedulers ``graphene`` and ``tetris`` compute.

Source: appendix F; Grandl et al., "Graphene: Packing and dependency-aware scheduling for data-parallel clusters", OSDI
2016, section 4.1; Grandl et al., "Multi-resource packing for cluster schedulers" (Tetris), SIGCOMM 2014.
"""

from __future__ import annotations

import numpy as np


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
    fits = (np.asarray(requests)[:, None, :] <= np.asarray(classes)[None, :, :]).all(axis=2)
    return fits @ np.asarray(executors) / np.sum(executors)


def troublesome(
    durations_ms: np.ndarray, requests: np.ndarray, classes: np.ndarray, executors: np.ndarray, long: float, frag: float
) -> np.ndarray:
    """Stages of a job, long or hard to pack, that should run simultaneously.

    Args:
        durations_ms: As :func:`long_scores`.
        requests: As :func:`frag_scores`.
        classes: As there.
        executors: As there.
        long: Least long score of a troublesome stage; above 1 none is too long.
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
    requests, classes = np.asarray(requests, dtype=np.float64), np.asarray(classes, dtype=np.float64)
    fits = (requests[:, None, :] <= classes[None, :, :]).all(axis=2)
    return np.where(fits, requests @ classes.T, -np.inf)
