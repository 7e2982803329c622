"""Task graphs of every format: right answers of small files, and one sentence about each that is not read."""

import json

import numpy as np
import pytest

import decima
from decima.core.errors import ConfigError, DecimaError, WorkloadError
from decima.systems.heterogeneous.optimum.exact import optimum
from decima.systems.heterogeneous.sources import ClusterOptions, read_instance
from decima.workload.task_graphs import read_task_graph

DAX = """<?xml version="1.0" encoding="UTF-8"?>
<!-- generated -->
<adag xmlns="http://pegasus.isi.edu/schema/DAX" version="2.1" name="two" jobCount="3">
  <job id="ID1" namespace="M" name="a" runtime="3.5"><uses file="x" link="output" size="2000000"/></job>
  <job id="ID2" name="b" runtime="5">
    <uses file="x" link="input" size="2000000"/><uses file="y" link="inout" size="1000000"/>
  </job>
  <job id="ID3" name="c"><profile namespace="pegasus" key="runtime">2</profile>
    <uses name="y" link="input" size="1000000"/></job>
  <child ref="ID2"><parent ref="ID1"/></child>
  <child ref="ID3"><parent ref="ID1"/></child>
  <child ref="ID3"><parent ref="ID2"/></child>
</adag>
"""
DOT = """// a comment
strict digraph "two" { graph [rankdir=LR]; node [shape=box, Weight=5]
  a [Weight=3.5]; b; c [weight="2", label="c; ]"]
  /* more */ a -> b [Weight=2];
  subgraph cluster_0 { color=blue; b:e -> c:w [weight=1] }
  a -> c
}
"""
STG = """   3
  0  0  0
  1  3.5  1  0
  2  5  1  1
  3  2  2  1  2
  4  0  1  3
# Standard Task Graph
#   CP Length : 11
"""
DAGGEN = """digraph G {
  a [size="3500000000", alpha="0.20"]
  a -> b [size ="2000000"]
  a -> c [size ="0"]
  b [size="5e9", alpha="0.1"]
  b -> c [size ="1000000"]
  c [size="2000000000", alpha="0.1"]
}
"""


def workflow(version, **others):
    """The same graph in an old WfFormat."""

    def file(name, link, size):
        return {"name": name, "link": link, "size": size}

    tasks = [
        {"name": "a", "runtime": 3.5, "files": [file("x", "output", 2_000_000)]},
        {"name": "b", "runtime": 5, "parents": ["a"],
         "files": [file("x", "input", 2_000_000), file("y", "output", 1_000_000)]},
        {"name": "c", "runtime": 2, "parents": ["a", "b"], "files": [file("y", "input", 1_000_000)]},
    ]  # fmt: skip
    listed = {"jobs" if version in ("1.0", "1.1") else "tasks": tasks}
    return json.dumps({"name": "two", "schemaVersion": version, "workflow": {"makespan": 9} | listed} | others)


FORMATS = {
    "graph.dax": DAX,
    "graph.xml": DAX,
    "graph.dot": DOT,
    "graph.gv": DOT.replace("\n", "\r\n"),
    "graph.stg": STG,
    "bare.stg": "3\n0 3.5 0\n1 5 1 0\n2 2 2 0 1\n",
    "daggen.dot": DAGGEN,
    "mark.dot": "\ufeff" + DOT,
    "flow13.json": workflow("1.3"),
    "flow12.json": workflow("1.2"),
    "flow10.json": workflow("1.0"),
}


@pytest.fixture
def put(tmp_path):
    def write(name, content):
        (tmp_path / name).write_text(content, encoding="utf-8")
        return tmp_path / name

    return write


@pytest.mark.parametrize("name", FORMATS)
def test_one_graph_in_every_format(name, put):
    path = put(name, FORMATS[name])
    graph = read_task_graph(path)
    assert graph.runtime_s == [3.5, 5.0, 2.0]
    assert [sorted(above) for above in graph.parents] == [[], [0], [0, 1]]
    sent = {(parent, child): size for child, above in enumerate(graph.parents)
            for parent, size in zip(above, graph.data_mb[child], strict=True)}  # fmt: skip
    without = name.endswith(".stg")
    assert sent == {(0, 1): 0.0 if without else 2.0, (0, 2): 0.0, (1, 2): 0.0 if without else 1.0}
    # On the Spark cluster, drawn from as well; on heterogeneous executors as an instance.
    assert decima.load(path).jobs[0].profile.critical_path_ms == 10_500.0
    assert decima.simulate(f"file:{path},n=2", executors=2).makespan_s >= 10.5
    same = read_instance(str(path), ClusterOptions(speeds="1+1", rate=1.0))
    assert same.work.tolist() == [3.5, 5.0, 2.0]
    assert optimum(same).makespan_s == 10.5
    drawn = read_instance(str(path), ClusterOptions(executors=3))
    assert drawn.work / 2.85 == pytest.approx([3.5, 5.0, 2.0])


def test_optima_with_communication(put):
    """Fork of two nodes: apart, the data takes 3 s; together, the second waits for 4 s."""
    path = put("fork.dot", "digraph { r [Weight=2]; a [Weight=4]; b [Weight=4]; r -> a [Weight=3]; r -> b [Weight=3] }")
    for processors, single_s in (("1+1", 9.0), ("1", 10.0)):
        instance = read_instance(str(path), ClusterOptions(speeds=processors, rate=1.0))
        assert optimum(instance, duplicate=False).makespan_s == single_s


