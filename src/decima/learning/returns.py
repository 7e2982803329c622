"""Returns, baselines and advantages of recorded episodes, in NumPy alone.

An *episode* here has decisions at times t_k (seconds, ascending, several may coincide), a reward r_k that accrues
evenly from t_k to the next decision or the end, and a state summary per decision. Episodes of one *sequence* have the
same arrivals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np


@dataclass(frozen=True)
class Episode:
    """Rewards and times of one episode, from which advantages are computed."""

    time_s: np.ndarray  # float64 [D], ascending
    end_s: float  # end of the episode
    rewards: np.ndarray  # float64 [D]
    summary: np.ndarray  # float64 [D, K], state summary for a linear baseline; K may be 0

    @property
    def gaps_s(self) -> np.ndarray:
        """Float64 [D], time to the next decision or the end."""
        return np.diff(self.time_s, append=self.end_s)


def discounted_rewards(episode: Episode, horizon_s: float | None) -> np.ndarray:
    """Rewards, accrued evenly, discounted to their decision: r (1 - exp(-dt/H)) H/dt, float64 [D]."""
    if horizon_s is None:
        return episode.rewards
    share = episode.gaps_s / horizon_s
    return episode.rewards * np.where(share > 1e-12, -np.expm1(-share) / np.maximum(share, 1e-12), 1.0)


def backward_sums(values: np.ndarray, factors: np.ndarray) -> np.ndarray:
    """s_k = values_k + factors_k s_{k+1}, from the last one on; float64 [D]."""
    if np.all(factors == 1.0):
        return np.cumsum(values[::-1])[::-1].copy()
    total, sums = 0.0, []
    for value, factor in zip(values[::-1].tolist(), factors[::-1].tolist(), strict=True):
        total = value + factor * total
        sums.append(total)
    return np.array(sums[::-1])


def decay(gaps_s: np.ndarray, *constants_s: float | None) -> np.ndarray:
    """Product of exp(-dt / constant) over the constants that are not None; float64 [D]."""
    rate = sum(1.0 / constant for constant in constants_s if constant is not None)
    return np.exp(-rate * gaps_s)


def returns_to_go(episode: Episode, horizon_s: float | None = None) -> np.ndarray:
    """Discounted rewards from each decision to the end: R_k (Algorithm 1, line 6), float64 [D]."""
    return backward_sums(discounted_rewards(episode, horizon_s), decay(episode.gaps_s, horizon_s))


def at_times(episode: Episode, values: np.ndarray, when_s: np.ndarray) -> np.ndarray:
    """Values interpolated linearly between decisions; the first before all, 0 after the end.

    Args:
        episode: Where the values belong.
        values: [D, ...], one per decision.
        when_s: [Q], any times.

    Returns:
        [Q, ...].
    """
    times = np.append(episode.time_s, episode.end_s)
    padded = np.concatenate([values, np.zeros((1, *values.shape[1:]))])
    right = np.searchsorted(times, when_s, side="left")
    inside = np.clip(right, 1, len(times) - 1)
    gap = times[inside] - times[inside - 1]
    share = np.clip((when_s - times[inside - 1]) / np.where(gap > 0.0, gap, 1.0), 0.0, 1.0)
    share = share.reshape(-1, *[1] * (values.ndim - 1))
    interpolated = padded[inside - 1] * (1.0 - share) + padded[inside] * share
    interpolated[when_s >= episode.end_s] = 0.0
    return interpolated


def time_average(episodes: Sequence[Episode], values: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Mean of a sequence's episodes at each decision's time (§5.3, Algorithm 1, line 8).

    Differs: Algorithm 1 averages over equal step numbers. Steps of different episodes lie at different times, so values
    are interpolated at equal times, as the published code does.

    Returns:
        One array per episode, shaped as its values.
    """
    when = np.concatenate([episode.time_s for episode in episodes])
    total = np.zeros((len(when), *values[0].shape[1:]))
    for episode, mine in zip(episodes, values, strict=True):
        total += at_times(episode, mine, when)
    mean = total / len(episodes)
    return np.split(mean, np.cumsum([len(episode.time_s) for episode in episodes])[:-1])


