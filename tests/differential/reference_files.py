"""Finds the reference runs of the released simulator and the TPC-H profiles they need; neither is committed.

The runs are in `$DECIMA_REFERENCE_DIR`, else in `reference/` beside the folder `$DECIMA_DATA_MIRROR`; the
profiles in that mirror, else where `decima data fetch tpch` puts them.
"""

import functools
import json
import os
from pathlib import Path

import pytest

from decima.core.config import MIRROR_VARIABLE, mirror_dir
from decima.core.errors import DataUnavailableError
from decima.workload.jobs import Job, Workload
from decima.workload.tpch.profiles import tpch_profile
from decima.workload.tpch.raw import read_raw_profile

REFERENCE_VARIABLE = "DECIMA_REFERENCE_DIR"
# Policies of reference runs that are schedulers here.
HEURISTICS = {"dynamic_partition": "released_fair", "spark_fifo": "released_fifo"}


def reference_dir():
    """Folder of the reference files, or None when neither variable names one."""
    if chosen := os.environ.get(REFERENCE_VARIABLE):
        return Path(chosen).expanduser()
    mirror = mirror_dir()
    return None if mirror is None else mirror.parent / "reference"


def reference_params(*policies):
    """Test parameters: path of every reference file (of the given policies only, if any), else one skip."""
    folder = reference_dir()
    paths = [] if folder is None else sorted(folder.glob("*__*.json"))
    if not paths:
        reason = f"no reference runs: set {REFERENCE_VARIABLE} or {MIRROR_VARIABLE}"
        return [pytest.param(None, id="absent", marks=pytest.mark.skip(reason=reason))]
    return [pytest.param(path, id=path.stem) for path in paths if not policies or path.stem.split("__")[1] in policies]


def read_reference(path):
    """One reference file as a dict, with the rule for the profiled executor count filled in."""
    return {"key_rule": "left", **json.loads(path.read_text(encoding="utf-8"))}


def reference_workload(reference):
    """The jobs of a reference run; skips the test where the profiles cannot be had."""
    jobs = reference["jobs"]
    try:
        return Workload(
            tuple(Job(_profile(j["size"], j["query"]), j["arrival_ms"], j["initial"]) for j in jobs), "TPC-H"
        )
    except DataUnavailableError as error:
        pytest.skip(str(error))


@functools.cache
def _profile(size, query):
    mirror = mirror_dir()
    if mirror is not None and (mirror / "tpch").is_dir():
        return read_raw_profile(mirror / "tpch", size, query)
    return tpch_profile(size, query)
