import pytest

from tests.unit.commands.calls import DIAMOND, write_json


@pytest.fixture
def jobs(tmp_path):
    """File with four small jobs, later arrivals not sorted."""
    return write_json(tmp_path / "jobs.json", DIAMOND)


@pytest.fixture
def folder(tmp_path):
    """Empty folder for output."""
    path = tmp_path / "out"
    path.mkdir()
    return path
