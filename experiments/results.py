"""Results that the repository shows in ``reports/results/<run>``: small, committed, readable on code hosts.

``results`` in ``params.yaml`` names the runs and the limits. A figure is kept as SVG; a table as csv, or, beyond the
limit, by its digest alone. ``README.md`` has every figure under the section of its paper, with
caption, notebook and tables.
"""

from __future__ import annotations

import json
import re
import shutil
from importlib import import_module
from pathlib import Path
from xml.etree import ElementTree

import pandas

from decima.core.errors import ConfigError
from decima.core.files import atomic_write_bytes, atomic_write_text, read_json
from experiments.experiment import experiment, experiment_module, experiment_names
from experiments.figures import drawn, figure_names
from experiments.notebooks import calls, notebook_code, notebook_path, notebook_slugs
from experiments.params import checkout, read_params, resolve_run, run_folder
from experiments.tables import read_table_card, require_same, sha256, write_stamps

DIGESTS, METRICS, PLOTS = "digests.json", "metrics.json", "plots.csv"
# Tables of paired changes, whose rows against tuned weighted fair are the metrics.
_HEADLINES = {"batch": "batch/batch_changes", "stream": "stream/stream_changes"}
_DUBLIN = "{http://purl.org/dc/elements/1.1/}"


def results_folder(run: str) -> Path:
    """``reports/results/<run>`` of the checkout."""
    return checkout() / "reports" / "results" / resolve_run(run)


def limits(run: str) -> dict[str, float]:
    """Limits of a run whose results are kept: ``figure_kb``, ``table_kb``.

    Raises:
        ConfigError: The results of the run are not kept.
    """
    kept = read_params("results")
    if run not in kept:
        raise ConfigError(f"results of run {run} are not kept; params.yaml names under results: {', '.join(kept)}")
    return kept[run]


def table_files(run: str) -> dict[str, Path]:
    """Files of all tables of a run by ``experiment/table``.

    Raises:
        ConfigError: An experiment has no tables yet, or one has changed since it was computed.
    """
    files = {}
    for name in experiment_names():
        paths = sorted((run_folder(run) / "tables" / name).glob("*.csv"))
        if not paths:
            raise ConfigError(f"run {run} has no tables of {name}; run: decima evaluate {name} --run {run}")
        digests = read_table_card(name, run).get("tables", {})
        for path in paths:
            if path.stem in digests:
                require_same(path, path.read_bytes(), digests[path.stem])
        files |= {f"{name}/{path.stem}": path for path in paths}
    return files


def figure_digests(run: str, *kinds: str) -> dict[str, str]:
    """SHA-256 of all figures of a run in some formats (``.png``, ``.pdf``, ``.svg``), by ``experiment/file``."""
    folder = run_folder(run) / "figures"
    paths = sorted(path for path in folder.rglob("*.*") if path.suffix in kinds)
    return {path.relative_to(folder).as_posix(): sha256(path.read_bytes()) for path in paths}


def collect(run: str) -> Path:
    """Write ``reports/results/<run>`` anew from the tables and figures of the run.

    Returns:
        The folder. Equal results give equal files.

    Raises:
        ConfigError: The run is unknown or not one whose results are kept, or tables or figures of it are missing.
    """
    limit = limits(resolve_run(run))
    tables = table_files(run)
    figures = {name: _figure_files(run, name) for name in experiment_names()}  # before anything is deleted
    for path in (path for paths in figures.values() for path in paths):
        if path.stat().st_size > 1024.0 * limit["figure_kb"]:
            raise ConfigError(f"{path} is larger than figure_kb in params.yaml allows: {limit['figure_kb']} kB")
    folder = results_folder(run)
    shutil.rmtree(folder, ignore_errors=True)
    for name, paths in figures.items():
        for path in paths:
            atomic_write_bytes(folder / "figures" / name / path.name, path.read_bytes())
    left_out = {}
    for name, path in tables.items():
        content = path.read_bytes()
        if len(content) > 1024.0 * limit["table_kb"]:
            left_out[name] = {"sha256": sha256(content), "rows": content.count(b"\n") - 1, "bytes": len(content)}
        else:
            atomic_write_bytes(folder / "tables" / f"{name}.csv", content)
    digests = {"tables": left_out, "figures": figure_digests(run, ".svg")}
    _write_page(run, digests)
    keep_stamps(run)
    return folder


def redraw(run: str, *, write: bool = False) -> tuple[list[str], list[str]]:
    """Draw kept figures anew from kept tables.

    Tables that are too large to be kept are read from the run, where they have the kept digest.

    Args:
        run: The run.
        write: Replace what differs: figures, their digests, the page.

    Returns:
        Figures (``experiment/name``) whose kept file is not the one that is drawn now, and those that cannot be drawn
        since a table is missing.

    Raises:
        ConfigError: The run is unknown or not one whose results are kept.
    """
    limits(resolve_run(run))
    folder = results_folder(run)
    digests = read_json(folder / DIGESTS)
    stale, missing = [], []
    for name in experiment_names():
        for figure, content in drawn(name, resolve_run(run), _tables_at_hand(run, name, digests["tables"])).items():
            path = folder / "figures" / name / f"{figure}.svg"
            if content is None:
                missing.append(f"{name}/{figure}")
            elif digests["figures"].get(f"{name}/{path.name}") != sha256(content) or not path.is_file():
                stale.append(f"{name}/{figure}")
                if write:
                    for old in path.parent.glob(f"{figure}.*"):
                        old.unlink()
                    atomic_write_bytes(path, content)
                    digests["figures"][f"{name}/{path.name}"] = sha256(content)
            elif path.read_bytes() != content:
                raise ConfigError(f"{path} is not the figure of its digest; run: python -m experiments redraw --write")
    if write:
        _write_page(run, digests)
    return stale, missing


