"""Columnar format of profiles: one parquet file, one row per stage (`docs/workload-format.md`)."""

import json
import os
from collections.abc import Iterable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from decima.core.errors import DataUnavailableError, WorkloadError
from decima.core.files import atomic_path
from decima.workload.left_out import LeftOut, inside
from decima.workload.profile import WAVES, JobProfile, Stage, check_writable, with_tasks

FORMAT = "decima-profiles"
VERSION = "1"
#: Columns that a file has only if one of its stages says so: what parents send, and what a task asks for. Null for
#: stages that say nothing, except for CPUs, of which each stage has some.
OPTIONAL = ("data_mb", "memory", "cpu")
_PLAIN = {"data_mb": None, "memory": None, "cpu": 1.0}
_PREFIX = "decima."


def write_profiles(
    profiles: Iterable[JobProfile], path: str | os.PathLike, metadata: Mapping[str, str] | None = None
) -> None:
    """Write profiles to one file, atomically. The same profiles give the same bytes.

    Args:
        profiles: at least one.
        path: the parquet file.
        metadata: further text to keep in the file, read back by `read_metadata`.

    Raises:
        WorkloadError: there is no profile, or one holds what the file has no place for.
    """
    import pyarrow
    from pyarrow import parquet

    profiles = list(profiles)
    if not profiles:
        raise WorkloadError(f"no job profile to write to {path}; expected at least one")
    for profile in profiles:
        check_writable(profile)
    rows = [
        (index, job, number, stage) for index, job in enumerate(profiles) for number, stage in enumerate(job.stages)
    ]
    stages = [stage for *_, stage in rows]
    columns = [
        [index for index, *_ in rows],
        [job.name for _, job, *_ in rows],
        [job.source for _, job, *_ in rows],
        [number for _, _, number, _ in rows],
        [stage.name for stage in stages],
        [stage.num_tasks for stage in stages],
        [[int(parent) for parent in stage.parents] for stage in stages],
        [[int(level) for level in stage.levels] for stage in stages],
        *(_nested([getattr(stage, wave) for stage in stages]) for wave in WAVES),
    ]
    used = tuple(name for name in OPTIONAL if any(getattr(stage, name) != _PLAIN[name] for stage in stages))
    columns += [[_plain(getattr(stage, name)) for stage in stages] for name in used]
    text = {f"{_PREFIX}{key}": value for key, value in (metadata or {}).items()}
    schema = _schema(used).with_metadata({**text, f"{_PREFIX}format": FORMAT, f"{_PREFIX}version": VERSION})
    arrays = [
        column if isinstance(column, pyarrow.Array) else pyarrow.array(column, type=field.type)
        for column, field in zip(columns, schema, strict=True)
    ]
    table = pyarrow.Table.from_arrays(arrays, schema=schema)
    with atomic_path(path) as temporary:
        parquet.write_table(table, temporary, compression="zstd", compression_level=9, write_page_checksum=True)


def read_profiles(path: str | os.PathLike) -> list[JobProfile]:
    """Read and validate every profile of a file written by `write_profiles`.

    Durations are read-only views into one buffer, so loading many profiles is cheap. A malformed job is left out.

    Raises:
        DataUnavailableError: there is no such file.
        WorkloadError: the file is truncated, damaged, of another format or version, or no job is left.

    Warns:
        UserWarning: Jobs are left out, with reasons and first names.
    """
    import pyarrow
    from pyarrow import parquet

    read_metadata(path)  # refuses whatever is no such file
    # One thread: several would each keep buffers far larger than the profiles.
    table = _arrow(path, lambda: parquet.ParquetFile(path, page_checksum_verification=True).read(use_threads=False))
    pyarrow.default_memory_pool().release_unused()
    column = {name: table.column(name).combine_chunks() for name in table.column_names}
    nulls: dict[int, str] = {}  # column of a null by row
    for name, array in column.items():
        if name in OPTIONAL and _PLAIN[name] is None:
            array = getattr(array, "values", None)
        while array is not None:
            if array.null_count:
                nulls |= {row: name for row, value in enumerate(column[name].to_pylist()) if _holds_null(value, name)}
            array = getattr(array, "values", None)
    flat = {
        name: column[name].to_pylist()
        for name in ("job_index", "job", "source", "stage_index", "stage", "num_tasks", "parents", "levels")
    }
    rows = len(flat["job"])
    said = {name: column[name].to_pylist() if name in column else [_PLAIN[name]] * rows for name in OPTIONAL}
    waves = [_unnest(column[f"{wave}_ms"]) for wave in WAVES]
    profiles: list[JobProfile] = []
    left_out = LeftOut(str(path))
    with inside(path):
        for begin, end in _job_rows(flat["job_index"], flat["stage_index"]):
            with left_out.member():
                name = flat["job"][begin]
                if incomplete := [nulls[row] for row in range(begin, end) if row in nulls]:
                    raise WorkloadError(f"job {name!r}: column {incomplete[0]} holds null; expected a value everywhere")
                stages = tuple(
                    Stage(
                        flat["stage"][row],
                        flat["num_tasks"][row],
                        flat["parents"][row],
                        flat["levels"][row],
                        *(wave[row] for wave in waves),
                        **{name: values[row] for name, values in said.items()},
                    )
                    for row in range(begin, end)
                )
                for field in ("job", "source"):
                    if len(set(flat[field][begin:end])) != 1:
                        raise WorkloadError(f"the rows of job {name!r} differ in column {field}")
                profiles.append(with_tasks(name, stages, flat["source"][begin]))
        left_out.finish(len(profiles))
    return profiles


