"""The pipeline's definition against experiments, notebooks, runs, stored policies and params."""

import contextlib
import hashlib
import json
import re
import shlex
import shutil
import sys
import zipfile
from functools import cache
from pathlib import Path

import pytest
import yaml

import experiments.report
import experiments.stamps
from decima.commands import train as commands
from decima.core.errors import ConfigError, DataUnavailableError, DecimaError
from decima.core.files import sole_use
from decima.learning.store import read_policy
from decima.systems.spark.policy import run as training_run
from decima.workload.sources import list_sources
from experiments.experiment import experiment_names
from experiments.params import read_params
from experiments.reference import stale
from experiments.report import execute_notebooks, num_stages, progress_words, reproduce
from experiments.stamps import figure_stamp, key, notebook_stamp, table_stamp, write_stamps
from experiments.tables import read_stamps, reference_path
from tests.unit.commands.calls import refuse

pytestmark = pytest.mark.tensorflow

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "dvc.yaml").read_text(encoding="utf-8")
STAGES = yaml.safe_load(TEXT)["stages"]
PARAMS = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
RUNS = read_params()
TRAININGS = commands.read_trainings()
PAPERS = {name: paper for paper, blocks in TRAININGS.items() for name in blocks}


@pytest.fixture(autouse=True)
def _in_the_checkout(monkeypatch):
    monkeypatch.chdir(ROOT)


@cache
def locked_stages():
    return yaml.safe_load((ROOT / "dvc.lock").read_text(encoding="utf-8"))["stages"]


def test_files_that_people_read_stay_short():
    assert len(TEXT.splitlines()) <= 250
    assert (ROOT / "dvc.lock").stat().st_size < 150_000
    files = [ROOT / "params.yaml", *(ROOT / "params").rglob("*.yaml")]
    assert max(len(path.read_text(encoding="utf-8").splitlines()) for path in files) <= 150
    assert set(yaml.safe_load(TEXT)["params"]) == {
        str(path.relative_to(ROOT)) for path in files if path.parent.name != "training"
    }


def test_keys_of_parameters_are_slugs():
    def keys(value):
        for name, inner in value.items() if isinstance(value, dict) else ():
            yield str(name)
            yield from keys(inner)

    for path in [ROOT / "params.yaml", *(ROOT / "params").rglob("*.yaml")]:
        wrong = [
            name for name in keys(yaml.safe_load(path.read_text("utf-8"))) if not re.fullmatch(r"[a-z0-9_.-]+", name)
        ]
        assert not wrong, path


def test_stages_list_no_source_files_but_those_that_read_the_data():
    own = {
        name for name, block in STAGES.items() if any("src/" in dep for dep in block.get("do", block).get("deps", ()))
    }
    assert own == {"fetch-tpch", "prepare-tpch"}
    assert PARAMS["run_names"] == list(PARAMS["runs"])
    assert PARAMS["result_names"] == list(PARAMS["results"])


def test_stamps_say_what_results_are_made_of(monkeypatch):
    stamp, read = table_stamp("batch", "tpch-quick"), experiments.stamps.read_json
    assert stamp["tables of tuning"] == key(table_stamp("tuning", "tpch-quick"))
    assert stamp["code"] == table_stamp("batch", "embedded-quick")["code"]

    def reworded(path):
        return read(path) | {"label": "in other words"}

    monkeypatch.setattr(experiments.stamps, "read_json", reworded)
    assert table_stamp("batch", "tpch-quick") == stamp
    monkeypatch.setattr(experiments.stamps, "read_json", lambda path: read(path) | {"greedy": None})
    assert table_stamp("batch", "tpch-quick")["policy for batch"] != stamp["policy for batch"]
    monkeypatch.undo()
    monkeypatch.chdir(ROOT)
    assert figure_stamp("batch", "tpch-quick")["tables"] == key(stamp)
    notebook = notebook_stamp("07-decima", "tpch-quick")
    assert notebook["tables of batch"] == key(stamp)
    assert "tables of appendix_e" not in notebook


def test_unchanged_stamps_stay_as_they_are():
    write_stamps()
    path = ROOT / "build" / "stamps" / "tpch-quick" / "tables" / "batch"
    before = path.stat().st_mtime_ns
    stale = path.with_name("gone")
    stale.write_text("of an experiment that is no more")
    assert write_stamps() == [stale]
    assert (path.stat().st_mtime_ns, stale.exists()) == (before, False)


def test_parameters_of_a_run_are_those_of_all_over_them_profile_and_workload(tmp_path, monkeypatch):
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "decima-sched"\n')
    (tmp_path / "params.yaml").write_text("runs: {one: {profile: quick, workload: own, batch: {c: 5}}}")
    (tmp_path / "params").mkdir()
    for name, text in {
        "common": "batch: {a: 1, b: 1, c: 1}",
        "quick": "batch: {b: 2}\nload: {x: 1}",
        "own": "load: {x: 3}",
    }.items():
        (tmp_path / "params" / f"{name}.yaml").write_text(text)
    monkeypatch.chdir(tmp_path)
    assert read_params()["one"] == {
        "profile": "quick", "workload": "own", "batch": {"a": 1, "b": 2, "c": 5}, "load": {"x": 3},
    }  # fmt: skip


