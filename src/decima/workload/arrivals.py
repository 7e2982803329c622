"""Arrivals of jobs: batches, Poisson streams and given times, over any profiles.

Which profile comes next and how long the gap is are two sources of chance with a generator each, both spawned
from one seed. So a batch and a stream of the same seed hold the same jobs, and a longer stream begins like a
shorter one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from decima.checks import is_number, is_whole
from decima.exceptions import ConfigError
from decima.workload.jobs import Job, Workload
from decima.workload.profile import JobProfile


def batch(profiles: Sequence[JobProfile], n: int = 20, seed: int = 0, *, label: str) -> Workload:
    """Draw jobs uniformly with replacement, all present from the start.

    Args:
        profiles: profiles to draw from.
        n: number of jobs, at least 1.
        seed: 0 or more.
        label: what to call the workload in titles and file names.

    Raises:
        ConfigError: `n`, `seed` or `profiles` is not as described.

    Source: §7.2, batched arrivals.
    """
    check_count("n", n, least=1)
    jobs_rng, _ = _generators(seed)
    return Workload(tuple(Job(profile) for profile in _draw(profiles, n, jobs_rng)), label, tuple(profiles))


def poisson(
    profiles: Sequence[JobProfile],
    n: int,
    mean_interarrival_s: float,
    seed: int = 0,
    initial: int = 1,
    *,
    label: str,
) -> Workload:
    """Draw jobs uniformly with replacement: some present at the start, then a Poisson stream.

    Args:
        profiles: profiles to draw from.
        n: number of jobs that arrive, 0 or more, besides the initial ones.
        mean_interarrival_s: mean of the exponential gaps, in seconds; the first gap begins at time 0.
        seed: 0 or more.
        initial: number of jobs present at time 0.
        label: what to call the workload in titles and file names.

    Raises:
        ConfigError: an argument is not as described, or there would be no job at all.

    Source: §7.2, continuous arrivals.
    """
    check_count("n", n, least=0)
    check_count("initial", initial, least=0)
    check_count("n + initial", n + initial, least=1)
    if not is_number(mean_interarrival_s) or not 0.0 < mean_interarrival_s < math.inf:
        raise ConfigError(f"mean_interarrival_s is {mean_interarrival_s!r}; expected a finite number above 0")
    jobs_rng, gaps_rng = _generators(seed)
    drawn = _draw(profiles, initial + n, jobs_rng)
    arrivals_ms = np.cumsum(gaps_rng.exponential(1000.0 * mean_interarrival_s, size=n))
    jobs = [Job(profile) for profile in drawn[:initial]]
    jobs += [
        Job(profile, float(arrival_ms), initial=False)
        for profile, arrival_ms in zip(drawn[initial:], arrivals_ms, strict=True)
    ]
    return Workload(tuple(jobs), label, tuple(profiles))


def explicit(profiles: Sequence[JobProfile], arrivals_s: Sequence[float], *, label: str) -> Workload:
    """Make one job per profile at the given time; a job at time 0 is present from the start.

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
        tuple(Job(profile, 1000.0 * arrival) for profile, arrival in zip(profiles, arrivals_s, strict=True)),
        label,
    )


def _generators(seed: int) -> list[np.random.Generator]:
    """Make one generator for the choice of jobs and one for the gaps."""
    check_count("seed", seed, least=0)
    return [np.random.default_rng(child) for child in np.random.SeedSequence(int(seed)).spawn(2)]


def _draw(profiles: Sequence[JobProfile], count: int, rng: np.random.Generator) -> list[JobProfile]:
    if not len(profiles):
        raise ConfigError("no profiles to draw jobs from; expected at least one")
    return [profiles[index] for index in rng.integers(len(profiles), size=count)]


def check_count(name: str, value, least: int) -> None:
    """Raise `ConfigError` unless the value is an integer of at least `least`."""
    if not is_whole(value) or value < least:
        raise ConfigError(f"{name} is {value!r}; expected an integer of at least {least}")
