"""Means with confidence intervals, and differences between schedulers that met the same workloads and seeds."""

from __future__ import annotations

import math

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


def _quantile(count: int) -> float:
    from scipy import stats

    return float(stats.t.ppf(0.5 + CONFIDENCE / 2.0, count - 1))
