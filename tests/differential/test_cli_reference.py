"""`decima simulate` repeats the reference runs of the released simulator: every field, bit for bit.

Runs of further kinds come from the oracle, which repeats the reference runs itself.
"""

import json
import subprocess
import sysconfig
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from decima.app import app
from tests.differential.oracle import OracleSimulator
from tests.differential.oracle_policies import DynamicPartition
from tests.differential.reference_files import read_reference, reference_params, reference_workload

OWN_HEURISTIC = {"dynamic_partition": "released_fair", "spark_fifo": "released_fifo"}
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
    chosen = ["--scheduler", OWN_HEURISTIC.get(reference["policy"], "released_fair")]
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


@pytest.mark.differential
@pytest.mark.parametrize("path", reference_params())
def test_replay(path, tpch_data, tmp_path):
    reference = read_reference(path)
    words, out = arguments(reference, tmp_path, replay=True)
    run(words)
    check(out, reference)


@pytest.mark.differential
@pytest.mark.parametrize("path", reference_params(*OWN_HEURISTIC))
def test_own_heuristic(path, tpch_data, tmp_path):
    reference = read_reference(path)
    words, out = arguments(reference, tmp_path, replay=False)
    run(words)
    check(out, reference)


@pytest.mark.differential
@pytest.mark.parametrize("path", reference_params("spark_fifo")[:1])
def test_reference_file_itself_serves_as_decisions(path, tpch_data, tmp_path):
    reference = read_reference(path)
    words, out = arguments(reference, tmp_path, replay=True)
    run([f"replay:{path}" if word.startswith("replay:") else word for word in words])
    check(out, reference)


@pytest.mark.differential
@pytest.mark.parametrize(
    ("path", "replay"),
    [(*each.values, replay) for each, replay in zip(reference_params("dynamic_partition")[-2:], (1, 0), strict=True)],
)
def test_in_a_process_of_its_own(path, replay, tpch_data, tmp_path):
    reference = read_reference(path)
    words, out = arguments(reference, tmp_path, replay)
    command = Path(sysconfig.get_path("scripts")) / "decima"
    done = subprocess.run([command, *words], capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    check(out, reference)


def random_policy(seed, idle_until_ms):
    """Random stage and limit, as in the reference runs; before the given time, one decision in ten is to idle."""
    rng = np.random.RandomState(seed)

    def choose(oracle):
        frontier = oracle.frontier()
        if not frontier or (oracle.now_ms < idle_until_ms and rng.rand() < 0.1):
            return None, None, oracle.num_source
        stage = frontier[rng.randint(len(frontier))]
        return stage.job.index, stage.index, int(rng.randint(1, oracle.num_source + 1))

    return choose


def drawn_jobs(seed, arrivals_ms):
    """Jobs in the form of the reference files; a negative arrival stands for an initial job."""
    rng = np.random.RandomState(seed)
    return [
        {
            "size": str(rng.choice(["2g", "5g", "10g"])),
            "query": int(rng.randint(1, 23)),
            "arrival_ms": max(arrival_ms, 0),
            "initial": arrival_ms < 0,
        }
        for arrival_ms in arrivals_ms
    ]


UNSORTED = [41000.5, -1, 0, 12000, -1, 300.25, 12000, 0, 41000.5, 7]
FURTHER = {
    "arrivals not sorted, some at 0 ms and at once": {"arrivals": UNSORTED},
    "no initial job": {"arrivals": [5000, 0, 0, 20000, 20000, 900]},
    "nobody there at first": {"arrivals": [700, 1500, 700]},
    "moving delay 0": {"arrivals": UNSORTED, "moving_delay": 0, "executors": 10},
    "moving delay 5000": {"arrivals": UNSORTED, "moving_delay": 5000},
    "100 executors": {"arrivals": [-1] * 6 + UNSORTED, "executors": 100},
    "right level": {"arrivals": UNSORTED, "key_rule": "right", "executors": 45},
    "no warm-up": {"arrivals": UNSORTED, "warmup_delay": 0, "executors": 25},
    "one executor": {"arrivals": [-1, 300], "executors": 1},
}


@pytest.mark.differential
@pytest.mark.parametrize("policy", ["random", "random_void", "dynamic_partition"])
@pytest.mark.parametrize("case", FURTHER.values(), ids=FURTHER)
def test_further_sequences(case, policy, tpch_data, tmp_path):
    reference = {"executors": 50, "moving_delay": 2000, "warmup_delay": 1000, "key_rule": "left"} | case
    reference |= {"jobs": drawn_jobs(7, case["arrivals"]), "policy": policy}
    oracle = OracleSimulator(
        reference_workload(reference),
        reference["executors"],
        moving_delay_ms=reference["moving_delay"],
        warmup_delay_ms=reference["warmup_delay"],
        key_rule=reference["key_rule"],
    )
    # Executors that idle are called up again by the last arrival at the latest; later they could idle for good.
    idle_until_ms = max(case["arrivals"]) if policy == "random_void" else 0.0
    result = oracle.run(DynamicPartition() if policy == "dynamic_partition" else random_policy(3, idle_until_ms))
    reference |= {field: getattr(result, field) for field in FIELDS}
    words, out = arguments(reference, tmp_path, replay=policy != "dynamic_partition")
    run(words)
    check(out, reference)
