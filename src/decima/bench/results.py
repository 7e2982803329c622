"""Result files, which are checked against the suite before anything is read from them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from decima.bench.entries import FORMS, LEARNED
from decima.bench.references import reference_scores
from decima.bench.run import SCHEMA
from decima.bench.tasks import SUITE, Task, tasks
from decima.core.checks import is_name, is_number, is_whole
from decima.core.errors import ConfigError
from decima.core.files import atomic_write_text, plain, read_json, unique_keys
from decima.core.grammar import RENAMED

_KEYS = {
    "schema": int,
    "suite": str,
    "entry": str,
    "form": str,
    "learned": str,
    "sha256": str,
    "quick": bool,
    "packages": dict,
    "tasks": dict,
    "not_run": dict,
    "times": dict,
}
_LISTS = ("seeds", "variants", "scores", "decisions")
_ROUNDING = 1e-6  # of bounds, relative: the file of references has seven digits
_LARGEST = 1e15  # of scores, times and numbers of decisions


def write_result(path: Path, document: dict[str, Any]) -> None:
    """Write a result, a line per task."""
    lines = []
    for key, value in plain(document).items():
        if key in ("tasks", "times") and value:
            inner = (f"  {json.dumps(name)}: {json.dumps(each, ensure_ascii=False)}" for name, each in value.items())
            lines.append(f"{json.dumps(key)}: {{\n" + ",\n".join(inner) + "\n}")
        else:
            lines.append(f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}")
    atomic_write_text(path, "{\n" + ",\n".join(lines) + "\n}\n")


def without_times(document: dict[str, Any]) -> dict[str, Any]:
    """What is the same in two runs of a deterministic entry."""
    return {key: value for key, value in document.items() if key != "times"}


def read_result(path: Path) -> dict[str, Any]:
    """Read a result file.

    Raises:
        ConfigError: It is damaged or of another suite; the sentence says where.
    """
    try:
        document = read_json(path, object_pairs_hook=unique_keys)
        _check(document)
    except OSError as error:
        raise ConfigError(f"cannot read the result {path}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigError(f"{path} is not a result of {SUITE}: {error}") from error
    return document


def _check(document: Any) -> None:
    if not isinstance(document, dict):
        raise ValueError("it is not a JSON object")
    for key, expected in _KEYS.items():
        if type(document.get(key)) is not expected:
            raise ValueError(f"{key} is {document.get(key)!r:.60}; expected {expected.__name__}")
    if document["schema"] != SCHEMA or document["suite"] != SUITE:
        raise ValueError(f"it has schema {document['schema']} and suite {document['suite']!r:.40}")
    known = tasks()
    for table in (document["tasks"], document["not_run"], document["times"]):
        table |= {RENAMED[name]: table.pop(name) for name in RENAMED.keys() & table.keys()}
    if stray := [name for name in (*document["tasks"], *document["not_run"]) if name not in known]:
        raise ValueError(f"there is no task {stray[0]!r:.60}")
    for name, task in known.items():
        if task.added and name not in document["tasks"]:
            document["not_run"].setdefault(name, "the result is older than the task")
        if (name in document["tasks"]) == (name in document["not_run"]):
            raise ValueError(f"task {name} is not either run or said not to be run")
        if name in document["tasks"]:
            _check_task(task, document["tasks"][name], document["quick"])
    _check_origin(document)
    _check_times(document["times"], document["tasks"])


def _check_origin(document: dict[str, Any]) -> None:
    """Check what a result says about its entry."""
    entry, form, learned, digest = (document[key] for key in ("entry", "form", "learned", "sha256"))
    if not _is_line(entry) or entry[0] in "=+-@":
        raise ValueError(f"entry is {entry!r:.60}; expected a scheduler in one printable line that begins as names do")
    if form not in FORMS:
        raise ValueError(f"form is {form!r:.40}; expected one of {', '.join(FORMS)}")
    if learned and (form != "policy" or not set(learned.split(" and ")) <= set(LEARNED)):
        raise ValueError(f"learned is {learned!r:.40}; expected one of {', '.join(LEARNED)} for policies, else nothing")
    if not re.fullmatch("([0-9a-f]{64})?", digest):
        raise ValueError(f"sha256 is {digest!r:.80}; expected 64 hexadecimal digits or nothing")
    for key in ("packages", "not_run"):
        if wrong := [name for name, text in document[key].items() if not _is_line(name) or not _is_line(text)]:
            raise ValueError(f"{key} has no text of one line for {wrong[0]!r:.60}")


def _check_times(times: dict[str, Any], names: Iterable[str]) -> None:
    """Check processor, cores, and the times of the tasks that ran."""
    if missing := [name for name in ("cpu", "seconds", *names) if name not in times]:
        raise ValueError(f"times lack {missing[0]}")
    if not _is_line(times["cpu"]):
        raise ValueError(f"cpu is {times['cpu']!r:.60}; expected the name of a processor")
    if (cores := times.get("cores")) is not None and not (is_whole(cores) and 1 <= cores <= _LARGEST):
        raise ValueError(f"cores is {cores!r:.40}; expected a whole number")
    for name in names:
        row = times[name]
        if not isinstance(row, dict) or not _is_amount(row.get("seconds")):
            raise ValueError(f"times of {name} have no seconds")
        if (decision_us := row.get("decision_us")) is not None and not _is_amount(decision_us):
            raise ValueError(f"decision_us of {name} is {decision_us!r:.40}; expected a number of at least 0 or null")
    if not _is_amount(times["seconds"]):
        raise ValueError(f"seconds is {times['seconds']!r:.40}; expected a number of at least 0")


def _is_line(text: Any) -> bool:
    """Whether a value is a printable text of one line."""
    return is_name(text) and text.isprintable() and len(text) <= 1000


def _is_amount(value: Any) -> bool:
    """Whether a value is a number from 0 to the largest one."""
    return is_number(value) and 0.0 <= value <= _LARGEST


def _check_task(task: Task, result: Any, quick: bool) -> None:
    where = f"task {task.name}"
    if not isinstance(result, dict):
        raise ValueError(f"{where} is not a JSON object")
    if result.get("hash") != task.digest:
        raise ValueError(f"{where} has hash {result.get('hash')!r:.20}; this version has {task.digest[:16]}...")
    if result.get("objective") != task.objective.column:
        raise ValueError(f"{where} has objective {result.get('objective')!r:.40}; expected {task.objective.column}")
    instances = task.instances(quick=quick)
    for key in _LISTS:
        values = result.get(key)
        if not isinstance(values, list) or len(values) != len(instances):
            raise ValueError(f"{where}: {key} are not {len(instances)} numbers")
    if result["seeds"] != [each.seed for each in instances]:
        raise ValueError(f"{where}: seeds are not those of the {'quick ' * quick}task")
    if result["variants"] != [task.jobs.index(each.variant) for each in instances]:
        raise ValueError(f"{where}: variants are not those of the task")
    failures = result.get("failures")
    labels = [f"{each.variant} seed {each.seed}" for each in instances]
    if not isinstance(failures, dict) or not all(isinstance(why, str) and why for why in failures.values()):
        raise ValueError(f"{where}: failures are not sentences by instance")
    if stray := sorted(failures.keys() - set(labels)):
        raise ValueError(f"{where}: there is no instance {stray[0]!r:.60}")
    bounds = reference_scores(task, "bound", quick=quick)
    for label, score, decisions, bound in zip(labels, result["scores"], result["decisions"], bounds, strict=True):
        if (score is None) != (label in failures):
            raise ValueError(f"{where}: {label} has either no score or no failure")
        if score is not None and not _is_amount(score):
            raise ValueError(f"{where}: {label} has the score {score!r:.40}")
        if score is not None and bound is not None and score < bound * (1.0 - _ROUNDING):
            raise ValueError(f"{where}: {label} has the score {score!r:.40}; no schedule is below {bound:g}")
        if not is_whole(decisions) or not (score is not None) <= decisions <= _LARGEST:
            raise ValueError(f"{where}: {label} has {decisions!r:.40} decisions")


def summary(document: dict[str, Any]) -> str:
    """Sentence about a result that was checked."""
    instances = sum(len(result["scores"]) for result in document["tasks"].values())
    failed = sum(len(result["failures"]) for result in document["tasks"].values())
    quick = "quick run, " if document["quick"] else ""
    return (
        f"{document['entry']} ({document['form']}): {quick}{len(document['tasks'])} tasks, {instances} instances, "
        f"{failed} failed, {len(document['not_run'])} tasks not run"
    )