def _holds_null(value: Any, name: str) -> bool:
    """Whether a value of a column has a null where none may be."""
    if value is None:
        return not (name in OPTIONAL and _PLAIN[name] is None)
    return isinstance(value, list) and any(each is None or _holds_null(each, name) for each in value)


def read_metadata(path: str | os.PathLike) -> dict[str, str]:
    """Read the text kept in a file, `format` and `version` included; reads the footer only.

    Raises:
        DataUnavailableError: there is no such file.
        WorkloadError: the file is truncated, damaged or of another format or version.
    """
    from pyarrow import parquet

    if not Path(path).is_file():
        raise DataUnavailableError(f"no profile file at {path}")
    schema = _arrow(path, lambda: parquet.read_schema(path))
    pairs = (schema.metadata or {}).items()
    text = {key.decode(errors="replace"): value.decode(errors="replace") for key, value in pairs}
    text = {key.removeprefix(_PREFIX): value for key, value in text.items() if key.startswith(_PREFIX)}
    if text.get("format") != FORMAT:
        raise WorkloadError(f"{path} is a parquet file, but not one of job profiles (format {FORMAT!r})")
    if text.get("version") != VERSION:
        raise WorkloadError(f"{path} has format version {text.get('version')!r}; this release reads {VERSION!r}")
    if not schema.equals(_schema(tuple(name for name in OPTIONAL if name in schema.names))):
        raise WorkloadError(f"{path}: columns are {schema.names}; expected {_schema().names} with the documented types")
    return text


def read_settings(path: str | os.PathLike) -> dict[str, Any]:
    """Settings of the cluster that the jobs of a file bring, or none.

    Raises:
        WorkloadError: the file does not hold profiles, or its settings are not a JSON object.
    """
    text = read_metadata(path).get("settings", "{}")
    try:
        settings = json.loads(text)
    except ValueError:
        settings = None
    if not isinstance(settings, dict):
        raise WorkloadError(f"{path}: the settings in it are not a JSON object")
    return settings


def _arrow(path: str | os.PathLike, read):
    try:
        return read()
    except Exception as error:  # of damaged bytes, pyarrow raises whatever comes of them
        raise WorkloadError(f"{path} is truncated, damaged or not a parquet file: {error!r:.200}") from error


def _plain(value: float | tuple[float, ...] | None) -> float | list[float] | None:
    """Value of an optional column as a Python type, as Arrow needs it."""
    if value is None:
        return None
    return [float(size) for size in value] if isinstance(value, tuple) else float(value)


def _schema(optional: tuple[str, ...] = ()):
    import pyarrow as pa

    lists = pa.list_(pa.list_(pa.float64()))
    return pa.schema(
        [
            ("job_index", pa.int32()),
            ("job", pa.string()),
            ("source", pa.string()),
            ("stage_index", pa.int32()),
            ("stage", pa.string()),
            ("num_tasks", pa.int32()),
            ("parents", pa.list_(pa.int32())),
            ("levels", pa.list_(pa.int32())),
            *((f"{wave}_ms", lists) for wave in WAVES),
            *((name, pa.list_(pa.float64()) if name == "data_mb" else pa.float64()) for name in optional),
        ]
    )


def _nested(lists: list[tuple[np.ndarray, ...]]):
    """Make an Arrow list<list<double>> of rows of arrays, without going through Python floats."""
    import pyarrow as pa

    arrays = [array for row in lists for array in row]
    outer = np.cumsum([0, *(len(row) for row in lists)], dtype=np.int64)
    inner = np.cumsum([0, *(len(array) for array in arrays)], dtype=np.int64)
    if inner[-1] > np.iinfo(np.int32).max:
        raise WorkloadError(f"{inner[-1]} durations in one column; one file holds at most {np.iinfo(np.int32).max}")
    values = pa.ListArray.from_arrays(pa.array(inner, pa.int32()), pa.array(np.concatenate(arrays), pa.float64()))
    return pa.ListArray.from_arrays(pa.array(outer, pa.int32()), values)


def _unnest(column) -> list[list[np.ndarray]]:
    outer = column.offsets.to_pylist()
    inner = column.values.offsets.to_pylist()
    flat = column.values.values
    # A view of Arrow's buffer, read-only. (Arrow's own to_numpy imports pandas, half a second.)
    values = np.frombuffer(flat.buffers()[1], dtype=np.float64)[flat.offset : flat.offset + len(flat)]
    return [[values[inner[item] : inner[item + 1]] for item in range(begin, end)] for begin, end in pairwise(outer)]


def _job_rows(job_index: list[int], stage_index: list[int]) -> list[tuple[int, int]]:
    """Find first and last+1 row of each job and check its indices."""
    if not job_index:
        raise WorkloadError("the file has no rows; expected one per stage")
    begins = [row for row, number in enumerate(stage_index) if number == 0]
    bounds = list(pairwise([*begins, len(job_index)]))
    expected = [(job, row - begin) for job, (begin, end) in enumerate(bounds) for row in range(begin, end)]
    if list(zip(job_index, stage_index, strict=True)) != expected:
        raise WorkloadError("job_index and stage_index do not count up from 0 without a gap")
    return bounds
