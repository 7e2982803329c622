"""Tables of experiments: computed and written to ``reports/<run>/tables/<experiment>``, read back from there.

Whoever has not run the pipeline reads those that the repository keeps: ``reports/reference/<run>.zip``.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from decima.core.files import atomic_path, atomic_write_text, sole_use
from decima.workload.sources import get_source
from experiments.experiment import Context, experiment
from experiments.params import checkout, resolve_run, run_folder, run_params
from experiments.stamps import table_stamp

if TYPE_CHECKING:
    import pandas


def run_experiment(name: str, run: str, *, threads: int | None = None, progress: bool = False) -> dict[str, Path]:
    """Compute an experiment and write its tables.

    Returns:
        Paths of the csv files by table name; ``reports/<run>/cards/<experiment>.json`` lists them with parameters and
        stamp.

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
        paths[table] = folder / f"{table}.csv"
        with atomic_path(paths[table]) as temporary:
            frame.to_csv(temporary, index=False, lineterminator="\n")
    card = {
        "experiment": name,
        "run": run,
        "workload": source.label,
        "stamp": table_stamp(name, run),
        "parameters": params[name],
        "tables": sorted(tables),
    }
    atomic_write_text(card_path(name, run), json.dumps(card, indent=2) + "\n")
    return paths


def load(
    name: str, run: str = "auto", *, threads: int | None = None, progress: bool = False, kept: bool = True
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
    if paths is None and kept and not chosen.may_differ:
        tables = kept_tables(name, run, table_stamp(name, run))
        if tables is not None:
            return tables
    if paths is None:
        with sole_use(run_folder(run) / "tables" / name, wait=True):
            paths = _present(name, run) or run_experiment(name, run, threads=threads, progress=progress)
    return {table: pandas.read_csv(path) for table, path in paths.items()}


def _present(name: str, run: str) -> dict[str, Path] | None:
    """Paths of an experiment's tables; None if one is missing or the stamp is old."""
    path = card_path(name, run)
    card = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    paths = {table: run_folder(run) / "tables" / name / f"{table}.csv" for table in card.get("tables", ())}
    current = card.get("stamp") == table_stamp(name, run) and all(path.is_file() for path in paths.values())
    return paths if current else None


def card_path(name: str, run: str) -> Path:
    """Card of an experiment's tables.

    It lies beside their folder, not in it: equal tables of changed code must not make figures look out of date.
    """
    return run_folder(run) / "cards" / f"{name}.json"


def reference_path(run: str) -> Path:
    """File of the kept results of a run."""
    return checkout() / "reports" / "reference" / f"{resolve_run(run)}.zip"


def stamps_path(run: str) -> Path:
    """File with the origin of a run's kept results: stamps and table names by experiment.

    It lies beside the tables, so that a change of code that moves no number changes a small text and not the archive.
    """
    return reference_path(run).with_suffix(".json")


def read_stamps(run: str) -> dict[str, dict]:
    """Content of that file; nothing where there is none."""
    path = stamps_path(run)
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


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
        return {table: pandas.read_csv(io.BytesIO(archive.read(f"{name}/{table}"))) for table in card["tables"]}


def against_paper(rows: Mapping[str, tuple[float | str | None, float | str]]) -> pandas.DataFrame:
    """Table with the columns paper, ours and gap.

    Args:
        rows: Per quantity the paper's value (None: it gives no number) and ours. The gap of two numbers is ours less
            the paper's, in percent of the paper's; anything else has none.
    """
    import pandas

    table = {name: (_text(paper), _text(ours), _gap(paper, ours)) for name, (paper, ours) in rows.items()}
    return pandas.DataFrame.from_dict(table, orient="index", columns=["paper", "ours", "gap"])


def _is_number(value) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _text(value: float | str | None) -> str:
    if value is None:
        return "–"
    if isinstance(value, int) and value >= 10_000:
        return f"{value:,}"  # counts are exact
    return f"{value:.4g}" if _is_number(value) else str(value)


def _gap(paper: float | str | None, ours: float | str) -> str:
    if not (_is_number(paper) and _is_number(ours)) or paper == 0:
        return "–"
    return f"{100.0 * (ours - paper) / abs(paper):+.0f} %"
