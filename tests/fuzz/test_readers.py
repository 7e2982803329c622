"""Whatever is written in a file, a reader gives a result or one plain sentence, and takes neither memory nor time.

``DECIMA_FUZZ_INPUTS=100000 pytest tests/fuzz`` tries so many inputs over all readers; ``DECIMA_FIRST_SEED`` others.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz.readers import CORPUS, READERS
from tests.knobs import FIRST_SEED, FUZZ_INPUTS

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", READERS)
def test_reader_gives_a_result_or_a_plain_error(name, tmp_path, record_property):
    count = -(-FUZZ_INPUTS // len(READERS))
    command = [sys.executable, "-m", "tests.fuzz.worker", name, str(count), str(FIRST_SEED), str(tmp_path)]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300 + count)
    except subprocess.TimeoutExpired:
        pytest.fail(f"stands still at the input in {tmp_path}")
    assert done.returncode == 0, f"ended by {done.returncode} at the input in {tmp_path}\n{done.stderr[-3000:]}"
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["failure"] is None, f"{told['failure']}\ninput {told['input']}\n{done.stdout[-3000:]}"
    record_property("told", told)
    assert told["inputs"] >= 0.9 * count
    assert told["results"] > 0
    assert told["refused"] > 0


def test_there_is_a_corpus_of_every_reader():
    assert {path.name for path in CORPUS.iterdir()} == set(READERS)
    assert sum(path.stat().st_size for path in CORPUS.rglob("*")) < 300_000
