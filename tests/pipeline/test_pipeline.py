"""The pipeline's definition against experiments, notebooks, runs and stored policies."""

import hashlib
import json
from pathlib import Path

import pytest
import yaml

from decima.reproduction.experiment import experiment_names
from decima.reproduction.report import notebook_slugs

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def pipeline():
    return yaml.safe_load((ROOT / "dvc.yaml").read_text())["stages"]


@pytest.fixture(scope="module")
def runs():
    return yaml.safe_load((ROOT / "params.yaml").read_text())["runs"]


def test_pipeline_covers_every_run_experiment_and_notebook(pipeline, runs, monkeypatch):
    monkeypatch.chdir(ROOT)
    assert sorted(pipeline["notebook"]["matrix"]["slug"]) == notebook_slugs()
    for stage in ("learn-critical-paths", "compare-with-spark", "schedule-spark", "plot", "notebook", "report"):
        assert sorted(pipeline[stage]["matrix"]["run"]) == sorted(runs)
    assert sorted(pipeline["plot"]["matrix"]["experiment"]) == sorted(experiment_names())
    for suffix, workload in (("", "tpch"), ("-embedded", "embedded")):
        of_workload = sorted(name for name, params in runs.items() if params["workload"] == workload)
        computed = ["tuning", "bounds", "learning", "measured", "fidelity", "real_spark", "appendix_e"]
        for stage in ("tune", "measure", "evaluate", "decide", "learn", "compare", "bound"):
            matrix = pipeline[stage + suffix]["matrix"]
            assert sorted(matrix["run"]) == of_workload
            computed += matrix.get("experiment", [])
        assert sorted(computed) == sorted(experiment_names())


def test_every_policy_is_the_output_of_a_frozen_training_stage(pipeline, runs):
    training = yaml.safe_load((ROOT / "params.yaml").read_text())["training"]
    real_spark = json.loads((ROOT / "data" / "spark" / "experiment" / "card.json").read_text())["schedulers"]
    used = {name for run in runs.values() for name in run["policies"].values()}
    assert set(training) == used | {real_spark["decima"]["parameters"]["policy"]}
    stage = pipeline["train"]
    assert stage["foreach"] == "${training}"
    assert stage["do"]["frozen"]  # an hour each: only `dvc repro -f -s` runs them
    outputs = {path: options for entry in stage["do"]["outs"] for path, options in entry.items()}
    assert set(outputs) == {"models/${key}.weights.h5", "models/${key}.json"}
    assert all(options["cache"] is False for options in outputs.values())


@pytest.mark.parametrize("name", list(yaml.safe_load((ROOT / "params.yaml").read_text())["training"]))
def test_stored_policies_are_those_of_the_lock_file(name):
    """Otherwise a fresh clone would train them anew; `dvc commit -f train@NAME` brings the lock file up to date."""
    locked = yaml.safe_load((ROOT / "dvc.lock").read_text())["stages"][f"train@{name}"]
    checksums = {out["path"]: out["md5"] for out in locked["outs"]}
    files = [f"models/{name}.json", f"models/{name}.weights.h5"]
    assert checksums == {path: hashlib.md5((ROOT / path).read_bytes()).hexdigest() for path in files}


def test_runs_have_the_same_parameters(runs):
    names = [set(params) for params in runs.values()]
    assert all(each == names[0] for each in names)
    for name in experiment_names():
        keys = [set(params[name]) for params in runs.values()]
        assert all(each == keys[0] for each in keys), name


def test_pipeline_dependencies_exist(pipeline):
    for name, stage in pipeline.items():
        for path in stage.get("do", stage)["deps"]:
            if "$" not in path and not path.startswith("data/"):
                assert (ROOT / path).exists(), f"{name}: {path}"
