"""Workflows in the JSON format of WfCommons, WfFormat 1.0 to 1.6."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from decima.core.errors import WorkloadError
from decima.workload.profile import JobProfile, Stage

VERSIONS = ("1.0", "1.1", "1.2", "1.3", "1.4", "1.5", "1.6")
ORIGIN = "wfcommons"
_MB = 1e6
_LARGEST = 1e15


@dataclass(frozen=True)
class Workflow:
    """A workflow that was executed: its tasks, in the order of the file."""

    name: str
    tasks: list[str]
    parents: list[list[int]]  # per task
    runtime_s: list[float]
    data_mb: list[list[float]]  # MB that each parent sends, in the order of `parents`

    @property
    def profile(self) -> JobProfile:
        """The workflow as a job of the Spark cluster.

        Every task is a stage of one task, which takes its runtime on every executor.

        Raises:
            WorkloadError: Tasks wait for each other.
        """
        stages = tuple(
            Stage(task, 1, parents, (1,), *([np.array([1000.0 * runtime_s])],) * 3, data_mb=data_mb)
            for task, parents, runtime_s, data_mb in zip(
                self.tasks, self.parents, self.runtime_s, self.data_mb, strict=True
            )
        )
        return JobProfile(self.name, stages, ORIGIN)


def is_workflow(content: Any) -> bool:
    """Whether the content of a JSON file is a workflow and not jobs."""
    return isinstance(content, dict) and "workflow" in content and "jobs" not in content


def read_workflow(content: Any, where: str) -> Workflow:
    """Tasks, runtimes and sizes of files in the content of a file.

    What a task reads of files that no parent writes is not counted.

    Args:
        content: Of the JSON file.
        where: Name of the file, for error messages.

    Raises:
        WorkloadError: The content is of another version, or lacks tasks, runtimes or sizes of files.
    """
    workflow = _get(content, "workflow", where, dict)
    version = _get(content, "schemaVersion", where, str)
    if version not in VERSIONS:
        raise WorkloadError(f"{where}: version {version!r} of WfFormat is unknown; expected {', '.join(VERSIONS)}")
    read = _from_1_4 if version < "1.5" else _from_1_5
    title = content.get("name")
    title = title if isinstance(title, str) and title else "workflow"
    return connected(where, title, *read(where, workflow))


def connected(
    where: str,
    title: str,
    names: list[str],
    named_parents: list[list[str]],
    runtimes: list[float | None],
    inputs: list[list[str]],
    outputs: list[list[str]],
    sizes: dict[str, float],
) -> Workflow:
    """Workflow whose edges carry the files that a child reads of a parent.

    Args:
        where: Name of the file, for error messages.
        title: Name of the workflow.
        names: Of the tasks.
        named_parents: Names of each task's parents.
        runtimes: Of each task, seconds.
        inputs: Files that each task reads.
        outputs: Files that each task writes.
        sizes: Bytes of the files.

    Raises:
        WorkloadError: There is no task, a name is there twice, or parents, runtimes or sizes are missing.
    """
    if not names:
        raise WorkloadError(f"{where} has no tasks; expected at least one")
    index_of = {name: index for index, name in enumerate(names)}
    if len(index_of) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise WorkloadError(f"{where}: task {twice!r} is there twice")
    parents: list[list[int]] = [[] for _ in names]
    data_mb: list[list[float]] = [[] for _ in names]
    for child, name in enumerate(names):
        for parent in dict.fromkeys(named_parents[child]):
            if parent not in index_of:
                raise WorkloadError(f"{where}: task {name!r} has the unknown parent {parent!r}")
            sent = set(inputs[child]) & set(outputs[index_of[parent]])
            if missing := [file for file in sent if file not in sizes]:
                raise WorkloadError(f"{where}: file {missing[0]!r} has no size")
            parents[child].append(index_of[parent])
            data_mb[child].append(sum(sorted(sizes[file] for file in sent)) / _MB)
    runtime_s = []
    for name, runtime in zip(names, runtimes, strict=True):
        if runtime is None:
            raise WorkloadError(f"{where}: task {name!r} has no runtime; expected a workflow that was executed")
        runtime_s.append(number_of(f"{where}: runtime of task {name!r}", runtime))
    return Workflow(title, names, parents, runtime_s, data_mb)


def _from_1_4(where: str, workflow: dict) -> tuple[list, list, list, list, list, dict]:
    """Tasks with runtimes and files inside, versions before 1.5."""
    called: dict[str, str] = {}
    names, parents, runtimes, inputs, outputs = [], [], [], [], []
    sizes: dict[str, float] = {}
    listed = "jobs" if "jobs" in workflow and "tasks" not in workflow else "tasks"  # jobs up to version 1.1
    for task in _items(_get(workflow, listed, f"{where}: workflow", list), f"{where}: {listed}"):
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
                sizes[title] = number_of(f"{where}: size of file {title!r}", size)
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
            sizes[title] = number_of(f"{where}: size of file {title!r}", file["sizeInBytes"])
    names, parents, runtimes, inputs, outputs = [], [], [], [], []
    for task in _items(_get(specification, "tasks", f"{where}: specification", list), f"{where}: tasks"):
        name = _name(where, task, "id")
        names.append(name)
        parents.append(_texts(task.get("parents", []), f"{where}: parents of task {name!r}"))
        runtimes.append(times.get(name))
        inputs.append(_texts(task.get("inputFiles", []), f"{where}: inputFiles of task {name!r}"))
        outputs.append(_texts(task.get("outputFiles", []), f"{where}: outputFiles of task {name!r}"))
    return names, parents, runtimes, inputs, outputs, sizes


def _get(body: Any, key: str, where: str, expected: type) -> Any:
    if not isinstance(body, dict) or not isinstance(body.get(key), expected):
        words = {dict: "an object", list: "a list", str: "a text"}
        raise WorkloadError(f"{where}: {key} is missing, or not {words[expected]}; expected a workflow of WfCommons")
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


def number_of(where: str, value: Any) -> float:
    """Value as a float, checked to be a number from 0 on."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise WorkloadError(f"{where} is {json.dumps(value):.60}; expected a number")
    if not 0.0 <= value <= _LARGEST:
        raise WorkloadError(f"{where} is {value:g}; expected 0 to {_LARGEST:g}")
    return float(value)
