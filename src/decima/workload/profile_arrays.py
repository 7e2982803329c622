"""Profiles of the package as NumPy arrays, which are read without any optional package.

A file is a ``.npz`` of two arrays, not compressed, so that the same profiles give the same bytes: ``card`` is JSON with
all but the durations, and ``durations_ms`` has these, stage by stage, wave by wave and level by level.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterable, Mapping
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from decima.core.errors import DataUnavailableError, WorkloadError
from decima.core.files import atomic_write_bytes
from decima.workload.parquet import inside
from decima.workload.profile import WAVES, JobProfile, Stage, check_writable

FORMAT = "decima-profile-arrays 1"


def write_arrays(profiles: Iterable[JobProfile], path: str | os.PathLike, metadata: Mapping[str, str]) -> None:
    """Write profiles to a file, atomically.

    Args:
        profiles: Without requests for memory or CPUs and without sizes of what parents send.
        path: The file.
        metadata: Further text to keep in the file.

    Raises:
        WorkloadError: A profile holds what the file has no place for.
    """
    profiles = list(profiles)
    for profile in profiles:
        check_writable(profile)
        if any((stage.memory, stage.cpu, stage.data_mb) != (None, 1.0, None) for stage in profile.stages):
            raise WorkloadError(f"profile {profile.name!r} has requests or sizes; such files cannot hold them")
    lists = [
        values for profile in profiles for stage in profile.stages for wave in WAVES for values in getattr(stage, wave)
    ]
    card = {
        "format": FORMAT,
        "metadata": dict(metadata),
        "profiles": [
            [profile.name, profile.source, [_stage_card(stage) for stage in profile.stages]] for profile in profiles
        ],
    }
    text = json.dumps(card, separators=(",", ":"), allow_nan=False).encode()
    content = io.BytesIO()
    np.savez(content, card=np.frombuffer(text, np.uint8), durations_ms=np.concatenate(lists))
    atomic_write_bytes(Path(path), content.getvalue())


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
    """Card and durations of a file."""
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


def _stage_card(stage: Stage) -> list:
    """All of a stage but its durations, and their number by wave and level."""
    counts = [[len(values) for values in getattr(stage, wave)] for wave in WAVES]
    parents, levels = ([int(value) for value in values] for values in (stage.parents, stage.levels))
    return [stage.name, int(stage.num_tasks), parents, levels, *counts]
