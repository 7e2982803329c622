"""The code of docs/scheduler-interface.md and docs/gym.md runs as it stands, block after block."""

import re
import subprocess
import sys
from pathlib import Path

from decima.systems.spark.schedulers import list_schedulers

DOCS = Path(__file__).parents[5] / "docs"
CODE = "".join((DOCS / name).read_text(encoding="utf-8") for name in ("scheduler-interface.md", "gym.md"))
PAGE = (DOCS / "schedulers.md").read_text(encoding="utf-8")


def test_code_blocks_run_in_order(tmp_path):
    blocks = re.findall(r"^```python\n(.*?)^```$", CODE, flags=re.MULTILINE | re.DOTALL)
    blocks = [block for block in blocks if "as_scheduler(policy" not in block]  # the reader's own policy
    assert len(blocks) == 6
    script = tmp_path / "example.py"
    script.write_text("\n".join(blocks), encoding="utf-8")
    command = [sys.executable, "-W", "error::UserWarning", str(script)]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    assert finished.stderr == ""
    written, checked, error, compiled, largest, rewards, shapes = finished.stdout.splitlines()
    own, fair = map(int, re.fullmatch(r"average JCT (\d+) s, with fair sharing (\d+) s", written).groups())
    assert 0 < own < fair
    assert checked.startswith("shortest_remaining (Python) keeps to the interface: 44 cases, ")
    assert error.endswith("decide returned None; expected a Decision; is a return missing?")
    assert compiled.startswith("largest_first (compiled) keeps to the interface: ")
    assert int(re.fullmatch(r"average JCT (\d+) s", largest)[1]) > fair
    assert re.fullmatch(r"sum of rewards -\d+, jobs unfinished \d+", rewards)
    assert re.fullmatch(r"\(8, \d+, 8\) \(8, \d+\)", shapes)


def test_every_baseline_is_in_the_table():
    table = PAGE[PAGE.index("## The baselines") : PAGE.index("### Two forms of fair sharing")]
    named = re.findall(r"^\| (`.*?`) \|", table, flags=re.MULTILINE)
    assert sorted(name.strip("`") for cell in named for name in cell.split(", ")) == list_schedulers()
