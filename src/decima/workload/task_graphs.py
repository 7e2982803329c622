"""Task graphs of other tools: Pegasus DAX, DOT, STG, WfFormat.

Times are seconds, data is megabytes (`docs/workloads.md` has how each format is read). The content of a file
tells its format, whatever it is called.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from itertools import chain, pairwise, repeat
from pathlib import Path
from xml.etree import ElementTree

from decima.core.errors import DataUnavailableError, WorkloadError
from decima.core.files import unique_keys
from decima.workload.wfcommons import Workflow, connected, is_workflow, number_of, read_workflow

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
    import json

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
    """Number of a text, or the text."""
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