@dataclass
class RegressionMemory:
    """Sums of products, kept between iterations, to fit the baseline's linear part."""

    gram: np.ndarray  # float64 [K, K], sum of products of summary columns
    moment: np.ndarray  # float64 [K], sum of summary x residual return

    @classmethod
    def empty(cls, columns: int) -> RegressionMemory:
        """No observation."""
        return cls(np.zeros((columns, columns)), np.zeros(columns))


def solve_ridge(gram: np.ndarray, moment: np.ndarray, ridge: float) -> np.ndarray:
    """Ridge regression coefficients, float64 [K], penalised relative to each column's sum of squares."""
    scale = np.sqrt(np.diag(gram))
    used = scale > 1e-9 * max(float(scale.max(initial=0.0)), 1e-300)
    weights = np.zeros(len(moment))
    if used.any():
        scaled = gram[np.ix_(used, used)] / np.outer(scale[used], scale[used])
        weights[used] = np.linalg.solve(scaled + ridge * np.eye(len(scaled)), moment[used] / scale[used]) / scale[used]
    return weights


@dataclass(frozen=True)
class Advantages:
    """Advantages, with which the gradient is weighted."""

    values: list[np.ndarray]  # float64 [D] per episode
    returns: list[np.ndarray]  # float64 [D] per episode, returns to go
    explained_by_time: float  # share of the variance of returns that the mean at the same time takes away
    explained_by_summary: float  # share of the rest that the linear part takes away


def advantages(
    sequences: Sequence[Sequence[Episode]],
    *,
    horizon_s: float | None = None,
    trace_s: float | None = None,
    memory: RegressionMemory | None = None,
    memory_share: float = 0.0,
    ridge: float = 1e-3,
    normalise: str = "raw",
    baseline: bool = True,
) -> Advantages:
    """Advantages of all decisions of an iteration.

    The baseline at a decision is the sequence's mean return at that time, plus, with ``memory``, a linear function of
    how the state summary differs from its own mean at that time. Its coefficients come from earlier iterations and from
    the *other* episodes of this one, so the baseline does not see the action.

    Args:
        sequences: Episodes by sequence.
        horizon_s: Time constant of the discount; None: undiscounted.
        trace_s: Time constant of the trace: temporal differences ahead count exp(-dt / trace_s); None: full returns.
        memory: Sums of earlier iterations; brought up to date in place. None: no linear part.
        memory_share: What is kept of ``memory``.
        ridge: See :func:`solve_ridge`.
        normalise: Divide by the standard deviation over ``"all"`` decisions, per ``"sequence"``; ``"centred"``: the
            first, after their mean is subtracted; ``"raw"``: do not.
        baseline: Whether there is one; else advantages are returns.

    Returns:
        Episodes in order, sequence after sequence.
    """
    returns = [[returns_to_go(episode, horizon_s) for episode in episodes] for episodes in sequences]
    baselines = [time_average(*pair) for pair in zip(sequences, returns, strict=True)]
    if not baseline:
        baselines = [[np.zeros_like(total) for total in group] for group in returns]
    spread = [_mean_square(returns, None), _mean_square(returns, baselines)]
    if memory is not None:
        _add_linear_part(sequences, returns, baselines, memory, memory_share, ridge)
    spread.append(_mean_square(returns, baselines))
    values = []
    for episodes, episode_returns, episode_baselines in zip(sequences, returns, baselines, strict=True):
        weighted = []
        for episode, total, baseline in zip(episodes, episode_returns, episode_baselines, strict=True):
            if trace_s is None:
                weighted.append(total - baseline)
                continue
            ahead = np.append(baseline[1:], 0.0) * decay(episode.gaps_s, horizon_s)
            surprise = discounted_rewards(episode, horizon_s) + ahead - baseline
            weighted.append(backward_sums(surprise, decay(episode.gaps_s, horizon_s, trace_s)))
        values.append(weighted)
    flat = [part for group in _normalised(values, normalise) for part in group]
    by_time, by_summary = (1.0 - after / before if before > 0.0 else 0.0 for before, after in pairwise(spread))
    return Advantages(flat, [total for group in returns for total in group], by_time, by_summary)


