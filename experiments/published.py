"""Outputs of the committed notebooks: figures and small tables of the published run.

A figure stands once in the repository, in ``reports/results``: a markdown cell behind the cell that draws it links to
the file there. Tables are outputs of their cells, worked out from the tables there. Cells whose output is the same in
every run are marked, so that nbval compares them. Live cells simulate and train something small; what they gave when
they were published stays until their code changes. A stamp in the metadata has the digest of all this.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import hashlib
import io
import json
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import nbformat

from decima.core.files import atomic_write_text
from experiments.figures import experiment_of
from experiments.notebooks import PUBLISHED, calls, code_of, notebook_path
from experiments.params import checkout
from experiments.results import results_folder
from experiments.tables import kept_tables, read_stamps

RUN = "tpch-full"
START = "00-start-here"  # reads no results: its outputs, pictures among them, are those of its last execution
OTHERS = ("tpch-quick", "embedded-quick")  # whose kept tables must give the same output where nbval compares
CHECK = "nbval-check-output"
LIVE, BEFORE_LIVE = "live", "before-live"  # tags of cells that read parameters of a lesson, and of others they need
MOST = 20_000  # characters of an output; longer ones are left out
# What a notebook may import for its outputs to be compared: with these it computes nothing but sums over kept tables.
_PLAIN = {"experiments", "pandas", "numpy", "json", "math", "decima.plotting"}

Output = dict[str, Any]


def published_stamp(cells: list[dict]) -> str:
    """Digest of the code cells of a notebook and of published results they read."""
    code = code_of(cells)
    digest = hashlib.sha256(code.encode())
    for name in calls(code, "experiments.load"):
        for path in sorted((results_folder(RUN) / "tables" / name).glob("*.csv")):
            digest.update(path.name.encode() + path.read_bytes())
    for name in calls(code, "experiments.figure"):
        digest.update(str(picture(name) and picture(name).name).encode())
    return digest.hexdigest()[:16]


def picture(figure: str) -> Path | None:
    """File of a published figure; None until the run that has it is published."""
    return next(iter(sorted((results_folder(RUN) / "figures" / experiment_of(figure)).glob(f"{figure}.*"))), None)


def publish(slug: str) -> Path:
    """Write the outputs of one notebook anew: of published tables, and of live cells."""
    atomic_write_text(notebook_path(slug), executed_text() if slug == START else published_text(slug, live=True))
    return notebook_path(slug)


def executed_text() -> str:
    """Text of the first notebook with what its cells give here."""
    content = json.loads(notebook_path(START).read_text(encoding="utf-8"))
    names: dict[str, Any] = {"__name__": "__main__"}
    for index, cell in enumerate(cell for cell in content["cells"] if cell["cell_type"] == "code"):
        cell["outputs"] = _output("".join(cell["source"]), names, whole=True)
        cell["execution_count"] = index + 1 if cell["outputs"] else None
        for output in (each for each in cell["outputs"] if "data" in each):
            output["execution_count"] = index + 1
    return nbformat.writes(nbformat.from_dict(content)) + "\n"  # as JupyterLab saves it


def published_text(slug: str, *, live: bool = False) -> str:
    """Text of a notebook with the outputs of today; equal results give equal texts.

    Args:
        slug: Name of the notebook.
        live: Also execute live cells; otherwise their outputs stay.
    """
    path = notebook_path(slug)
    content = json.loads(path.read_text(encoding="utf-8"))
    cells = [cell for cell in content["cells"] if PUBLISHED not in cell["metadata"].get("tags", ())]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    shown = _outputs(code, RUN, _published_tables, live)
    same = [_outputs(code, run, _kept_tables, False) for run in OTHERS] if is_plain(cells) else []
    for index, cell in enumerate(code):
        if is_live(cell) and not live:
            continue
        tags = [tag for tag in cell["metadata"].get("tags", ()) if tag != CHECK]
        if same and shown[index] and not is_live(cell) and all(others[index] == shown[index] for others in same):
            tags.append(CHECK)
        cell["metadata"] = {"tags": tags} if tags else {}
        cell["outputs"] = [output | {"execution_count": index + 1} for output in shown[index]]
        cell["execution_count"] = index + 1 if shown[index] else None
    content["cells"] = []
    for cell in cells:
        content["cells"].append(cell)
        for name in calls("".join(cell["source"]), "experiments.figure") if cell["cell_type"] == "code" else ():
            content["cells"] += [_picture_cell(slug, name, path)] if picture(name) else []
    content["metadata"]["published"] = {"run": RUN, "stamp": published_stamp(cells)}
    return nbformat.writes(nbformat.from_dict(content)) + "\n"  # as JupyterLab saves it


def _picture_cell(slug: str, figure: str, notebook: Path) -> dict:
    link = picture(figure).relative_to(checkout())
    page = (results_folder(RUN) / "README.md").read_text(encoding="utf-8")
    (shows,) = re.findall(rf"!\[(.+)\]\(\S+/{picture(figure).name}\)", page)
    up = "../" * (len(notebook.relative_to(checkout()).parts) - 1)
    return {
        "cell_type": "markdown",
        "id": hashlib.sha256(f"{slug} {figure}".encode()).hexdigest()[:8],
        "metadata": {"tags": [PUBLISHED]},
        "source": [f"**Published run (`{RUN}`).**\n", "\n", f"![{shows}]({up}{link.as_posix()})"],
    }


def is_live(cell: dict) -> bool:
    """Whether a cell computes by itself."""
    return LIVE in cell["metadata"].get("tags", ())


def is_plain(cells: list[dict]) -> bool:
    """Whether cells, live ones aside, import nothing that computes."""
    code = code_of([cell for cell in cells if not is_live(cell)])
    names = {alias.name for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in ast.walk(ast.parse(code)) if isinstance(node, ast.ImportFrom)}
    return names <= _PLAIN


class _Tables(dict):
    """Tables of an experiment; one that is not kept ends the cell that wants it."""

    def __missing__(self, name: str) -> Any:
        raise _NotKeptError(name)

    def __or__(self, other: dict) -> _Tables:
        return _Tables({**self, **other})


class _NotKeptError(Exception): ...


def _published_tables(name: str, run: str) -> _Tables:
    import pandas

    paths = (results_folder(run) / "tables" / name).glob("*.csv")
    return _Tables({path.stem: pandas.read_csv(path) for path in paths})


def _kept_tables(name: str, run: str) -> _Tables:
    return _Tables(kept_tables(name, run, read_stamps(run)[name]["stamp"]))


def _outputs(cells: list[dict], run: str, tables: Callable[[str, str], _Tables], live: bool) -> list[list[Output]]:
    """Outputs of code cells, executed here in turn; none where a table is not kept."""
    import pandas

    import experiments

    names: dict[str, Any] = {"__name__": "__main__"}
    instead = {"load": tables, "figure": lambda *_: None}
    # As many columns as in a notebook; elsewhere pandas takes those that a terminal is wide.
    columns = pandas.option_context("display.max_columns", 20)
    with patch.multiple(experiments, create=True, **instead), columns, warnings.catch_warnings():
        warnings.simplefilter("ignore" if run == RUN else "error")  # nbval compares what is said on stderr, too
        results = []
        for cell in cells:
            source = "".join(cell["source"])
            if "parameters" in cell["metadata"].get("tags", ()):
                source += f"\nrun = {run!r}"
            results.append(_output(source, names) if live or not is_live(cell) else [])
    return results


def _output(source: str, names: dict[str, Any], *, whole: bool = False) -> list[Output]:
    """Value of the last expression of a cell; ``whole``: also pictures and prints."""
    from IPython.core.formatters import format_display_data

    tree, said = ast.parse(source), io.StringIO()
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    try:
        with contextlib.redirect_stdout(said):
            exec(compile(tree, "<cell>", "exec"), names)
            value = None if last is None else eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)
    except (_NotKeptError, NameError, Warning):  # also of cells that go on from such a one
        if whole:
            raise
        return []
    lines = said.getvalue().splitlines(keepends=True)
    printed = [{"name": "stdout", "output_type": "stream", "text": lines}] if whole and lines else []
    if value is None:
        return printed
    data, _ = format_display_data(value, include=["text/plain", "text/html", *["image/png"] * whole])
    picture = {"image/png": base64.b64encode(data.pop("image/png")).decode()} if "image/png" in data else {}
    text = "".join(data.values())
    if not picture and ((set(data) == {"text/plain"} and re.search(r"<|0x[0-9a-f]{6}", text)) or len(text) > MOST):
        return printed
    shown = {mime: content.splitlines(keepends=True) for mime, content in data.items()} | picture
    return [*printed, {"data": shown, "metadata": {}, "output_type": "execute_result"}]
