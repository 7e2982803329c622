"""Table of results: entries by task, paired with the tuned heuristic, with bounds."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from decima.bench.entries import TUNED
from decima.bench.references import reference_scores, tuned_rule
from decima.bench.results import read_result
from decima.bench.tasks import SUITE, Task, tasks
from decima.core.errors import ConfigError
from decima.evaluation.statistics import paired_change

COLUMNS = ("entry", "form", "score", "against the tuned heuristic", "gap closed", "µs per decision")
LEARNED = {"alone": "from scratch", "warm": "pre-trained"}  # words of result files, and those of the page


@dataclass(frozen=True)
class Row:
    """An entry on a task."""

    entry: str
    form: str
    learned: str
    score: float  # mean over variants and seeds; NaN where an instance failed
    change: tuple[float, float, float]  # in percent of the tuned heuristic's, and its 95 % interval; NaN: unknown
    closed: float  # part in percent of the distance between tuned heuristic and bound; NaN where unknown
    decision_us: float | None
    failed: int
    count: int

    @property
    def how(self) -> str:
        """Form, and of a policy how it was learned."""
        return f"{self.form}, {LEARNED.get(self.learned, self.learned)}" if self.learned else self.form

    def cells(self, digits: int) -> list[str]:
        """Texts of the columns."""
        change, low, high = self.change
        interval = "" if math.isnan(low) else f" [{low:+.1f}, {high:+.1f}]"
        return [
            self.entry,
            self.how,
            f"{self.failed} of {self.count} failed" if self.failed else _text(self.score, f".{digits}f"),
            "baseline" if self.entry == TUNED else _text(change, "+.1f", " %" + interval),
            _text(self.closed, ".1f", " %"),
            _text(math.nan if self.decision_us is None else self.decision_us, ".3g"),
        ]


def _text(value: float, form: str, end: str = "") -> str:
    return "-" if math.isnan(value) else f"{value:{form}}{end}"


def read_folder(folder: Path) -> list[dict[str, Any]]:
    """Results of all files of a folder, each checked, in the order of their names.

    Raises:
        ConfigError: A file is damaged, an entry is there twice, or there is none.
    """
    documents = [read_result(path) for path in sorted(folder.glob("*.json"))]
    if not documents:
        raise ConfigError(f"there is no result in {folder}; expected files that 'decima bench run --out' wrote")
    labels = [(document["entry"], document["quick"]) for document in documents]
    if twice := [label for label in labels if labels.count(label) > 1]:
        raise ConfigError(f"{folder} has two results of {twice[0][0]}")
    if len({document["quick"] for document in documents}) > 1:
        raise ConfigError(f"{folder} has quick and whole results; expected one or the other")
    return documents


def rows(task: Task, documents: Sequence[dict[str, Any]]) -> list[Row]:
    """Rows of a task, best first, those with failures last."""
    ran = [document for document in documents if task.name in document["tasks"]]
    base = next((document for document in ran if document["entry"] == TUNED), None)
    table = [_row(task, document, base) for document in ran]
    return sorted(table, key=lambda row: (math.isnan(row.score), task.objective.loss(row.score)))


def _row(task: Task, document: dict[str, Any], base: dict[str, Any] | None) -> Row:
    result = document["tasks"][task.name]
    variants = np.array(result["variants"])
    values = _numbers(result["scores"])
    against = None if base is None else _numbers(base["tasks"][task.name]["scores"])
    change, closed = (math.nan,) * 3, math.nan
    if against is not None and not np.isnan(values).any() and not np.isnan(against).any():
        # Variants have equal weights, however long their jobs take: each in parts of the tuned heuristic's mean.
        scale = np.array([against[variants == variant].mean() for variant in variants])
        change = (0.0,) * 3 if document is base else paired_change(values / scale, against / scale)
        bounds = _numbers(reference_scores(task, "bound", quick=len(values) < len(task.instances())))
        gap = float(((against - bounds) / scale).mean())
        closed = 100.0 * float(((against - values) / scale).mean()) / gap if gap > 0.0 else math.nan
    entry, form, learned = (document[key] for key in ("entry", "form", "learned"))
    decision_us = document["times"][task.name].get("decision_us")
    mean, failed = float(values.mean()), len(result["failures"])
    return Row(entry, form, learned, mean, change, closed, decision_us, failed, len(values))


def _numbers(values: Sequence[float | None]) -> np.ndarray:
    return np.array([math.nan if value is None else value for value in values])


def best_known(task: Task, documents: Sequence[dict[str, Any]]) -> list[float | None]:
    """Best scores of the instances, of the offline search and of whole runs."""
    columns = [reference_scores(task, "best")]
    whole = [each["tasks"] for each in documents if not each["quick"]]
    columns += [results[task.name]["scores"] for results in whole if task.name in results]
    known = [[value for value in row if value is not None] for row in zip(*columns, strict=True)]
    return [min(row, key=task.objective.loss) if row else None for row in known]


def sections(documents: Sequence[dict[str, Any]]) -> list[tuple[Task, str, list[list[str]]]]:
    """Task, sentence about its references, and cells of its rows."""
    parts = []
    for task in tasks().values():
        table = rows(task, documents)
        if not table:
            continue
        digits = 3 if abs(table[0].score) < 10.0 else 1
        unit = f" [{task.objective.unit}]" if task.objective.unit else ""
        notes = [
            f"{task.objective.label[0].upper()}{task.objective.label[1:]}{unit}, {len(task.instances())} instances.",
            f"Tuned heuristic: `{tuned_rule(task)}`.",
        ]
        limits = {"Lower bound": reference_scores(task, "bound"), "Best known": best_known(task, documents)}
        for label, known in limits.items():
            if None not in known:
                notes.append(f"{label}: mean {np.mean(known):.{digits}f}.")
        parts.append((task, " ".join(notes), [row.cells(digits) for row in table]))
    return parts


def markdown(documents: Sequence[dict[str, Any]]) -> str:
    """Page of all tasks in Markdown."""
    lines = [f"# Results of {SUITE}", "", _plain(_legend(documents)), ""]
    for task, note, table in sections(documents):
        lines += [f"## {task.name}", "", f"{task.title[0].upper()}{task.title[1:]}. {note}", ""]
        cells = [[_plain(entry), *others] for entry, *others in table]
        lines += ["| " + " | ".join(each) + " |" for each in (COLUMNS, ["---"] * len(COLUMNS), *cells)] + [""]
    return "\n".join(lines)


def _plain(text: str) -> str:
    """Text that Markdown shows as it is; underscores, which are common in names, stay."""
    return re.sub(r"([\\`*|<>&!\[\]])", r"\\\1", text)


def _legend(documents: Sequence[dict[str, Any]]) -> str:
    machines = sorted({document["times"]["cpu"] for document in documents})
    return (
        f"{len(documents)} entries. Changes are of the mean, paired by instance, with 95 % intervals; variants of a "
        "task have equal weights. Gap closed: the part of the distance from the tuned heuristic to the lower bound. "
        f"Times of decisions include the simulation ({', '.join(machines)})."
    )
