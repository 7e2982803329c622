"""Accounts of the papers, item by item, with numbers from the published tables: ``docs/accounts``.

``experiments/<paper>/account.md`` is the page of a paper. In it ``{{mean("batch/batch", "avg_jct_s", seed=0):.1f}}`` is
a number of a table in ``reports/results``, ``[[07-decima]]`` a link to a notebook. Verdicts are written by hand.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from statistics import fmean

from decima.core.errors import ConfigError
from decima.core.files import atomic_write_text
from experiments.notebooks import notebook_path
from experiments.params import checkout
from experiments.published import RUN
from experiments.results import results_folder

PAPERS = ("decima", "idle_slots", "cloud", "heterogeneous")
VERDICTS = {
    "whole": "the same quantity at the paper's scale, and its conclusion holds",
    "in part": "at a smaller scale, by another recipe, or not all of the conclusion",
    "not": "not there, or what came out contradicts the conclusion",
    "cannot hold": "shown to be out of reach in the model as the paper states it",
}
_START = "| item | paper | here | verdict | where |"


def pages() -> dict[Path, str]:
    """Text of every page of ``docs/accounts`` by its path."""
    folder = checkout() / "docs" / "accounts"
    texts = {paper: filled(_source(paper).read_text(encoding="utf-8")) for paper in PAPERS}
    paths = {folder / f"{paper.replace('_', '-')}.md": text for paper, text in texts.items()}
    return {folder / "index.md": _collected(texts)} | paths


def write_accounts() -> list[Path]:
    """Write the pages anew.

    Raises:
        ConfigError: A page names a number that no published table has.
    """
    written = pages()
    for path, text in written.items():
        atomic_write_text(path, text)
    return list(written)


def items(text: str) -> list[list[str]]:
    """Rows of the tables of a page, as cells: item, paper, here, verdict, where."""
    rows, inside = [], False
    for line in text.splitlines():
        inside = line == _START or (inside and line.startswith("|"))
        if inside and line != _START and not line.startswith("| ---"):
            rows.append([cell.strip() for cell in line.strip("|").split(" | ")])
    return rows


def filled(text: str) -> str:
    """A page with its numbers and links filled in.

    Raises:
        ConfigError: A number is in no published table.
    """
    text = re.sub(r"\{\{(.+?):([^:{}]*)\}\}", lambda match: _number(match[1], match[2]), text)
    return re.sub(r"\[\[(.+?)\]\]", lambda match: f"[{match[1]}]({_link(match[1])})", text)


def _source(paper: str) -> Path:
    return checkout() / "experiments" / paper / "account.md"


def _link(slug: str) -> str:
    return "../../" + notebook_path(slug).relative_to(checkout()).as_posix()


def _number(expression: str, form: str) -> str:
    names = {name: partial(_value, reduce) for name, reduce in (("mean", fmean), ("least", min), ("most", max))}
    text = format(eval(expression, {"__builtins__": {}}, names), form)
    return text.lstrip("+-") if float(text.replace(",", "")) == 0.0 else text.replace("-", "−")


def _value(reduce: Callable, table: str, column: str, **where: float | str | tuple) -> float:
    """Mean, least or most of a column of ``experiment/table``.

    Rows count whose cells are these, or one of a tuple.
    """
    cells = {key: list(map(str, cell)) if isinstance(cell, tuple) else [str(cell)] for key, cell in where.items()}
    chosen = [row for row in _rows(table) if all(row.get(key) in among for key, among in cells.items())]
    if not chosen or column not in chosen[0]:
        raise ConfigError(f"an account names {column} of {table} where {where}, which is not in the tables of {RUN}")
    return reduce(float(row[column]) for row in chosen)


@cache
def _rows(table: str) -> list[dict[str, str]]:
    path = results_folder(RUN) / "tables" / f"{table}.csv"
    if not path.is_file():
        raise ConfigError(f"an account names a number of {path}, which is not there")
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _collected(texts: dict[str, str]) -> str:
    """The page that collects the others: counts, and what is not here."""
    lines = [
        "# Accounts",
        "",
        f"What four papers say and what came out here, item by item; numbers are those of run `{RUN}`.",
        "",
        *(f"- *{verdict}*: {meaning}" for verdict, meaning in VERDICTS.items()),
        "",
        f"| paper | items | {' | '.join(VERDICTS)} |",
        f"| --- | --- |{' --- |' * len(VERDICTS)}",
    ]
    for paper, text in texts.items():
        counts = Counter(row[3] for row in items(text))
        title = text.splitlines()[0].removeprefix("# ")
        cells = [f"[{title}]({paper.replace('_', '-')}.md)", counts.total(), *(counts[name] for name in VERDICTS)]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    for verdict in ("cannot hold", "not"):
        lines += ["", f"## {verdict.capitalize()}", ""]
        for text in texts.values():
            names = [row[0] for row in items(text) if row[3] == verdict]
            if names:
                lines.append(f"- {text.splitlines()[0].removeprefix('# ')}: {'; '.join(names)}")
    return "\n".join(lines) + "\n"
