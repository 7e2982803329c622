"""TPC-H: generated tables, complete or not there at all, and queries that Spark plans as one job each."""

import re
import shutil
import sys
from collections import namedtuple

import pytest

from decima.connect.cluster import tpch_queries, tpch_tables
from decima.core.errors import SparkError


@pytest.fixture
def calls(tmp_path, monkeypatch):
    """A generator that writes what it is told to, and notes its arguments."""
    noted = tmp_path / "calls"
    script = tmp_path / "generator.py"
    script.write_text(
        "import sys, pathlib\n"
        f"open({str(noted)!r}, 'a').write(' '.join(sys.argv[1:]) + '\\n')\n"
        "folder = pathlib.Path(sys.argv[sys.argv.index('-o') + 1])\n"
        f"for name in {tpch_tables.NAMES!r}:\n"
        "    (folder / f'{name}.parquet').write_text('table')\n"
        "    if (folder.parent / 'fail').exists(): sys.exit('no space left')\n"
    )
    monkeypatch.setattr(tpch_tables, "generator", lambda: [sys.executable, str(script)])
    return lambda: noted.read_text().splitlines() if noted.exists() else []


def test_tables_are_generated_once_per_scale(tmp_path, calls):
    folder = tpch_tables.generate(0.5, tmp_path / "data", threads=2)
    assert folder == tmp_path / "data" / "sf0.5"
    assert sorted(path.stem for path in folder.iterdir()) == sorted(tpch_tables.NAMES)
    assert len(calls()) == 1
    assert "-s 0.5 " in calls()[0]
    assert calls()[0].endswith("-n 2")
    assert tpch_tables.generate(0.5, tmp_path / "data") == folder
    assert len(calls()) == 1
    tpch_tables.generate(1, tmp_path / "data")
    assert len(calls()) == 2


def test_a_failed_generator_leaves_nothing(tmp_path, calls):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "fail").touch()
    with pytest.raises(SparkError, match="no space left"):
        tpch_tables.generate(0.5, tmp_path / "data")
    assert [path.name for path in (tmp_path / "data").iterdir()] == ["fail"]
    (tmp_path / "data" / "fail").unlink()
    tpch_tables.generate(0.5, tmp_path / "data")
    assert len(calls()) == 2


def test_too_full_a_disk_is_said_before_anything_is_written(tmp_path, calls, monkeypatch):
    usage = namedtuple("usage", "total used free")(10**9, 10**9, 100 * 2**20)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    with pytest.raises(SparkError, match=r"has 100 MiB left; scale factor 1 needs 400"):
        tpch_tables.generate(1, tmp_path)
    assert calls() == []


def test_without_the_generator_the_message_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SparkError, match=r"pip install '.\[spark\]'"):
        tpch_tables.generate(1, tmp_path)


def test_every_query_names_tables_that_are_generated():
    assert len(tpch_queries.NAMES) == 22
    used = set()
    for name in tpch_queries.NAMES:
        words = set(re.findall(r"[a-z0-9_]+", tpch_queries.text(name)))
        used |= words & set(tpch_tables.NAMES)
        assert words & set(tpch_tables.NAMES), name
    assert used == set(tpch_tables.NAMES)


def test_sorted_results_have_a_limit_and_others_have_none():
    last_words = {name: tpch_queries.sql(name, 1.0).splitlines()[-1] for name in tpch_queries.NAMES}
    own = {"q02": 100, "q03": 10, "q10": 20, "q18": 100, "q21": 100}  # first rows of the specification
    for name, rows in own.items():
        assert last_words[name] == f"limit {rows}"
    unsorted = {"q06", "q14", "q17", "q19"}
    for name in set(tpch_queries.NAMES) - own.keys():
        limited = last_words[name] == f"limit {tpch_queries.ALL_ROWS}"
        assert limited == (name not in unsorted), name
        assert tpch_queries.sql(name, 1.0).count("\nlimit ") == limited


@pytest.mark.parametrize(("scale", "fraction"), [(1.0, "0.0001"), (0.25, "0.0004"), (100.0, "0.000001")])
def test_the_fraction_of_q11_follows_the_scale(scale, fraction):
    found = re.search(r"\* ([0-9.]+)\n", tpch_queries.sql("q11", scale))
    assert float(found[1]) == pytest.approx(float(fraction), rel=1e-6)


def test_task_counts_grow_with_the_scale_alone():
    counts = [tpch_tables.shuffle_partitions(scale) for scale in (0.01, 0.1, 0.25, 0.5, 1.0, 2.0)]
    assert counts == [4, 4, 8, 16, 32, 64]
    settings = tpch_tables.conf(0.5)
    assert settings["spark.sql.shuffle.partitions"] == "16"
    assert settings["spark.sql.files.minPartitionNum"] == "1"
