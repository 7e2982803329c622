"""Tables and figures of experiments that are out of date, several experiments at a time."""

from __future__ import annotations

import json
import os
import sys
from functools import partial

from decima.core.files import atomic_write_text
from decima.evaluation.workers import ProcessWorkers
from experiments.experiment import experiment, experiment_module, experiment_names
from experiments.figures import draw, figure_names
from experiments.params import resolve_run, run_folder
from experiments.stamps import figure_stamp, key
from experiments.tables import card_path, load, read_table_card

MOST_AT_ONCE = 4  # an experiment takes up to 2 GB
_FIRST = "load"  # compiles what most experiments on Spark need
_OTHER_KERNELS = ("heterogeneous", "cloud")  # folders of experiments that share no kernels with those
_FIGURES = "figures"  # entry of a card: key of the stamp that the drawn figures have


def make(name: str, run: str = "auto", *, threads: int | None = None, progress: bool = True) -> str:
    """Compute tables and draw figures of an experiment unless their stamp is the present one.

    Args:
        name: The experiment.
        run: Run of ``params.yaml``.
        threads: Worker threads, all cores by default.
        progress: Show progress bars.

    Returns:
        A line for people.
    """
    run = resolve_run(run)
    tables = load(name, run, threads=threads, progress=progress, kept=False)
    folder, path, stamp = run_folder(run) / "figures" / name, card_path(name, run), key(figure_stamp(name, run))
    card = read_table_card(name, run)
    drawn = all((folder / f"{figure}.png").is_file() for figure in figure_names(name))
    if drawn and card.get(_FIGURES) == stamp:
        return f"{name}: {len(tables)} tables and {len(figure_names(name))} figures are up to date"
    files = draw(name, run, tables, folder)
    atomic_write_text(path, json.dumps(card | {_FIGURES: stamp}, indent=2) + "\n")
    return f"{name}: {len(tables)} tables, {len(files)} files of figures in {folder}"


def make_all(run: str = "auto", *, threads: int | None = None, workers: int | None = None) -> None:
    """Make all experiments of a run, several at a time, with a line for each.

    Each process makes several experiments, one after the other. What is done stays when another one fails, or after
    Ctrl-C. Experiments that measure times come last and alone.

    Args:
        run: Run of ``params.yaml``.
        threads: Threads of each process; by default the cores, divided among the processes.
        workers: Processes, by default one per core, at most 4.

    Raises:
        WorkerError: A process died.
    """
    run, cores = resolve_run(run), os.cpu_count() or 1
    workers = workers or min(cores, MOST_AT_ONCE)
    timed = [name for name in experiment_names() if experiment(name).timed]
    others = [name for name in in_turn() if name not in timed]
    pool = ProcessWorkers(partial(_make_and_say, run=run, threads=threads or max(1, cores // workers)), workers)
    try:
        pool.map(others)
    finally:
        pool.close()
    for name in timed:
        _make_and_say(name, run, threads)


def in_turn() -> list[str]:
    """Names of experiments in an order in which no process repeats another's work or waits.

    Two processes begin with different kernels; experiments that read tables of others come last.
    """
    needs = {name: experiment(name).needs for name in experiment_names()}
    needed = set().union(*needs.values())

    def turn(name: str) -> int:
        if name == _FIRST or experiment_module(name).split(".")[1] in _OTHER_KERNELS:
            return int(name != _FIRST)
        return 2 if name in needed else 4 if needs[name] else 3

    return sorted(needs, key=turn)


def _make_and_say(name: str, run: str, threads: int | None) -> None:
    sys.stdout.write(make(name, run, threads=threads, progress=False) + "\n")
    sys.stdout.flush()
