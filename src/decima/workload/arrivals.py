"""Arrivals of jobs: batches, Poisson streams, periodic bursts and explicit times, over any profiles.

Which profile comes next and how long the gap is are two random processes with a generator each, both spawned
from one seed. So a batch and a stream of the same seed hold the same jobs, and a longer stream begins like a
shorter one. Where profiles come in parts of different probability, the part and the place in it have a generator each
as well: other probabilities move jobs between parts and change nothing else.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from decima.core.checks import is_number, is_whole
from decima.core.errors import ConfigError
from decima.workload.jobs import Job, Workload
from decima.workload.profile import JobProfile

REQUESTS = ("none", "uniform")


@dataclass(frozen=True)
class Part:
    """Consecutive profiles that are equally likely among themselves."""

    probability: float  # that a job is of this part; those of all parts sum to 1
    count: int  # number of its profiles


def batch(
    profiles: Sequence[JobProfile], n: int = 20, seed: int = 0, *, label: str, parts: Sequence[Part] = ()
) -> Workload:
    """Draw jobs with replacement, all present from the start.

    Args:
        profiles: profiles to draw from.
        n: number of jobs, at least 1.
        seed: 0 or more.
        label: what to call the workload in titles and file names.
        parts: what the profiles are made of; all are equally likely when omitted.

    Raises:
        ConfigError: `n`, `seed` or `profiles` is not as described.

    Source: §7.2, batched arrivals.
    """
    check_count("n", n, least=1)
    jobs_rng, _ = _generators(seed)
    return Workload(tuple(Job(profile) for profile in _draw(profiles, n, jobs_rng, parts)), label, tuple(profiles))


def poisson(
    profiles: Sequence[JobProfile],
    n: int,
    mean_interarrival_s: float,
    seed: int = 0,
    initial: int = 1,
    *,
    label: str,
    parts: Sequence[Part] = (),
) -> Workload:
    """Draw jobs with replacement: some present at the start, then a Poisson stream.

    Args:
        profiles: profiles to draw from.
        n: number of jobs that arrive, 0 or more, besides the initial ones.
        mean_interarrival_s: mean of the exponential gaps, in seconds; the first gap begins at time 0.
        seed: 0 or more.
        initial: number of jobs present at time 0.
        label: what to call the workload in titles and file names.
        parts: what the profiles are made of; all are equally likely when omitted.

    Raises:
        ConfigError: an argument is not as described, or there would be no job at all.

    Source: §7.2, continuous arrivals.
    """
    _check_stream(n, mean_interarrival_s, initial)
    jobs_rng, gaps_rng = _generators(seed)
    drawn = _draw(profiles, initial + n, jobs_rng, parts)
    arrivals_ms = np.cumsum(gaps_rng.exponential(1000.0 * mean_interarrival_s, size=n))
    return _stream(profiles, drawn[:initial], drawn[initial:], arrivals_ms, label)


def clocked(
    profiles: Sequence[JobProfile],
    n: int,
    mean_interarrival_s: float,
    seed: int = 0,
    initial: int = 1,
    *,
    label: str,
    parts: Sequence[Part],
    burst: int,
) -> Workload:
    """Draw a stream of Poisson arrivals and bursts at fixed gaps.

    A tick of the clock brings ``burst`` jobs; the first is one gap after time 0. Gap and Poisson rate follow from the
    mean gap of all jobs and the probability of the parts, so that load and shares are those of :func:`poisson`.

    Args:
        profiles: profiles to draw from.
        n: number of jobs that arrive, 0 or more, besides the initial ones.
        mean_interarrival_s: mean gap between jobs of both parts, in seconds.
        seed: 0 or more.
        initial: number of jobs present at time 0, drawn by the probabilities of the parts.
        label: what to call the workload in titles and file names.
        parts: two parts of the profiles; the second is on the clock.
        burst: jobs per tick, at least 1.

    Raises:
        ConfigError: an argument is not as described, or there would be no job at all.
    """
    _check_stream(n, mean_interarrival_s, initial)
    check_count("burst", burst, least=1)
    (free, ticking), gap_ms = parts, 1000.0 * mean_interarrival_s
    jobs_rng, gaps_rng = _generators(seed)
    part, position = _positions(initial + n, jobs_rng, parts)
    times = [np.empty(0), np.empty(0)]
    if free.probability > 0.0:
        with np.errstate(over="ignore"):  # what comes after every finite time is never among the first n
            times[0] = np.cumsum(gaps_rng.exponential(gap_ms / free.probability, size=n))
    if ticking.probability > 0.0:
        times[1] = np.repeat(np.arange(1, n // burst + 2), burst)[:n] * (burst * gap_ms / ticking.probability)
    merged = np.concatenate(times)
    order = np.argsort(merged, kind="stable")[:n]
    part[initial:] = np.repeat([0, 1], [len(each) for each in times])[order]
    drawn = _pick(profiles, parts, part, position)
    return _stream(profiles, drawn[:initial], drawn[initial:], merged[order], label)


def explicit(profiles: Sequence[JobProfile], arrivals_s: Sequence[float], *, label: str) -> Workload:
    """Make one job per profile; arrival at 0 means present from the start.

    Args:
        profiles: the jobs, in sequence order.
        arrivals_s: seconds, one per profile.
        label: what to call the workload in titles and file names.

    Raises:
        ConfigError: the numbers of profiles and arrivals differ.
        WorkloadError: an arrival is negative, not a number or later than 1e12 s, or there is no job.
    """
    if len(profiles) != len(arrivals_s):
        raise ConfigError(f"{len(arrivals_s)} arrivals for {len(profiles)} profiles; expected one per profile")
    return Workload(
        tuple(Job(profile, 1000.0 * arrival) for profile, arrival in zip(profiles, arrivals_s, strict=True)), label
    )


def with_requests(workload: Workload, requests: str, seed: int) -> Workload:
    """Draw a memory request for every stage; jobs and arrivals stay unchanged.

    Args:
        workload: the jobs, drawn with this seed.
        requests: `uniform`: from (0, 1], drawn anew for each stage of each job from a third generator of the seed;
            `none`: what the profiles say.
        seed: 0 or more.

    Raises:
        ConfigError: `requests` is neither.

    Source: §7.3.
    """
    if requests not in REQUESTS:
        raise ConfigError(f"requests is {requests!r}; expected {' or '.join(REQUESTS)}")
    if requests == "none":
        return workload
    rng = np.random.default_rng(np.random.SeedSequence(int(seed)).spawn(3)[2])
    jobs = [replace(job, requests=1.0 - rng.random(len(job.profile.stages))) for job in workload.jobs]
    return Workload(tuple(jobs), workload.label, workload.universe)


def with_wrong_estimates(workload: Workload, spread: float, seed: int) -> Workload:
    """Report wrong durations to schedulers; true durations stay unchanged.

    Args:
        workload: the jobs.
        spread: standard deviation of the logarithm of the factor by which the given mean is off, 0 or more. The factor
            has median 1, and is drawn once for each stage of each profile.
        seed: 0 or more, of the factors.

    Raises:
        ConfigError: a number is out of range.

    Source: appendix J, where the policy sees no durations at all.
    """
    check_count("seed", seed, least=0)
    if not is_number(spread) or not 0.0 <= spread <= 10.0:
        raise ConfigError(f"spread is {spread!r:.60}; expected a number from 0 to 10")
    rng = np.random.default_rng(int(seed))
    wrong = {}
    for profile in workload.universe:
        factors = np.exp(spread * rng.standard_normal(len(profile.stages)))
        stages = (
            replace(stage, reported_ms=stage.mean_duration_ms * factor)
            for stage, factor in zip(profile.stages, factors.tolist(), strict=True)
        )
        wrong[profile] = replace(profile, stages=tuple(stages))
    jobs = tuple(replace(job, profile=wrong[job.profile]) for job in workload.jobs)
    return Workload(jobs, workload.label, tuple(wrong.values()))


def _generators(seed: int) -> list[np.random.Generator]:
    """Make one generator for the choice of jobs and one for the gaps."""
    check_count("seed", seed, least=0)
    return [np.random.default_rng(child) for child in np.random.SeedSequence(int(seed)).spawn(2)]


def _draw(
    profiles: Sequence[JobProfile], count: int, rng: np.random.Generator, parts: Sequence[Part]
) -> list[JobProfile]:
    if not len(profiles):
        raise ConfigError("no profiles to draw jobs from; expected at least one")
    if parts:
        return _pick(profiles, parts, *_positions(count, rng, parts))
    return [profiles[index] for index in rng.integers(len(profiles), size=count)]


def _positions(count: int, rng: np.random.Generator, parts: Sequence[Part]) -> tuple[np.ndarray, np.ndarray]:
    """Draw each job's part, int64 [jobs], and position within it, float64 [jobs]."""
    part_rng, position_rng = rng.spawn(2)
    ends = np.cumsum([part.probability for part in parts])
    ends[-1] = 1.0  # rounding apart, it is
    return np.searchsorted(ends, part_rng.random(count), side="right"), position_rng.random(count)


