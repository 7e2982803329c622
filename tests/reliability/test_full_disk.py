"""Writing where there is no room: one sentence, no half of a file, and what was there stays.

A limit on the size of files stands for the full disk: it needs no rights, and the system refuses in the same place.
"""

import contextlib
import errno
import resource
import subprocess
import sys
import threading

import numpy as np
import pytest

from decima.core.errors import CheckpointError
from decima.core.files import atomic_write_bytes
from decima.learning.store import save_policy
from decima.learning.trainer import FILE_NAME, Checkpoint
from decima.plotting import style
from decima.systems.spark.policy.architecture import Architecture
from decima.workload import save, synthetic_batch, write_profiles
from tests.unit.commands.calls import run
from tests.unit.learning.small import same_arrays
from tests.unit.learning.toys import Climber, Height

SIMULATE = ("simulate", "--jobs", "synthetic:n=8", "--executors", 5)
COMPARE = ("compare", "fair", "fifo", "--jobs", "synthetic:n=8", "--seeds", 20, "--executors", 5)
# Command -> its output file.
COMMANDS = {
    "run.json": (*SIMULATE, "--out"),
    "tasks.csv": (*SIMULATE, "--log"),
    "tasks.parquet": (*SIMULATE, "--log"),
    "schedule.png": (*SIMULATE, "--gantt"),
    "schedule.pdf": (*SIMULATE, "--gantt"),
    "schedule.html": (*SIMULATE, "--gantt"),
    "table.csv": (*COMPARE, "--out"),
}
JOBS = synthetic_batch(5, seed=0)
NETWORK = Architecture.paper()
WRITERS = {
    "jobs.json": lambda path: save(JOBS, path),
    "profiles.parquet": lambda path: write_profiles(JOBS.profiles, path),
    "policy.weights.h5": lambda path: save_policy(path, NETWORK, NETWORK.initial_weights(0), {}),
    "figure.png": lambda path: style.save(style.new_figure(), path),
}


@contextlib.contextmanager
def room_for(most):
    """No file may grow beyond so many bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_says_so_and_leaves_the_old_file(name, tmp_path):
    path = tmp_path / name
    words = [*COMMANDS[name], path]
    run(*words)  # there is room, and everything is compiled
    before = path.read_bytes()
    with room_for(len(before) // 2):
        failed = run(*words)
    assert (failed.exit_code, failed.stdout) == (2, "")
    assert failed.stderr.startswith(f"error: cannot write {path}: ")
    assert "File too large" in failed.stderr or "file too large" in failed.stderr
    assert failed.stderr.count("\n") == 1
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", WRITERS)
def test_the_library_raises_and_leaves_the_old_file(name, tmp_path):
    path = tmp_path / name
    WRITERS[name](path)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    with room_for(len(before[name]) // 2), pytest.raises(OSError, match=r"File too large|file too large") as caught:
        WRITERS[name](path)
    assert caught.value.errno in (errno.EFBIG, None)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_a_training_ends_with_its_last_checkpoint_and_goes_on_when_there_is_room(tmp_path):
    from decima.learning.configuration import Budget
    from decima.learning.trainer import Trainer

    def climb(name, iterations):
        budget = Budget(iterations=iterations, validate_every=1, checkpoint_every=1)
        options = {"identity": {"who": "climber"}, "tensorboard": False}
        return Trainer(Climber(), Height(), budget, tmp_path / name, **options)

    climb("whole", 4).train()
    climb("full", 2).train()
    checkpoint = tmp_path / "full" / FILE_NAME
    before = checkpoint.read_bytes()
    with room_for(len(before) // 2), pytest.raises(CheckpointError, match="File too large; the last good checkpoint"):
        climb("full", 4).train(resume=True)
    assert checkpoint.read_bytes() == before
    assert not [path for path in checkpoint.parent.iterdir() if ".part" in path.name]
    climb("full", 4).train(resume=True)
    stored = [Checkpoint.load(tmp_path / name) for name in ("whole", "full")]
    assert same_arrays(*(one.arrays for one in stored))


def test_files_that_two_processes_write_at_once_are_whole(tmp_path):
    path = tmp_path / "shared"
    size, times = 300_000, 150
    code = (
        "import sys; from decima.core.files import atomic_write_bytes\n"
        f"for _ in range({times}): atomic_write_bytes(sys.argv[1], b'a' * {size})"
    )
    atomic_write_bytes(path, b"b" * size)
    other = threading.Thread(target=subprocess.run, args=([sys.executable, "-c", code, str(path)],))
    other.start()
    seen = set()
    for _ in range(times):
        atomic_write_bytes(path, b"b" * size)
        content = np.frombuffer(path.read_bytes(), np.uint8)
        assert len(content) == size
        assert len(set(content.tolist())) == 1
        seen.add(bytes(content[:1]))
    other.join()
    assert seen <= {b"a", b"b"}
    assert list(tmp_path.iterdir()) == [path]
