"""Program that computes the tables of experiments and draws their figures: a line EXPERIMENT FOLDER of stdin each.

Each is computed in a fork, which has imported the libraries but no module of this checkout, with the folder for the
checkout. It prints, as JSON, which files of this checkout were opened meanwhile, of which code was called or imported,
and whether another process was started; what decides whether something is computed does not count.
"""

import cProfile
import importlib
import inspect
import json
import os
import sys
import threading
import traceback
import warnings
from contextlib import contextmanager
from importlib.machinery import SourceFileLoader
from pathlib import Path

watching, importing = [], []
profilers = {}  # of each thread; one in Python would take most of the time
found = {part: set() for part in ("opened", "imported", "started")}


def audit(event, values):
    if watching and event == "open" and isinstance(values[0], (str, bytes)):
        found["opened"].add(os.path.abspath(os.fsdecode(values[0])))
    elif watching and event in ("subprocess.Popen", "os.fork", "os.posix_spawn", "os.system"):
        found["started"].add(str(values[0]))


def count(*_):
    """Count the calls of this thread from here on, or no longer."""
    profiler = profilers.setdefault(threading.get_ident(), cProfile.Profile(subcalls=False, builtins=False))
    (profiler.enable if watching and not importing else profiler.disable)()


def begun(*_):
    """A call in a thread that is not counted yet."""
    if watching:
        count()


def without(execute):
    """The function that executes a module; what is called meanwhile does not count, others may call it, too."""

    def call(*values):
        importing.append(values)
        count()
        try:
            return execute(*values)
        finally:
            importing.pop()
            count()

    return call


def called():
    """Files of the functions that were counted; TensorFlow asks all modules for names that they do not have."""
    codes = {entry.code for profiler in profilers.values() for entry in profiler.getstats()}
    functions = (code for code in codes if not isinstance(code, str) and code.co_flags & inspect.CO_OPTIMIZED)
    return {code.co_filename for code in functions if code.co_qualname != "__getattr__"}


@contextmanager
def only(on):
    before = watching[:]
    watching[:] = [True] * on
    count()
    try:
        yield
    finally:
        watching[:] = before
        count()


def between(function, on):
    """The function, watched or not."""

    def call(*values, **options):
        with only(on):
            return function(*values, **options)

    return call


def main(name, run):
    sys.addaudithook(audit)
    from dataclasses import replace

    from experiments import figures, tables
    from experiments.experiment import experiment
    from experiments.rooms import ROOT

    chosen = experiment(name)
    watched = replace(chosen, compute=between(chosen.compute, True))
    tables.experiment = lambda other: watched if other == name else experiment(other)
    tables.get_source = between(tables.get_source, True)
    for needed in chosen.needs:
        tables.load(needed, run, kept=False)
    tables.load = between(tables.load, False)
    threading.setprofile(begun)
    SourceFileLoader.exec_module = without(SourceFileLoader.exec_module)
    tables.run_experiment(name, run)
    computed = tables.load(name, run, kept=False)
    of_tables = taken(ROOT)
    with only(True):
        drawn = [figures._draw_from(make, computed, run) for make in chosen.figures]
    found_here = {"tables": of_tables, "figures": taken(ROOT)}
    for made in drawn:
        check_figure(made)
    return found_here


def check_figure(made):
    """A figure says what it shows and how many runs, and nothing of it lies outside."""
    assert "(" in made.get_suptitle()  # of the workload
    assert any(character.isdigit() for character in made.caption)
    with warnings.catch_warnings(action="error"):  # axes without room for what is drawn
        made.canvas.draw()
    width, height = made.canvas.get_width_height()
    for text in (made._suptitle, made._supxlabel):
        box = text.get_window_extent()
        assert 0 <= box.x0 <= box.x1 <= width
        assert 0 <= box.y0 <= box.y1 <= height


def taken(root):
    """What was found, relative to the checkout; what lies elsewhere counts only where it was opened."""
    found["imported"] |= {module.__file__ for module in list(sys.modules.values()) if getattr(module, "__file__", None)}
    found["called"] = called()
    inside = {part: [Path(each) for each in names if each.startswith(f"{root}/")] for part, names in found.items()}
    files = {part: sorted(str(each.relative_to(root)) for each in each_part) for part, each_part in inside.items()}
    here = [os.path.relpath(each) for each in found["opened"] if each.startswith(f"{os.getcwd()}/")]
    for each in (*profilers.values(), *found.values()):
        each.clear()
    return files | {"here": sorted(here)}


LIBRARIES = ("numba", "pandas", "pyarrow.parquet", "matplotlib.pyplot", "seaborn", "networkx", "scipy.optimize", "yaml")


def answer(name, folder):
    """Do what is asked in a fork, which writes the answer: what it found, or the traceback as a text."""
    if child := os.fork():
        if status := os.waitpid(child, 0)[1]:
            os.write(ANSWERS, f'"it ended with status {status}"\n'.encode())
        return
    try:
        os.chdir(folder)
        found_here = main(name, "tiny")
    except BaseException:
        found_here = traceback.format_exc()
    os.write(ANSWERS, f"{json.dumps(found_here)}\n".encode())
    os._exit(0)


if __name__ == "__main__":
    ANSWERS = os.dup(1)
    os.dup2(2, 1)
    for library in LIBRARIES:
        importlib.import_module(library)
    for line in sys.stdin:
        answer(*line.split())
