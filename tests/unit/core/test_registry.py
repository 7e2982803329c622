"""The one registry, and what all registries of the package keep to."""

from pathlib import Path

import pytest

from decima.core.errors import ConfigError, DecimaError, UnknownSchedulerError
from decima.core.objectives import OBJECTIVES
from decima.core.registry import Registry, SchedulerEntry
from decima.core.system import SYSTEMS
from decima.systems.cloud.schedulers.registry import SCHEDULERS as CLOUD
from decima.systems.cloud.sources import SOURCES as PLACEMENT_JOBS
from decima.systems.heterogeneous.schedulers.registry import SCHEDULERS as HETEROGENEOUS
from decima.systems.spark.schedulers.registry import SCHEDULERS as SPARK
from decima.workload.sources import SOURCES

REGISTRIES = {
    "systems": SYSTEMS,
    "objectives": OBJECTIVES,
    "workload sources": SOURCES,
    "placement jobs": PLACEMENT_JOBS,
    "spark schedulers": SPARK,
    "heterogeneous schedulers": HETEROGENEOUS,
    "cloud schedulers": CLOUD,
}


@pytest.mark.parametrize("registry", REGISTRIES.values(), ids=REGISTRIES)
def test_members_have_their_names(registry):
    assert registry.names() == sorted(registry)
    assert [member.name for member in registry.members()] == registry.names()
    assert len(registry) == len(registry.names()) > 1
    assert registry.names()[0] in registry
    assert "no such name" not in registry


@pytest.mark.parametrize("registry", REGISTRIES.values(), ids=REGISTRIES)
def test_an_unknown_name_is_answered_with_the_nearest(registry):
    name = registry.names()[0]
    with pytest.raises(DecimaError, match=f"unknown .* '{name}_'; did you mean '{name}'.; known: .*{name}"):
        registry.find(f"{name}_")


@pytest.mark.parametrize(
    ("registry", "page"), [(SPARK, "schedulers.md"), (HETEROGENEOUS, "heterogeneous.md"), (CLOUD, "cloud.md")]
)
def test_schedulers_say_what_they_do_and_what_may_be_set(registry, page):
    text = (Path(__file__).parents[3] / "docs" / page).read_text(encoding="utf-8")
    with pytest.raises(UnknownSchedulerError):
        registry.find("no such name")
    for entry in registry.members():
        assert entry.doc, entry.name
        assert entry.label or registry is not HETEROGENEOUS, entry.name
        assert entry.source or registry is SPARK, entry.name
        assert f"`{entry.name}`" in text, entry.name
        assert all(option.doc for option in entry.options)


def test_what_is_registered_last_counts():
    registry = Registry("toy", others="or a path")
    for number in (1, 2):
        registry.add("one", SchedulerEntry("one", lambda value, number=number: (number, value), description="a toy"))
    assert registry.find("one").make({"value": 3}) == (2, 3)
    assert registry.loaded() == ["one"]
    with pytest.raises(ConfigError, match="unknown toy 'two'; known: one, or a path"):
        registry.find("two")


def test_a_module_of_the_table_is_imported_when_asked_for():
    registry = Registry("flag", modules={"json": "json:JSONDecoder", "missing": "json"})
    assert registry.loaded() == []
    assert registry.find("json").__name__ == "JSONDecoder"
    assert registry.names() == ["json", "missing"]
    with pytest.raises(ConfigError, match="unknown flag 'missing'"):
        registry.find("missing")