def _pick(
    profiles: Sequence[JobProfile], parts: Sequence[Part], part: np.ndarray, position: np.ndarray
) -> list[JobProfile]:
    counts = np.array([each.count for each in parts])
    index = (np.cumsum(counts) - counts)[part] + (position * counts[part]).astype(np.int64)
    return [profiles[number] for number in index]


def _stream(
    profiles: Sequence[JobProfile],
    initial: Sequence[JobProfile],
    later: Sequence[JobProfile],
    arrivals_ms: np.ndarray,
    label: str,
) -> Workload:
    jobs = [Job(profile) for profile in initial]
    jobs += [
        Job(profile, float(arrival_ms), initial=False) for profile, arrival_ms in zip(later, arrivals_ms, strict=True)
    ]
    return Workload(tuple(jobs), label, tuple(profiles))


def _check_stream(n: int, mean_interarrival_s: float, initial: int) -> None:
    check_count("n", n, least=0)
    check_count("initial", initial, least=0)
    check_count("n + initial", n + initial, least=1)
    if not is_number(mean_interarrival_s) or not 0.0 < mean_interarrival_s < math.inf:
        raise ConfigError(f"mean_interarrival_s is {mean_interarrival_s!r}; expected a finite number above 0")


def check_count(name: str, value, least: int) -> None:
    """Raise `ConfigError` unless the value is an integer of at least `least`."""
    if not is_whole(value) or value < least:
        raise ConfigError(f"{name} is {value!r}; expected an integer of at least {least}")
