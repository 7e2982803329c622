"""Charts of bars, boxes and distances from the best."""

import networkx
import numpy as np
import pandas
import pytest
from matplotlib.container import BarContainer

from decima.core.appearance import appearances
from decima.plotting import bars, optimality, style
from decima.plotting.dag import dag, layered_positions
from tests.unit.plotting import frames


def test_scheduler_bars_draw_the_mean_of_every_group():
    axes = bars.scheduler_bars(frames.effects(), group="setting")
    assert frames.legend(axes) == ["FIFO", "fair", "capped SRW"]
    bars_of = {each.get_label(): each for each in axes.containers if isinstance(each, BarContainer)}
    heights = {label: [bar.get_height() for bar in each] for label, each in bars_of.items()}
    assert heights["FIFO"] == pytest.approx([102.0, 91.8, 51.0])
    assert axes.get_ylabel() == "average JCT (s)"
    assert axes.get_xticklabels()[1].get_text() == "no first-wave\nslowdown"


def test_changes_are_paired_by_seed():
    table = bars.changes_against(frames.effects(), "setting", "all effects")
    halved = table[(table["setting"] == "none of the three") & (table["scheduler"] == "fair")].iloc[0]
    assert (halved["change_percent"], halved["low"], halved["high"]) == pytest.approx((-50.0, -50.0, -50.0))
    assert len(table) == 6
    assert "all effects" not in set(table["setting"])


def test_wave_ratios_compare_inside_a_stage_and_level():
    ratios = bars.wave_ratios(frames.waves()).groupby("wave")["ratio"]
    assert ratios.count().to_dict() == {"first": 8, "fresh": 8}
    assert ratios.min().to_dict() == pytest.approx({"first": 2.0, "fresh": 3.0})
    assert ratios.max().to_dict() == pytest.approx({"first": 2.0, "fresh": 3.0})


def test_stages_without_later_waves_are_left_out():
    table = frames.waves()
    table.loc[(table["stage"] == 0) & (table["wave"] == "rest"), "duration_s"] = 0.0
    table = table[(table["stage"] != 1) | (table["wave"] != "rest")]
    ratios = bars.wave_ratios(table)
    assert len(ratios) == 8
    assert np.isfinite(ratios["ratio"]).all()


def test_level_ratios_start_from_the_lowest_level_of_a_stage():
    ratios = bars.level_ratios(frames.waves().sample(frac=1.0, random_state=0))
    assert set(ratios["level"]) == {20}
    assert ratios["ratio"].to_list() == pytest.approx([1.5] * 4)


def test_relative_to_divides_inside_an_instance():
    table = optimality.relative_to(frames.optimality(), "batch", "exhaustive")
    assert table.loc[table["policy"] == "sjf_cp", "ratio"].to_list() == pytest.approx([1.25] * 3)
    assert table.loc[table["policy"] == "exhaustive", "ratio"].to_list() == pytest.approx([1.0] * 3)


def test_distance_from_floor_spans_from_bound_to_search():
    axes = optimality.distance_from_floor(frames.bounds())
    (floor,) = axes.collections
    spans = [(segment[0, 0], segment[1, 0]) for segment in floor.get_segments()]
    assert np.array(spans) == pytest.approx(np.array([(16.8, 28.0), (17.4, 29.0), (18.0, 30.0)]))
    assert frames.legend(axes) == ["fair", "capped SRW", "per-instance search", "lower bound"]
    assert frames.texts(axes.get_yticklabels()) == ["2", "1", "0"]
    assert axes.get_xlabel() == "average JCT (s)"
    assert axes.lines[0].get_color() == appearances()["fair"].color


def test_paired_panels_show_the_change_of_every_scheduler_and_interval():
    levels = {"fair": 1.0, "decima": 0.9, "weighted_fair": 0.95, "fifo": 50.0}
    rows = [(group, name, seed, level * (10.0 + seed)) for group in ("one", "two")
            for name, level in levels.items() for seed in range(3)]  # fmt: skip
    figure = style.new_figure(7.2)
    scores = pandas.DataFrame(rows, columns=["group", "scheduler", "seed", "avg_jct_s"])
    bars.paired_panels(scores, figure, group="group", against="fair")
    first = figure.axes[0]
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["(a) one", "(b) two"]
    assert frames.texts(first.get_yticklabels()) == ["FIFO", "tuned weighted fair", "Decima"]
    assert first.get_xlabel() == "average JCT against fair (%)"
    assert [each[0].get_xdata()[0] for each in first.containers] == pytest.approx([-5.0, -10.0])
    assert frames.texts(first.texts) == ["4,900 % ▶"]


# ---- graphs of jobs --------------------------------------------------------------------------------------------------


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
