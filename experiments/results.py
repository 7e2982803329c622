"""Results that the repository shows in ``reports/results/<run>``: small, committed, readable on code hosts.

``results`` in ``params.yaml`` names the runs and the limits. A figure is kept as SVG, or as a small PNG where its
vector form is larger than the limit; a table as csv, or, beyond the limit, by its digest alone. ``README.md`` has every
figure under the section of its paper, with caption, notebook and tables.
"""

from __future__ import annotations

import io
import json
import shutil
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from decima.core.errors import ConfigError
from decima.core.files import atomic_write_bytes, atomic_write_text
from experiments.experiment import experiment, experiment_module, experiment_names
from experiments.figures import figure_names
from experiments.notebooks import calls, notebook_code, notebook_path, notebook_slugs
from experiments.params import checkout, read_params, resolve_run, run_folder
from experiments.tables import read_table_card, require_same, sha256, write_stamps

if TYPE_CHECKING:
    from PIL import Image

DIGESTS = "digests.json"
_DUBLIN = "{http://purl.org/dc/elements/1.1/}"
_PNG_SHARE = 0.5  # of the limit of figures: all together have one, too


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
    folder = results_folder(run)
    shutil.rmtree(folder, ignore_errors=True)
    shown = {}
    for name, paths in figures.items():
        for path in paths:
            content, suffix = _small(path, 1024.0 * limit["figure_kb"])
            shown[path.stem] = f"figures/{name}/{path.stem}.{suffix}"
            atomic_write_bytes(folder / shown[path.stem], content)
    left_out = {}
    for name, path in tables.items():
        content = path.read_bytes()
        if len(content) > 1024.0 * limit["table_kb"]:
            left_out[name] = {"sha256": sha256(content), "rows": content.count(b"\n") - 1, "bytes": len(content)}
        else:
            atomic_write_bytes(folder / "tables" / f"{name}.csv", content)
    digests = {"tables": left_out, "figures": figure_digests(run, ".svg")}
    atomic_write_text(folder / DIGESTS, json.dumps(digests, indent=1) + "\n")
    atomic_write_text(folder / "README.md", _page(run, figures, shown, left_out))
    keep_stamps(run)
    return folder


def keep_stamps(run: str) -> None:
    """Write the stamps of kept or published tables beside them."""
    cards = {name: read_table_card(name, run) for name in experiment_names()}
    write_stamps(run, {name: card for name, card in cards.items() if card})


def _figure_files(run: str, name: str) -> list[Path]:
    """Figures of an experiment as SVG, in its order."""
    paths = [run_folder(run) / "figures" / name / f"{figure}.svg" for figure in figure_names(name)]
    for path in paths:
        if not path.is_file():
            raise ConfigError(f"{path} is missing; run: decima plot {name} --run {run}")
    return paths


def _small(path: Path, limit: float) -> tuple[bytes, str]:
    """Content and format of a kept figure: SVG, or a small PNG of large figures."""
    content = path.read_bytes()
    if len(content) <= limit:
        return content, "svg"
    from PIL import Image

    with Image.open(path.with_suffix(".png")) as opened:
        whole = opened.convert("RGB")
    for share in (1.0, 0.75, 0.6, 0.5, 0.4):
        content = _in_few_colours(whole.resize([int(share * size) for size in whole.size], Image.Resampling.LANCZOS))
        if len(content) <= _PNG_SHARE * limit:
            break
    return content, "png"


def _in_few_colours(picture: Image.Image) -> bytes:
    """A PNG with a palette: charts have few colours."""
    written = io.BytesIO()
    picture.quantize(128, dither=0).save(written, "png", optimize=True)
    return written.getvalue()


def _words(path: Path) -> dict[str, str]:
    """Title, description and source that an SVG file carries."""
    root = ElementTree.parse(path).getroot()
    return {key: root.findtext(f".//{_DUBLIN}{key}") or "" for key in ("title", "description", "source")}


def _page(run: str, figures: dict[str, list[Path]], shown: dict[str, str], left_out: dict[str, dict]) -> str:
    """``README.md`` of the folder."""
    notebooks = {name: slug for slug in notebook_slugs() for name in calls(notebook_code(slug), "experiments.figure")}
    lines = [
        f"# Results of run {run}",
        "",
        f"Figures and tables as the pipeline made them; `decima results --run {run}` writes this folder anew, and",
        "`decima reproduce --check` compares a run with it. Parameters are in [params.yaml](../../../params.yaml).",
        "",
    ]
    paper = None
    for name in sorted(figures, key=experiment_module):  # by paper and section
        package = experiment_module(name).rpartition(".")[0]
        if package != paper:
            paper = package
            lines += [f"## {import_module(package).__doc__.strip().rstrip('.')}", ""]
        lines += [f"### {experiment(name).section} ({name.replace('_', ' ')})", ""]
        for path in figures[name]:
            words = _words(path)
            links = [_table_link(name, table, left_out) for table in words["source"].split(", ")]
            slug = notebooks[path.stem]
            notebook = f"[{slug}](../../../{notebook_path(slug).relative_to(checkout()).as_posix()})"
            lines += [
                f"#### {words['title']}",
                "",
                f"![{_plain(words['title'])}. {_plain(words['description'])}]({shown[path.stem]})",
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