def _tables_at_hand(run: str, name: str, left_out: dict[str, dict]) -> dict[str, Path]:
    """Published tables of an experiment: kept files, and others with the kept digest."""
    paths = {path.stem: path for path in (results_folder(run) / "tables" / name).glob("*.csv")}
    for path in (run_folder(run) / "tables" / name).glob("*.csv"):
        kept = left_out.get(f"{name}/{path.stem}", {})
        if sha256(path.read_bytes()) == kept.get("sha256"):
            paths[path.stem] = path
    return paths


def _write_page(run: str, digests: dict) -> None:
    """Write digests, metrics and ``README.md`` of the folder, whose figures have captions."""
    folder = results_folder(run)
    digests["figures"] = dict(sorted(digests["figures"].items()))
    atomic_write_text(folder / DIGESTS, json.dumps(digests, indent=1) + "\n")
    _write_metrics(folder)
    page = folder / "README.md"
    before = page.read_text(encoding="utf-8") if page.is_file() else ""
    figures = {
        name: [path for figure in figure_names(name) for path in (folder / "figures" / name).glob(f"{figure}.*")]
        for name in experiment_names()
    }
    atomic_write_text(page, _page(run, figures, digests["tables"], before))


def _write_metrics(folder: Path) -> None:
    """Write changes of the average JCT (%) for ``dvc metrics`` and ``dvc plots``."""
    changes: dict[str, dict[str, float]] = {}
    there = {name: path for name, table in _HEADLINES.items() if (path := folder / "tables" / f"{table}.csv").is_file()}
    for name, path in there.items():
        rows = pandas.read_csv(path).query("against == 'weighted_fair'")
        for row in rows.to_dict("records"):
            title = f"{name}, one job every {row['interarrival_s']:g} s" if "interarrival_s" in row else name
            changes.setdefault(title, {})[row["scheduler"]] = round(row["change_percent"], 2)
    atomic_write_text(folder / METRICS, json.dumps(changes, indent=1) + "\n")
    rows = [(f"{title}: {name}", change) for title, each in changes.items() for name, change in each.items()]
    plot = pandas.DataFrame(rows, columns=["scheduler", "change_percent"])
    atomic_write_text(folder / PLOTS, plot.to_csv(index=False))


def keep_stamps(run: str) -> None:
    """Write the stamps of kept or published tables next to them."""
    cards = {name: read_table_card(name, run) for name in experiment_names()}
    write_stamps(run, {name: card for name, card in cards.items() if card})


def _figure_files(run: str, name: str) -> list[Path]:
    """Figures of an experiment as SVG, in its order."""
    paths = [run_folder(run) / "figures" / name / f"{figure}.svg" for figure in figure_names(name)]
    for path in paths:
        if not path.is_file():
            raise ConfigError(f"{path} is missing; run: decima plot {name} --run {run}")
    return paths


def _words(path: Path) -> dict[str, str]:
    """Title, description and source that an SVG file carries."""
    root = ElementTree.parse(path).getroot()
    return {key: root.findtext(f".//{_DUBLIN}{key}") or "" for key in ("title", "description", "source")}


def _page(run: str, figures: dict[str, list[Path]], left_out: dict[str, dict], before: str) -> str:
    """``README.md`` of the folder; ``before`` has the words of pictures that carry none."""
    notebooks = {name: slug for slug in notebook_slugs() for name in calls(notebook_code(slug), "experiments.figure")}
    lines = [
        f"# Results of run {run}",
        "",
        f"Figures and tables as the pipeline made them; `decima results --run {run}` writes this folder anew, and",
        "`decima reproduce --check` compares a run with it. Parameters are in [params.yaml](../../../params.yaml).",
        "",
    ]
    paper = None
    for name in sorted((name for name in figures if figures[name]), key=experiment_module):  # by paper and section
        package = experiment_module(name).rpartition(".")[0]
        if package != paper:
            paper = package
            lines += [f"## {import_module(package).__doc__.strip().rstrip('.')}", ""]
        lines += [f"### {experiment(name).section} ({name.replace('_', ' ')})", ""]
        for path in figures[name]:
            link = path.relative_to(results_folder(run)).as_posix()
            if path.suffix != ".svg":
                lines += re.findall(rf"#### [^\n]*\n\n!\[[^\n]*\]\({link}\)\n\n[^\n]*\n", before)
                continue
            words = _words(path)
            links = [_table_link(name, table, left_out) for table in words["source"].split(", ")]
            slug = notebooks[path.stem]
            notebook = f"[{slug}](../../../{notebook_path(slug).relative_to(checkout()).as_posix()})"
            lines += [
                f"#### {words['title']}",
                "",
                f"![{_plain(words['title'])}. {_plain(words['description'])}]({link})",
                "",
                f"{words['description']} Notebook: {notebook}; tables: {', '.join(links)}.",
                "",
            ]
    if left_out:
        lines += ["## Tables too large to be kept", "", "`decima evaluate` makes them anew:", ""]
        rows = [f"| {name} | {each['rows']:,} | {each['bytes'] / 1024:,.0f} kB |" for name, each in left_out.items()]
        lines += ["| experiment/table | rows | size |", "| --- | --- | --- |", *rows, ""]
    return "\n".join(lines)


def _table_link(name: str, table: str, left_out: dict[str, dict]) -> str:
    """Path of a table; figures read tables of their experiment only."""
    if f"{name}/{table}" in left_out:
        return f"{table} ([not kept](#tables-too-large-to-be-kept))"
    return f"[{table}](tables/{name}/{table}.csv)"


def _plain(text: str) -> str:
    """Text inside the brackets of an image, where brackets and line ends mean something else."""
    return " ".join(text.replace("[", "(").replace("]", ")").split())
