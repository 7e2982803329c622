"""The pipeline's definition against experiments, notebooks, runs, stored policies and the code that stages execute."""

import hashlib
import json
import shlex
from dataclasses import asdict
from functools import cache
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from decima.cli import app
from decima.learning import run as training_run
from decima.workload.sources import list_sources
from experiments.closure import closure
from experiments.experiment import experiment, experiment_names
from experiments.pipeline import command_entries, pipeline_text
from experiments.report import notebook_slugs, num_stages

ROOT = Path(__file__).parents[2]
STAGES = yaml.safe_load((ROOT / "dvc.yaml").read_text(encoding="utf-8"))["stages"]
PARAMS = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
RUNS, TRAINING = PARAMS["runs"], PARAMS["training"]


@pytest.fixture(autouse=True)
def _in_the_checkout(monkeypatch):
    monkeypatch.chdir(ROOT)


def definition(name):
    """A stage as it is for each run."""
    return STAGES[name].get("do", STAGES[name])


@cache
def locked_stages():
    return yaml.safe_load((ROOT / "dvc.lock").read_text(encoding="utf-8"))["stages"]


def covered(path, dependencies):
    return any(path == given or path.startswith(f"{given}/") for given in dependencies)


def test_the_definition_is_what_the_package_writes():
    assert (ROOT / "dvc.yaml").read_text(encoding="utf-8") == pipeline_text(), "run: decima pipeline"


# DVC compares no dependencies of a frozen stage; the card of a policy names the revision that trained it.
COMPARED = [name for name in STAGES if not definition(name).get("frozen")]


@pytest.mark.parametrize("name", COMPARED)
def test_a_stage_depends_on_all_code_that_its_command_executes(name):
    stage = definition(name)
    entries, source = command_entries(stage["cmd"])
    missing = [path for path in closure(entries, source) if not covered(f"src/{path}", stage["deps"])]
    assert missing == []


@pytest.mark.parametrize("name", COMPARED)
def test_dependencies_on_code_exist(name):
    paths = [path for path in definition(name)["deps"] if path.startswith(("src/", "notebooks/"))]
    assert paths
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_intervals_make_stages_depend_on_the_statistics_that_compute_them():
    using = {name for name in COMPARED if covered("src/decima/evaluation/statistics.py", definition(name)["deps"])}
    assert {"batch", "stream", "real_spark", "plot-batch", "plot-effects", "notebook-07-decima"} <= using
    assert not {"effects", "motivation", "appendix_a", "appendix_e", "learning", "policy"} & using


def test_computing_tables_depends_on_nothing_that_draws_and_on_no_other_command():
    for name in experiment_names():
        paths = definition(name)["deps"]
        assert not [path for path in paths if path.startswith("src/decima/plotting/") and "__init__" not in path], name
        assert [path for path in paths if path.startswith("src/decima/commands/")] == [
            "src/decima/commands/__init__.py", "src/decima/commands/pipeline.py",
        ]  # fmt: skip


def test_the_comparison_with_spark_depends_on_reading_and_simulating_only():
    paths = definition("fidelity")["deps"]
    for stranger in (
        "learning/trainer.py",
        "connect/service/server.py",
        "systems/spark/policy/network.py",
        "connect/plugin/build.py",
    ):
        assert not covered(f"src/decima/{stranger}", paths)


def test_every_run_has_tables_and_figures_of_every_experiment_and_every_notebook():
    expected = {name for experiment_name in experiment_names() for name in (experiment_name, f"plot-{experiment_name}")}
    expected |= {f"notebook-{slug}" for slug in notebook_slugs()} | {"report"}
    assert {name for name, stage in STAGES.items() if stage.get("foreach") == "${runs}"} == expected
    assert STAGES["results"]["foreach"] == "${results}"
    assert set(PARAMS["results"]) <= set(RUNS)


@pytest.mark.parametrize("name", experiment_names())
def test_tables_depend_on_what_the_experiment_says_it_reads(name):
    stage = STAGES[name]["do"]
    for run, params in RUNS.items():
        filled = [path.replace("${key}", run).replace("${item.profiles}", params["profiles"]) for path in stage["deps"]]
        for use, policy in params["policies"].items():
            filled = [path.replace(f"${{item.policies.{use}}}", policy) for path in filled]
        for entry in experiment(name).inputs:
            for path in entry.paths(run, params):
                assert covered(path, filled) or not (ROOT / path).exists()
        assert not [path for path in filled if "$" in path]
        for path in (path.replace("${key}", run) for path in stage["params"]):
            block = PARAMS
            for key in path.split("."):
                block = block[key]


