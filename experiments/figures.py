"""Figures of experiments: by name for notebooks, into files for the pipeline."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from decima import plotting
from decima.core.errors import ConfigError
from experiments.captions import Run, Tables
from experiments.experiment import experiment, experiment_module, experiment_names
from experiments.params import read_params, resolve_run

if TYPE_CHECKING:
    import pandas

    from decima.plotting.style import Figure


def figure_names(name: str) -> list[str]:
    """Names of the figures of an experiment, which are also their file names."""
    return [make.__name__ for make in experiment(name).figures]


def figure(name: str, tables: Tables, run: str = "auto") -> Figure:
    """One figure by name, from the tables of its experiment; its title names the run.

    Raises:
        ConfigError: There is no such figure or run.
    """
    owner = experiment(experiment_of(name))
    (make,) = [make for make in owner.figures if make.__name__ == name]
    drawn = _draw_from(make, tables, run)
    title = f"This run ({resolve_run(run)}): {drawn.title}"
    drawn.suptitle(textwrap.fill(title, int(13 * drawn.get_figwidth())))
    return drawn


@cache
def experiment_of(name: str) -> str:
    """Name of the experiment of a figure; only modules with that name are imported.

    Raises:
        ConfigError: There is no such figure.
    """
    for each in experiment_names():
        text = Path(find_spec(experiment_module(each)).origin).read_text(encoding="utf-8")
        if name in text and name in figure_names(each):
            return each
    known = [figure for each in experiment_names() for figure in figure_names(each)]
    raise ConfigError(f"unknown figure {name!r}; known: {', '.join(known)}")


def draw(name: str, run: str, tables: Tables, folder: str | Path) -> list[Path]:
    """Draw an experiment's figures into a folder: png, svg, of a published run pdf."""
    paths: list[Path] = []
    kinds = plotting.style.KINDS if run in read_params("results") else ("png", "svg")
    for make in experiment(name).figures:
        paths += plotting.style.save(_draw_from(make, tables, run), Path(folder) / make.__name__, kinds)
    return paths


def drawn(name: str, run: str, paths: Mapping[str, Path]) -> dict[str, bytes | None]:
    """Figures of an experiment as SVG by name; None where a table is missing."""
    import pandas

    tables = {table: pandas.read_csv(path) for table, path in paths.items()}
    figures: dict[str, bytes | None] = {}
    for make in experiment(name).figures:
        try:
            figures[make.__name__] = plotting.style.image(_draw_from(make, tables, run), "svg")
        except MissingTableError:
            figures[make.__name__] = None
    return figures


class MissingTableError(KeyError):
    """A figure needs a table that is not there."""


class _ReadTables(dict):
    """Tables that know which of them were read."""

    def __init__(self, tables: Tables) -> None:
        super().__init__(tables)
        self.read: dict[str, None] = {}

    def __getitem__(self, name: str) -> pandas.DataFrame:
        self.read.setdefault(name)
        return super().__getitem__(name)

    def __missing__(self, name: str) -> pandas.DataFrame:
        raise MissingTableError(name)


def _draw_from(make: Callable[..., Figure], tables: Tables, run: str) -> Figure:
    """A figure that names the tables that it was drawn from."""
    tables = _ReadTables(tables)
    with plotting.style.context():
        figure = make(tables, Run.named(run))
    figure.sources = tuple(tables.read)
    return figure
