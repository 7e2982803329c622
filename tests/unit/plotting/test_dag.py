import matplotlib.colors
import networkx
import numpy as np
import pytest
from matplotlib.container import BarContainer

from decima.plotting import network
from decima.plotting.dag import dag, dag_panel, layered_positions
from decima.plotting.gantt import job_colors
from tests.unit.plotting import frames


def one():
    return frames.stages(("q9-100g",)), frames.edges(("q9-100g",))


def test_parents_lie_above_their_children_and_no_two_stages_coincide():
    graph = networkx.gn_graph(25, seed=1)
    positions = layered_positions(graph)
    assert all(positions[parent][1] > positions[child][1] for parent, child in graph.edges)
    assert len({tuple(position) for position in positions.values()}) == 25


def test_stages_of_a_layer_keep_their_distance():
    positions = np.array(list(layered_positions(networkx.gn_graph(40, seed=3)).values()))
    for level in set(positions[:, 1]):
        places = np.sort(positions[positions[:, 1] == level, 0])
        assert (np.diff(places) > 1.0 - 1e-9).all()


def test_a_chain_is_a_straight_line_beside_another():
    positions = layered_positions(networkx.DiGraph([(0, 1), (1, 4), (2, 3), (3, 4), (5, 2)]))
    assert positions[5][0] == pytest.approx(positions[2][0], abs=0.2)
    assert abs(positions[2][0] - positions[0][0]) >= 0.9


def test_sweeps_remove_a_crossing_that_can_be_removed():
    graph = networkx.DiGraph([(0, 3), (1, 2), (2, 4), (3, 4)])
    place = {stage: position[0] for stage, position in layered_positions(graph).items()}
    assert (place[0] - place[1]) * (place[3] - place[2]) > 0


def test_area_grows_with_work_and_every_stage_has_a_label_if_wanted():
    axes = dag(*one())
    (stages,) = [child for child in axes.collections if child.get_gid() == "stages"]
    sizes = stages.get_sizes()
    assert len(sizes) == 4
    assert sizes.argmax() == 1  # 10 tasks of 100 ms
    assert set(frames.texts(axes.texts)) == {"4 ×\n50 ms", "10 ×\n0.1 s", "1 ×\n0.2 s", "3 ×\n0.2 s"}
    assert axes.get_title() == "Q9, 100 GB: 4 stages, 18 tasks"
    assert len(axes.patches) == 3
    assert len(dag(*one(), labels=False).texts) == 0


def test_stages_may_have_names_and_colours():
    stages, edges = one()
    axes = dag(stages.assign(name=list("abcd")), edges, colors=["red", "blue", "red", "blue"])
    (drawn,) = [child for child in axes.collections if child.get_gid() == "stages"]
    assert len({tuple(color) for color in drawn.get_facecolor()}) == 2
    assert "a\n4 ×\n50 ms" in frames.texts(axes.texts)


def test_a_single_stage_is_drawn():
    stages, edges = one()
    axes = dag(stages[stages["stage"] == 0], edges.iloc[:0])
    assert axes.get_title() == "Q9, 100 GB: 1 stage, 4 tasks"


@pytest.mark.parametrize("columns", [1, 3])
def test_panel_has_one_drawing_per_job(columns):
    figure = dag_panel(frames.stages(), frames.edges(), columns=columns)
    titles = [axes.get_title() for axes in figure.axes if axes.get_title()]
    assert titles == ["Q9, 100 GB: 4 stages, 18 tasks", "Q2, 2 GB: 4 stages, 18 tasks"]


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
    assert "limits that allow all 3 executors" in axes.get_title(loc="left")
    assert "90 %" in axes.get_title(loc="left")
