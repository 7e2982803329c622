"""Task graphs of other tools: Pegasus DAX, DOT, STG, WfFormat.

Times are seconds, data is megabytes (`docs/workloads.md` has how each format is read). The content of a file
tells its format, whatever it is called.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, pairwise, repeat
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

from decima.core.errors import DataUnavailableError, WorkloadError
from decima.core.files import unique_keys
from decima.workload.profile import JobProfile, Stage

FORMATS = "jobs or a workflow of WfCommons (JSON), Pegasus DAX (XML), a DOT digraph, STG, or parquet"
ENDINGS = (".json", ".parquet", ".dax", ".xml", ".dot", ".gv", ".stg")  # of the files of a folder that are read
_OPERATIONS_PER_S = 1e9  # of an executor of speed 1, where DOT files give amounts of computation
_TIMES, _SIZES = ("weight", "runtime", "duration", "time", "cost"), ("weight", "data", "cost")
_DOT = re.compile(r"(//|/\*|#|strict\b|digraph\b|graph\b)", re.IGNORECASE)
_TOKEN = re.compile(
    r'\s+|//[^\n]*|/\*.*?\*/|\#[^\n]*|(?P<quoted>"(?:\\.|[^"\\])*")|(?P<mark>->|--|[{}\[\];,=:])|(?P<word>-?[\w.]+)',
    re.DOTALL,
)


def read_task_graph(path: str | os.PathLike) -> Workflow | None:
    """Read a task graph, whatever its format.

    Args:
        path: The file.

    Returns:
        Its tasks; None for a JSON file of something else.

    Raises:
        DataUnavailableError: The file cannot be read.
        WorkloadError: It has no format that is read, or is malformed; the message names the place.
    """
    path = Path(path)
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise DataUnavailableError(f"cannot read workload file {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        if path.suffix == ".json":
            return None
        raise WorkloadError(f"{path} is not a text in UTF-8; expected {FORMATS}") from error
    begin = text.lstrip()
    if begin[:1] in ("{", "[") or path.suffix == ".json":
        if '"workflow"' not in text:
            return None
        try:
            content = json.loads(text, object_pairs_hook=unique_keys)
        except (ValueError, RecursionError):
            return None  # whoever reads JSON says what is wrong
        return read_workflow(content, str(path)) if is_workflow(content) else None
    if begin[:1] == "<":
        return _dax(text, path)
    if _DOT.match(begin):
        return _dot(text, path)
    if re.fullmatch(r"\d+", begin.partition("\n")[0].strip()):
        return _stg(text, path)
    raise WorkloadError(f"{path}: the format is not known; expected {FORMATS}")


def folder_files(folder: Path) -> list[Path]:
    """Files of a folder that may hold workloads, sorted by name.

    Raises:
        WorkloadError: There is none.
    """
    files = sorted(each for each in folder.iterdir() if each.suffix.lower() in ENDINGS and each.is_file())
    if not files:
        raise WorkloadError(f"folder {folder} has no file of jobs; expected {', '.join(ENDINGS)}")
    return files


def _dax(text: str, path: Path) -> Workflow:
    """Pegasus DAX 2 and 3: runtimes of jobs in seconds, files with sizes in bytes."""
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise WorkloadError(f"{path}: a document type is not read, for it may define entities; expected none")
    try:
        root = ElementTree.fromstring(text.encode())
    except ElementTree.ParseError as error:
        raise WorkloadError(f"{path} is not XML: {error}") from error
    if _tag(root) != "adag":
        raise WorkloadError(f"{path}: the XML element is {_tag(root)!r}; expected 'adag' of Pegasus DAX")
    names, runtimes, inputs, outputs, sizes = [], [], [], [], {}
    for job in (each for each in root if _tag(each) == "job"):
        names.append(job.get("id") or job.get("name") or "")
        if not names[-1]:
            raise WorkloadError(f"{path}: job {len(names) - 1} has no id")
        profiles = {each.get("key"): each.text for each in job if _tag(each) == "profile"}
        runtimes.append(job.get("runtime", profiles.get("runtime")))
        used = [each for each in job if _tag(each) == "uses"]
        for link, listed in (("input", inputs), ("output", outputs)):
            listed.append([_file(path, each) for each in used if each.get("link") in (link, "inout")])
        for each in used:
            if each.get("size") is not None:
                title = _file(path, each)
                sizes[title] = number_of(f"{path}: size of file {title!r}", _float(each.get("size")))
    parents: dict[str, list[str]] = {name: [] for name in names}
    for child in (each for each in root if _tag(each) == "child"):
        if child.get("ref") not in parents:
            raise WorkloadError(f"{path}: child {child.get('ref')!r} is not a job")
        parents[child.get("ref")] += [each.get("ref") for each in child if _tag(each) == "parent"]
    runtimes = [None if each is None else _float(each) for each in runtimes]
    title = root.get("name") or path.stem
    return connected(str(path), title, names, [parents[each] for each in names], runtimes, inputs, outputs, sizes)


def _tag(element: ElementTree.Element) -> str:
    return str(element.tag).rpartition("}")[2]


def _file(path: Path, uses: ElementTree.Element) -> str:
    title = uses.get("file") or uses.get("name")
    if not title:
        raise WorkloadError(f"{path}: a file that a job uses has no name")
    return title


def _float(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _stg(text: str, path: Path) -> Workflow:
    """Standard Task Graph: a count, then number, time and parents of each task."""
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    words = iter(" ".join(lines).split())
    count = int(next(words))
    rows: dict[str, tuple[float, list[str]]] = {}
    for name in words:
        where = f"{path}: task {name}"
        head = [next(words, ""), next(words, "")]
        if name in rows or not head[1].isdecimal():
            raise WorkloadError(f"{where}: expected a number of its own, its time and how many parents it has")
        rows[name] = number_of(f"{where}: time", _float(head[0])), [next(words, "") for _ in range(int(head[1]))]
    if len(rows) not in (count, count + 2):
        raise WorkloadError(f"{path} has {len(rows)} tasks; expected {count}, or {count + 2} with entry and exit")
    # Entry and exit take no time; they only tie the others together.
    ends = {next(iter(rows)), next(reversed(rows))} if len(rows) == count + 2 else set()
    if any(rows[name][0] > 0.0 for name in ends):
        raise WorkloadError(f"{path}: entry or exit takes time; expected 0")
    names = [name for name in rows if name not in ends]
    parents = [[each for each in rows[name][1] if each not in ends] for name in names]
    nothing: list[list[str]] = [[] for _ in names]
    return connected(str(path), path.stem, names, parents, [rows[name][0] for name in names], nothing, nothing, {})


def _dot(text: str, path: Path) -> Workflow:
    """DOT digraph: times of nodes and data of edges as attributes."""
    title, nodes, edges = _parse_dot(chain(_tokens(text, path), repeat("")), path)
    computed = "size" in next(iter(nodes.values()), {})
    names = list(nodes)
    runtimes = []
    for name, attributes in nodes.items():
        known = ("size",) if computed else _TIMES
        key = next((key for key in known if key in attributes), None)
        if key is None:
            raise WorkloadError(f"{path}: node {name!r} has no time; expected {' or '.join(known)}")
        amount = number_of(f"{path}: {key} of node {name!r}", _float(attributes[key]))
        runtimes.append(amount / _OPERATIONS_PER_S if computed else amount)
    parents: list[list[int]] = [[] for _ in names]
    data_mb: list[list[float]] = [[] for _ in names]
    index = {name: number for number, name in enumerate(names)}
    for (parent, child), attributes in edges:
        key = next((key for key in (("size",) if computed else _SIZES) if key in attributes), None)
        size = 0.0 if key is None else number_of(f"{path}: {key} of {parent!r} -> {child!r}", _float(attributes[key]))
        parents[index[child]].append(index[parent])
        data_mb[index[child]].append(size / 1e6 if computed else size)
    if not names:
        raise WorkloadError(f"{path} has no nodes; expected at least one")
    return Workflow(title or path.stem, names, parents, runtimes, data_mb)


def _tokens(text: str, path: Path) -> Iterator[str]:
    at = 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            line = text.count("\n", 0, at) + 1
            raise WorkloadError(f"{path}, line {line}: {text[at : at + 20]!r} is not read; expected a DOT digraph")
        at = token.end()
        if token["quoted"]:
            yield '"' + re.sub(r"\\(.)", r"\1", token["quoted"][1:-1], flags=re.DOTALL)
        elif token["mark"] or token["word"]:
            yield token[0]


def _parse_dot(tokens: Iterator[str], path: Path) -> tuple[str, dict[str, dict[str, str]], list]:
    """Title, attributes of nodes, and edges with attributes; subgraphs only group their statements."""
    defaults: dict[str, dict[str, str]] = {"node": {}, "edge": {}, "graph": {}}
    nodes: dict[str, dict[str, str]] = {}
    edges: list[tuple[tuple[str, str], dict[str, str]]] = []

    def fail(got: str, expected: str) -> WorkloadError:
        return WorkloadError(f"{path}: got {got!r:.40} in the digraph; expected {expected}")

    def attributes(token: str) -> tuple[dict[str, str], str]:
        """Attribute lists from a token on, and the token behind them."""
        read: dict[str, str] = {}
        while token == "[":
            token = next(tokens)
            while token != "]":
                key, token = token.strip('"').lower(), next(tokens)
                if token == "=":
                    read[key], token = next(tokens).lstrip('"'), next(tokens)
                while token in (",", ";"):
                    token = next(tokens)
                if token == "":
                    raise fail("the end", "]")
            token = next(tokens)
        return read, token

    token = next(tokens).lower()
    token = next(tokens).lower() if token == "strict" else token
    if token != "digraph":
        raise fail(token, "a directed graph (digraph)")
    title = next(tokens)
    if title != "{" and (opened := next(tokens)) != "{":
        raise fail(opened, "{")
    title = title.strip('"{')
    depth, token = 1, next(tokens)
    while depth:
        word = token.lower()
        if token == "":
            raise fail("the end", "}")
        if token in ("{", "}", ";"):
            depth += {"{": 1, "}": -1, ";": 0}[token]
            token = next(tokens, "")
        elif word == "subgraph":
            token = next(tokens)
            token = token if token == "{" else next(tokens)
        elif word in defaults:
            read, token = attributes(next(tokens))
            defaults[word] |= read
        elif token in ("[", "]", "=", ",", ":", "->", "--"):
            raise fail(token, "a node")
        else:
            path_of_nodes, token = [token.lstrip('"')], next(tokens)
            if token == "=":  # of the graph
                next(tokens)
                token = next(tokens)
                continue
            while token in ("->", ":"):
                mark, name = token, next(tokens)
                if name in ("", "{", "}", ";", "[") or name.lower() == "subgraph":
                    raise fail(name, "a node")
                path_of_nodes += [name.lstrip('"')] if mark == "->" else []
                token = next(tokens)
            if token == "--":
                raise fail(token, "->")
            read, token = attributes(token)
            for name in path_of_nodes:
                nodes.setdefault(name, dict(defaults["node"]))
            if len(path_of_nodes) == 1:
                nodes[path_of_nodes[0]] |= read
            edges += [(pair, defaults["edge"] | read) for pair in pairwise(path_of_nodes)]
    return title, nodes, edges


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
