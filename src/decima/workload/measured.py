"""TPC-H as measured on this project's Spark, from event logs only (`docs/measured-workload.md`).

The profiles hold the executor counts and scale factors that were run. What is beyond them is
`decima.workload.embedded`.
"""

import functools
import io
import json
import os
import re
from collections.abc import Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from decima.core.errors import DataUnavailableError, WorkloadError
from decima.workload.left_out import inside
from decima.workload.profile import JobProfile, Stage
from decima.workload.sources import CHOSEN_QUERIES, SIZES, WorkloadSource, file_digest, resolve_queries, resolve_sizes

LABEL = "TPC-H measured on Spark"
PATH = Path(__file__).parent / "data" / "tpch_spark_measured.npz"
_NAME = re.compile(r"q(\d+)-(\d+(?:\.\d+)?)g")


def profile_name(query: int, scale: float) -> str:
    """Name of a profile: `q9-1g` is query 9 at scale factor 1."""
    return f"q{query}-{scale:g}g"


def parse_name(name: str) -> tuple[int, float]:
    """Query and scale factor of a profile.

    Raises:
        WorkloadError: the name is not of the form of `profile_name`.
    """
    match = _NAME.fullmatch(name)
    if match is None:
        raise WorkloadError(f"profile {name!r}: expected a name like q9-0.25g, query and scale factor")
    return int(match[1]), float(match[2])


def scales() -> tuple[float, ...]:
    """Measured scale factors, ascending; scale 1 is 1 GB of text."""
    return tuple(sorted({scale for _, scale in _table()}))


def conditions() -> dict[str, str]:
    """Conditions of the measurement: machine, versions, settings, load, date."""
    return read_notes(PATH)


def measured_profiles(
    sizes: str | Sequence[str] = "all", queries: str | Sequence[int] = "all"
) -> tuple[JobProfile, ...]:
    """Profiles of queries at scale factors, size by size.

    Args:
        sizes: `"all"`, one size or a list of them; `"0.25g"` is scale factor 0.25. `"paper"` and `"released"`, which
            choose among the sizes of other workloads, mean all sizes here.
        queries: numbers from 1 to 22, `"all"`, or a text such as `"1-16+20"`.

    Raises:
        WorkloadError: there is no such size or query.
    """
    known = {f"{scale:g}g": scale for scale in scales()}
    chosen = resolve_sizes(sizes, tuple(known), dict.fromkeys(("all", "paper", "released"), tuple(known)), "measured")
    numbers = resolve_queries(queries)
    table = _table()
    return tuple(table[query, known[size]] for size in chosen for query in numbers)


@functools.cache
def _table() -> dict[tuple[int, float], JobProfile]:
    return {parse_name(profile.name): profile for profile in read_arrays(PATH)}


def _query_profile(size_gb: float, query: int) -> JobProfile:
    """Profile of a query at the largest measured size from 100 GB on, else smallest."""
    return measured_profiles(f"{scales()[-1 if size_gb >= 100 else 0]:g}g", [query])[0]


SOURCE = WorkloadSource(
    "measured",
    LABEL,
    "TPC-H queries as measured on this project's Spark, on up to four executors; in the package",
    measured_profiles,
    lambda queries="all": file_digest(PATH),
    options=(SIZES, CHOSEN_QUERIES),
    query_profile=_query_profile,
)
measured_batch, measured_poisson = SOURCE.batch, SOURCE.poisson


FORMAT = "decima-profile-arrays 1"


def read_arrays(path: str | os.PathLike) -> list[JobProfile]:
    """Read and validate every profile of a file; durations are read-only views into one array.

    Raises:
        DataUnavailableError: There is no such file.
        WorkloadError: It is damaged, or of another format or version.
    """
    card, durations_ms = _content(path)
    durations_ms.setflags(write=False)
    begin, profiles = 0, []
    with inside(path):
        for name, source, bodies in card["profiles"]:
            stages = []
            for stage, tasks, parents, levels, *counts in bodies:
                waves = []
                for of_wave in counts:
                    ends = [*accumulate(of_wave, initial=begin)]
                    waves.append(tuple(durations_ms[one:end] for one, end in pairwise(ends)))
                    begin = ends[-1]
                stages.append(Stage(stage, tasks, parents, levels, *waves))
            profiles.append(JobProfile(name, tuple(stages), source))
        if begin != len(durations_ms):
            raise WorkloadError(f"{len(durations_ms)} durations, expected {begin}")
    return profiles


def read_notes(path: str | os.PathLike) -> dict[str, str]:
    """Text that was kept in a file; errors as for :func:`read_arrays`."""
    return _content(path)[0]["metadata"]


def _content(path: str | os.PathLike) -> tuple[dict[str, Any], np.ndarray]:
    if not Path(path).is_file():
        raise DataUnavailableError(f"no profile file at {path}")
    try:
        with np.load(io.BytesIO(Path(path).read_bytes()), allow_pickle=False) as file:
            card, durations_ms = json.loads(file["card"].tobytes()), file["durations_ms"]
    except Exception as error:  # of damaged bytes, NumPy raises whatever comes of them
        raise WorkloadError(f"{path} is truncated, damaged or no file of profiles: {error!r:.200}") from error
    if card.get("format") != FORMAT:
        raise WorkloadError(f"{path} has format {card.get('format')!r}; this release reads {FORMAT!r}")
    return card, durations_ms
