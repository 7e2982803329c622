"""Mutations of parameters, data and code, each with exactly the results that it makes old."""

import re
from pathlib import Path

import pytest

from decima.core.errors import ConfigError
from experiments import rooms, stamps
from experiments.experiment import experiment_names
from experiments.rooms import digest, package_rooms, room_files, syntax

RUN = "tpch-full"
ALL = set(experiment_names())
# The benchmark has tasks on every system.
CLOUD = {"cloud", "cloud_results", "benchmark"}
HETEROGENEOUS = {name for name in ALL if name.startswith("heterogeneous")} | {"benchmark"}
SPARK = ALL - CLOUD - HETEROGENEOUS | {"benchmark"}


def results():
    """Keys of the stamps of all tables and figures."""
    made = {"tables": stamps.table_stamp, "figures": stamps.figure_stamp}
    return {part: {name: stamps.key(stamp(name, RUN)) for name in ALL} for part, stamp in made.items()}


@pytest.fixture(scope="module")
def before():
    return results()


def old(before):
    """Experiments whose tables, and whose figures, are not as before."""
    now = results()
    return [{name for name in ALL if now[part][name] != before[part][name]} for part in ("tables", "figures")]


@pytest.fixture
def change(monkeypatch):
    """Let a file have other text, without writing it."""

    def replaced(relative, pattern, text):
        path, of_file = rooms.ROOT / relative, rooms.content_digest
        read, read_text = Path.read_bytes, Path.read_text
        content = re.subn(pattern.encode(), text.encode(), read(path), count=1)
        assert content[1], f"{relative} has no {pattern}"
        monkeypatch.setattr(Path, "read_bytes", lambda each: content[0] if each == path else read(each))
        monkeypatch.setattr(
            Path,
            "read_text",
            lambda each, *values, **more: content[0].decode() if each == path else read_text(each, *values, **more),
        )
        here = Path(relative)
        monkeypatch.setattr(
            rooms, "content_digest", lambda each: of_file.__wrapped__(each) if each == here else of_file(each)
        )
        rooms._parts.cache_clear()

    yield replaced
    monkeypatch.undo()
    rooms._parts.cache_clear()


# What is changed, and the experiments whose tables are old then.
CODE = {
    "a rule of Spark, found by a registry": (
        ("src/decima/systems/spark/schedulers/baselines.py", r"\Z", "\nMORE = 1\n"), SPARK,
    ),
    "a constant that kernels of the cloud have": (
        ("src/decima/systems/cloud/engine.py", r"\Z", "\nMORE = 1\n"), CLOUD,
    ),
    "a rule of another system": (
        ("src/decima/systems/heterogeneous/schedulers/static.py", r"\Z", "\nMORE = 1\n"), HETEROGENEOUS,
    ),
    "the shared core": (("src/decima/core/random.py", r"\Z", "\nMORE = 1\n"), ALL),
    "a reader of people's own files": (("src/decima/workload/task_graphs.py", r"\Z", "\nMORE = 1\n"), set()),
    "capacity of event logs": (("src/decima/systems/spark/capacity.py", r"\Z", "\nMORE = 1\n"), {"capacity"}),
    "data of the package": (("src/decima/systems/heterogeneous/data/tpch_shuffle.csv", r"\d", "7777"), HETEROGENEOUS),
    "a file of references": (("src/decima/bench/bench-1.references.json", r"\d", "7777"), {"benchmark"}),
    "tasks of the benchmark": (("src/decima/bench/bench-1.yaml", r"\d", "7777"), {"benchmark"}),
    "recorded runs": (("data/spark/experiment/card.json", r"\d", "7777"), {"real_spark"}),
    "weights": (("models/idle_slots/idle-mixed-10.weights.h5", r"\A", "x"), {"idle_learned"}),
    "a docstring": (("src/decima/core/heap.py", r"\A\"\"\"", '"""Really: '), set()),
    "a comment": (("src/decima/core/heap.py", r"\Z", "# a remark\n"), set()),
    "another experiment": (("experiments/decima/s07_goals.py", r"\nHOME = ", "\nHOME = MORE = "), {"goals"}),
}  # fmt: skip


