"""Parameters are tuned, by CMA-ES or on a grid."""

import json

import numpy as np
import pytest

from decima.core.decision import Parameter
from decima.core.errors import ConfigError
from decima.evaluation.cma_search import minimize
from decima.evaluation.grid import grid_search, grid_table, read_grid
from decima.evaluation.run import score_matrix
from decima.evaluation.tuning import Scaling, tune
from decima.systems.spark.schedulers import CompiledScheduler, make_scheduler
from decima.systems.spark.settings import Settings
from decima.workload import embedded_batch, synthetic_batch

SETTINGS = Settings(executors=10)
TRAIN = [synthetic_batch(4, seed=seed) for seed in range(3)]
TEST = [synthetic_batch(4, seed=seed) for seed in range(10, 13)]


def quick(name="capped_srw", **options):
    return tune(name, TRAIN, SETTINGS, **({"budget": 24} | options))


def test_scaling_is_logarithmic_where_the_range_is_wide():
    scaling = Scaling(
        [
            Parameter("wide", 1.0, 0.01, 100.0, ""),
            Parameter("signed", 0.0, -2.0, 2.0, ""),
            Parameter("narrow", 2, 1, 3, ""),
        ]
    )
    values = {"wide": 1.0, "signed": 1.0, "narrow": 1.5}
    assert scaling.encode(values) == pytest.approx([0.5, 0.75, 0.25])
    assert scaling.decode(scaling.encode(values)) == pytest.approx(values)
    assert scaling.decode(np.ones(3)) == {"wide": 100.0, "signed": 2.0, "narrow": 3.0}
    for scheduler in map(make_scheduler, ("capped_srw:plain", "weighted_fair:paper")):
        scaling = Scaling([item for item in scheduler.parameters if item.tunable])
        assert scaling.decode(scaling.encode(scheduler.values)) == pytest.approx(
            {item.name: scheduler.values[item.name] for item in scaling.parameters}
        )


def test_result():
    result = quick(test=TEST, baseline="fair", workers=2)
    assert result.tuned == ("c0", "c1", "power", "release")
    assert list(result.train) == list(result.test) == ["tuned", "default", "fair"]
    assert result.train["tuned"].mean() == result.curve[-1]["best"] <= result.train["default"].mean()
    expected = score_matrix(TEST, [result.make(), make_scheduler("fair")], SETTINGS, seeds=range(10**6, 10**6 + 3))
    assert np.array_equal(result.test["tuned"], expected[0])
    assert np.array_equal(result.test["fair"], expected[1])
    table = result.table()
    assert len(table) == 6
    change = table.query("workloads == 'test' and policy == 'fair'").tuned_change_percent.item()
    assert change == pytest.approx(100.0 * (expected[0].mean() / expected[1].mean() - 1.0))
    assert "capped_srw(c0=" in str(result)
    assert "<table" in result._repr_html_()


def test_card(tmp_path):
    result = quick(test=TEST, baseline=make_scheduler("weighted_fair", alpha=-0.5))
    result.save(tmp_path / "tuned.json")
    card = json.loads((tmp_path / "tuned.json").read_text())
    assert card["baseline"] == "weighted_fair"
    assert card["train"]["workloads"] == 3
    assert card["test"]["seeds"] == [10**6, 10**6 + 1, 10**6 + 2]
    assert card["settings"]["executors"] == 10
    assert card["curve"][-1]["evaluations"] == card["search"]["evaluations"] >= 24
    loaded = make_scheduler(str(tmp_path / "tuned.json"))
    assert isinstance(loaded, CompiledScheduler)
    assert loaded.values == result.parameters
    with pytest.raises(ConfigError, match="cannot read"):
        make_scheduler(str(tmp_path / "none.json"))
    (tmp_path / "other.json").write_text("[1]")
    with pytest.raises(ConfigError, match="is not a card"):
        make_scheduler(str(tmp_path / "other.json"))


def test_bad_input():
    with pytest.raises(ConfigError, match="no parameter to tune besides the fixed ones"):
        quick("weighted_fair", fixed={"alpha": 1.0})
    with pytest.raises(ConfigError, match="no parameter 'speed'"):
        quick(fixed={"speed": 1.0})
    with pytest.raises(ConfigError, match="no workload"):
        tune("capped_srw", [], SETTINGS)
    with pytest.raises(ConfigError, match="budget must be"):
        quick(budget=0)


# ---- grid search: every combination is scored, and the best one wins ------------------------------------------------


JOBS = [embedded_batch(4, seed=seed, sizes="2g") for seed in range(2)]
CLUSTER = Settings.of_mode("paper", executors=8)


