import errno
import json

import numpy as np
import pytest

from decima.core import files
from decima.core.errors import CheckpointError
from decima.learning.trainer import FILE_NAME, Checkpoint


def checkpoint(value=1.0):
    arrays = {"weights": np.full(3, value, np.float32), "best": np.arange(2.0)}
    return Checkpoint({"seed": 3}, {"iteration": 4, "best_score": None}, arrays, [{"jct_s": 0.1, "kl": float("nan")}])


def refuse(folder, message):
    with pytest.raises(CheckpointError, match=message):
        Checkpoint.load(folder)


def test_round_trip_is_exact(tmp_path):
    checkpoint(1.0 / 3.0).save(tmp_path)
    found = Checkpoint.load(tmp_path)
    assert found.about == {"seed": 3}
    assert found.counters == {"iteration": 4, "best_score": None}
    assert found.curve[0]["jct_s"] == 0.1
    assert np.isnan(found.curve[0]["kl"])
    assert found.arrays["weights"].dtype == np.float32
    assert found.arrays["weights"].tolist() == [np.float32(1.0 / 3.0)] * 3
    assert sorted(path.name for path in tmp_path.iterdir()) == [FILE_NAME]


class Killed(BaseException):
    pass


FULL = OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize(
    ("owner", "name", "error"),
    [(np, "savez", FULL), (files.os, "fsync", FULL), (files.os, "replace", FULL), (files.os, "replace", Killed())],
    ids=["write", "sync", "rename", "kill"],
)
def test_a_full_disk_and_a_kill_leave_the_last_good_checkpoint(tmp_path, monkeypatch, owner, name, error):
    checkpoint(1.0).save(tmp_path)
    before = (tmp_path / FILE_NAME).read_bytes()

    def fail(*_, **__):
        raise error

    message = "cannot write .*No space left on device; the last good checkpoint" if error is FULL else None
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, fail)
        with pytest.raises(CheckpointError if error is FULL else Killed, match=message):
            checkpoint(2.0).save(tmp_path)
    assert (tmp_path / FILE_NAME).read_bytes() == before
    assert Checkpoint.load(tmp_path).arrays["weights"][0] == 1.0
    assert [path.name for path in tmp_path.iterdir()] == [FILE_NAME]


def edited(path, **changes):
    with np.load(path) as content:
        arrays = {name: content[name] for name in content.files} | changes
    np.savez(path, **{name: values for name, values in arrays.items() if values is not None})


def document(path, **changes):
    with np.load(path) as content:
        values = json.loads(content["document"].tobytes())
    return np.frombuffer(json.dumps(values | changes).encode(), np.uint8)


def test_edited_files_are_refused(tmp_path):
    path = tmp_path / FILE_NAME
    for changes in (
        {"weights": np.full(2, 1.0, np.float32)},
        {"weights": np.full(3, 1.5, np.float32)},
        {"weights": np.full(3, 1.0)},
        {"weights": np.full((3, 1), 1.0, np.float32)},
        {"best": None},
        {"more": np.zeros(1)},
        {"checksum": None},
        {"checksum": np.zeros(32, np.uint8)},
    ):
        checkpoint().save(tmp_path)
        edited(path, **changes)
        refuse(tmp_path, "is damaged or was edited")
    for changes in ({"counters": {"iteration": -5}}, {"about": {}}, {"curve": []}):
        checkpoint().save(tmp_path)
        edited(path, document=document(path, **changes))
        refuse(tmp_path, "is damaged or was edited")


def test_what_would_fill_the_memory_is_not_read(tmp_path):
    path = tmp_path / FILE_NAME
    np.savez_compressed(path, document=np.zeros(10**6, np.uint8))
    refuse(tmp_path, r"entry 'document\.npy' is compressed")
    checkpoint().save(tmp_path)
    content = path.read_bytes()
    assert content.count(b"(2,), ") == 1
    path.write_bytes(content.replace(b"(2,), ", b"(2000000000000,), ").replace(b" " * 12 + b"\n", b"\n"))
    refuse(tmp_path, "is damaged or no checkpoint")


OTHER_VERSION = b'{"version": 0, "about": {}, "counters": {}, "curve": []}'


@pytest.mark.parametrize("text", [b"[1]", b"{}", b"[" * 100_000, b"\xff", OTHER_VERSION])
def test_other_documents_are_refused(tmp_path, text):
    np.savez(tmp_path / FILE_NAME, document=np.frombuffer(text, np.uint8))
    other_version = "has version 0, expected 4: it is of another release"
    refuse(tmp_path, other_version if text == OTHER_VERSION else "is damaged or no checkpoint")
