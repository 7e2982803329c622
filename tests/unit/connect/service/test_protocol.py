"""The committed protocol and the code generated from it belong together."""

import pytest

from decima.connect.service import generate, scheduler_pb2
from tests.unit.test_package import modules_after


def test_generated_code_is_current():
    files = generate.generated_files()
    assert sorted(files) == ["scheduler_pb2.py", "scheduler_pb2.pyi"]
    for name, text in files.items():
        assert (generate.PROTO.parent / name).read_text() == text, "run python -m decima.connect.service.generate"


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
