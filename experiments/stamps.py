"""Stamps of what results consist of, by which one mechanism finds outdated results.

A stamp names the digests of the code that makes a result, of its parameters, and of every other input by its use. Code
counts as syntax trees (:mod:`experiments.rooms`), so that words and comments do not. Cards of tables, kept and
published results and the stages of ``dvc.yaml`` hold the same stamp. Prepared profiles play no part: they are made of
files with pinned checksums.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from pathlib import Path

from decima.core.files import atomic_write_text, read_json
from decima.learning.store import stored_files
from experiments.experiment import PolicyInput, Profiles, TablesOf, experiment, experiment_module, experiment_names
from experiments.notebooks import calls, code_of, notebook_cells, notebook_path, notebook_slugs
from experiments.params import checkout, run_names, run_params
from experiments.rooms import DRAWING, digest, package_rooms

TABLES, FIGURES, NOTEBOOKS = "tables", "figures", "notebooks"
# Parameters of a run that all its results may depend on.
_OF_RUN = ("workload", "executors", "policies")


def table_stamp(name: str, run: str) -> dict[str, str]:
    """Stamp of the tables of an experiment: digests by what they are of.

    Tables of other experiments count by their own stamps, so that a stamp is known before anything is computed.
    Stored policies count by their use, with what they decide and the scores of their training; files of code that a
    parameter names (``mine.py:Mine``) count by their content.
    """
    params = run_params(run)
    stamp = {
        "code": digest(experiment(name).rooms, table_code(name)),
        "parameters": _digest({"workload": params["workload"], "executors": params["executors"], name: params[name]}),
    }
    for path in re.findall(r'([^\s",:]+\.py):\w', json.dumps(params[name])):
        stamp[path] = _content(checkout() / path)
    for entry in experiment(name).inputs:
        if isinstance(entry, TablesOf):
            stamp[f"tables of {entry.experiment}"] = key(table_stamp(entry.experiment, run))
        elif isinstance(entry, PolicyInput):
            stamp |= {f"policy for {use}": _policy(policy) for use, policy in entry.policies(params).items()}
        elif not isinstance(entry, Profiles):
            for relative in entry.paths(run, params):
                stamp[relative] = _content(checkout() / relative)
    return stamp


def figure_stamp(name: str, run: str) -> dict[str, str]:
    """Stamp of the figures of an experiment."""
    code = digest(DRAWING, _figure_code(make.__name__ for make in experiment(name).figures))
    return {"code": code, "parameters": _of_run(run), "tables": key(table_stamp(name, run))}


def notebook_stamp(slug: str, run: str) -> dict[str, str]:
    """Stamp of an executed notebook: its cells, the code they execute, the tables they read.

    The rooms of a notebook are all but commands and service, and those of systems that no experiment of its paper has.
    """
    cells = notebook_cells(slug)
    code = code_of(cells)
    paper = notebook_path(slug).parent.name
    rooms = {room for name in experiment_names() if _paper(name) == paper for room in experiment(name).rooms}
    entries = [f"{__package__}.report:execute_notebook", *_figure_code(calls(code, "experiments.figure"))]
    stamp = {
        "notebook": _digest([[cell["cell_type"], "".join(cell["source"])] for cell in cells]),
        "code": digest(package_rooms(rooms), entries, code),
        "parameters": _of_run(run),
    }
    return stamp | {f"tables of {name}": key(table_stamp(name, run)) for name in calls(code, "experiments.load")}


def table_code(name: str) -> list[str]:
    """Starting points of the code that computes the tables of an experiment."""
    return [f"{experiment_module(name)}:compute", f"{__package__}.tables:write_table"]


def key(stamp: dict[str, str]) -> str:
    """Sixteen hexadecimal digits that stand for a stamp."""
    return _digest(stamp)[:16]


def write_stamps() -> list[Path]:
    """Write the stamps of all runs below ``build/stamps``: ``<run>/tables/<experiment>`` and so on.

    A file whose stamp is the same is left as it is; a file of nothing that exists any more is removed.

    Returns:
        Files that have changed.
    """
    folder = checkout() / "build" / "stamps"
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
    return changed


def _figure_code(names: Iterable[str]) -> list[str]:
    from experiments.figures import experiment_of  # draws, which computing tables does not

    of_each = [f"{experiment_module(experiment_of(name))}:{name}" for name in names]
    return [f"{__package__}.figures:draw", *of_each]


def _paper(name: str) -> str:
    return experiment_module(name).split(".")[1]


def _of_run(run: str) -> str:
    params = run_params(run)
    return _digest({name: params[name] for name in _OF_RUN})


def _digest(values: object) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def _policy(name: str) -> str:
    """Digest of a stored policy: weights, how it acts, scores of its training.

    Neither its folder counts nor other words of its card. Of a policy that is not stored, computing will report it.
    """
    files = stored_files(name)
    card = read_json(files[1]) if files is not None and files[1].is_file() else {}
    weights = files[0].read_bytes() if files is not None and files[0].is_file() else b""
    scores = [card.get(key) for key in ("policy_sha256", "greedy", "validation", "curve")]
    return _digest([hashlib.sha256(weights).hexdigest(), *scores])


def _content(path: Path) -> str:
    """Digest of a file or a folder's files; computing reports missing paths, counted as empty."""
    inner = sorted(each for each in path.rglob("*") if each.is_file()) if path.is_dir() else [path] * path.is_file()
    content = hashlib.sha256()
    for each in inner:
        content.update(each.name.encode() + each.read_bytes())
    return content.hexdigest()
