"""Means with confidence intervals, and differences between schedulers that met the same workloads and seeds."""

from __future__ import annotations

import math
from functools import cache

import numpy as np

CONFIDENCE = 0.95


def mean_interval(values: np.ndarray) -> tuple[float, float, float, float]:
    """Mean, standard error and 95 % confidence interval (Student's t).

    Args:
        values: float64 [n]; with a single one, all but the mean is NaN.
    """
    mean = float(np.mean(values))
    if len(values) < 2:
        return mean, math.nan, math.nan, math.nan
    sem = float(np.std(values, ddof=1)) / math.sqrt(len(values))
    reach = _quantile(len(values)) * sem
    return mean, sem, mean - reach, mean + reach


def paired_change(values: np.ndarray, baseline: np.ndarray) -> tuple[float, float, float]:
    """Change of the mean against the baseline's in percent, with its 95 % confidence interval.

    The change is the ratio R of the two means, less one. Its standard error is that of the paired residuals
    ``values - R * baseline`` over the baseline's mean (delta method), so what is hard for both alike cancels.

    Args:
        values: float64 [n], scores of a policy.
        baseline: float64 [n], scores of the baseline on the same workloads and seeds.
    """
    mean = float(np.mean(baseline))
    if mean == 0.0:
        return math.nan, math.nan, math.nan
    ratio = float(np.mean(values)) / mean
    change = 100.0 * (ratio - 1.0)
    if len(values) < 2:
        return change, math.nan, math.nan
    residual = values - ratio * baseline
    reach = _quantile(len(values)) * float(np.std(residual, ddof=1)) / math.sqrt(len(values)) / mean
    return change, change - 100.0 * reach, change + 100.0 * reach


@cache
def _quantile(count: int) -> float:
    """Half width of the confidence interval of ``count`` values in standard errors.

    By bisection to the last bit; SciPy also has it but takes two seconds to import.
    """
    low, high = 0.0, 16.0  # above 12.7, that of two values
    while low < (middle := (low + high) / 2.0) < high:
        low, high = (middle, high) if _within(middle, count - 1) < CONFIDENCE else (low, middle)
    return high


def _within(t: float, freedom: int) -> float:
    """Probability that Student's t of ``freedom`` degrees of freedom is between -t and t.

    Source: Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.3 and 26.7.4.
    """
    angle = math.atan(t / math.sqrt(freedom))
    odd = freedom % 2
    term = math.cos(angle) if odd else 1.0
    terms = [term] if freedom > 1 else []
    for k in range(2 + odd, freedom - 1, 2):
        term *= math.cos(angle) ** 2 * (k - 1) / k
        terms.append(term)
    series = math.sin(angle) * math.fsum(terms)
    return 2.0 / math.pi * (angle + series) if odd else series
