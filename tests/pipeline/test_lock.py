"""The lock file against the code: what it records of a run was made by the code that is here, with these parameters.

Needs no results of the pipeline, only the files of the repository, so that it holds in a fresh clone.
"""

from pathlib import Path

import pytest
from dvc.dependency import ParamsDependency
from dvc.repo import Repo

ROOT = Path(__file__).parents[2]
# What other stages make; the repository does not hold it.
RESULTS = ("reports", "data/raw", "data/workloads")


@pytest.fixture(scope="module")
def repository():
    with Repo(str(ROOT)) as opened:
        yield opened


@pytest.mark.parametrize("run", ["tpch-quick", "embedded-quick"])
def test_results_of_the_lock_file_are_those_of_this_code(repository, run):
    stages = [stage for stage in repository.index.stages if stage.addressing.endswith(f"@{run}")]
    assert len(stages) > 40
    changed = {}
    for stage in stages:
        differing = []
        for dependency in stage.deps:
            made = Path(dependency.fs_path).is_relative_to
            if isinstance(dependency, ParamsDependency) or not any(made(ROOT / folder) for folder in RESULTS):
                differing += dependency.workspace_status()
        if stage.cmd_changed:
            differing.append("command")
        if differing:
            changed[stage.addressing] = differing
    assert changed == {}, f"bring dvc.lock up to date: dvc repro report@{run}"
