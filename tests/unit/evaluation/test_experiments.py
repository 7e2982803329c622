"""Experiments on a tiny run of the embedded workload, in a checkout of their own; the pipeline's definition."""

import json
from pathlib import Path

import pytest
import yaml

from decima.evaluation import experiments
from decima.evaluation.experiments import store
from decima.exceptions import ConfigError

ROOT = Path(__file__).parents[3]
TINY = {
    "workload": "embedded",
    "executors": 10,
    "tuning": {"sequences": 2, "batch_jobs": 3, "stream_jobs": 3, "interarrival_s": [25], "budget": 8},
    "motivation": {"parallelism": [1, 5], "parallelism_seeds": 1, "mix_jobs": 3, "mixes": 2, "shown_mix": 0},
    "effects": {"seeds": 2, "schedulers": ["fifo", "fair"], "stream_jobs": 3, "interarrival_s": 25},
    "batch": {"batches": 2, "jobs": 3},
    "stream": {"streams": 2, "jobs": 3, "alpha_streams": 2, "interarrival_s": [25], "series_step_s": 20},
    "released": {"seeds": 2, "long_stream_jobs": 4},
    "bounds": {"instances": 1, "jobs": 3, "budget": 20},
    "appendix_a": {"epsilon_s": [0.1]},
    "appendix_e": {"seeds": 1, "iterations": 2, "every": 1, "test_graphs": 5},
    "appendix_h": {"batches": 2, "jobs": 3},
}
COLUMNS = {
    "tuning": {"tuned": {"arrivals", "scheduler", "parameters"}},
    "motivation": {"fig02_parallelism": {"job", "executors", "seed", "runtime_s"}},
    "effects": {"effects": {"setting", "scheduler", "seed", "avg_jct_s"}, "switches": {"base", "switch", "arrivals"}},
    "batch": {"batch": {"scheduler", "seed", "avg_jct_s"}, "alpha_batch": {"alpha", "sticky", "stage_rule"}},
    "stream": {"stream": {"scheduler", "seed", "interarrival_s"}, "stream_series": {"time_s", "active_jobs"}},
    "released": {"released": {"arrivals", "scheduler", "seed", "avg_jct_s"}},
    "bounds": {"bounds": {"arrivals", "instance", "policy", "avg_jct_s"}},
    "appendix_a": {"appendix_a": {"policy", "epsilon_s", "makespan_s", "paper_s"}},
    "appendix_e": {"appendix_e": {"scheme", "seed", "iteration", "accuracy"}, "appendix_e_graphs": {"guess_accuracy"}},
    "appendix_h": {"appendix_h": {"batch", "policy", "avg_jct_s"}},
}


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A folder that passes for a checkout, with a tiny run."""
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "decima-sched"\n')
    write_params(tmp_path, TINY)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write_params(folder, run):
    (folder / "params.yaml").write_text(yaml.safe_dump({"runs": {"tiny": run}}))


@pytest.mark.parametrize("name", experiments.EXPERIMENTS)
def test_every_experiment_writes_its_tables(checkout, name):
    tables = experiments.load(name, "tiny", progress=False)
    for table, columns in COLUMNS[name].items():
        assert columns <= set(tables[table].columns)
    for table, frame in tables.items():
        assert len(frame), table
        assert not frame.isna().any(axis=None), table
    card = json.loads((checkout / "reports" / "tiny" / "tables" / name / "card.json").read_text())
    assert card["workload"] == "embedded synthetic"
    assert card["parameters"] == TINY[name]


def test_tables_are_computed_once_and_again_when_parameters_change(checkout, monkeypatch):
    calls = []
    original = store.run_experiment

    def counted(*args, **kwargs):
        calls.append(args)
        return original(*args, **kwargs)

    monkeypatch.setattr(store, "run_experiment", counted)
    first = experiments.load("appendix_a", "tiny", progress=False)
    again = experiments.load("appendix_a", "tiny", progress=False)
    assert len(calls) == 1
    assert again["appendix_a"].equals(first["appendix_a"])
    write_params(checkout, TINY | {"appendix_a": {"epsilon_s": [0.2]}})
    changed = experiments.load("appendix_a", "tiny", progress=False)
    assert len(calls) == 2
    assert set(changed["appendix_a"]["epsilon_s"]) == {0.2}


def test_results_do_not_depend_on_the_number_of_threads(checkout):
    paths = [experiments.run_experiment("batch", "tiny", threads=n, progress=False)["batch"] for n in (1, 3)]
    contents = []
    for threads, path in zip((1, 3), paths, strict=True):
        experiments.run_experiment("batch", "tiny", threads=threads, progress=False)
        contents.append(path.read_bytes())
    assert contents[0] == contents[1]


def test_wrong_names_are_refused(checkout):
    with pytest.raises(ConfigError, match="unknown experiment 'nothing'"):
        experiments.load("nothing", "tiny")
    with pytest.raises(ConfigError, match=r"unknown run 'other'; params\.yaml has: tiny"):
        experiments.load("batch", "other")


def test_outside_a_checkout_the_error_says_so(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match="not inside a checkout"):
        experiments.run_names()


@pytest.fixture(scope="module")
def pipeline():
    return yaml.safe_load((ROOT / "dvc.yaml").read_text())["stages"]


@pytest.fixture(scope="module")
def runs():
    return yaml.safe_load((ROOT / "params.yaml").read_text())["runs"]


def test_pipeline_covers_every_run_experiment_and_notebook(pipeline, runs):
    slugs = sorted(path.stem for path in (ROOT / "notebooks").glob("[0-9]*.ipynb"))
    assert slugs
    assert sorted(pipeline["notebook"]["matrix"]["slug"]) == slugs
    for stage in ("learn-critical-paths", "plot", "notebook", "report"):
        assert sorted(pipeline[stage]["matrix"]["run"]) == sorted(runs)
    assert sorted(pipeline["plot"]["matrix"]["experiment"]) == sorted(experiments.EXPERIMENTS)
    for suffix, workload in (("", "tpch"), ("-embedded", "embedded")):
        of_workload = sorted(name for name, params in runs.items() if params["workload"] == workload)
        computed = ["tuning", "bounds", "appendix_e"]
        for stage in ("tune", "evaluate", "compare", "bound"):
            matrix = pipeline[stage + suffix]["matrix"]
            assert sorted(matrix["run"]) == of_workload
            computed += matrix.get("experiment", [])
        assert sorted(computed) == sorted(experiments.EXPERIMENTS)


def test_runs_have_the_same_parameters(runs):
    names = [set(params) for params in runs.values()]
    assert all(each == names[0] for each in names)
    for name in experiments.EXPERIMENTS:
        keys = [set(params[name]) for params in runs.values()]
        assert all(each == keys[0] for each in keys), name


def test_pipeline_dependencies_exist(pipeline):
    for name, stage in pipeline.items():
        for path in stage["deps"]:
            if "$" not in path and not path.startswith("data/"):
                assert (ROOT / path).exists(), f"{name}: {path}"
