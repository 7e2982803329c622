"""Grid search: every combination is scored, and the best one wins."""

import pytest

from decima.core.errors import ConfigError
from decima.evaluation.grid import grid_search, grid_table, read_grid
from decima.evaluation.run import score_matrix
from decima.systems.spark.schedulers import make_scheduler
from decima.systems.spark.settings import Settings
from decima.workload import embedded_batch

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