def _mean_square(returns: list[list[np.ndarray]], baselines: list[list[np.ndarray]] | None) -> float:
    """Mean square of the returns less their baselines, or less their overall mean."""
    flat = np.concatenate([part for group in returns for part in group])
    if baselines is None:
        return float(np.var(flat))
    return float(np.mean((flat - np.concatenate([part for group in baselines for part in group])) ** 2))


def _add_linear_part(sequences, returns, baselines, memory: RegressionMemory, share: float, ridge: float) -> None:
    """Fit the linear function and add it to the baselines, which change."""
    differences, sums = [], []
    for episodes, episode_returns, episode_baselines in zip(sequences, returns, baselines, strict=True):
        means = time_average(episodes, [episode.summary for episode in episodes])
        for episode, mean, total, baseline in zip(episodes, means, episode_returns, episode_baselines, strict=True):
            difference = episode.summary - mean
            differences.append(difference)
            sums.append((difference.T @ difference, difference.T @ (total - baseline)))
    gram = share * memory.gram + sum(gram_of for gram_of, _ in sums)
    moment = share * memory.moment + sum(moment_of for _, moment_of in sums)
    index = 0
    for episode_baselines in baselines:
        for number, baseline in enumerate(episode_baselines):
            sum_gram, sum_moment = sums[index]
            weights = solve_ridge(gram - sum_gram, moment - sum_moment, ridge)
            episode_baselines[number] = baseline + differences[index] @ weights
            index += 1
    memory.gram, memory.moment = gram, moment


def _normalised(values: list[list[np.ndarray]], how: str) -> list[list[np.ndarray]]:
    def scaled(groups: list[list[np.ndarray]]) -> list[list[np.ndarray]]:
        spread = float(np.std(np.concatenate([part for group in groups for part in group])))
        return [[part / spread for part in group] for group in groups] if spread > 0.0 else groups

    if how == "centred":
        mean = float(np.mean(np.concatenate([part for group in values for part in group])))
        values = [[part - mean for part in group] for group in values]
    if how in ("all", "centred"):
        return scaled(values)
    if how == "sequence":
        return [scaled([group])[0] for group in values]
    return values


@dataclass
class RewardRate:
    """Average reward per second over the last decisions (r-hat of appendix B)."""

    rewards: np.ndarray  # float64 [at most window]
    gaps_s: np.ndarray  # float64, of the same length

    @classmethod
    def empty(cls) -> RewardRate:
        """No decision yet."""
        return cls(np.zeros(0), np.zeros(0))

    def add(self, episodes: Sequence[Episode], window: int) -> None:
        """Take in episodes; the oldest decisions beyond the window are forgotten."""
        self.rewards = np.concatenate([self.rewards, *(episode.rewards for episode in episodes)])[-window:]
        self.gaps_s = np.concatenate([self.gaps_s, *(episode.gaps_s for episode in episodes)])[-window:]

    @property
    def rate(self) -> float:
        """Rewards per second; 0 before anything was seen."""
        elapsed = float(self.gaps_s.sum())
        return float(self.rewards.sum()) / elapsed if elapsed > 0.0 else 0.0

    def subtract(self, episode: Episode) -> Episode:
        """The episode with differential rewards."""
        return Episode(episode.time_s, episode.end_s, episode.rewards - self.rate * episode.gaps_s, episode.summary)