def test_every_policy_is_the_output_of_a_frozen_training_stage():
    real_spark = json.loads((ROOT / "data" / "spark" / "experiment" / "card.json").read_text())["schedulers"]
    used = {name for run in RUNS.values() for name in run["policies"].values()}
    assert used | {real_spark["decima"]["parameters"]["policy"]} <= set(PAPERS)
    stored = [path.relative_to(ROOT / "models") for path in (ROOT / "models").rglob("*.weights.h5")]
    assert sorted((path.name.removesuffix(".weights.h5"), str(path.parent)) for path in stored) == sorted(
        PAPERS.items()
    )
    for paper in set(PAPERS.values()):
        stage = STAGES[f"train-{paper}"]
        assert stage["foreach"] == f"${{training.{paper}}}"
        assert stage["do"]["frozen"]  # an hour each: only `dvc repro -f -s` runs them
        outputs = {path: options for entry in stage["do"]["outs"] for path, options in entry.items()}
        assert set(outputs) == {f"models/{paper}/${{key}}.weights.h5", f"models/{paper}/${{key}}.json"}
        assert all(options["cache"] is False for options in outputs.values())


@pytest.fixture
def planned(monkeypatch):
    """Arguments of the runs that would begin; none does. The files of all trainings are read once."""
    calls = []

    def stop(*arguments):
        calls.append(arguments)
        raise ConfigError("planned")

    monkeypatch.setattr(training_run, "DecimaRun", stop)
    monkeypatch.setattr(commands, "read_trainings", lambda: TRAININGS)
    return calls


DECIMAS = [name for paper in ("decima", "idle_slots") for name in TRAININGS[paper]]


@pytest.mark.parametrize("name", DECIMAS)
def test_parameters_describe_the_stored_policies(name, planned, tmp_path, request):
    """The command of the stage would train what the card says, with the seed, recipe and network of the card."""
    jobs = TRAININGS[PAPERS[name]][name]["jobs"]
    if not isinstance(jobs, dict) or jobs["source"] not in list_sources():
        request.getfixturevalue("tpch_data")  # what the name stands for may read them at once
    words = shlex.split(STAGES[f"train-{PAPERS[name]}"]["do"]["cmd"].replace("${key}", name))[1:]
    words[words.index("--out") + 1] = tmp_path
    assert refuse(*words) == "planned"
    [(task, recipe, architecture, seed)] = planned
    policy = read_policy(name)
    card, fields = policy.card, recipe.as_dict()
    stored = {key: value for key, value in card["recipe"].items() if key in fields}
    assert (task.as_dict(), architecture, seed) == (card["task"], policy.architecture, card["learned"]["seed"])
    assert {key: fields[key] for key in stored} == stored


def test_the_command_line_goes_before_a_block_field_by_field(planned, tmp_path):
    words = ("train", "--params", "tpch-batch-random", "--out", tmp_path)
    refuse(*words)
    refuse(*words, "--set", "recipe.entropy_start=0.5", "--iterations", 7)
    block, changed = (recipe.as_dict() for _, recipe, _, _ in planned)
    assert block["teacher"] is None
    assert changed == block | {"entropy_start": 0.5, "iterations": 7}


def test_a_block_says_its_system(planned):
    expected = {name: paper if paper in ("cloud", "heterogeneous") else None for name, paper in PAPERS.items()}
    assert {name: commands.system_of_block(["--params", name]) for name in PAPERS} == expected
    assert commands.system_of_block(["--params=cloud-fast"]) == "cloud"
    assert commands.system_of_block(["embedded", "--out", "x"]) is None


def test_a_training_that_params_do_not_describe_is_refused(tmp_path, monkeypatch):
    sentence = refuse("train", "--params", "tpch-bach", "--out", tmp_path)
    assert sentence == "--params tpch-bach: not described in params/training; did you mean 'tpch-batch'?"
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "decima-sched"\n')
    (tmp_path / "params" / "training").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    for content, part in {
        "training: {own: {mine: {jobs: tpch, colour: red}}}": "unknown option 'colour'",
        "training: {own: {mine: {jobs: {n: 3}}}}": "unknown jobs 'n=3'",
        "training: {own: {mine: {changes: [3]}}}": "changes must hold fields and values, got [3]",
        "training: {own: {mine: [1]}}": "mine must hold fields and values, got [1]",
        "training: {own: 1}": "own must hold fields and values, got 1",
        "recipe: fast": "training must hold fields and values, got None",
        "training: [": "is not YAML: while parsing",
        "": "must hold fields and values, got None",
    }.items():
        (tmp_path / "params" / "training" / "own.yaml").write_text(content)
        assert part in refuse("train", "--params", "mine", "--out", tmp_path / "out")


