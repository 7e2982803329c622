"""Tables of experiments: computed and written to ``reports/<run>/tables/<experiment>``, read back from there.

Whoever has not run the pipeline reads those that the repository keeps: ``reports/reference/<run>.zip``.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import re
import sys
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from decima.core.errors import ConfigError
from decima.core.files import atomic_path, atomic_write_text, read_json, sole_use
from decima.workload.sources import get_source
from experiments.experiment import Context, experiment
from experiments.params import checkout, read_params, resolve_run, run_folder, run_params
from experiments.rooms import ROOT, room_files
from experiments.stamps import table_stamp

if TYPE_CHECKING:
    import pandas

# Libraries whose releases can move numbers.
LIBRARIES = ("numpy", "numba", "scipy", "tensorflow")
UNCHECKED = "unchecked"  # of a stamp that was renewed although no table was computed
_KEPT = ("stamp", "versions", "tables", UNCHECKED)  # what is kept of cards


def run_experiment(name: str, run: str, *, threads: int | None = None, progress: bool = False) -> dict[str, Path]:
    """Compute an experiment and write its tables.

    Returns:
        Paths of the csv files by table name; ``reports/<run>/cards/<experiment>.json`` has their SHA-256, parameters,
        stamp, and the versions of Python and of the libraries that computed them.

    Raises:
        ConfigError: Unknown experiment or run.
        DataUnavailableError: The run needs the TPC-H profiles and they were not fetched.
    """
    chosen = experiment(name)
    run = resolve_run(run)
    params = run_params(run)
    others = partial(load, run=run, threads=threads, progress=progress)
    context = Context(run, others, params["executors"], threads, progress, params["policies"])
    source = get_source(params["workload"])
    tables = chosen.compute(source, params[name], context)
    folder = run_folder(run) / "tables" / name
    paths = {}
    for table, frame in tables.items():
        paths[table] = write_table(frame, folder / f"{table}.csv")
    card = {
        "experiment": name,
        "run": run,
        "workload": source.label,
        "stamp": table_stamp(name, run),
        "versions": versions(name),
        "parameters": params[name],
        "tables": {table: sha256(path.read_bytes()) for table, path in sorted(paths.items())},
    }
    atomic_write_text(card_path(name, run), json.dumps(card, indent=2) + "\n")
    return paths


def write_table(frame: pandas.DataFrame, path: Path) -> Path:
    """Write a table as csv."""
    with atomic_path(path) as temporary:
        frame.to_csv(temporary, index=False, lineterminator="\n")
    return path


def versions(name: str) -> dict[str, str]:
    """Versions of Python and of those libraries that the rooms of an experiment import."""
    files = [path for path in room_files(experiment(name).rooms) if path.suffix == ".py"]
    code = "\n".join((ROOT / path).read_text(encoding="utf-8") for path in files)
    used = [library for library in LIBRARIES if re.search(rf"^\s*(import|from) {library}\b", code, re.MULTILINE)]
    return {"python": "{}.{}".format(*sys.version_info), **{library: version(library) for library in used}}


def other_versions(name: str, card: Mapping) -> str:
    """Text of the other versions that computed tables; empty where there are none."""
    before, now = card.get("versions", {}), versions(name)
    other = [f"{part} {before[part]} (here {now[part]})" for part in now if before.get(part, now[part]) != now[part]]
    return f"computed with {', '.join(other)}" if other else ""


def sha256(content: bytes) -> str:
    """Digest of a table."""
    return hashlib.sha256(content).hexdigest()


def load(
    name: str, run: str = "auto", *, threads: int | None = None, progress: bool = True, kept: bool = True
) -> dict[str, pandas.DataFrame]:
    """Tables of an experiment, computed first if missing or with an old stamp.

    Where the repository keeps tables of the run with the present stamp, those are read and none are computed, unless
    some of them are timings, which are this machine's own. Of several processes that want the same tables at once,
    such as two notebooks, one computes and the others wait.

    Args:
        name: The experiment.
        run: Run of ``params.yaml``.
        threads: Worker threads, all cores by default.
        progress: Show progress bars.
        kept: Read kept tables; without, tables are in the folder of the run afterwards.

    Returns:
        Data frames by table name.
    """
    import pandas

    run = resolve_run(run)
    chosen = experiment(name)  # an unknown name is refused before files are looked for
    paths = _present(name, run)
    if paths is None and kept and not chosen.timed:
        tables = kept_tables(name, run, table_stamp(name, run))
        if tables is not None:
            return tables
    if paths is None:
        with sole_use(run_folder(run) / "tables" / name, wait=True):
            paths = _present(name, run) or run_experiment(name, run, threads=threads, progress=progress)
    return {table: pandas.read_csv(path) for table, path in paths.items()}


def _present(name: str, run: str) -> dict[str, Path] | None:
    """Paths of an experiment's tables; None if one is missing or the stamp is old.

    Raises:
        ConfigError: A table has changed since it was computed.
    """
    card = read_table_card(name, run)
    paths = {table: run_folder(run) / "tables" / name / f"{table}.csv" for table in card.get("tables", ())}
    if card.get("stamp") != table_stamp(name, run) or not all(path.is_file() for path in paths.values()):
        return None
    for table, path in paths.items():
        require_same(path, path.read_bytes(), card["tables"][table])
    return paths


def require_same(path: Path, content: bytes, digest: str) -> None:
    """Refuse a table that is not the one that was computed.

    Raises:
        ConfigError: The content has another SHA-256.
    """
    if sha256(content) != digest:
        raise ConfigError(f"{path} has changed since it was computed; delete it, and it is computed anew")


def read_table_card(name: str, run: str) -> dict:
    """Card of an experiment's tables; nothing where there is none.

    Raises:
        ConfigError: The file holds something else.
    """
    path = card_path(name, run)
    try:
        card = read_json(path) if path.is_file() else {}
    except ValueError as error:
        raise ConfigError(
            f"{path} is not the card of tables: {error}; delete it, and they are computed anew"
        ) from error
    return card | {"tables": {}} if isinstance(card.get("tables"), list) else card  # before digests were kept


def card_path(name: str, run: str) -> Path:
    """Card of an experiment's tables.

    It lies next to their folder, not in it: equal tables of changed code must not make figures look out of date.
    """
    return run_folder(run) / "cards" / f"{name}.json"


def reference_path(run: str) -> Path:
    """File of the kept results of a run."""
    return checkout() / "reports" / "reference" / f"{resolve_run(run)}.zip"


def stamps_path(run: str) -> Path:
    """File of stamps, versions and digests of a run's kept or published tables.

    It lies next to the tables, so that a change of code that moves no number changes a small text and not the archive.
    """
    if run in read_params("results"):
        return checkout() / "reports" / "results" / run / "stamps.json"
    return reference_path(run).with_suffix(".json")


def read_stamps(run: str) -> dict[str, dict]:
    """Content of that file; nothing where there is none."""
    path = stamps_path(run)
    return read_json(path) if path.is_file() else {}


def write_stamps(run: str, cards: Mapping[str, Mapping]) -> None:
    """Write that file from the cards of tables."""
    entries = {name: {key: card[key] for key in _KEPT if key in card} for name, card in cards.items()}
    atomic_write_text(stamps_path(run), json.dumps(entries, indent=1) + "\n")


def kept_tables(name: str, run: str, stamp: dict[str, str]) -> dict[str, pandas.DataFrame] | None:
    """Kept tables of an experiment by name.

    Args:
        name: The experiment.
        run: Run of ``params.yaml``.
        stamp: What tables have to be made of.

    Returns:
        None where none are kept, or those that are were made of something else.
    """
    import pandas

    path = reference_path(run)
    card = read_stamps(run).get(name, {})
    if not path.is_file() or card.get("stamp") != stamp:
        return None
    with zipfile.ZipFile(path) as archive:
        contents = {table: archive.read(f"{name}/{table}") for table in card["tables"]}
    for table, content in contents.items():
        require_same(path / name / table, content, card["tables"][table])
    return {table: pandas.read_csv(io.BytesIO(content)) for table, content in contents.items()}


@dataclass(frozen=True)
class Shown:
    """A table as people read it, and how many rows are left out."""

    table: pandas.DataFrame
    left_out: int

    def _note(self) -> str:
        return f"{self.left_out} more rows are left out." if self.left_out else ""

    def __repr__(self) -> str:
        return f"{self.table}\n{self._note()}".rstrip()

    def _repr_html_(self) -> str:
        return self.table.to_html() + (f"<p>{self._note()}</p>" if self.left_out else "")


def show(table: pandas.DataFrame | pandas.Series, rows: int = 15) -> Shown:
    """A table for readers: names as in legends, units in headings, digits that mean something.

    Args:
        table: Any table; bounds of a 95 % interval are its columns ``low`` and ``high``.
        rows: Largest number of rows.

    Columns with an interval are rounded to the first digit of the largest standard error, others to three digits of
    their largest number.
    """
    import pandas

    from decima.core.appearance import appearances

    labels = {name: each.label for name, each in appearances().items()}
    frame = table.to_frame() if isinstance(table, pandas.Series) else table.copy()
    floats = frame.select_dtypes("floating").columns
    spread = None
    if {"low", "high"} <= set(frame.columns):
        spread = float((frame["high"] - frame["low"]).max()) / 3.92
    for name in floats:
        of_interval = spread and (name in ("low", "high", "mean") or str(name).endswith("change_percent"))
        decimals = _decimals(spread, 1) if of_interval else _decimals(frame[name].abs().max(), 3)
        whole = decimals == 0 and bool((frame[name].isna() | frame[name].abs().lt(math.inf)).all())
        frame[name] = frame[name].round().astype("Int64") if whole else frame[name].round(decimals)
    for name in frame.select_dtypes(["object", "string", "category"]).columns:
        frame[name] = [labels.get(value, value) if isinstance(value, str) else value for value in frame[name]]
    named = frame.rename(index=lambda key: labels.get(key, key), columns=lambda key: labels.get(key, _heading(key)))
    named = named.rename_axis(index=_heading, columns=_heading)
    return Shown(named.head(rows), max(0, len(named) - rows))


def _decimals(size: float, digits: int) -> int:
    """Decimals that give a number of some size N significant digits."""
    return max(0, digits - 1 - math.floor(math.log10(size))) if size > 0.0 and math.isfinite(size) else 0


_UNITS = {"s": "s", "ms": "ms", "h": "h", "percent": "%", "gb": "GB", "usd": "$"}


def _heading(key: object) -> object:
    """Heading of a column: ``avg_jct_s`` becomes ``average JCT (s)``."""
    if not isinstance(key, str) or not re.fullmatch(r"[a-z][a-z0-9_]*", key):
        return key
    *words, last = key.split("_")
    if not words or last not in _UNITS:
        words, unit = [*words, last], ""
    else:
        unit = f" ({_UNITS[last]})"
    known = {"avg": "average", "jct": "JCT", "cpu": "CPU", "num": "number of", "interarrival": "mean interarrival time"}
    return " ".join(known.get(word, word) for word in words) + unit


@dataclass(frozen=True)
class AgainstPaper:
    """Quantities with a paper's value, and new ones; either table may be empty."""

    compared: pandas.DataFrame  # columns paper, ours, difference, verdict
    new: pandas.DataFrame  # column ours

    def _titled(self) -> list[tuple[str, pandas.DataFrame]]:
        both = {"Compared with the paper": self.compared, "Without a value in the paper": self.new}
        return [(title, table) for title, table in both.items() if len(table)]

    def __repr__(self) -> str:
        return "\n\n".join(f"{title}\n{table}" for title, table in self._titled())

    def _repr_html_(self) -> str:
        return "".join(f"<h4>{title}</h4>{table.to_html()}" for title, table in self._titled())


