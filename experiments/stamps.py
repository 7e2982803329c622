"""Stamps of what results consist of, by which one mechanism finds outdated results.

A stamp names the digests of the code that makes a result (:mod:`experiments.closure`: syntax trees, so that words and
comments do not count), of its parameters, and of every other input. Cards of tables, kept results and the stages of
``dvc.yaml`` hold the same stamp. Prepared profiles play no part: they are made of files with pinned checksums.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Iterable
from pathlib import Path

from decima.core.files import atomic_write_text, read_json
from decima.learning.store import stored_files
from experiments.closure import closure, digest
from experiments.experiment import PolicyInput, Profiles, TablesOf, experiment, experiment_module, experiment_names
from experiments.notebooks import calls, code_of, notebook_cells, notebook_slugs
from experiments.params import checkout, run_names, run_params

TABLES, FIGURES, NOTEBOOKS = "tables", "figures", "notebooks"
# Where code, parameters and inputs of all results are, beside params.yaml.
SOURCES = ("data/spark", "experiments", "measure", "models", "notebooks", "params", "reports/bench", "src")
# Parameters of a run that all its results may depend on.
_OF_RUN = ("workload", "executors", "policies")


def table_stamp(name: str, run: str) -> dict[str, str]:
    """Stamp of the tables of an experiment: digests by what they are of.

    Tables of other experiments count by their own stamps, so that a stamp is known before anything is computed.
    Stored policies count by what they decide and by the scores of their training, files of code that a parameter
    names (``mine.py:Mine``) by their content.
    """
    params = run_params(run)
    stamp = {
        "code": digest(closure(table_code(name))),
        "parameters": _digest({"workload": params["workload"], "executors": params["executors"], name: params[name]}),
    }
    for path in re.findall(r'([^\s",:]+\.py):\w', json.dumps(params[name])):
        stamp[path] = _content(checkout() / path)
    for entry in experiment(name).inputs:
        if isinstance(entry, TablesOf):
            stamp[f"tables of {entry.experiment}"] = key(table_stamp(entry.experiment, run))
        elif isinstance(entry, PolicyInput):
            stamp |= {f"policy {policy}": _policy(policy) for policy in entry.policies(params)}
        elif not isinstance(entry, Profiles):
            for relative in entry.paths(run, params):
                stamp[relative] = _content(checkout() / relative)
    return stamp


def figure_stamp(name: str, run: str) -> dict[str, str]:
    """Stamp of the figures of an experiment."""
    figures = [make.__name__ for make in experiment(name).figures]
    code = [f"{__package__}.figures:draw", *_figure_code(figures)]
    return {"code": digest(closure(code)), "parameters": _of_run(run), "tables": key(table_stamp(name, run))}


def notebook_stamp(slug: str, run: str) -> dict[str, str]:
    """Stamp of an executed notebook: its cells, the code they execute, the tables they read."""
    cells = notebook_cells(slug)
    code = code_of(cells)
    files = closure([f"{__package__}.report:execute_notebook", *_figure_code(calls(code, "experiments.figure"))], code)
    stamp = {
        "notebook": _digest([[cell["cell_type"], "".join(cell["source"])] for cell in cells]),
        "code": digest(files),
        "parameters": _of_run(run),
    }
    return stamp | {f"tables of {name}": key(table_stamp(name, run)) for name in calls(code, "experiments.load")}


def table_code(name: str) -> list[str]:
    """Starting points of the code that computes the tables of an experiment."""
    return [f"{experiment_module(name)}:compute", f"{__package__}.tables:run_experiment"]


def key(stamp: dict[str, str]) -> str:
    """Sixteen hexadecimal digits that stand for a stamp."""
    return _digest(stamp)[:16]


def write_stamps() -> list[Path]:
    """Write the stamps of all runs below ``build/stamps``: ``<run>/tables/<experiment>`` and so on.

    A file whose stamp is the same is left as it is; a file of nothing that exists any more is removed.

    Finding the code of all results takes ten seconds, so nothing is done where all files are as after the last time.

    Returns:
        Files that have changed.
    """
    folder = checkout() / "build" / "stamps"
    digest_file = folder.with_name("stamps.sha256")
    if digest_file.is_file() and digest_file.read_text(encoding="utf-8") == _everything():
        return []
    stamps = {}
    for run in run_names():
        stamps |= {f"{run}/{TABLES}/{name}": table_stamp(name, run) for name in experiment_names()}
        stamps |= {f"{run}/{FIGURES}/{name}": figure_stamp(name, run) for name in experiment_names()}
        stamps |= {f"{run}/{NOTEBOOKS}/{slug}": notebook_stamp(slug, run) for slug in notebook_slugs()}
    changed = []
    for name, stamp in stamps.items():
        path, text = folder / name, json.dumps(stamp, indent=1) + "\n"
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            atomic_write_text(path, text)
            changed.append(path)
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.relative_to(folder).as_posix() not in stamps:
            path.unlink()
            changed.append(path)
    atomic_write_text(digest_file, _everything())
    return changed


def _everything() -> str:
    """Digest of the stamps and of all files behind them."""
    root, content = checkout(), hashlib.sha256(sys.version.encode())
    inner = (path for folder in ("build/stamps", *SOURCES) for path in (root / folder).rglob("*"))
    for path in sorted([root / "params.yaml", *inner]):
        if path.is_file() and "__pycache__" not in path.parts:
            content.update(path.relative_to(root).as_posix().encode() + b"\0" + _content(path).encode())
    return content.hexdigest()


def _figure_code(names: Iterable[str]) -> list[str]:
    from experiments.figures import experiment_of  # draws, which computing tables does not

    return [f"{experiment_module(experiment_of(name))}:{name}" for name in names]


def _of_run(run: str) -> str:
    params = run_params(run)
    return _digest({name: params[name] for name in _OF_RUN})


def _digest(values: object) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def _policy(name: str) -> str:
    """Digest of what a stored policy decides and of the scores of its training.

    Neither its folder counts nor other words of its card. Of a policy that is not stored, computing will report it.
    """
    files = stored_files(name)
    card = read_json(files[1]) if files is not None and files[1].is_file() else {}
    return _digest([card.get(key) for key in ("policy_sha256", "greedy", "validation", "curve")])


def _content(path: Path) -> str:
    """Digest of a file or a folder's files; computing reports missing paths, counted as empty."""
    inner = sorted(each for each in path.rglob("*") if each.is_file()) if path.is_dir() else [path] * path.is_file()
    content = hashlib.sha256()
    for each in inner:
        content.update(each.name.encode() + each.read_bytes())
    return content.hexdigest()
