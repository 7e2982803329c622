"""Whatever is written in a file, a reader gives a result or one plain sentence, and takes neither memory nor time.

``DECIMA_FUZZ_INPUTS=100000 pytest tests/fuzz`` gives them so many inputs; ``DECIMA_FIRST_SEED`` chooses others.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz.readers import CORPUS, READERS
from tests.knobs import FIRST_SEED, FUZZ_INPUTS

ROOT = Path(__file__).parents[2]
# Readers that share a start of the interpreter.
GROUPS = (
    ("jobs_json", "jobs_parquet", "jobs_text"),
    ("card", "weights", "scheduler"),
    ("replay", "tuned_card", "options"),
    ("event_log", "checkpoint", "profile_archive"),
    ("instance", "schedule", "workflow", "instance_text"),
)


@pytest.mark.slow
@pytest.mark.parametrize("names", GROUPS, ids=" ".join)
def test_readers_give_a_result_or_a_plain_error(names, tmp_path, tally):
    count = -(-FUZZ_INPUTS // len(READERS))
    arguments = (",".join(names), count, FIRST_SEED, tmp_path)
    command = [sys.executable, "-m", "tests.fuzz.worker", *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    told = {line["reader"]: line for line in map(json.loads, done.stdout.splitlines()) if line["reader"] in names}
    assert told.keys() == set(names)
    for name, line in told.items():
        tally("damaged inputs of readers", inputs=line["inputs"])
        assert line["failure"] is None, f"{name}: {line['failure']}\ninput {line['input']}"
        assert line["inputs"] >= count
        assert line["results"] > 0
        assert line["refused"] > 0


def test_every_reader_has_its_turn_and_its_corpus():
    assert sorted(name for names in GROUPS for name in names) == sorted(READERS)
    assert {path.name for path in CORPUS.iterdir()} == set(READERS)
    assert sum(path.stat().st_size for path in CORPUS.rglob("*")) < 300_000