def against_paper(rows: Mapping[str, tuple[float | str | None, float | str]]) -> AgainstPaper:
    """Tables of our values, of some with the paper's.

    Args:
        rows: Per quantity the paper's value (None: it gives none) and ours. The difference of two percentages, of which
            the quantity's name ends in ``(%)``, is in points; of other numbers it is in percent of the paper's. The
            verdict compares values alone, without their intervals: *reproduced* within a tenth of the paper's value or
            one point, *same direction* and *opposite* for changes and ratios, else *larger* or *smaller*.
    """
    import pandas

    def frame(columns: list[str], table: dict[str, tuple]) -> pandas.DataFrame:
        return pandas.DataFrame.from_dict(table, orient="index", columns=columns)

    numbers = {name: values for name, values in rows.items() if all(map(_is_number, values))}
    compared = {
        name: (_text(paper), _text(ours), *(_difference(name, paper, ours) if name in numbers else ("–", "–")))
        for name, (paper, ours) in rows.items()
        if paper is not None
    }
    new = {name: (_text(ours),) for name, (paper, ours) in rows.items() if paper is None}
    return AgainstPaper(frame(["paper", "ours", "difference", "verdict"], compared), frame(["ours"], new))


def _is_number(value) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _text(value: float | str) -> str:
    if isinstance(value, int) and value >= 10_000:
        return f"{value:,}"  # counts are exact
    return f"{value:.4g}" if _is_number(value) else str(value)


def _difference(name: str, paper: float, ours: float) -> tuple[str, str]:
    """Difference of two numbers, and its verdict."""
    percent, unchanged = "(%)" in name, 1.0 if " / " in name else 0.0
    apart = ours - paper
    shown = f"{apart:+.1f} points" if percent else f"{100.0 * apart / abs(paper):+.0f} %" if paper else "–"
    if abs(apart) <= max(0.1 * abs(paper), 1.0 if percent else 0.0):
        return shown, "reproduced"
    if (paper - unchanged) * (ours - unchanged) < 0.0:
        return shown, "opposite"
    if unchanged or paper < 0.0:
        return shown, "same direction"
    return shown, "larger" if apart > 0.0 else "smaller"