@pytest.mark.parametrize("name", PAPERS)
def test_stored_policies_are_those_of_the_lock_file(name):
    """Otherwise a fresh clone would train them anew; `dvc commit -f train-PAPER@NAME` renews the lock file."""
    locked = locked_stages()[f"train-{PAPERS[name]}@{name}"]
    checksums = {out["path"]: out["md5"] for out in locked["outs"]}
    files = [f"models/{PAPERS[name]}/{name}{ending}" for ending in (".json", ".weights.h5")]
    assert checksums == {path: hashlib.md5((ROOT / path).read_bytes()).hexdigest() for path in files}


def test_runs_have_the_same_parameters():
    names = [set(params) for params in RUNS.values()]
    assert all(each == names[0] for each in names)
    for name in experiment_names():
        keys = [set(params[name]) for params in RUNS.values()]
        assert all(each == keys[0] for each in keys), name


def test_stages_of_a_run_are_counted_before_there_is_any_data():
    """The two stages of the data, workload, stamps, experiments, notebooks, the report; policies are frozen."""
    assert num_stages("report@tpch-quick") == 7


def test_progress_tells_parts_and_time_left():
    assert progress_words(3, 80, 30.0) == "[3 of at most 80, 0.5 min gone] "
    assert progress_words(20, 80, 120.0) == "[20 of at most 80, 2.0 min gone, about 6 min left] "


def test_a_second_pipeline_in_the_same_checkout_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(experiments.report, "checkout", lambda: tmp_path)
    with sole_use(tmp_path / "build"), pytest.raises(ConfigError, match=f"the pipeline already runs in {tmp_path}; "):
        reproduce("quick")


@pytest.mark.parametrize("code", [0, 1])
def test_the_lock_file_stays_as_it_is_committed(code, tmp_path, monkeypatch):
    def add_a_stage(*_):
        (tmp_path / "dvc.lock").write_text("stages of a run")
        return code

    def no_data(progress):
        raise DataUnavailableError("no network")

    (tmp_path / "dvc.lock").write_text("policies")
    monkeypatch.setattr(experiments.report, "checkout", lambda: tmp_path)
    monkeypatch.setattr("decima.workload.fetch_tpch", no_data)
    monkeypatch.setattr(experiments.report, "_run_stages", add_a_stage)
    with contextlib.suppress(DecimaError) if code else contextlib.nullcontext():
        assert reproduce("quick") == "embedded-quick"
    assert (tmp_path / "dvc.lock").read_text() == "policies"


def test_stages_run_this_python(tmp_path, monkeypatch):
    """Also where its environment is not the active one."""
    seen = []
    (tmp_path / "dvc.lock").write_text("")
    monkeypatch.setattr(experiments.report, "checkout", lambda: tmp_path)
    monkeypatch.setattr("decima.workload.fetch_tpch", lambda progress: None)
    monkeypatch.setattr(experiments.report, "_run_stages", lambda target, environment: seen.append(environment) or 0)
    monkeypatch.setenv("PATH", "/nowhere")
    assert reproduce("quick") == "tpch-quick"
    assert Path(shutil.which("python", path=seen[0]["PATH"])).parent == Path(sys.executable).parent


def test_notebooks_that_fail_are_named_after_all_were_tried(tmp_path, monkeypatch):
    monkeypatch.setattr(experiments.report, "notebook_slugs", lambda: ["not-there", "nor-this"])
    monkeypatch.setattr(experiments.report, "_stamp_of", lambda slug, run: "of today")
    monkeypatch.setattr(experiments.report, "run_folder", lambda run: tmp_path)
    with pytest.raises(DecimaError, match="notebooks failed, their messages are above: not-there, nor-this"):
        execute_notebooks("tpch-quick")


# Kept results against the code: the tables that the repository keeps have the stamps of today.


@pytest.mark.parametrize("run", ["tpch-quick", "embedded-quick"])
def test_stamps_are_of_the_kept_tables(run):
    cards = read_stamps(run)
    with zipfile.ZipFile(reference_path(run)) as archive:
        tables = {name for name in archive.namelist() if "/" in name}
    assert tables == {f"{name}/{table}" for name, card in cards.items() for table in card["tables"]}


@pytest.mark.parametrize("run", ["tpch-quick", "embedded-quick", "tpch-full"])
def test_kept_and_published_tables_are_those_of_this_code(run):
    known = (": stamp renewed without computing", ": not kept")  # a person said so; the first full run is still to come
    old = [line for line in stale(run) if not line.endswith(known)]
    assert old == [], f"where no number moved: python -m experiments adopt --run {run}; else: decima reproduce --record"
