"""Workloads of users' jobs in JSON (`docs/workload-format.md`)."""

import functools
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from decima.core.errors import DataUnavailableError, WorkloadError
from decima.core.files import atomic_write_text, read_json, unique_keys
from decima.core.grammar import Option
from decima.workload import parquet
from decima.workload.jobs import Job, Workload
from decima.workload.left_out import LeftOut, inside
from decima.workload.profile import WAVES, JobProfile, Stage, check_writable, with_tasks
from decima.workload.sources import WorkloadSource, file_digest
from decima.workload.task_graphs import folder_files, read_task_graph
from decima.workload.tpch import profiles as tpch
from decima.workload.tpch import raw as tpch_raw

ORIGIN = "json"
ANY_LEVEL = 1  # the one level of a stage whose durations do not depend on the number of executors
_NUMBER = (int, float)
_EXPECTED = {
    list: "a list", dict: "an object", str: "a string", bool: "true or false", int: "an integer", _NUMBER: "a number"
}  # fmt: skip
_ARRIVAL_KEYS = ("name", "arrival_ms", "initial", "requests")
_TPCH_NAME = re.compile(r"q(?P<query>\d+)-(?P<size>\d+g)")


def load(path: str | os.PathLike) -> Workload:
    """Read a workload from a file.

    A JSON file has jobs, and a task graph (:mod:`decima.workload.task_graphs`) is one job. All profiles of a `.parquet`
    file are one batch, and so are the jobs of all files of a folder. Malformed jobs and files are left out.

    The label is the one in the file, else the file's name without its ending.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> from decima.workload import embedded_batch
        >>> with TemporaryDirectory() as folder:
        ...     save(embedded_batch(n=2), f"{folder}/jobs.json")
        ...     jobs = load(f"{folder}/jobs.json")
        >>> len(jobs)
        2

    Raises:
        DataUnavailableError: there is no such file, or a TPC-H job is asked for and the data was not fetched.
        WorkloadError: the content is malformed, or no job is left; names job and stage, or line and column.

    Warns:
        UserWarning: Jobs or files are left out, with reasons and first names.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise WorkloadError(f"a workload file is given by its path, got {path!r:.60}")
    path = Path(path)
    if path.is_dir():
        jobs, left_out = [], LeftOut(str(path), "file")
        files = folder_files(path)
        for file in files:
            with left_out.member():
                jobs += load(file).jobs
        with inside(path):
            left_out.finish(len(files) - len(left_out.reasons))
        return Workload(tuple(jobs), path.stem)
    if path.suffix == ".parquet":
        jobs = tuple(Job(profile) for profile in parquet.read_profiles(path))
        return Workload(jobs, path.stem, settings=parquet.read_settings(path))
    graph = read_task_graph(path)
    with inside(path):
        if graph is not None:
            return Workload((Job(graph.profile),), path.stem)
        return _workload(_parse(path), path)


def save(workload: Workload, path: str | os.PathLike) -> None:
    """Write a workload as JSON, atomically; `load` gives the same jobs, profiles shared as before.

    TPC-H profiles are written as references to query and size, all others in full.

    Raises:
        WorkloadError: the name ends in `.parquet`, which stands for another format, or a profile holds what the file
            has no place for.
    """
    path = Path(path)
    if path.suffix == ".parquet":
        raise WorkloadError(f"{path}: a workload is written as JSON; expected a name such as {path.stem}.json")
    references: dict[JobProfile, dict[str, Any]] = {}
    profiles: dict[str, dict[str, Any]] = {}
    for profile in workload.profiles:
        check_writable(profile)
        reference = _tpch_reference(profile)
        if reference is None:
            key = profile.name
            while key in profiles:
                key += "'"
            profiles[key] = _profile_body(profile, key)
            reference = {"profile": key}
        references[profile] = reference
    jobs = [references[job.profile] | _arrival_body(job) for job in workload.jobs]
    atomic_write_text(path, _layout(workload.label, workload.settings, profiles, jobs))


def _parse(path: Path) -> Any:
    try:
        return read_json(path, object_pairs_hook=unique_keys)
    except OSError as error:
        raise DataUnavailableError(f"cannot read workload file {path}: {error.strerror}") from error
    except json.JSONDecodeError as error:
        raise WorkloadError(f"line {error.lineno}, column {error.colno}: {error.msg}") from error
    except WorkloadError:
        raise
    except ValueError as error:  # not UTF-8, endless digits, endless nesting
        raise WorkloadError(f"not JSON text: {error}") from error


def _workload(content: Any, path: Path) -> Workload:
    if isinstance(content, list):
        content = {"jobs": content}
    where = "workload"
    _expect(where, "the content", content, dict)
    _check_keys(where, content, required=("jobs",), optional=("label", "profiles", "settings"))
    bodies = _expect(where, "profiles", content.get("profiles", {}), dict)
    label = _expect(where, "label", content.get("label", path.stem), str)
    settings = _expect(where, "settings", content.get("settings", {}), dict)
    named: dict[str, JobProfile | WorkloadError] = {}
    for name, body in bodies.items():
        try:
            named[name] = _profile(f"profile {name!r}", name, body)
        except WorkloadError as error:  # of the jobs that have it
            named[name] = error
    jobs, left_out = [], LeftOut(str(path))
    for index, entry in enumerate(_expect(where, "jobs", content["jobs"], list)):
        with left_out.member():
            jobs.append(_job(index, entry, named, bodies))
    left_out.finish(len(jobs))
    return Workload(tuple(jobs), label, settings=settings)


def _job(index: int, entry: Any, named: Mapping[str, JobProfile | WorkloadError], bodies: Mapping[str, Any]) -> Job:
    where = f"job {index}"
    _expect(where, "entry", entry, dict)
    name = _expect(where, "name", entry.get("name", ""), str)
    if name:
        where += f" ({name!r})"
    if "stages" in entry:
        _check_keys(where, entry, required=("stages",), optional=_ARRIVAL_KEYS)
        profile = _profile(where, name or f"job-{index}", {"stages": entry["stages"]})
    elif "profile" in entry:
        _check_keys(where, entry, required=("profile",), optional=_ARRIVAL_KEYS)
        key = _expect(where, "profile", entry["profile"], str)
        if key not in named:
            raise WorkloadError(f"{where}: profile {key!r} is not defined; the file defines {sorted(named)}")
        profile = named[key]
        if isinstance(profile, WorkloadError):
            raise WorkloadError(f"{where}: {profile}") from profile
    else:
        _check_keys(where, entry, required=("size", "query"), optional=_ARRIVAL_KEYS)
        size, query = (entry[key] for key in ("size", "query"))
        _expect(where, "size", size, str)
        _expect(where, "query", query, int)
        with inside(where):
            profile = tpch.tpch_profile(size, query)
    arrival_ms = _expect(where, "arrival_ms", entry.get("arrival_ms", 0), _NUMBER)
    initial = entry.get("initial")
    if initial is not None:
        _expect(where, "initial", initial, bool)
    requests = _job_requests(where, entry.get("requests"))
    stages = entry.get("stages") or bodies.get(entry.get("profile"), {}).get("stages", ())
    if requests is not None and len(requests) == len(stages):  # those of stages without tasks go with these
        requests = [request for request, stage in zip(requests, stages, strict=True) if stage["tasks"] != 0]
    with inside(where):
        return Job(profile, arrival_ms, initial, name, requests)


def _profile(where: str, name: str, body: Any) -> JobProfile:
    _expect(where, "profile", body, dict)
    _check_keys(where, body, required=("stages",), optional=("name", "source"))
    bodies = _expect(where, "stages", body["stages"], list)
    names = []
    for index, stage in enumerate(bodies):
        stage_name = _expect(where, "stage", stage, dict).get("name", str(index))
        names.append(_expect(f"{where}, stage {index}", "name", stage_name, str))
    # The first stage of a name is meant by it; JobProfile refuses names that occur twice.
    number = {stage: index for index, stage in reversed(list(enumerate(names)))}
    stages = tuple(
        _stage(f"{where}, stage {names[index]!r}", names[index], stage, number) for index, stage in enumerate(bodies)
    )
    return with_tasks(body.get("name", name), stages, body.get("source", ORIGIN))


def _stage(where: str, name: str, body: dict, number: Mapping[str, int]) -> Stage:
    optional = ("name", "parents", "duration_ms", "durations", "memory", "cpu", "data_mb")
    _check_keys(where, body, required=("tasks",), optional=optional)
    for key in ("memory", "cpu"):
        if key in body:
            _expect(where, key, body[key], _NUMBER)
    idle = body["tasks"] == 0 and body["tasks"] is not False
    if ("duration_ms" in body) == ("durations" in body) and not (idle and "durations" not in body):
        raise WorkloadError(f"{where}: expected exactly one of 'duration_ms' and 'durations' (per executor count)")
    if idle:
        tables = {ANY_LEVEL: dict.fromkeys(WAVES, np.zeros(1))}
    elif "duration_ms" in body:
        tables = {ANY_LEVEL: _waves(where, body["duration_ms"])}
    else:
        tables = _levels(where, _expect(where, "durations", body["durations"], dict))
    parents = [_parent(where, parent, number) for parent in _expect(where, "parents", body.get("parents", []), list)]
    levels = tuple(sorted(tables))
    return Stage(
        name,
        body["tasks"],
        parents,
        levels,
        *(tuple(tables[level][wave] for level in levels) for wave in WAVES),
        **{key: body[key] for key in ("memory", "cpu") if key in body},
        data_mb=_data(where, body["data_mb"], len(parents)) if "data_mb" in body else None,
    )


def _data(where: str, value: Any, parents: int) -> list:
    """Read the data that parents send to a stage: a list or one number."""
    sizes = value if isinstance(value, list) else [value] * max(1, parents)
    for size in sizes:
        _expect(where, "data_mb", size, _NUMBER)
    return sizes if isinstance(value, list) else sizes[:parents]


def _job_requests(where: str, value: Any) -> list | None:
    """Read the requests of stages: a list of memories or of [memory, CPUs]."""
    if value is None:
        return None
    for item in _expect(where, "requests", value, list):
        for number in item if isinstance(item, list) else [item]:
            _expect(where, "request", number, _NUMBER)
    return value


def _parent(where: str, parent: Any, number: Mapping[str, int]) -> int:
    if isinstance(parent, str):
        if parent not in number:
            raise WorkloadError(f"{where}: parent {parent!r} does not exist; expected one of {sorted(number)}")
        return number[parent]
    return _expect(where, "parent", parent, int)


def _levels(where: str, durations: dict) -> dict[int, dict[str, np.ndarray]]:
    tables: dict[int, dict[str, np.ndarray]] = {}
    for key, value in durations.items():
        if not re.fullmatch(r"[1-9][0-9]{0,8}", key):
            raise WorkloadError(f"{where}: profile level {key!r}; expected a positive executor count")
        tables[int(key)] = _waves(f"{where}, level {key}", value)
    return tables


def _waves(where: str, value: Any) -> dict[str, np.ndarray]:
    """Read durations: a number or list for all waves, or an object by wave."""
    if not isinstance(value, dict):
        return dict.fromkeys(WAVES, _durations(where, value))
    _check_keys(where, value, optional=WAVES)
    return {wave: _durations(f"{where}, {wave}", value.get(wave, [])) for wave in WAVES}


def _durations(where: str, value: Any) -> np.ndarray:
    values = value if isinstance(value, list) else [value]
    for item in values:
        _expect(where, "duration", item, _NUMBER)
    try:
        return np.array(values, dtype=np.float64)
    except OverflowError as error:
        raise WorkloadError(f"{where}: a duration is too large for a number of milliseconds") from error


def _tpch_reference(profile: JobProfile) -> dict[str, Any] | None:
    match = _TPCH_NAME.fullmatch(profile.name) if profile.source == tpch_raw.ORIGIN else None
    if match is None or not tpch.tpch_available():
        return None
    if match["size"] not in tpch.RELEASED_SIZES or int(match["query"]) not in tpch.QUERIES:
        return None
    reference = {"size": match["size"], "query": int(match["query"])}
    return reference if tpch.tpch_profile(**reference).equals(profile) else None


def _arrival_body(job: Job) -> dict[str, Any]:
    body: dict[str, Any] = {"arrival_ms": _number(job.arrival_ms), "initial": job.initial}
    if job.name != job.profile.name:
        body["name"] = job.name
    if job.requests is not None:
        plain = bool((job.requests[:, 1] == 1.0).all())
        body["requests"] = (job.requests[:, 0] if plain else job.requests).tolist()
    return body


def _profile_body(profile: JobProfile, key: str) -> dict[str, Any]:
    body: dict[str, Any] = {} if profile.name == key else {"name": profile.name}
    if profile.source != ORIGIN:
        body["source"] = profile.source
    body["stages"] = [
        {
            "name": stage.name,
            "tasks": int(stage.num_tasks),
            "parents": [int(parent) for parent in stage.parents],
            "durations": {
                str(level): {wave: [_number(value) for value in getattr(stage, wave)[index].tolist()] for wave in WAVES}
                for index, level in enumerate(stage.levels)
            },
            **({} if stage.memory is None else {"memory": float(stage.memory)}),
            **({} if stage.cpu == 1.0 else {"cpu": float(stage.cpu)}),
            **({} if stage.data_mb is None else {"data_mb": [float(size) for size in stage.data_mb]}),
        }
        for stage in profile.stages
    ]
    return body


def _layout(label: str, settings: Mapping[str, Any], profiles: dict[str, dict], jobs: list[dict]) -> str:
    def text(value: Any) -> str:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)

    lines = ["{", f'"label": {text(label)},', *([f'"settings": {text(dict(settings))},'] if settings else [])]
    if profiles:
        lines += ['"profiles": {', ",\n".join(f"  {text(key)}: {text(body)}" for key, body in profiles.items()), "},"]
    lines += ['"jobs": [', ",\n".join(f"  {text(job)}" for job in jobs), "]", "}"]
    return "\n".join(lines) + "\n"


def _number(value: float) -> int | float:
    return int(value) if value.is_integer() else value


def _expect(where: str, name: str, value: Any, expected: type | tuple[type, ...]) -> Any:
    """Return a value of a type of `_EXPECTED`; true and false are not numbers."""
    if not isinstance(value, expected) or (isinstance(value, bool) and expected is not bool):
        got = _EXPECTED[type(value)] if isinstance(value, (list, dict)) else json.dumps(value)
        raise WorkloadError(f"{where}: {name} is {got}; expected {_EXPECTED[expected]}")
    return value


def _check_keys(where: str, body: dict, required: tuple[str, ...] = (), optional: tuple[str, ...] = ()) -> None:
    for key in body:
        if key not in required and key not in optional:
            raise WorkloadError(f"{where}: unknown key {key!r}; expected {', '.join([*required, *optional])}")
    for key in required:
        if key not in body:
            raise WorkloadError(f"{where}: key {key!r} is missing; got {', '.join(body) or 'none'}")


def file_profiles(path: str) -> tuple[JobProfile, ...]:
    """Distinct profiles of the jobs in a file, in order of first use.

    Args:
        path: A ``.parquet`` of profiles, or a ``.json`` of jobs.

    Raises:
        WorkloadError: The file is not of its format.
        DataUnavailableError: It cannot be read.
    """
    try:
        status = Path(path).stat()
    except (OSError, ValueError) as error:  # a zero byte in the path
        raise DataUnavailableError(f"cannot read workload file {path!r:.200}: {error}") from error
    if Path(path).is_dir():
        raise WorkloadError(f"{path} is a folder; expected a file, or the folder itself as --jobs")
    return _universe(path, status.st_mtime_ns, status.st_size)


@functools.lru_cache(maxsize=4)
def _universe(path: str, modified_ns: int, size: int) -> tuple[JobProfile, ...]:
    # Time and size are part of the key, so that a file written anew is read anew.
    return load(path).universe


SOURCE = WorkloadSource(
    "file",
    "jobs of a file",
    "profiles of a file of one's own, drawn from like those of any other source",
    file_profiles,
    lambda path: file_digest(Path(path)),
    options=(Option("path", "a .parquet of profiles, a .json of jobs, or a task graph", required=True),),
)
