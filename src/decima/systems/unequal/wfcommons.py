"""Workflows in the JSON format of WfCommons, WfFormat 1.4 and 1.5 or later."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from decima.core.errors import WorkloadError
from decima.systems.unequal.checking import number
from decima.systems.unequal.json_format import read_document
from decima.systems.unequal.workload import Job

VERSIONS = ("1.4", "1.5", "1.6")
_MB = 1e6


def import_wfcommons(path: str | os.PathLike, *, arrival_s: float = 0.0) -> Job:
    """Read a workflow as a job of nodes (tasks), work (runtimes) and data (files).

    The data of an edge is the files that the child reads of the parent. The work is the runtime in seconds, as on an
    executor of speed 1; the data is in MB. What a task reads of files that no parent writes is not counted.

    Args:
        path: The file.
        arrival_s: When the job arrives, seconds.

    Raises:
        DataUnavailableError: The file cannot be read.
        WorkloadError: The file is no JSON, of another version, or lacks tasks, runtimes or sizes of files.
    """
    content = read_document(path)
    where = str(path)
    workflow = _get(content, "workflow", where, dict)
    version = _get(content, "schemaVersion", where, str)
    if version not in VERSIONS:
        raise WorkloadError(f"{where}: version {version!r} of WfFormat is unknown; expected {', '.join(VERSIONS)}")
    read = _from_1_4 if version == "1.4" else _from_1_5
    names, parents, runtimes, inputs, outputs, sizes = read(where, workflow)
    if not names:
        raise WorkloadError(f"{where} has no tasks; expected at least one")
    place = {name: index for index, name in enumerate(names)}
    if len(place) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise WorkloadError(f"{where}: task {twice!r} is there twice")
    edges, data = [], []
    for child, name in enumerate(names):
        for parent in dict.fromkeys(parents[child]):
            if parent not in place:
                raise WorkloadError(f"{where}: task {name!r} has the unknown parent {parent!r}")
            sent = set(inputs[child]) & set(outputs[place[parent]])
            if missing := [file for file in sent if file not in sizes]:
                raise WorkloadError(f"{where}: file {missing[0]!r} has no size")
            edges.append((place[parent], child))
            data.append(sum(sorted(sizes[file] for file in sent)) / _MB)
    work = []
    for name, runtime in zip(names, runtimes, strict=True):
        if runtime is None:
            raise WorkloadError(f"{where}: task {name!r} has no runtime; expected a workflow that was executed")
        work.append(number(f"{where}: runtime of task {name!r}", runtime))
    title = content.get("name")
    return Job(title if isinstance(title, str) and title else "workflow", np.array(work), edges, data, arrival_s, names)


def _from_1_4(where: str, workflow: dict) -> tuple[list, list, list, list, list, dict]:
    """Tasks with runtimes and files inside."""
    called: dict[str, str] = {}
    names, parents, runtimes, inputs, outputs = [], [], [], [], []
    sizes: dict[str, float] = {}
    for task in _items(_get(workflow, "tasks", f"{where}: workflow", list), f"{where}: tasks"):
        name = _name(where, task, "id" if "id" in task else "name")
        names.append(name)
        # Files of this version name parents by id or by name.
        called[_name(where, task, "name") if "name" in task else name] = name
        parents.append(_texts(task.get("parents", []), f"{where}: parents of task {name!r}"))
        runtimes.append(task.get("runtimeInSeconds", task.get("runtime")))
        inputs.append([])
        outputs.append([])
        for file in _items(task.get("files", []), f"{where}: files of task {name!r}"):
            title = _name(where, file, "name")
            link = file.get("link")
            if link not in ("input", "output"):
                raise WorkloadError(
                    f"{where}: file {title!r} of task {name!r} has link {link!r}; expected input or output"
                )
            (inputs if link == "input" else outputs)[-1].append(title)
            size = file.get("sizeInBytes", file.get("size"))
            if size is not None:
                sizes[title] = number(f"{where}: size of file {title!r}", size)
    known = set(names)
    parents = [[each if each in known else called.get(each, each) for each in those] for those in parents]
    return names, parents, runtimes, inputs, outputs, sizes


def _from_1_5(where: str, workflow: dict) -> tuple[list, list, list, list, list, dict]:
    """Tasks and files in the specification, runtimes in the execution."""
    specification = _get(workflow, "specification", f"{where}: workflow", dict)
    execution = workflow.get("execution", {})
    executed = execution.get("tasks", []) if isinstance(execution, dict) else []
    times = {
        _name(where, task, "id"): task.get("runtimeInSeconds")
        for task in _items(executed, f"{where}: tasks of the execution")
    }
    sizes: dict[str, float] = {}
    for file in _items(specification.get("files", []), f"{where}: files"):
        if file.get("sizeInBytes") is not None:
            title = _name(where, file, "id")
            sizes[title] = number(f"{where}: size of file {title!r}", file["sizeInBytes"])
    names, parents, runtimes, inputs, outputs = [], [], [], [], []
    for task in _items(_get(specification, "tasks", f"{where}: specification", list), f"{where}: tasks"):
        name = _name(where, task, "id")
        names.append(name)
        parents.append(_texts(task.get("parents", []), f"{where}: parents of task {name!r}"))
        runtimes.append(times.get(name))
        inputs.append(_texts(task.get("inputFiles", []), f"{where}: inputFiles of task {name!r}"))
        outputs.append(_texts(task.get("outputFiles", []), f"{where}: outputFiles of task {name!r}"))
    return names, parents, runtimes, inputs, outputs, sizes


def _get(body: Any, key: str, where: str, kind: type) -> Any:
    if not isinstance(body, dict) or not isinstance(body.get(key), kind):
        words = {dict: "an object", list: "a list", str: "a text"}
        raise WorkloadError(f"{where}: {key} is missing, or not {words[kind]}; expected a workflow of WfCommons")
    return body[key]


def _name(where: str, body: Any, key: str) -> str:
    if not isinstance(body, dict) or not isinstance(body.get(key), str) or not body[key]:
        raise WorkloadError(f"{where}: a task or file has no {key}")
    return body[key]


def _items(value: Any, where: str) -> list[dict]:
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise WorkloadError(f"{where}: expected a list of objects")
    return value


def _texts(value: Any, where: str) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise WorkloadError(f"{where}: expected a list of texts")
    return value