BAD = {
    "entity.dax": (DAX.replace("<adag", '<!DOCTYPE x [<!ENTITY a "b">]>\n<adag', 1), "a document type is not read"),
    "cut.dax": (DAX[:300], "is not XML"),
    "other.xml": ("<html><body/></html>", "the XML element is 'html'; expected 'adag' of Pegasus DAX"),
    "runtime.dax": (DAX.replace(' runtime="5"', ""), "task 'ID2' has no runtime"),
    "text.dax": (DAX.replace('runtime="5"', 'runtime="long"'), 'runtime of task \'ID2\' is "long"; expected a number'),
    "negative.dax": (DAX.replace('runtime="5"', 'runtime="-5"'), "is -5; expected 0 to"),
    "nan.dax": (DAX.replace('runtime="5"', 'runtime="nan"'), "is nan; expected 0 to"),
    "parent.dax": (DAX.replace('parent ref="ID2"', 'parent ref="ID9"'), "task 'ID3' has the unknown parent 'ID9'"),
    "child.dax": (DAX.replace('child ref="ID2"', 'child ref="ID9"'), "child 'ID9' is not a job"),
    "size.dax": (DAX.replace(' size="2000000"', ""), "file 'x' has no size"),
    "twice.dax": (DAX.replace('job id="ID2"', 'job id="ID1"').replace('child ref="ID2"', 'child ref="ID1"'),
                  "task 'ID1' is there twice"),
    "empty.dax": ("<adag/>", "has no tasks"),
    "cycle.dot": ("digraph { a [weight=1]; b [weight=1]; a -> b; b -> a }", "cycle"),
    "itself.dot": ("digraph { a [weight=1]; a -> a }", "own parent|cycle"),
    "twice.dot": ("digraph { a [weight=1]; b [weight=1]; a -> b; a -> b }", "twice"),
    "time.dot": ("digraph { a [weight=1]; a -> b }", "node 'b' has no time; expected weight or runtime"),
    "mixed.dot": ("digraph { a [size=1]; b [weight=1] }", "node 'b' has no time; expected size"),
    "text.dot": ("digraph { a [weight=heavy] }", "weight of node 'a' is \"heavy\"; expected a number"),
    "undirected.dot": ("graph { a -- b }", "got 'graph' in the digraph; expected a directed graph"),
    "marks.dot": ("digraph { a [weight=1]; b [weight=1]; a -- b }", "got '--' in the digraph; expected ->"),
    "group.dot": ("digraph { a [weight=1]; a -> { b c } }", "expected a node"),
    "end.dot": ("digraph { a [weight=1]; a -> b", "got the end|expected }|got '' "),
    "list.dot": ("digraph { a [weight=1", "expected ]"),
    "sign.dot": ("digraph { a [weight=1]; & }", "line 1: '& }' is not read"),
    "none.dot": ("digraph { }", "has no nodes"),
    "short.stg": ("3\n0 1 0\n1 1 1 0\n", "has 2 tasks; expected 3, or 5 with entry and exit"),
    "parent.stg": ("2\n0 1 0\n1 1 1 7\n", "unknown parent '7'"),
    "words.stg": ("2\n0 1 0\n1 one two 0\n", "task 1: expected a number of its own, its time"),
    "time.stg": ("1\n0 1 0\n1 1 1 0\n2 0 1 1\n", "entry or exit takes time; expected 0"),
    "version.json": (workflow("3.0"), "version '3.0' of WfFormat is unknown; expected 1.0, 1.1"),
    "notes.txt": ("Hello world\n", "the format is not known; expected jobs or a workflow of WfCommons"),
    "void.dot": ("", "the format is not known"),
    "flow.yml": ("pegasus: '5.0'\njobs: []\n", "the format is not known"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_one_sentence_about_what_is_not_read(name, put):
    content, sentence = BAD[name]
    path = put(name, content)
    for read in (lambda: decima.load(path), lambda: read_instance(str(path), ClusterOptions(speeds="1+1"))):
        with pytest.raises(DecimaError, match=sentence) as caught:
            read()
        assert "\n" not in str(caught.value)


def test_bytes_that_are_no_text(tmp_path):
    (tmp_path / "x.dot").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(WorkloadError, match="is not a text in UTF-8; expected jobs or a workflow"):
        decima.load(tmp_path / "x.dot")


def test_a_folder_is_a_batch_or_an_instance_for_each_file(tmp_path, put, monkeypatch):
    for name in ("graph.dax", "graph.dot", "flow13.json"):
        put(name, FORMATS[name])
    put("bad.dot", "digraph { a -> b }")
    put("notes.txt", "not read")
    with pytest.warns(UserWarning, match=r"1 of 4 files left out: .*bad.dot: node 'a' has no time"):
        assert len(decima.load(tmp_path)) == 3
    with pytest.warns(UserWarning, match="1 of 4 files left out"):
        compared = decima.compare(["heft", "cpop"], str(tmp_path), system="heterogeneous")
    assert compared.num_runs == 3
    makespans = compared.scores.groupby("scheduler")["makespan_s"]
    assert makespans.nunique().tolist() == [1, 1]
    table = str(compared)
    assert " to " not in table  # all are equal: no interval
    with pytest.raises(ConfigError, match="is a folder; expected a file here"):
        decima.simulate(str(tmp_path), "heft", system="heterogeneous")
    monkeypatch.chdir(tmp_path.parent)
    with pytest.warns(UserWarning, match="1 of 4 files left out"):
        assert len(decima.compare(["fifo"], tmp_path.name, executors=2, seeds=1).scores) == 1
    for name in ("graph.dax", "graph.dot", "flow13.json"):
        (tmp_path / name).unlink()
    with pytest.raises(WorkloadError, match="node 'a' has no time"):
        decima.load(tmp_path)
    (tmp_path / "bad.dot").unlink()
    with pytest.raises(WorkloadError, match="has no file of jobs; expected"):
        decima.load(tmp_path)
    assert np.isfinite(makespans.mean()).all()