def test_every_policy_is_the_output_of_a_frozen_training_stage():
    real_spark = json.loads((ROOT / "data" / "spark" / "experiment" / "card.json").read_text())["schedulers"]
    used = {name for run in RUNS.values() for name in run["policies"].values()}
    stored = {path.name.removesuffix(".weights.h5") for path in (ROOT / "models").glob("*.weights.h5")}
    assert used | {real_spark["decima"]["parameters"]["policy"]} <= set(TRAINING)
    assert set(TRAINING) | set(PARAMS["cloud_training"]) == stored
    stage = STAGES["train"]
    assert stage["foreach"] == "${training}"
    assert stage["do"]["frozen"]  # an hour each: only `dvc repro -f -s` runs them
    outputs = {path: options for entry in stage["do"]["outs"] for path, options in entry.items()}
    assert set(outputs) == {"models/${key}.weights.h5", "models/${key}.json"}
    assert all(options["cache"] is False for options in outputs.values())


def flat(nested):
    """Fields of all levels."""
    found = {}
    for key, value in nested.items():
        found |= flat(value) if isinstance(value, dict) else {key: value}
    return found


@pytest.mark.parametrize("name", [name for name, block in TRAINING.items() if isinstance(block["jobs"], dict)])
def test_parameters_of_a_training_are_options_of_the_command(name, tmp_path, monkeypatch, request):
    if TRAINING[name]["jobs"]["source"] not in list_sources():
        request.getfixturevalue("tpch_data")  # what the name stands for may read them at once
    seen = []

    class StoppedError(Exception):
        pass

    def stop(*taken):
        seen.append(taken)
        raise StoppedError

    monkeypatch.setattr(training_run, "TrainingRun", stop)
    command = shlex.split(STAGES["train"]["do"]["cmd"].replace("${key}", name))[1:]
    command[command.index("--out") + 1] = str(tmp_path)
    assert isinstance(CliRunner().invoke(app, command).exception, StoppedError)
    ((task, recipe, architecture, _),) = seen
    block = TRAINING[name]
    jobs = block["jobs"]
    if jobs["source"] in list_sources():  # else a name for a source with options
        over_time = jobs.get("arrivals", "batch") != "batch"
        assert (task.source, task.kind) == (jobs["source"], "stream" if over_time else "batch")
    assert task.jobs == jobs.get("n", task.jobs)
    learning = flat(asdict(recipe))
    assert learning["iterations"] == block.get("iterations", learning["iterations"])
    for group, fields in block.get("changes", {}).items():
        of = {"settings": task.settings, "recipe": recipe.as_dict(), "architecture": asdict(architecture)}[group]
        assert json.loads(json.dumps({key: of[key] for key in fields})) == json.loads(json.dumps(fields))
    CliRunner().invoke(app, [*command, "--iterations", "7"])
    assert flat(asdict(seen[1][1]))["iterations"] == 7  # the command line goes before


def test_a_training_that_params_do_not_describe_is_refused(tmp_path, monkeypatch):
    answer = CliRunner().invoke(app, ["train", "--params", "none", "--out", str(tmp_path)])
    assert answer.exit_code == 2
    assert "--params none: params.yaml describes no such training; it has: tpch-batch" in answer.output
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "decima-sched"\n')
    (tmp_path / "params.yaml").write_text("training: {mine: {jobs: tpch, colour: red}}")
    monkeypatch.chdir(tmp_path)
    answer = CliRunner().invoke(app, ["train", "--params", "mine", "--out", str(tmp_path / "out")])
    assert answer.exit_code == 2
    assert "unknown option 'colour'" in answer.output


@pytest.mark.parametrize("name", TRAINING)
def test_stored_policies_are_those_of_the_lock_file(name):
    """Otherwise a fresh clone would train them anew; `dvc commit -f train@NAME` brings the lock file up to date."""
    locked = locked_stages()[f"train@{name}"]
    checksums = {out["path"]: out["md5"] for out in locked["outs"]}
    files = [f"models/{name}.json", f"models/{name}.weights.h5"]
    assert checksums == {path: hashlib.md5((ROOT / path).read_bytes()).hexdigest() for path in files}


def test_runs_have_the_same_parameters():
    names = [set(params) for params in RUNS.values()]
    assert all(each == names[0] for each in names)
    for name in experiment_names():
        keys = [set(params[name]) for params in RUNS.values()]
        assert all(each == keys[0] for each in keys), name


def test_stages_of_a_run_are_counted_before_there_is_any_data():
    """Experiments with figures, notebooks, the two stages of the data, the report; policies are frozen."""
    assert num_stages("report@tpch-quick") == 2 * len(experiment_names()) + len(notebook_slugs()) + 3
