"""Files that are replaced whole, and the folder in which data lies."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from decima.core import config
from decima.core.files import atomic_path, atomic_write_bytes, atomic_write_text, sole_use


def test_text_and_bytes_are_written_as_given(tmp_path):
    atomic_write_text(tmp_path / "new" / "a.txt", "é\n")
    assert (tmp_path / "new" / "a.txt").read_bytes() == "é\n".encode()
    atomic_write_bytes(tmp_path / "new" / "a.txt", b"\x00")
    assert (tmp_path / "new" / "a.txt").read_bytes() == b"\x00"
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["a.txt"]


def test_error_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")

    def write_half():
        with atomic_path(path) as temporary:
            temporary.write_text("half")
            raise RuntimeError("killed")

    with pytest.raises(RuntimeError, match="killed"):
        write_half()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o277])
def test_the_umask_is_obeyed_and_never_changed(tmp_path, monkeypatch, umask):
    """It belongs to all threads; while it is another one, files of other threads are open to all."""
    before = os.umask(umask)
    try:
        monkeypatch.setattr(os, "umask", lambda mask: pytest.fail(f"umask({mask})"))
        with atomic_path(tmp_path / "ours") as temporary:
            assert stat.S_IMODE(temporary.stat().st_mode) == 0o600
            temporary.write_text("whole")
        assert stat.S_IMODE((tmp_path / "ours").stat().st_mode) == 0o666 & ~umask
    finally:
        monkeypatch.undo()
        os.umask(before)


def test_a_link_stays_and_its_file_is_replaced(tmp_path):
    (tmp_path / "there").mkdir()
    link, target = tmp_path / "link.png", tmp_path / "there" / "target"
    link.symlink_to(target)
    second = tmp_path / "second.png"
    second.symlink_to(link)
    for content in (b"first", b"then"):
        with atomic_path(second) as temporary:
            assert (temporary.parent, temporary.suffix) == (target.parent, ".png")
            temporary.write_bytes(content)
        assert (second.readlink(), link.readlink(), target.read_bytes()) == (link, target, content)
    link.unlink()
    link.symlink_to(second)
    with pytest.raises(OSError, match="symbolic links"):
        atomic_write_bytes(link, b"nowhere")
    assert link.is_symlink()


def test_a_folder_is_locked_until_its_user_is_gone(tmp_path):
    folder = tmp_path / "new"
    with sole_use(folder) as first:
        with sole_use(folder) as second:
            assert (first, second) == (True, False)
        code = "import sys, pathlib, decima.core.files as files\n"
        code += "with files.sole_use(pathlib.Path(sys.argv[1])) as alone:\n    print(alone)"
        command = [sys.executable, "-c", code, str(folder)]
        assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "False\n"
    with sole_use(folder) as third:
        assert third
    assert list(folder.iterdir()) == []


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A folder deep inside a checkout is the current one; no variable is set."""
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "decima-sched"\n')
    inner = tmp_path / "notebooks" / "deep"
    inner.mkdir(parents=True)
    monkeypatch.chdir(inner)
    monkeypatch.delenv(config.DATA_DIR_VARIABLE, raising=False)
    monkeypatch.delenv(config.MIRROR_VARIABLE, raising=False)
    return tmp_path


def test_data_lies_in_the_checkout(checkout):
    assert config.checkout_root() == checkout
    assert config.data_root() == checkout / "data"
    assert config.raw_tpch_dir() == checkout / "data" / "raw" / "tpch"
    assert config.workloads_dir() == checkout / "data" / "workloads"
    assert not (checkout / "data").exists()


def test_variable_comes_first(checkout, monkeypatch, tmp_path):
    monkeypatch.setenv(config.DATA_DIR_VARIABLE, str(tmp_path / "else"))
    assert config.data_root() == tmp_path / "else"
    monkeypatch.setenv(config.DATA_DIR_VARIABLE, "relative")
    assert config.data_root() == Path.cwd() / "relative"
    monkeypatch.setenv(config.DATA_DIR_VARIABLE, "")  # as good as unset
    assert config.data_root() == checkout / "data"


@pytest.mark.parametrize("text", ['[project]\nname = "other"\n', "", "not = [toml", "[tool.x]\n"])
def test_other_projects_are_not_taken_for_ours(checkout, monkeypatch, text):
    inner = Path.cwd() / "pyproject.toml"
    inner.write_text(text)
    assert config.checkout_root() == checkout  # the search goes on upwards
    (checkout / "pyproject.toml").unlink()
    monkeypatch.setenv("XDG_DATA_HOME", str(checkout / "home"))
    assert config.data_root() == checkout / "home" / "decima-sched"
