from pathlib import Path

import pytest

from decima.core import config


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


def test_mirror(checkout, monkeypatch, tmp_path):
    assert config.mirror_dir() is None
    monkeypatch.setenv(config.MIRROR_VARIABLE, str(tmp_path))
    assert config.mirror_dir() == tmp_path
