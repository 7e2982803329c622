import json
import os
import subprocess
import sys
from pathlib import Path

from tests.interpreted import outcomes

ROOT = Path(__file__).parents[3]
STEP = """\
import decima
from decima.systems.spark.policy.kernel.scores import scores_finite

decima.simulate("embedded:n=2", "decima:embedded-batch", executors=4)
"""


def plain_python(*words, **options):
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    command = [sys.executable, *words]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True, **options)


def test_results_are_those_of_compiled_code_to_the_last_bit():
    assert json.loads(plain_python("-m", "tests.interpreted").stdout) == outcomes()


def test_a_debugger_stops_in_a_decision_of_a_policy(tmp_path):
    page = (ROOT / "docs/code-paths.md").read_text(encoding="utf-8")
    assert STEP in page
    (script := tmp_path / "step.py").write_text(STEP, encoding="utf-8")
    words = [line.removeprefix("(Pdb) ") for line in page.splitlines() if line.startswith("(Pdb) ")]
    shown = plain_python("-m", "pdb", str(script), input="\n".join([*words, "quit"])).stdout
    assert "scores.py" in shown
    assert "scores_finite()" in shown
    assert "-> policy = policy_of(state)" in shown
    scores = shown.rpartition("(Pdb) [")[2].partition("]")[0].split(", ")
    assert len(scores) > 1
    assert all(map(float, scores))
