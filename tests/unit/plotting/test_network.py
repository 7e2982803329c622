import matplotlib.colors
import numpy as np
import pytest
from matplotlib.container import BarContainer

from decima.plotting import network
from decima.plotting.gantt import job_colors
from tests.unit.plotting import frames


def test_stages_have_the_colour_of_their_step_above_strips_of_features_and_embeddings():
    tables = frames.policy()
    figure = network.embeddings(*(tables[f"policy_{part}"] for part in ("stages", "edges", "nodes", "summaries")))
    first, second = figure.axes[:2]
    assert [axes.get_title() for axes in (first, second)] == ["job 0: Q9, 100 GB", "job 1: Q2, 2 GB"]
    (stages,) = [child for child in second.collections if child.get_gid() == "stages"]
    drawn = [matplotlib.colors.to_hex(color) for color in stages.get_facecolor()]
    steps = network.step_colors(3)
    assert drawn == ["#ffffff", steps[2], steps[1], steps[0]]
    assert frames.texts(second.texts) == ["0", "1", "2", "3"]
    strips = {
        tuple(frames.texts(axes.get_xticklabels())): axes.images[0].get_array() for axes in figure.axes if axes.images
    }
    assert set(strips) == {("0", "1", "2", "3", "y"), ("1", "2", "3", "y"), ("z",)}
    table = strips["0", "1", "2", "3", "y"]
    assert table.shape == (5 + 3, 5)
    assert table[0, 0] == -1.0
    assert list(table[5:, -1]) == [1.0, 0.0, 0.0]
    assert np.ma.getmaskarray(np.ma.masked_invalid(table))[:5, -1].all()
    assert list(strips[("z",)][5:, 0]) == [0.0, 0.0, 1.0]


def test_probabilities_of_stages_carry_the_score_and_mark_the_choice():
    axes = network.stage_probabilities(frames.policy()["policy_candidates"])
    (bars,) = [each for each in axes.containers if isinstance(each, BarContainer)]
    assert [bar.get_height() for bar in bars] == pytest.approx([0.2, 0.3, 0.5])
    assert [bar.get_linewidth() > 1.0 for bar in bars] == [False, False, True]
    assert frames.texts(axes.texts) == ["−0.50", "0.10", "0.40"]
    assert frames.texts(axes.get_xticklabels()) == ["0.0", "0.1", "1.1"]
    assert [matplotlib.colors.to_hex(bar.get_facecolor()).upper() for bar in bars][1:] == job_colors(2)


def test_limits_with_the_same_effect_are_shaded_together():
    axes = network.limit_probabilities(frames.policy()["policy_limits"])
    (shade,) = [patch for patch in axes.patches if patch.get_zorder() == 0]
    assert (shade.get_x(), shade.get_x() + shade.get_width()) == (6.5, 10.5)
    assert "3 executors, all that the stage can use" in axes.get_title(loc="left")
    assert "90 %" in axes.get_title(loc="left")
