"""Experiments on a tiny run of the embedded workload, in a checkout of their own; the pipeline's definition."""

import hashlib
import json
import shutil
from pathlib import Path

import numpy as np
import pandas
import pytest
import yaml

from decima.evaluation import experiments
from decima.evaluation.experiments import learning, store
from decima.evaluation.report import notebook_slugs
from decima.exceptions import ConfigError, PolicyError
from decima.policy.architecture import Architecture
from decima.policy.store import save_policy
from decima.workload import embedded
from tests.unit.spark.fidelity.test_simulation import LEVELS, job
from tests.unit.spark.planted_logs import write_folders

ROOT = Path(__file__).parents[3]
TINY = {
    "workload": "embedded",
    "executors": 10,
    "policies": {"batch": "tiny", "stream": "tiny", "released": "tiny"},
    "tuning": {"sequences": 2, "batch_jobs": 3, "stream_jobs": 3, "interarrival_s": [25], "budget": 8},
    "motivation": {"parallelism": [1, 5], "parallelism_seeds": 1, "mix_jobs": 3, "mixes": 2, "shown_mix": 0},
    "measured": {"bootstrap": 20},
    "effects": {"seeds": 2, "schedulers": ["fifo", "fair"], "stream_jobs": 3, "interarrival_s": 25},
    "batch": {"batches": 2, "jobs": 3},
    "stream": {"streams": 2, "jobs": 3, "alpha_streams": 2, "interarrival_s": [25], "series_step_s": 20},
    "real_spark": {"seeds": 2},
    "released": {"seeds": 2, "long_stream_jobs": 4},
    "bounds": {"instances": 1, "jobs": 3, "budget": 20},
    "fidelity": {"alone": ["data/alone"], "mixes": ["data/mix"], "simulations": 2},
    "appendix_a": {"epsilon_s": [0.1]},
    "appendix_e": {"seeds": 1, "iterations": 2, "every": 1, "test_graphs": 5},
    "appendix_h": {"batches": 2, "jobs": 3},
    "policy": {"seed": 0},
    "variance": {
        "interarrival_s": 10, "shared_s": 30, "horizon_s": 90, "step_s": 10, "sequences": 3, "rollouts": 2,
    },
    "latency": {"stream_jobs": 5, "interarrival_s": 25, "jobs": [1, 3], "decisions": 5},
    "learning": {"budgets_min": [1, 2]},
}  # fmt: skip
COLUMNS = {
    "tuning": {"tuned": {"arrivals", "scheduler", "parameters"}},
    "motivation": {"fig02_parallelism": {"job", "executors", "seed", "runtime_s"}},
    "effects": {"effects": {"setting", "scheduler", "seed", "avg_jct_s"}, "switches": {"base", "switch", "arrivals"}},
    "measured": {
        "measured_parameters": {"effect", "of", "query", "exponent", "low", "high"},
        "measured_residuals": {"query", "stage", "scale", "wave", "level", "residual"},
        "measured_holdout": {"held_out", "wave", "form", "error_percent", "bias_percent"},
        "measured_slowdown": {"wave", "source", "level", "slowdown"},
        "measured_jobs": {"source", "query", "size_gb", "tasks", "work_s"},
    },
    "policy": {
        "policy_stages": {"job", "stage", "finished"},
        "policy_nodes": {"job", "stage", "level", "x0", "x4", "e0", "e15"},
        "policy_candidates": {"job", "stage", "q", "probability", "chosen"},
        "policy_limits": {"limit", "w", "probability", "used"},
        "policy_parity": {"quantity", "numbers", "largest_difference"},
    },
    "variance": {
        "variance_arrivals": {"sequence", "arrival_s", "work_s"},
        "variance_explained": {"time_s", "time_baseline_s", "input_baseline_s", "share", "parted"},
    },
    "batch": {
        "batch": {"scheduler", "seed", "avg_jct_s"},
        "batch_changes": {"against", "scheduler", "change_percent", "low", "high"},
        "alpha_batch": {"alpha", "sticky", "stage_rule"},
    },
    "stream": {
        "stream": {"scheduler", "seed", "interarrival_s"},
        "stream_changes": {"interarrival_s", "against", "scheduler", "change_percent"},
        "stream_series": {"time_s", "active_jobs"},
        "stream_executed": {"scheduler", "job", "executed_s", "executors"},
    },
    "latency": {"latency": {"time_s", "active_jobs", "latency_ms"}, "latency_jobs": {"jobs", "latency_ms"}},
    "learning": {"learning_runs": {"run", "stored_as"}, "learning_budgets": {"budget_min", "change_percent"}},
    "real_spark": {
        "real_spark": {"where", "batch", "repetition", "scheduler", "avg_jct_s", "makespan_s"},
        "real_spark_changes": {"where", "metric", "against", "scheduler", "pairs", "change_percent", "low", "high"},
        "real_spark_jobs": {"where", "batch", "scheduler", "job", "query", "real_s", "simulated_s"},
        "real_spark_tasks": {"where", "scheduler", "job", "job_name", "executor", "start_s", "finish_s"},
        "real_spark_runs": {"scheduler", "usable", "wait_share", "foreign_share"},
        "real_spark_latency": {"scheduler", "decisions", "steered_share", "round_trip_ms_median"},
    },
    "released": {"released": {"arrivals", "scheduler", "seed", "avg_jct_s"}},
    "bounds": {"bounds": {"arrivals", "instance", "policy", "avg_jct_s"}},
    "fidelity": {
        "fidelity_runs": {"setting", "name", "executors", "repetition", "variant", "profile", "real_s", "simulated_s"},
        "fidelity_floor": {"setting", "name", "real_s", "others_s", "error"},
        "fidelity_summary": {"setting", "profile", "variant", "mean_percent", "p95_percent", "bias_percent"},
    },
    "appendix_a": {"appendix_a": {"policy", "epsilon_s", "makespan_s", "paper_s"}},
    "appendix_e": {"appendix_e": {"scheme", "seed", "iteration", "accuracy"}, "appendix_e_graphs": {"guess_accuracy"}},
    "appendix_h": {"appendix_h": {"batch", "policy", "avg_jct_s"}},
}


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A folder that passes for a checkout, with a tiny run, a policy that knows nothing and curves of its training."""
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "decima-sched"\n')
    write_params(tmp_path, TINY)
    store_policy(tmp_path, seed=0)
    rng = np.random.default_rng(0)
    write_folders(tmp_path / "data", [job(f"q{number:02d}", 1.0, rng) for number in (1, 2)], LEVELS)
    shutil.copytree(ROOT / "data" / "spark" / "experiment", tmp_path / "data" / "spark" / "experiment")
    training = tmp_path / "models" / "training"
    training.mkdir()
    values = {
        "run": "tiny-0", "setting": "tiny", "recipe": "fast-batch", "variant": "recipe", "seed": 0, "iterations": 20,
        "wall_s": 130.0, "cpu_s": 300.0, "cores": 4, "stored_as": "tiny", "test_greedy_s": 1.0, "test_sampled_s": 1.0,
    }  # fmt: skip
    write_table(training / "runs.csv", learning.RUN_COLUMNS, {**values, "note": ""})
    curve = [(0, 0.0, 0.0, 50.0, 51.0), (10, 50.0, 150.0, "", ""), (20, 130.0, 300.0, 30.0, 31.0)]
    pandas.DataFrame(curve, columns=learning.CURVE_COLUMNS).to_csv(training / "tiny-0.csv", index=False)
    write_table(training / "references.csv", learning.REFERENCE_COLUMNS, {
        "setting": "tiny", "scheduler": "weighted_fair", "avg_jct_s": 40.0,
    })  # fmt: skip
    write_table(training / "ideas.csv", learning.IDEA_COLUMNS, {
        "idea": "less", "setting": "tiny", "change_percent": 1.0, "low": 0.0, "high": 2.0, "kept": "no", "note": "",
    })  # fmt: skip
    monkeypatch.chdir(tmp_path)
    return tmp_path


def store_policy(folder, seed):
    architecture = Architecture.paper()
    save_policy(folder / "models" / "tiny", architecture, architecture.initial_weights(seed), {"greedy": True})


def write_table(path, columns, *rows):
    pandas.DataFrame(list(rows), columns=columns).to_csv(path, index=False)


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
    assert card["workload"] == embedded.LABEL
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


def test_tables_are_computed_again_when_the_weights_of_a_policy_change(checkout):
    first = experiments.load("motivation", "tiny", progress=False)["fig03_summary"]
    store_policy(checkout, seed=1)
    second = experiments.load("motivation", "tiny", progress=False)["fig03_summary"]
    policy = first["scheduler"].str.startswith("decima")
    assert first[~policy].equals(second[~policy])
    assert not first[policy].equals(second[policy])


def test_both_ways_to_run_a_policy_are_compared(checkout):
    tables = experiments.load("batch", "tiny", progress=False)
    assert {"decima", "decima_sampled", "weighted_fair", "weighted_fair_arrival"} <= set(tables["batch"]["scheduler"])
    pairs = set(zip(tables["batch_changes"]["against"], tables["batch_changes"]["scheduler"], strict=True))
    baselines = ("fair", "weighted_fair_arrival", "weighted_fair", "capped_srw")
    assert pairs == {
        (against, name)
        for against in baselines
        for name in ("capped_srw", "decima", "decima_sampled")
        if against != name
    }


def test_a_policy_that_is_not_there_is_one_clear_error(checkout):
    (checkout / "models" / "tiny.weights.h5").unlink()
    with pytest.raises(PolicyError, match=r"policy tiny lacks its weights: there is no file .*tiny\.weights\.h5"):
        experiments.load("variance", "tiny", progress=False)


def test_the_compiled_policy_agrees_with_tensorflow(checkout):
    parity = experiments.load("policy", "tiny", progress=False)["policy_parity"]
    assert len(parity) == 7
    assert parity["numbers"].min() > 1
    assert parity["largest_difference"].max() < 1e-5


def test_curves_keep_rows_with_a_validation_and_both_forms_of_the_recipe_have_one_name(checkout):
    tables = experiments.load("learning", "tiny", progress=False)
    assert tables["learning_curves"]["iteration"].to_list() == [0, 20]
    assert set(tables["learning_runs"]["recipe"]) == {"fast"}
    budgets = tables["learning_budgets"].set_index("budget_min")
    assert budgets["best_s"].to_dict() == {1: 50.0, 2: 50.0}  # the better one came later than two minutes
    assert budgets.loc[1, "change_percent"] == pytest.approx(25.0)


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


def test_pipeline_covers_every_run_experiment_and_notebook(pipeline, runs, monkeypatch):
    monkeypatch.chdir(ROOT)
    assert sorted(pipeline["notebook"]["matrix"]["slug"]) == notebook_slugs()
    for stage in ("learn-critical-paths", "compare-with-spark", "schedule-spark", "plot", "notebook", "report"):
        assert sorted(pipeline[stage]["matrix"]["run"]) == sorted(runs)
    assert sorted(pipeline["plot"]["matrix"]["experiment"]) == sorted(experiments.EXPERIMENTS)
    for suffix, workload in (("", "tpch"), ("-embedded", "embedded")):
        of_workload = sorted(name for name, params in runs.items() if params["workload"] == workload)
        computed = ["tuning", "bounds", "learning", "measured", "fidelity", "real_spark", "appendix_e"]
        for stage in ("tune", "measure", "evaluate", "decide", "learn", "compare", "bound"):
            matrix = pipeline[stage + suffix]["matrix"]
            assert sorted(matrix["run"]) == of_workload
            computed += matrix.get("experiment", [])
        assert sorted(computed) == sorted(experiments.EXPERIMENTS)


def test_stages_that_run_policies_depend_on_all_that_their_runs_name(pipeline, runs):
    for suffix in ("", "-embedded"):
        for stage in ("decide", "compare", "bound", "evaluate", "tune"):
            entry = pipeline[stage + suffix]
            names = set(entry["matrix"].get("experiment", ["bounds" if stage == "bound" else "tuning"]))
            weights = {path for path in entry["deps"] if path.startswith("models/")}
            if stage in ("evaluate", "tune"):
                assert not names & set(store.POLICIES)
                assert not weights
                continue
            assert names <= set(store.POLICIES)
            used = {name for run in entry["matrix"]["run"] for name in runs[run]["policies"].values()}
            assert weights == {f"models/{name}.weights.h5" for name in used}
            assert "runs.${item.run}.policies" in entry["params"]
            assert "src/decima/policy" in entry["deps"]


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
    for name in experiments.EXPERIMENTS:
        keys = [set(params[name]) for params in runs.values()]
        assert all(each == keys[0] for each in keys), name


def test_pipeline_dependencies_exist(pipeline):
    for name, stage in pipeline.items():
        for path in stage.get("do", stage)["deps"]:
            if "$" not in path and not path.startswith("data/"):
                assert (ROOT / path).exists(), f"{name}: {path}"
