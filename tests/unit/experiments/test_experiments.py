"""Every experiment on a tiny run of the embedded workload, in a checkout of its own."""

import fnmatch
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas
import pytest
import yaml

from decima.core.errors import ConfigError
from decima.core.system import SYSTEM_MODULES
from decima.learning.cards import RANDOM
from decima.learning.store import save_policy
from decima.systems.spark.policy.architecture import Architecture
from decima.workload import embedded
from experiments import making
from experiments import params as experiment_params
from experiments import tables as store
from experiments.decima import s13_learning as learning
from experiments.experiment import PolicyInput, experiment, experiment_module, experiment_names
from experiments.params import run_names
from experiments.rooms import DRAWING, definitions, room_files
from experiments.stamps import table_code
from tests.unit.connect.planted_logs import write_folders
from tests.unit.measure.fidelity.test_simulation import LEVELS, job

ROOT = Path(__file__).parents[3]
TINY = {
    "workload": "embedded",
    "profiles": "src/decima/workload/data/tpch_spark_embedded.npz",
    "executors": 10,
    "policies": {
        "batch": "tiny",
        "stream": "tiny",
        "warm_batch": "tiny-warm",
        "warm_stream": "tiny-warm",
        "warm_curve": "tiny-warm",
        "entry_batch": "tiny-entry",
        "entry_stream": "tiny-entry",
        "released": "tiny-warm",
    },
    **{name: dict(experiment(name).tiny) for name in experiment_names()},
}
KEPT = ROOT / "reports" / "reference" / "embedded-quick.zip"


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A folder that passes for a checkout, with a tiny run, a policy that knows nothing and curves of its training."""
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "decima-sched"\n')
    write_params(tmp_path, TINY)
    store_policy(tmp_path, seed=0)
    rng = np.random.default_rng(0)
    write_folders(tmp_path / "data", [job(f"q{number:02d}", 1.0, rng) for number in (1, 2)], LEVELS)
    for kept in ("data/spark/experiment", "reports/bench", "benchmarks/results"):
        shutil.copytree(ROOT / kept, tmp_path / kept)
    training = tmp_path / "models" / "training"
    training.mkdir()
    values = {
        "run": "tiny-0", "setting": "tiny", "recipe": "fast-batch", "variant": "recipe", "seed": 0, "iterations": 20,
        "wall_s": 130.0, "cpu_s": 300.0, "cores": 4, "stored_as": "tiny", "test_greedy_s": 1.0, "test_sampled_s": 1.0,
        "note": "",
    }  # fmt: skip
    warm = {**values, "setting": "tiny-warm", "stored_as": "tiny-warm"}
    others = {**values, "setting": learning.ENCODINGS, "variant": "limit as output"}
    write_table(training / "runs.csv", learning.RUN_COLUMNS, values, warm, others)
    curve = [(0, 0.0, 0.0, 50.0, 51.0), (10, 50.0, 150.0, "", ""), (20, 130.0, 300.0, 30.0, 31.0)]
    pandas.DataFrame(curve, columns=learning.CURVE_COLUMNS).to_csv(training / "tiny-0.csv", index=False)
    reference = {"setting": "tiny", "scheduler": "weighted_fair", "avg_jct_s": 40.0}
    others = [{**reference, "setting": setting} for setting in ("tiny-warm", learning.ENCODINGS)]
    write_table(training / "references.csv", learning.REFERENCE_COLUMNS, reference, *others)
    write_table(training / "ideas.csv", learning.IDEA_COLUMNS, {
        "idea": "less", "setting": "tiny", "change_percent": 1.0, "low": 0.0, "high": 2.0, "kept": "no", "note": "",
    })  # fmt: skip
    for name in ("cloud.csv", "cloud_grid.csv", "cloud_agents.csv", "cloud_ablation.csv", "continuing.csv"):
        shutil.copy(ROOT / "models" / "training" / name, training)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def store_policy(folder, seed):
    """Policies whose cards say that they learned in different ways; one saw more."""
    plain, more = Architecture.paper(), replace(Architecture.paper(), more_features=("slope",))
    origins = {
        "tiny": RANDOM,
        "tiny-warm": "imitation of fair",
        "tiny-entry": RANDOM,
    }
    for name, origin in origins.items():
        card, architecture = {"greedy": True, "learned": {"from": origin}}, more if name == "tiny-entry" else plain
        save_policy(folder / "models" / "decima" / name, architecture, architecture.initial_weights(seed), card)


def write_table(path, columns, *rows):
    pandas.DataFrame(list(rows), columns=columns).to_csv(path, index=False)


def write_params(folder, run):
    (folder / "params.yaml").write_text(yaml.safe_dump({"runs": {"tiny": run}, "results": {}}))


def test_only_what_learned_from_random_weights_is_called_decima(checkout):
    write_params(checkout, TINY | {"policies": TINY["policies"] | {"batch": "tiny-warm"}})
    with pytest.raises(ConfigError, match=r"tiny-warm was not trained from scratch; .* under warm_batch"):
        store.load("bounds", "tiny", progress=False)


DAILY = ("appendix_a", "cloud")
EACH = [pytest.param(name, marks=() if name in DAILY else pytest.mark.slow) for name in experiment_names()]


@pytest.mark.parametrize("name", EACH)
def test_every_experiment_reads_what_its_stamp_has_writes_its_tables_and_draws_its_figures(checkout, watched, name):
    for needed in experiment(name).needs:
        store.load(needed, "tiny", progress=False)
    of_tables, of_figures = watched(name)
    check_rests_on_stamp(name, of_tables, of_figures)
    stored = [each for each in of_tables["opened"] if each.startswith("models/")]
    check_inputs(name, of_tables["here"] + stored)
    tables = store.load(name, "tiny", progress=False)
    with zipfile.ZipFile(KEPT) as kept:
        names = [entry for entry in kept.namelist() if entry.startswith(f"{name}/")]
        columns = {entry.split("/")[1]: list(pandas.read_csv(kept.open(entry), nrows=0)) for entry in names}
    assert {table: list(frame) for table, frame in tables.items()} == columns
    for table, frame in tables.items():
        assert len(frame), table
        assert not frame.isna().any(axis=None), table
    card = json.loads((checkout / "reports" / "tiny" / "cards" / f"{name}.json").read_text())
    assert card["workload"] == embedded.LABEL
    assert card["parameters"] == TINY[name]
    chosen = experiment(name)
    assert chosen.name == name
    assert chosen.figures
    for table, patterns in chosen.may_differ.items():
        assert all(fnmatch.filter(tables[table].columns, pattern) for pattern in patterns)


@pytest.fixture(scope="module")
def watched():
    """Function that says what a process opens, calls and imports that computes tables, and draws and checks figures."""
    program = Path(__file__).with_name("watched.py")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    with subprocess.Popen(
        [sys.executable, program], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:

        def ask(name):
            process.stdin.write(f"{name} {Path.cwd()}\n")
            process.stdin.flush()
            found = json.loads(process.stdout.readline())
            assert isinstance(found, dict), found
            return found["tables"], found["figures"]

        yield ask
        process.stdin.close()


# Decides whether something is computed; what is computed does not follow from it.
MACHINERY = {f"experiments/{name}.py" for name in ("figures", "notebooks", "params", "rooms", "stamps", "tables")}
MACHINERY |= {"pyproject.toml", "src/decima/__init__.py", "experiments/experiment.py", "experiments/captions.py"}
# Imported only: a reader of files that no experiment has, and what keeps TensorFlow quiet.
MACHINERY |= {"src/decima/workload/task_graphs.py", "src/decima/learning/quiet.py"}


def check_rests_on_stamp(name, of_tables, of_figures):
    """All code and data of the checkout that were opened or executed are in the stamp.

    Of plotting, the service and other systems nothing may be called for tables: modules import the first for their
    figures, and registries import the others.
    """
    chosen = experiment(name)
    rooms = {str(path) for path in room_files(chosen.rooms)}
    drawing = rooms | {str(path) for path in room_files(DRAWING)}
    own = {room.split("/")[1] for room in chosen.rooms if room.startswith("systems/")}
    passive = ("src/decima/connect/service/", "src/decima/connect/__init__.py", "src/decima/plotting/")
    passive += tuple(f"src/decima/systems/{each}/" for each in SYSTEM_MODULES if each not in own)
    for part, found, covered in (("tables", of_tables, rooms), ("figures", of_figures, drawing)):
        # Compiled code is named by the content of its sources.
        data = [each for each in found["opened"] if not re.search(r"\.py$|/__pycache__/|^src/decima/_kernels/", each)]
        imported = [each for each in found["imported"] if not each.startswith(passive)] if part == "tables" else []
        code = [each for each in imported + found["called"] if each.startswith(("src/", "measure/"))]
        outside = {*data, *code} - covered - MACHINERY
        assert [each for each in outside if not each.startswith((".venv", "build/", "models/"))] == [], part
        assert set(found["started"]) <= {"uname"}, part
    reached = {f"{module.replace('.', '/')}.py" for module, _ in definitions(table_code(name))}
    assert {each for each in of_tables["called"] if each.startswith("experiments/")} <= MACHINERY | reached


def check_inputs(name, opened):
    """All other files that were opened are inputs of the experiment."""
    inputs = experiment(name).inputs
    policies = {each for entry in inputs if isinstance(entry, PolicyInput) for each in entry.policies(TINY).values()}
    paths = [path for entry in inputs if not isinstance(entry, PolicyInput) for path in entry.paths("tiny", TINY)]
    known = ("params.yaml", "pyproject.toml", f"reports/tiny/tables/{name}", "reports/tiny/cards", *paths)
    others = [each for each in opened if not each.startswith(known)]
    assert [each for each in others if Path(each).name.split(".")[0] not in policies] == []


def test_tables_are_computed_once_and_again_when_parameters_change(checkout, monkeypatch):
    calls = []
    original = store.run_experiment

    def counted(*args, **kwargs):
        calls.append(args)
        return original(*args, **kwargs)

    monkeypatch.setattr(store, "run_experiment", counted)
    first = store.load("appendix_a", "tiny", progress=False)
    again = store.load("appendix_a", "tiny", progress=False)
    assert len(calls) == 1
    assert again["appendix_a"].equals(first["appendix_a"])
    write_params(checkout, TINY | {"appendix_a": {"epsilon_s": [0.2]}})
    changed = store.load("appendix_a", "tiny", progress=False)
    assert len(calls) == 2
    assert set(changed["appendix_a"]["epsilon_s"]) == {0.2}


def test_of_two_that_want_the_same_tables_one_computes(checkout, monkeypatch):
    calls, begun, second_waits = [], threading.Event(), threading.Event()
    original, original_lock = store.run_experiment, store.sole_use

    def slow(*args, **kwargs):
        calls.append(args)
        begun.set()
        second_waits.wait(5.0)
        return original(*args, **kwargs)

    def noticed_lock(*args, **kwargs):
        if begun.is_set():
            second_waits.set()
        return original_lock(*args, **kwargs)

    monkeypatch.setattr(store, "run_experiment", slow)
    monkeypatch.setattr(store, "sole_use", noticed_lock)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(store.load, "appendix_a", "tiny")
        assert begun.wait(60.0)
        second = pool.submit(store.load, "appendix_a", "tiny")
        assert first.result()["appendix_a"].equals(second.result()["appendix_a"])
    assert second_waits.is_set()
    assert len(calls) == 1


def test_what_is_up_to_date_is_neither_computed_nor_drawn_again(checkout):
    figures = checkout / "reports" / "tiny" / "figures" / "appendix_a"
    assert making.make("appendix_a", "tiny", progress=False).startswith("appendix_a: 2 tables, 4 files of figures in ")
    drawn = min(figures.glob("*.png"))
    before = drawn.stat().st_mtime_ns
    said = "appendix_a: 2 tables and 2 figures are up to date"
    assert making.make("appendix_a", "tiny", progress=False) == said
    assert drawn.stat().st_mtime_ns == before
    drawn.unlink()
    assert making.make("appendix_a", "tiny", progress=False) != said
    write_params(checkout, TINY | {"policies": TINY["policies"] | {"stream": "other"}})  # on which figures may depend
    assert making.make("appendix_a", "tiny", progress=False) != said
    assert drawn.is_file()


def test_processes_begin_with_different_systems_and_needed_tables_come_first():
    names = making.in_turn()
    assert sorted(names) == sorted(experiment_names())
    assert {experiment_module(name).split(".")[1] for name in names[:2]} == {"decima", "cloud"}
    assert all(names.index(needed) < names.index(name) for name in names for needed in experiment(name).needs)


@pytest.mark.slow
def test_all_experiments_are_made_several_at_a_time_and_timings_last(checkout, monkeypatch):
    names = ["latency", "appendix_a", "tuning", "effects"]
    monkeypatch.setattr(making, "experiment_names", lambda: names)
    making.make_all("tiny", workers=2)
    cards = {path.stem: path.stat().st_mtime_ns for path in (checkout / "reports" / "tiny" / "cards").iterdir()}
    assert sorted(cards) == sorted(names)
    assert max(cards, key=cards.get) == "latency"
    folders = [checkout / "reports" / "tiny" / part for part in ("tables", "figures")]
    assert all((folder / name).is_dir() for folder in folders for name in names)


def test_tables_are_computed_again_when_the_weights_of_a_policy_change(checkout):
    first = store.load("motivation", "tiny", progress=False)["fig03_summary"]
    store_policy(checkout, seed=1)
    second = store.load("motivation", "tiny", progress=False)["fig03_summary"]
    policy = first["scheduler"].str.startswith("decima")
    assert first[~policy].equals(second[~policy])
    assert not first[policy].equals(second[policy])


def test_curves_keep_rows_with_a_validation_and_both_forms_of_the_recipe_have_one_name(checkout):
    tables = store.load("learning", "tiny", progress=False)
    assert tables["learning_curves"]["iteration"].to_list() == [0, 20] * 2
    assert set(tables["learning_runs"]["recipe"]) == {"fast"}
    budgets = tables["learning_budgets"].set_index(["setting", "budget_min"]).loc["tiny"]
    assert budgets["best_s"].to_dict() == {1: 50.0, 2: 50.0}  # the better one came later than two minutes
    assert budgets.loc[1, "change_percent"] == pytest.approx(25.0)


def test_wrong_names_are_refused(checkout):
    with pytest.raises(ConfigError, match="unknown experiment 'nothing'"):
        store.load("nothing", "tiny")
    with pytest.raises(ConfigError, match=r"unknown run 'other'; params\.yaml has: tiny"):
        store.load("batch", "other")


def test_outside_a_checkout_that_of_the_package_counts_and_where_there_is_none_the_error_says_so(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run_names() == ["tpch-quick", "embedded-quick", "tpch-full"]
    monkeypatch.setattr(experiment_params, "_root", lambda folder: None)
    with pytest.raises(ConfigError, match="not inside a checkout"):
        run_names()
