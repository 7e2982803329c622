"""The committed protocol and the code generated from it belong together."""

import subprocess
import sys
from pathlib import Path

import pytest

from decima.connect.service import scheduler_pb2
from tests.unit.test_package import modules_after


def test_generated_code_is_current(tmp_path):
    committed = Path(scheduler_pb2.__file__).parent
    # In a process of its own: the compiler and TensorFlow, each with a protobuf of its own, crash in one.
    command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{committed.parents[1]}", committed / "scheduler.proto"]
    subprocess.run([*command, f"--python_out={tmp_path}", f"--pyi_out={tmp_path}"], check=True)
    made = sorted(tmp_path.rglob("*.py*"))
    assert [path.name for path in made] == ["scheduler_pb2.py", "scheduler_pb2.pyi"]
    for path in made:
        assert (committed / path.name).read_text() == f"# ruff: noqa\n{path.read_text()}", "run make protocol"


def test_java_client_finds_its_package():
    options = scheduler_pb2.DESCRIPTOR.GetOptions()
    assert options.java_package == "org.decima.spark.protocol"
    assert options.java_multiple_files


def test_protocol_needs_no_other_files():
    """Spark's own shaded copy of protobuf knows none."""
    assert list(scheduler_pb2.DESCRIPTOR.dependencies) == []


@pytest.mark.parametrize(
    "statement", ["import decima; decima.simulate", "import decima; decima.list_schedulers()", "import decima.app"]
)
def test_grpc_is_loaded_by_those_who_use_it(statement):
    loaded = modules_after(statement)
    assert "decima" in loaded
    assert loaded.isdisjoint({"grpc", "google", "prometheus_client"})
