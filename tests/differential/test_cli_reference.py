"""`decima simulate` repeats the reference runs of the released simulator: every field, bit for bit.

The same files, with the heuristics of the released simulator, are in `test_reference.py`.
"""

import json
import runpy
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from decima.app import app
from decima.core.config import MIRROR_VARIABLE
from tests.differential.reference_files import HEURISTICS, REFERENCE_VARIABLE, read_reference, reference_params
from tests.services import COMMAND, unannounced

pytestmark = pytest.mark.differential

FIELDS = (
    "completion_ms",
    "completion_order",
    "makespan_ms",
    "avg_jct_ms",
    "num_decisions",
    "num_events",
    "node_finish_ms",
    "decisions",
)


def arguments(reference, folder, replay):
    """The command line of a reference run; replay with rows of three, as a user would write them."""
    jobs, decisions, out = folder / "jobs.json", folder / "decisions.json", folder / "result.json"
    jobs.write_text(json.dumps(reference["jobs"]))
    chosen = ["--scheduler", HEURISTICS.get(reference["policy"], "released_fair")]
    if replay:
        decisions.write_text(json.dumps([row[4:7] for row in reference["decisions"]]))
        chosen = ["--scheduler", f"replay:{decisions}"]
    options = {
        "--jobs": jobs,
        "--executors": reference["executors"],
        "--mode": "released",
        "--durations": "mean",
        "--out": out,
    }
    values = {"moving_delay_ms": reference["moving_delay"], "warmup_delay_ms": reference["warmup_delay"]}
    if reference["key_rule"] != "left":  # left is what the mode takes by itself
        values["level_rule"] = reference["key_rule"]
    changes = [word for key, value in values.items() for word in ("--set", f"settings.{key}={value}")]
    return ["simulate", *chosen, *changes, *(str(word) for pair in options.items() for word in pair)], out


def check(result_file, reference):
    result = json.loads(result_file.read_text())
    for step, (got, expected) in enumerate(zip(result["decisions"], reference["decisions"], strict=False)):
        assert got == expected, f"decision {step}"
    for field in FIELDS:
        assert result[field] == reference[field], field


def run(words):
    result = CliRunner().invoke(app, words, catch_exceptions=False)
    assert result.exit_code == 0, result.stderr
    assert result.stderr == ""


@pytest.mark.parametrize("path", reference_params())
def test_replay(path, tpch_data, tmp_path):
    reference = read_reference(path)
    words, out = arguments(reference, tmp_path, replay=True)
    run(words)
    check(out, reference)


@pytest.mark.parametrize("path", reference_params("spark_fifo")[:1])
def test_reference_file_itself_serves_as_decisions(path, tpch_data, tmp_path):
    reference = read_reference(path)
    words, out = arguments(reference, tmp_path, replay=True)
    run([f"replay:{path}" if word.startswith("replay:") else word for word in words])
    check(out, reference)


ALONE = reference_params("dynamic_partition")[-2:]


@pytest.mark.parametrize("path", ALONE)
def test_in_a_process_of_its_own(path, tpch_data, tmp_path):
    """The decisions of the one are replayed, those of the other made by the heuristic."""
    reference = read_reference(path)
    words, out = arguments(reference, tmp_path, replay=path == ALONE[0].values[0])
    done = subprocess.run([COMMAND, *words], capture_output=True, text=True, check=False)
    assert (done.returncode, unannounced(done.stderr)) == (0, "")
    check(out, reference)


@pytest.mark.parametrize("name", ["test_cli_reference", "test_reference"])
def test_where_there_are_no_reference_runs_the_files_are_read_all_the_same(name, monkeypatch):
    for variable in (MIRROR_VARIABLE, REFERENCE_VARIABLE):
        monkeypatch.delenv(variable, raising=False)
    names = runpy.run_path(Path(__file__).with_name(f"{name}.py"))
    assert [each.id for each in names["reference_params"]()] == ["absent"]
