"""Returns, baselines and advantages of recorded episodes, in NumPy alone.

An *episode* here has decisions at times t_k (seconds, ascending, several may coincide), a reward r_k that accrues
evenly from t_k to the next decision or the end, and a state summary per decision. Episodes of one *sequence* have the
same arrivals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice, pairwise

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
    episodes = [episode for group in sequences for episode in group]
    returns = [returns_to_go(episode, horizon_s) for episode in episodes]
    baselines = _time_averages(sequences, returns) if baseline else [np.zeros_like(total) for total in returns]
    flat = np.concatenate(returns)
    spread = [np.var(flat), np.mean((flat - np.concatenate(baselines)) ** 2)]
    if memory is not None:
        residuals = [total - expected for total, expected in zip(returns, baselines, strict=True)]
        linear = _linear_part(sequences, residuals, memory, memory_share, ridge)
        baselines = [expected + part for expected, part in zip(baselines, linear, strict=True)]
    spread.append(np.mean((flat - np.concatenate(baselines)) ** 2))
    values = []
    for episode, total, expected in zip(episodes, returns, baselines, strict=True):
        if trace_s is None:
            values.append(total - expected)
            continue
        ahead = np.append(expected[1:], 0.0) * decay(episode.gaps_s, horizon_s)
        surprise = discounted_rewards(episode, horizon_s) + ahead - expected
        values.append(backward_sums(surprise, decay(episode.gaps_s, horizon_s, trace_s)))
    shares = [float(1.0 - after / before) if before > 0.0 else 0.0 for before, after in pairwise(spread)]
    return Advantages(_normalised(values, normalise, [len(group) for group in sequences]), returns, *shares)


def _time_averages(sequences: Sequence[Sequence[Episode]], values: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Time averages of each sequence, from values per episode; one array per episode."""
    rest = iter(values)
    return [mean for group in sequences for mean in time_average(group, list(islice(rest, len(group))))]


def _linear_part(
    sequences: Sequence[Sequence[Episode]],
    residuals: Sequence[np.ndarray],
    memory: RegressionMemory,
    share: float,
    ridge: float,
) -> list[np.ndarray]:
    """Linear function of the summaries, fitted to residuals of other episodes; updates the memory."""
    summaries = [episode.summary for group in sequences for episode in group]
    means = _time_averages(sequences, summaries)
    differences = [summary - mean for summary, mean in zip(summaries, means, strict=True)]
    grams = [difference.T @ difference for difference in differences]
    moments = [difference.T @ residual for difference, residual in zip(differences, residuals, strict=True)]
    memory.gram = share * memory.gram + sum(grams)
    memory.moment = share * memory.moment + sum(moments)
    return [
        difference @ solve_ridge(memory.gram - gram, memory.moment - moment, ridge)
        for difference, gram, moment in zip(differences, grams, moments, strict=True)
    ]


def _normalised(values: list[np.ndarray], how: str, lengths: Sequence[int]) -> list[np.ndarray]:
    """Values as ``normalise`` wants them; ``lengths``: episodes of each sequence."""

    def scaled(group: list[np.ndarray]) -> list[np.ndarray]:
        spread = float(np.std(np.concatenate(group)))
        return [part / spread for part in group] if spread > 0.0 else group

    if how == "centred":
        mean = float(np.mean(np.concatenate(values)))
        values = [part - mean for part in values]
    if how in ("all", "centred"):
        return scaled(values)
    if how == "sequence":
        rest = iter(values)
        return [part for length in lengths for part in scaled(list(islice(rest, length)))]
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