def test_the_table_has_every_combination_and_the_best_is_taken():
    grid = {"alpha": [-1.0, 0.0, 1.0], "order": [0.0, 1.0]}
    result = grid_search("weighted_fair", JOBS, CLUSTER, grid, test=JOBS[:1], fixed={"sticky": 1.0}, baseline="fair")
    table = grid_table(result)
    assert table[["alpha", "order"]].values.tolist() == [[a, o] for a in grid["alpha"] for o in grid["order"]]
    made = [make_scheduler("weighted_fair", sticky=1.0, alpha=a, order=o) for a, o in table[["alpha", "order"]].values]
    assert table["mean_s"].tolist() == score_matrix(JOBS, made, CLUSTER, seeds=range(2)).mean(axis=1).tolist()
    best = table.loc[table["mean_s"].idxmin()]
    assert result.parameters["sticky"] == 1.0
    assert (result.parameters["alpha"], result.parameters["order"]) == (best["alpha"], best["order"])
    assert result.train["tuned"].mean() == best["mean_s"]
    assert set(result.test) == {"tuned", "default", "fair"}
    assert len(result.card()["curve"]) == 6


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ("", "'' is not an option; expected KEY=VALUE"),
        ("alpha", "'alpha' is not an option; expected KEY=VALUE"),
        ("alpha=x", "alpha is 'x'; expected a number"),
        ("alpha=1+1", "a value of alpha is given twice"),
    ],
)
def test_texts_that_are_no_grid(grid, message):
    with pytest.raises(ConfigError, match=message):
        read_grid(grid)


def test_grids_that_cannot_be_searched():
    with pytest.raises(ConfigError, match="has no parameter 'beta'"):
        grid_search("weighted_fair", JOBS, CLUSTER, {"beta": [1.0]})
    with pytest.raises(ConfigError, match="alpha must be from -5 to 5, got 9"):
        grid_search("weighted_fair", JOBS, CLUSTER, {"alpha": [9.0]})
    with pytest.raises(ConfigError, match="alpha is both in the grid and fixed"):
        grid_search("weighted_fair", JOBS, CLUSTER, {"alpha": [0.0]}, fixed={"alpha": 1.0})
    with pytest.raises(ConfigError, match="the grid is empty"):
        grid_search("weighted_fair", JOBS, CLUSTER, {})
    with pytest.raises(ConfigError, match="combinations; expected at most"):
        grid_search("weighted_fair", JOBS, CLUSTER, {"alpha": range(500), "order": range(500)})
    assert read_grid("alpha=-1+0.5,order=1") == {"alpha": [-1.0, 0.5], "order": [1.0]}


# ---- CMA-ES ---------------------------------------------------------------------------------------------------------


def bowl(points):
    return ((points - 0.3) ** 2).sum(axis=1)


def search(budget, *, start=0.9, numbers=3, seed=1, **options):
    return minimize(bowl, [start] * numbers, sigma=0.2, bounds=(0.0, 1.0), budget=budget, seed=seed, **options)


@pytest.mark.parametrize("numbers", [1, 2, 6])
def test_finds_the_minimum_inside_the_bounds(numbers):
    seen = []

    def watched(points):
        seen.append(points)
        return bowl(points)

    found = minimize(watched, [0.9] * numbers, sigma=0.2, bounds=(0.0, 1.0), budget=700, seed=1)
    assert found.x == pytest.approx(np.full(numbers, 0.3), abs=0.02)
    assert found.value == bowl(found.x[None])[0]
    points = np.concatenate(seen)
    assert points.shape[1] == numbers
    assert points.min() >= 0.0
    assert points.max() <= 1.0
    assert np.array_equal(points[0], [0.9] * numbers)  # the start is tried as it is
    assert found.curve[-1]["evaluations"] == len(points) >= 700
    assert [row["best"] for row in found.curve] == sorted((row["best"] for row in found.curve), reverse=True)


def test_depends_on_the_seed_alone_and_leaves_numpys_generator_alone():
    np.random.seed(3)  # noqa: NPY002
    expected = np.random.random()  # noqa: NPY002
    first = search(100)
    np.random.seed(3)  # noqa: NPY002
    second = search(100)
    assert np.random.random() == expected  # noqa: NPY002
    assert np.array_equal(first.x, second.x)
    assert not np.array_equal(first.x, search(100, seed=2).x)


def test_injected_points_are_tried():
    found = search(1, inject=[[0.3, 0.3, 0.3]])
    assert found.value == 0.0
    assert list(found.x) == [0.3, 0.3, 0.3]


def test_starts_anew_when_converged():
    sizes = []

    def watched(points):
        sizes.append(len(points))
        return bowl(points)

    minimize(watched, [0.9] * 2, sigma=0.2, bounds=(0.0, 1.0), budget=900, seed=1)
    assert set(sizes) >= {sizes[0], 2 * sizes[0]}


def test_searches_that_cannot_be():
    with pytest.raises(ConfigError, match="budget must be"):
        search(0)
