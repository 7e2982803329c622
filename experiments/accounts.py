"""Accounts of the papers, item by item, with numbers from the published tables: ``docs/accounts``.

``experiments/<paper>/account.md`` is the page of a paper. In it ``{{mean("batch/batch", "avg_jct_s", seed=0):.1f}}`` is
a number of a table in ``reports/results``, or in ``benchmarks/results`` as ``benchmarks/<table>``; ``[[07-decima]]`` is
a link to a notebook, and ``[text]([[07-decima]])`` one from other words. Verdicts and reasons are written by hand.
``experiments/claims.yaml`` has the headline claims of all papers for ``docs/claims.md``, with numbers of the same form.
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
    "reproduced": "the same quantity at the paper's scale, and its conclusion holds; a number may differ and is given",
    "same direction": "sign or order as in the paper, but a smaller effect or scale, or a part of the claim",
    "contradicted": "measured, and the opposite or nothing came out; intervals and seeds exclude chance",
    "not resolved": "the interval, or too few training runs, allows both",
    "beyond what search finds here": "not even a search that knows the future, or the true rules, gets there",
    "cannot hold": "a proved optimum or the paper's other numbers exclude it in the model as the paper states it",
    "baseline": "the size of the effect is that of the baseline it is measured against",
    "workload": "jobs, cluster or load of the paper are not public or differ, and that decides",
    "budget": "training here is too short to judge",
    "paper unclear": "the paper leaves open what was measured",
}
SAID = {  # entries of a headline claim after its number in the paper
    "code": "published code",
    "others": "others",
    "here": "here",
    "possible": "what was possible",
}
_START = "| item | paper | here | verdict | why |"


def pages() -> dict[Path, str]:
    """Text of every page of ``docs/accounts``, and of ``docs/claims.md``, by its path."""
    folder = checkout() / "docs" / "accounts"
    texts = {paper: filled(_source(paper).read_text(encoding="utf-8")) for paper in PAPERS}
    paths = {folder / f"{paper.replace('_', '-')}.md": text for paper, text in texts.items()}
    return {folder / "index.md": _collected(texts), folder.parent / "claims.md": claims_page()} | paths


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
    """Rows of a page: item with its link, paper, here, verdict, why."""
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
    text = re.sub(r"(?<=\]\()\[\[(.+?)\]\]", lambda match: _link(match[1]), text)
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
    folder, _, name = table.partition("/")
    measured = checkout() / "benchmarks" / "results" / f"{name}.csv"
    path = measured if folder == "benchmarks" else results_folder(RUN) / "tables" / f"{table}.csv"
    if not path.is_file():
        raise ConfigError(f"an account names a number of {path}, which is not there")
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _collected(texts: dict[str, str]) -> str:
    """The page that collects the others: counts of verdicts."""
    titles = {paper: text.splitlines()[0].removeprefix("# ") for paper, text in texts.items()}
    counts = {paper: Counter(row[3] for row in items(text)) for paper, text in texts.items()}
    links = [f"[{title}]({paper.replace('_', '-')}.md)" for paper, title in titles.items()]
    lines = [
        "# Accounts: claim by claim",
        "",
        f"Every figure, table and number of four papers, and what came out here in run `{RUN}`.",
        "The main claims are on [one page](../claims.md), which explains the [verdicts](../claims.md#verdicts).",
        "",
        f"| verdict | {' | '.join(links)} |",
        f"| --- |{' --- |' * len(links)}",
        *(f"| {verdict} | {' | '.join(str(each[verdict]) for each in counts.values())} |" for verdict in VERDICTS),
        f"| all | {' | '.join(str(each.total()) for each in counts.values())} |",
    ]
    return "\n".join(lines) + "\n"


def claims_page() -> str:
    """Text of ``docs/claims.md``, from ``experiments/claims.yaml``."""
    import yaml

    source = yaml.safe_load((checkout() / "experiments" / "claims.yaml").read_text(encoding="utf-8"))
    lines = [source["introduction"]]
    for paper in source["papers"]:
        lines += [f"\n## {paper['title']}\n", "| claim | paper | here | verdict |", "| --- | --- | --- | --- |"]
        for claim in paper["claims"]:
            link = f"[{claim['claim']}](#{_anchor(claim['claim'])})"
            lines.append(f"| {link} | {claim['paper']} | {claim['short']} | {claim['verdict']} |")
    lines += ["\n## Verdicts\n", *(f"- *{verdict}*: {meaning}" for verdict, meaning in VERDICTS.items())]
    for paper in source["papers"]:
        of = paper["title"].partition(" (")[0]
        for claim in paper["claims"]:
            lines += [f"\n## {claim['claim']}\n", f"- **paper** ({of}, {claim['place']}): {claim['paper']}"]
            for said, parts in ((said, claim[key].split("; ")) for key, said in SAID.items() if key in claim):
                several = len(parts) > 1
                lines += [f"- **{said}:**" + f" {parts[0]}" * (not several), *map("  - {}".format, several * parts)]
            lines += _table(claim.get("table"))
            lines += [f"\n**{claim['verdict'].capitalize()}.** {claim['why']} See {claim['see']}."]
    return filled("\n".join(lines)).replace("](../../", "](../") + "\n"


def _table(rows: list[list[str]] | None) -> list[str]:
    """Lines of a table whose first row names the columns; empty without one."""
    lines = [f"| {' | '.join(row)} |" for row in rows or ()]
    return lines and ["", lines[0], "| --- " * len(rows[0]) + "|", *lines[1:]]


def _anchor(heading: str) -> str:
    """Anchor of a heading on code hosts."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