@pytest.mark.parametrize("what", CODE)
def test_a_change_makes_the_results_old_that_rest_on_it(what, before, change):
    (path, pattern, text), expected = CODE[what]
    change(path, pattern, text)
    assert old(before) == [expected, expected]


def test_what_only_figures_have_makes_no_table_old(before, change):
    change("src/decima/plotting/style.py", r"\Z", "\nMORE = 1\n")
    assert old(before) == [set(), ALL]


def test_a_figure_makes_the_figures_of_its_experiment_old(before, change):
    change("experiments/decima/s07_batch.py", "PAGE, 3.4", "PAGE, 3.5")
    assert old(before) == [set(), {"batch"}]


def test_a_helper_of_tables_makes_those_old_that_call_it(before, change):
    change("experiments/decima/s07_tuning.py", r"def weighted_fair_by_arrival\(", "def weighted_fair_by_arrival(*, ")
    tables, _ = old(before)
    assert tables == {"batch", "stream", "appendix_j"}


@pytest.mark.parametrize(
    ("section", "key", "value", "tables"),
    [
        ("idle_rules", "budget", 1, {"idle_rules"}),
        ("policies", "batch", "tpch-batch-random-2", None),
        ("policies", "entry_batch", "tpch-batch-entry-2", {"batch"}),
        ("policies", "released", "tpch-batch", {"released", "learning"}),
    ],
)
def test_parameters_and_policies_count_by_their_use(section, key, value, tables, before, monkeypatch):
    of_run = stamps.run_params
    params = of_run(RUN)
    assert params[section][key] != value
    params[section] = params[section] | {key: value}
    monkeypatch.setattr(stamps, "run_params", lambda run: params)
    changed, figures = old(before)
    users = {name for name in ALL if "policy for batch" in stamps.table_stamp(name, RUN)}
    assert {"batch", "motivation", "policy", "bounds", "appendix_h", "learning"} <= users
    assert changed == (users if tables is None else tables)
    assert figures == (ALL if section == "policies" else tables)  # captions may name policies


def test_notebooks_rest_on_the_system_of_their_paper(change):
    names = {"07-decima": "tpch-full", "31-cloud-results": "tpch-full"}
    before = {slug: stamps.notebook_stamp(slug, run) for slug, run in names.items()}
    change("src/decima/systems/spark/rules/durations.py", r"\Z", "\nMORE = 1\n")
    changed = {slug for slug, run in names.items() if stamps.notebook_stamp(slug, run) != before[slug]}
    assert changed == {"07-decima"}


def test_a_room_has_no_packages_inside_of_it_and_its_data():
    files = set(map(str, room_files(["systems/spark", "-systems/spark/capacity.py", "workload"])))
    assert {"src/decima/systems/__init__.py", "src/decima/systems/spark/engine.py"} <= files
    assert "src/decima/workload/data/tpch_spark_embedded.npz" in files
    inside = ("src/decima/systems/spark/rules/", "src/decima/systems/spark/capacity.py", "src/decima/workload/tpch/")
    assert not [each for each in files if each.startswith(inside) or "__pycache__" in each]
    with pytest.raises(ConfigError, match="there is no room nowhere: neither src/decima nor the checkout has such"):
        digest(["nowhere"])


def test_rooms_of_a_notebook_are_those_of_its_systems():
    rooms_of = package_rooms(["core", "systems/cloud"])
    assert {"core", "bench", "systems/cloud", "systems/cloud/policy", "learning/algorithms"} <= set(rooms_of)
    assert not [each for each in rooms_of if each.startswith(("systems/spark", "commands", "connect/service"))]


def test_docstrings_of_classes_and_functions_do_not_count():
    plain = "class A:\n    x = 1\n    def f(self):\n        return 1\n"
    documented = 'class A:\n    """A."""\n    x = 1\n    def f(self):\n        """F."""\n        return 1\n'
    assert syntax(plain) == syntax(documented)
    assert syntax(plain) != syntax(plain.replace("return 1", "return '1'"))
