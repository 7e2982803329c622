import pandas
import pytest

from decima.plotting import cloud
from tests.unit.plotting.frames import legend


def test_bands_of_training_join_runs_of_different_lengths():
    rows = [
        ("paper_dqn", 0.0, seed, iteration, 10.0 * seed + iteration, float(iteration))
        for seed, length in ((0, 3), (1, 2))
        for iteration in range(1, length + 1)
    ]
    curves = pandas.DataFrame(rows, columns=["learner", "beta", "seed", "iteration", "reached", "steps"])
    axes = cloud.training_band(curves, "reached")
    assert list(axes.lines[0].get_xdata()) == [1, 2, 3]
    assert axes.lines[0].get_ydata() == pytest.approx([6.0, 7.0, 3.0])
    band = axes.collections[0].get_paths()[0].vertices
    assert (band[:, 1].min(), band[:, 1].max()) == (1.0, 12.0)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("iteration", cloud.TRAINED["reached"])
    assert legend(axes) == ["DQN (paper)"]


def test_a_line_per_weight_of_cost_is_the_mean_of_its_seeds():
    rows = [(beta, seed, iteration, beta + seed) for beta in (0.0, 1.0) for seed in (0, 2) for iteration in (1, 2)]
    axes = cloud.training_by_beta(pandas.DataFrame(rows, columns=["beta", "seed", "iteration", "complete"]), "complete")
    assert [list(line.get_ydata()) for line in axes.lines] == [[1.0, 1.0], [2.0, 2.0]]
    assert legend(axes) == ["β = 0", "β = 1"]
    assert axes.get_ylabel() == cloud.TRAINED["complete"]


def test_a_line_joins_the_weights_of_cost_that_no_other_beats():
    rows = [
        ("aep", beta, cost, time) for beta, (cost, time) in enumerate([(5.0, 1.0), (3.0, 2.0), (4.0, 3.0), (1.0, 4.0)])
    ]
    axes = cloud.cost_and_time(pandas.DataFrame(rows, columns=["scheduler", "beta", "cost", "duration_s"]))
    front, beaten = axes.lines
    assert list(zip(front.get_xdata(), front.get_ydata(), strict=True)) == [(1.0, 5.0), (2.0, 3.0), (4.0, 1.0)]
    assert (list(beaten.get_xdata()), list(beaten.get_ydata())) == ([3.0], [4.0])
    assert (beaten.get_fillstyle(), beaten.get_linestyle()) == ("none", "None")
    assert len(legend(axes)) == 1
