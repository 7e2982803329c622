"""Instances and schedules as JSON, and workflows of WfCommons."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from decima.core.errors import DataUnavailableError, WorkloadError
from decima.core.files import atomic_write_text, read_json, unique_keys
from decima.systems.heterogeneous.checking import InvalidScheduleError, number
from decima.systems.heterogeneous.cluster import Cluster
from decima.systems.heterogeneous.result import Schedule
from decima.systems.heterogeneous.workload import Instance, Job


def load_instance(path: str | os.PathLike, cluster: Cluster | None = None) -> Instance:
    """Read jobs, and the cluster unless one is passed, from a JSON file.

    Args:
        path: The file, as :func:`save_instance` writes it (docs/heterogeneous.md).
        cluster: A cluster that replaces the one of the file.

    Raises:
        DataUnavailableError: There is no such file.
        WorkloadError: The content is malformed; says where.
    """
    content = _object(read_document(path), str(path), ("jobs",), ("label", "cluster"))
    if cluster is None:
        if "cluster" not in content:
            raise WorkloadError(f"{path} describes no cluster; expected one there, or one to be given with it")
        cluster = _cluster(f"{path}: cluster", content["cluster"])
    # Where the cluster gives all execution times, work says nothing.
    needed = ("work",) if cluster.costs is None else ()
    listed = _list(content["jobs"], f"{path}: jobs")
    jobs = [_job(f"{path}: job {index}", each, needed) for index, each in enumerate(listed)]
    return Instance(jobs, cluster, content.get("label", Path(path).stem))


def save_instance(instance: Instance, path: str | os.PathLike) -> None:
    """Write jobs and cluster as JSON, atomically; :func:`load_instance` gives the same numbers."""
    jobs = []
    for job in instance.jobs:
        nodes = [{"name": name, "work": work} for name, work in zip(job.nodes, job.work.tolist(), strict=True)]
        edges = [
            {"parent": job.nodes[parent], "child": job.nodes[child], "data": data}
            for (parent, child), data in zip(job.edges.tolist(), job.data.tolist(), strict=True)
        ]
        jobs.append({"name": job.name, "arrival_s": job.arrival_s, "nodes": nodes, "edges": edges})
    lines = ",\n".join(f"  {_text(job)}" for job in jobs)
    atomic_write_text(
        path,
        f'{{\n"label": {_text(instance.label)},\n"cluster": {_text(instance.cluster.as_dict())},\n'
        f'"jobs": [\n{lines}\n]\n}}\n',
    )


def schedule_document(schedule: Schedule) -> dict[str, Any]:
    """Content of a schedule file: its scheduler with settings, its length, and all copies."""
    instance = schedule.instance
    copies = []
    for copy, node in enumerate(schedule.node.tolist()):
        job = int(instance.job_of_node[node])
        copies.append(
            {
                "job": job,
                "node": instance.jobs[job].nodes[node - int(instance.first_node[job])],
                "executor": instance.cluster.names[schedule.executor[copy]],
                "start_s": float(schedule.start_s[copy]),
                "finish_s": float(schedule.finish_s[copy]),
                "duplicate": bool(schedule.duplicate[copy]),
            }
        )
    return {
        "label": instance.label,
        "scheduler": schedule.scheduler,
        "settings": schedule.settings,
        "makespan_s": schedule.makespan_s,
        "copies": copies,
    }


def load_schedule(path: str | os.PathLike, instance: Instance) -> Schedule:
    """Read a schedule of an instance.

    Args:
        path: A JSON file with ``copies``: job (number), node and executor (names), start_s, finish_s.
        instance: What it is a schedule of.

    Raises:
        DataUnavailableError: There is no such file.
        InvalidScheduleError: The file is malformed or names what the instance does not have.
    """
    try:
        content = read_document(path)
        copies = _list(_object(content, str(path), ("copies",), None)["copies"], f"{path}: copies")
        executors = {name: index for index, name in enumerate(instance.cluster.names)}
        columns: list[tuple] = []
        for index, copy in enumerate(copies):
            where = f"{path}: copy {index}"
            _object(copy, where, ("job", "node", "executor", "start_s", "finish_s"), ("duplicate",))
            job = copy["job"]
            if type(job) is not int or not 0 <= job < len(instance.jobs):
                raise WorkloadError(f"{where}: job is {job!r:.40}; expected 0 to {len(instance.jobs) - 1}")
            if copy["node"] not in instance.jobs[job].nodes:
                raise WorkloadError(f"{where}: job {job} has no node {copy['node']!r:.40}")
            if str(copy["executor"]) not in executors:
                raise WorkloadError(f"{where}: the cluster has no executor {copy['executor']!r:.40}")
            times = [number(f"{where}: {key}", copy[key]) for key in ("start_s", "finish_s")]
            node = int(instance.first_node[job]) + instance.jobs[job].nodes.index(copy["node"])
            columns.append((node, executors[str(copy["executor"])], *times))
    except WorkloadError as error:
        raise InvalidScheduleError(str(error)) from error
    node, executor, start_s, finish_s = zip(*columns, strict=True) if columns else ((), (), (), ())
    return Schedule(instance, node, executor, start_s, finish_s, scheduler=str(content.get("scheduler", "")))


def read_document(path: str | os.PathLike) -> Any:
    """Read a JSON file.

    Raises:
        DataUnavailableError: It cannot be read.
        WorkloadError: It is not JSON.
    """
    try:
        return read_json(path, object_pairs_hook=unique_keys)
    except OSError as error:
        raise DataUnavailableError(f"cannot read {path}: {error.strerror}") from error
    except WorkloadError as error:
        raise WorkloadError(f"{path}: {error}") from error
    except ValueError as error:
        raise WorkloadError(f"{path} is not JSON: {error}") from error


def _job(where: str, body: Any, needed: tuple[str, ...]) -> Job:
    _object(body, where, ("nodes",), ("name", "arrival_s", "edges"))
    nodes = _list(body["nodes"], f"{where}: nodes")
    names, work = [], []
    for index, node in enumerate(nodes):
        _object(node, f"{where}: node {index}", needed, ("name", "work"))
        names.append(node.get("name", str(index)))
        work.append(number(f"{where}: work of node {index}", node.get("work", 0.0)))
    numbers = {name: index for index, name in reversed(list(enumerate(names))) if isinstance(name, str)}
    edges, data = [], []
    for index, edge in enumerate(_list(body.get("edges", []), f"{where}: edges")):
        _object(edge, f"{where}: edge {index}", ("parent", "child", "data"), ())
        for end in ("parent", "child"):
            if not isinstance(edge[end], str) or edge[end] not in numbers:
                raise WorkloadError(f"{where}: edge {index}: {end} {edge[end]!r:.40} is not a node of the job")
        edges.append((numbers[edge["parent"]], numbers[edge["child"]]))
        data.append(number(f"{where}: data of edge {index}", edge["data"]))
    return Job(body.get("name", where.rpartition(" ")[2]), work, edges, data, body.get("arrival_s", 0.0), names)


def _cluster(where: str, body: Any) -> Cluster:
    _object(body, where, (), ("speeds", "costs", "rate", "latency_s", "names"))
    names = _list(body.get("names", []), f"{where}: names")
    rate, costs = _with_infinity(body.get("rate"), ("inf",)), _with_infinity(body.get("costs"), ("inf", None))
    return Cluster(body.get("speeds"), rate, body.get("latency_s", 0.0), None if costs == np.inf else costs, names)


def _with_infinity(values: Any, words: tuple) -> Any:
    """Numbers and lists of a JSON file; infinite for a word for it."""
    if isinstance(values, list):
        return [_with_infinity(each, words) for each in values]
    return np.inf if not isinstance(values, (int, float, dict)) and values in words else values


def _object(value: Any, where: str, required: tuple[str, ...], optional: tuple[str, ...] | None) -> dict:
    if not isinstance(value, dict):
        raise WorkloadError(f"{where} is {type(value).__name__}; expected an object")
    if missing := [key for key in required if key not in value]:
        raise WorkloadError(f"{where}: {missing[0]} is missing")
    unknown = [] if optional is None else [key for key in value if key not in (*required, *optional)]
    if unknown:
        raise WorkloadError(f"{where}: unknown key {unknown[0]!r}; expected {', '.join([*required, *optional])}")
    return value


def _list(value: Any, where: str) -> list:
    if not isinstance(value, list):
        raise WorkloadError(f"{where}: expected a list, got {type(value).__name__}")
    return value


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
