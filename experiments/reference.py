"""Results kept in the repository, and the distance of a run's results from them.

``reports/reference/<run>.zip`` holds the tables of a run as csv and the digests of its figures, ``<run>.json`` next
to it has their stamps. Of runs that people look at, ``reports/results/<run>`` has the same, with ``stamps.json``
(:mod:`experiments.results`). Equal results give equal files: they have no times in them.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

import numpy as np
import pandas

from decima.core.errors import ConfigError
from decima.core.files import atomic_path, read_json
from experiments.experiment import experiment, experiment_names
from experiments.params import read_params, run_folder
from experiments.results import DIGESTS, collect, figure_digests, keep_stamps, results_folder, table_files
from experiments.stamps import table_stamp
from experiments.tables import (
    UNCHECKED,
    other_versions,
    read_stamps,
    read_table_card,
    reference_path,
    sha256,
    write_stamps,
)

EQUAL, MAY_DIFFER, DIFFERS = "equal", "differs where it may", "DIFFERS"
_FIGURES = "figures.json"


@dataclass(frozen=True)
class Verdict:
    """Comparison of one table with the one that is kept."""

    table: str  # experiment/table
    outcome: str  # EQUAL, MAY_DIFFER or DIFFERS
    details: str = ""  # by how much, per column

    def __str__(self) -> str:
        return f"{self.table}: {self.outcome}" + (f" ({self.details})" if self.details else "")


@dataclass(frozen=True)
class Comparison:
    """Comparison of the results of a run with those that are kept."""

    tables: list[Verdict]
    equal_figures: list[str]  # files that are the same byte for byte
    other_figures: list[str]  # files that are not, such as where fonts differ

    @property
    def failed(self) -> bool:
        """Whether a table differs that may not."""
        return any(verdict.outcome == DIFFERS for verdict in self.tables)

    def lines(self) -> Iterable[str]:
        """The comparison for people, what is equal in one line."""
        yield f"equal: {', '.join(verdict.table for verdict in self.tables if verdict.outcome == EQUAL) or 'no table'}"
        yield from (str(verdict) for verdict in self.tables if verdict.outcome != EQUAL)
        if self.other_figures:
            yield f"figures with other bytes: {', '.join(self.other_figures)}"
        outcomes = [verdict.outcome for verdict in self.tables]
        yield (
            f"{outcomes.count(EQUAL)} of {len(outcomes)} tables equal the kept ones byte for byte, "
            f"{outcomes.count(MAY_DIFFER)} differ where they may, {outcomes.count(DIFFERS)} where they may not; "
            f"{len(self.equal_figures)} of {len(self.equal_figures) + len(self.other_figures)} figures are equal"
        )


def record(run: str) -> Path:
    """Keep a run's tables and figure digests, or what ``reports/results`` has of it.

    Returns:
        The file or folder.

    Raises:
        ConfigError: Results of the run are missing.
    """
    if run in read_params("results"):
        return collect(run)
    entries = {name: path.read_bytes() for name, path in table_files(run).items()}
    keep_stamps(run)
    entries[_FIGURES] = (json.dumps(figure_digests(run, ".png"), indent=1) + "\n").encode()
    path = reference_path(run)
    with atomic_path(path) as temporary, zipfile.ZipFile(temporary, "w") as archive:
        for name in sorted(entries):
            archive.writestr(zipfile.ZipInfo(name), entries[name], zipfile.ZIP_DEFLATED, compresslevel=9)
    return path


def adopt(run: str, *, unchecked: bool = False) -> list[str]:
    """Renew stamps of kept or published tables that the present code also gives.

    Args:
        run: The run.
        unchecked: Also of experiments whose tables were not computed with the present code, where parameters and inputs
            are unchanged; their stamps say so. Else tables of the run with the present stamp must equal the kept ones.

    Returns:
        Names of the experiments whose stamps changed.

    Raises:
        ConfigError: Nothing is kept of the run.
    """
    kept, _ = _kept(run)
    cards, adopted = read_stamps(run), []
    for name in experiment_names():
        tables = {table.partition("/")[2]: content for table, content in kept.items() if table.startswith(f"{name}/")}
        before, stamp, card = cards.get(name, {}), table_stamp(name, run), read_table_card(name, run)
        same = card.get("stamp") == stamp and set(card["tables"]) == set(tables)
        same = same and all(_computed_again(f"{name}/{table}", run, content) for table, content in tables.items())
        if not tables or (before.get("stamp") == stamp and not (same and before.get(UNCHECKED))):
            continue
        if not same and not (unchecked and _same_inputs(before.get("stamp", stamp), stamp)):
            continue
        if same or not isinstance(before.get("tables"), dict):  # else what was kept is what was computed once
            digests = {table: _sha256(content) for table, content in tables.items()}
        else:
            digests = before["tables"]
        origin = {"versions": card["versions"]} if same else {"versions": before.get("versions", {}), UNCHECKED: True}
        cards[name] = {"stamp": stamp, **origin, "tables": digests}
        adopted.append(name)
    if adopted:
        write_stamps(run, cards)
    return adopted


def _sha256(kept: bytes | str) -> str:
    """SHA-256 of a kept table, which may be all that is kept."""
    return kept if isinstance(kept, str) else sha256(kept)


def _computed_again(table: str, run: str, kept: bytes | str) -> bool:
    path = run_folder(run) / "tables" / f"{table}.csv"
    return path.is_file() and _verdict(table, kept, path.read_bytes()).outcome != DIFFERS


def _same_inputs(before: dict[str, str], now: dict[str, str]) -> bool:
    """Whether two stamps agree in the parameters and inputs that both have, whatever the code."""
    both = {name for name in before.keys() & now.keys() if name != "code" and not name.startswith("tables of ")}
    return all(before[name] == now[name] for name in both)


def stale(run: str) -> list[str]:
    """Kept or published tables that are not those of the present code, with reasons.

    Raises:
        ConfigError: Nothing is kept of the run.
    """
    kept, _ = _kept(run)
    cards, lines = read_stamps(run), []
    for name in dict.fromkeys([*experiment_names(), *cards]):
        if name not in experiment_names():
            lines.append(f"{name}: no such experiment")
            continue
        card, stamp = cards.get(name, {}), table_stamp(name, run)
        if not card:
            lines.append(f"{name}: {'no stamp' if any(table.startswith(f'{name}/') for table in kept) else 'not kept'}")
            continue
        before = card["stamp"]
        other = sorted(part for part in stamp.keys() | before.keys() if stamp.get(part) != before.get(part))
        reasons = [f"other {', '.join(other)}"] if other else []
        reasons += ["stamp renewed without computing"] if card.get(UNCHECKED) else []
        for table, digest in card["tables"].items() if isinstance(card["tables"], dict) else ():
            if digest != _sha256(kept.get(f"{name}/{table}", b"")):
                reasons.append(f"{table} is not the table of its stamp")
        lines += [f"{name}: {'; '.join(reasons)}"] if reasons else []
    return lines


def version_warnings(run: str) -> list[str]:
    """Experiments whose tables were computed with other versions of libraries, with these."""
    cards = {name: read_table_card(name, run) for name in experiment_names()}
    if not any(cards.values()):
        cards = read_stamps(run)
    said = {name: other_versions(name, card) for name, card in cards.items() if name in experiment_names()}
    return [f"{name}: {words}" for name, words in said.items() if words]


def compare_with_kept(run: str) -> Comparison:
    """Compare the tables and figures of a run with those that are kept.

    Raises:
        ConfigError: Nothing is kept of the run, or an experiment has no tables yet.
    """
    kept, figures = _kept(run)
    present = {name: path.read_bytes() for name, path in table_files(run).items()}
    verdicts = [_verdict(name, kept.get(name), present.get(name)) for name in sorted(kept.keys() | present.keys())]
    drawn = figure_digests(run, *{Path(name).suffix for name in figures})
    same = [name for name in sorted(figures) if figures[name] == drawn.get(name)]
    return Comparison(verdicts, same, sorted((figures.keys() | drawn.keys()) - set(same)))


def _kept(run: str) -> tuple[dict[str, bytes | str], dict[str, str]]:
    """Tables by ``experiment/table``, as csv or as SHA-256 of it, and the digests of figures."""
    if run in read_params("results"):
        folder = results_folder(run)
        if not (folder / DIGESTS).is_file():
            raise ConfigError(f"there is nothing to compare run {run} with: {folder / DIGESTS} is missing")
        digests = read_json(folder / DIGESTS)
        paths = sorted((folder / "tables").glob("*/*.csv"))
        tables = {f"{path.parent.name}/{path.stem}": path.read_bytes() for path in paths}
        return tables | {name: each["sha256"] for name, each in digests["tables"].items()}, digests["figures"]
    path = reference_path(run)
    if not path.is_file():
        raise ConfigError(f"there is nothing to compare run {run} with: {path} is missing")
    with zipfile.ZipFile(path) as archive:
        kept = {name: archive.read(name) for name in archive.namelist()}
    figures = json.loads(kept.pop(_FIGURES))
    return kept, figures


def _verdict(name: str, kept: bytes | str | None, present: bytes | None) -> Verdict:
    if kept is None or present is None:
        return Verdict(name, DIFFERS, "the table is new" if kept is None else "the table is gone")
    if kept in (present, sha256(present)):
        return Verdict(name, EQUAL)
    owner, _, table = name.partition("/")
    allowed = experiment(owner).may_differ.get(table, ()) if owner in experiment_names() else ()
    if isinstance(kept, str):
        return Verdict(name, MAY_DIFFER if allowed else DIFFERS, "which columns is not known: only its digest is kept")
    before, now = (pandas.read_csv(io.BytesIO(content)) for content in (kept, present))
    if list(before.columns) != list(now.columns) or len(before) != len(now):
        shapes = " instead of ".join(f"{len(table)} rows of {len(table.columns)} columns" for table in (now, before))
        return Verdict(name, DIFFERS, shapes)
    differences = {column: _difference(before[column], now[column]) for column in before}
    differences = {column: text for column, text in differences.items() if text}
    within = all(any(fnmatch(column, pattern) for pattern in allowed) for column in differences)
    details = ", ".join(f"{column} {text}" for column, text in differences.items())
    return Verdict(name, MAY_DIFFER if within else DIFFERS, details)


def _difference(before: pandas.Series, now: pandas.Series) -> str:
    """Text of how much a column differs, empty if it does not."""
    if not (pandas.api.types.is_numeric_dtype(before) and pandas.api.types.is_numeric_dtype(now)):
        other = int((before.astype(str) != now.astype(str)).sum())
        return f"in {other} of {len(before)} rows" if other else ""
    one, two = before.to_numpy(dtype=float), now.to_numpy(dtype=float)
    both = np.isnan(one) & np.isnan(two)
    gap = np.where(both | (one == two), 0.0, np.abs(one - two))
    size = np.maximum(np.abs(one), np.abs(two))
    relative = np.divide(gap, size, out=np.zeros_like(gap), where=gap != 0.0)
    return f"by up to {100.0 * relative.max():.2g} %" if len(gap) and gap.any() else ""
