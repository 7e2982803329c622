"""Code outside of the package: files, modules and entry points, wherever a name is taken."""

import importlib.metadata
import pickle
import sys

import pytest

import decima
from decima.core.errors import ConfigError, DecimaError
from decima.core.objectives import OBJECTIVES, get_objective
from decima.core.registry import Registry, SchedulerEntry, options_of
from decima.learning.recipe import RECIPES, Recipe
from decima.systems.cloud.schedulers.registry import SCHEDULERS as CLOUD
from decima.systems.cloud.sources import SOURCES as PLACEMENT_JOBS
from decima.systems.cloud.sources import parse_placement_jobs
from decima.systems.heterogeneous.schedulers.registry import SCHEDULERS as UNEQUAL
from decima.systems.spark.policy.architecture import Architecture
from decima.systems.spark.schedulers import make_scheduler
from decima.systems.spark.schedulers.registry import SCHEDULERS as SPARK
from decima.workload.sources import SOURCES, parse_jobs

CODE = '''
"""Somebody else's module."""
from decima.core.objectives import Objective
from decima.systems.cloud.workload import PlacementJob, PlacementWorkload
from decima.systems.spark.policy.architecture import Architecture
from decima.systems.spark.schedulers.registry import register
from decima.systems.heterogeneous import make_scheduler
from decima.workload import synthetic_batch


class Smallest:
    """The job with the least work left."""

    name = "smallest"

    def __init__(self, most: int = 100, only: str = "all"):
        self.most = most

    def reset(self, rng):
        pass

    def decide(self, observation):
        stage = min(observation.frontier, key=lambda stage: stage.job.remaining_work_ms)
        return observation.grant(stage, min(self.most, observation.num_free_executors))


READY = Smallest(most=1)


class Needs(Smallest):
    def __init__(self, file: str):
        super().__init__()


class Own:
    name = "own_heft"

    def schedule(self, instance, seed):
        return make_scheduler("heft").schedule(instance, seed)


class FirstVm:
    name = "first_vm"

    def decide(self, view):
        vms = [vm for vm, room in enumerate(view.room.tolist()) for _ in range(room)]
        return vms[: view.job.executors] if view.fits else None


LATE = Objective("own_late", "late jobs", "", score=lambda o: float((o.jct_ms > 5e3).sum()), cost=lambda p: 0.0)


def small(seed, jobs: int = 2):
    """Small jobs."""
    return synthetic_batch(jobs, seed, ["xs"])


def placed(seed, n: int = 3):
    """Jobs for VMs."""
    jobs = (PlacementJob(60.0 * i, i, 1, 2, 4.0, 2, 30.0) for i in range(n))
    return PlacementWorkload(tuple(jobs), "own jobs")


def wide(**changes):
    return Architecture(**({"name": "wide", "embedding": 24} | changes))


GENTLE = {"lr_start": 1e-4}
BAD = 3
'''


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Folder with the module, which is the current one; nothing of it stays."""
    (tmp_path / "own_parts.py").write_text(CODE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield tmp_path
    sys.modules.pop("own_parts", None)
    if "own_late" in OBJECTIVES.loaded():
        OBJECTIVES.remove("own_late")
    for registry in (OBJECTIVES, SPARK, UNEQUAL, CLOUD, SOURCES, PLACEMENT_JOBS, RECIPES, Architecture.variants):
        registry._texts.clear()


@pytest.mark.parametrize("place", ["own_parts.py", "own_parts"])
def test_schedulers_objectives_and_jobs_of_a_file_or_module(folder, place):
    texts = ["fair", f"{place}:Smallest", f"{place}:Smallest:most=1", f"{place}:READY"]
    comparison = decima.compare(texts, f"{place}:small:jobs=3", executors=4, seeds=2, metric=f"{place}:LATE")
    scores = comparison.scores.pivot(index="seed", columns="scheduler", values="own_late")
    assert len(comparison.scores) == 8
    assert (scores[f"{place}:Smallest:most=1"] == scores[f"{place}:READY"]).all()
    workload = parse_jobs(f"{place}:small").workload(1)
    assert len(workload) == 2
    assert workload.signature() == sys.modules["own_parts"].small(1).signature()


def test_other_systems_take_them_too(folder):
    made = decima.compare(["heft", "own_parts:Own"], "canonical", system="heterogeneous", seeds=1)
    assert made.scores["makespan_s"].nunique() == 1
    placed = decima.simulate("own_parts:placed:n=2", "own_parts:FirstVm", system="cloud")
    assert len(placed.workload) == 2
    assert placed.scheduler == "first_vm"
    assert parse_placement_jobs("own_parts:placed").workload().label == "own jobs"


def test_networks_and_recipes(folder):
    assert Architecture.named("own_parts:wide", hidden=(8,)) == Architecture(name="wide", embedding=24, hidden=(8,))
    assert Recipe.named("own_parts:GENTLE").learning.lr_start == 1e-4
    with pytest.raises(ConfigError, match="own_parts:BAD is 3; expected Architecture"):
        Architecture.named("own_parts:BAD")


def test_an_objective_of_a_file_reaches_other_processes_by_its_text(folder):
    late = get_objective("own_parts.py:LATE")
    assert pickle.loads(pickle.dumps(late)) is late
    assert b"own_parts.py:LATE" in pickle.dumps(late)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("own_parts:Smalest", "has no 'Smalest'; did you mean 'Smallest'"),
        ("own_parts:Smallest:mst=1", "has no option 'mst'; did you mean 'most'.; it has: most, only"),
        ("own_parts:Smallest:most=a", "most is 'a'; expected a whole number"),
        ("own_parts:Needs", "needs file; expected own_parts:Needs:file="),
        ("own_parts:BAD", "own_parts:BAD is 3; expected a scheduler with decide"),
        ("own_parts:small", "missing 1 required|needs seed"),
        ("none.py:Mine", "there is no file none.py"),
        ("broken.py:Mine", r"importing fails with ZeroDivisionError: division by zero \(.*broken.py, line 2\)"),
        ("json.py:Mine", "the module json is .* already; expected another file name"),
        ("no_such_module:Mine", "unknown scheduler 'no_such_module'"),
    ],
)
def test_mistakes_are_one_sentence(folder, text, message):
    (folder / "broken.py").write_text("x = 1\n1 / 0\n")
    (folder / "json.py").write_text("")
    with pytest.raises(DecimaError, match=message):
        make_scheduler(text)


def test_entry_points_of_an_installed_distribution(folder, monkeypatch):
    info = folder / "own_parts-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: own-parts\nVersion: 1.0\n")
    points = "small_first = own_parts:Smallest\ntorn = own_parts:Nothing\n"
    (info / "entry_points.txt").write_text(f"[decima.toys]\n{points}")
    monkeypatch.syspath_prepend(folder)
    assert [each.name for each in importlib.metadata.entry_points(group="decima.toys")] == ["small_first", "torn"]

    def adopt(name, found):
        return SchedulerEntry.adopted(name, found, "decide")

    registry = Registry("toy", group="decima.toys", adopt=adopt)
    assert registry.names() == ["small_first", "torn"]
    assert registry.find("small_first").make({"most": 2}).most == 2
    assert registry.split("small_first:most=2") == ("small_first", "most=2")
    with pytest.raises(ConfigError, match="own_parts has no 'Nothing'"):
        registry.find("torn")
    with pytest.warns(UserWarning, match="toy torn is left out"):
        assert [each.name for each in registry.members()] == ["small_first"]


def test_options_follow_from_the_keywords():
    def function(seed, few: int, many: float = 1.5, word="a", other=None, *, on: "bool" = False, **rest): ...

    options = options_of(function, "seed")
    assert [(each.name, each.value_type, each.required) for each in options] == [
        ("few", int, True),
        ("many", float, False),
        ("word", str, False),
        ("other", float, False),
        ("on", bool, False),
    ]
