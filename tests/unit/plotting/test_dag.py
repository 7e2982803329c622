import networkx
import numpy as np

from decima.plotting.dag import dag, layered_positions
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
