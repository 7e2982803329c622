import numpy as np
import pytest
from matplotlib.container import ErrorbarContainer

from decima.core.appearance import appearances
from decima.plotting import optimality
from tests.unit.plotting import frames


def test_example_schedules_show_both_makespans_over_one_axis():
    figure = optimality.example_schedules(frames.example_tasks(), {0: "blue", 1: "green", 2: "join"})
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles == ["critical path: makespan 10.00 s", "optimal: makespan 5.00 s"]
    assert figure.axes[0].get_xlim() == figure.axes[1].get_xlim()
    assert frames.texts(figure.legends[0].get_texts()) == ["blue", "green", "join", "idle"]


def test_relative_to_divides_inside_an_instance():
    table = optimality.relative_to(frames.optimality(), "batch", "exhaustive")
    assert table.loc[table["policy"] == "sjf_cp", "ratio"].to_list() == pytest.approx([1.25] * 3)
    assert table.loc[table["policy"] == "exhaustive", "ratio"].to_list() == pytest.approx([1.0] * 3)


def test_policy_bars_are_sorted_with_a_dot_per_batch():
    axes = optimality.policy_bars(frames.optimality())
    assert frames.texts(axes.get_yticklabels()) == ["fair\n37.5 s", "SJF-CP\n31.2 s", "exhaustive search\n25.0 s"]
    assert [bar.get_width() for bar in axes.patches] == pytest.approx([37.5, 31.25, 25.0])
    dots = [each for each in axes.collections if len(each.get_offsets()) == 3]
    assert len(dots) == 3
    assert axes.get_xlabel() == "average JCT (s)"


def test_ratio_bars_name_their_reference():
    axes = optimality.ratio_bars(frames.optimality(), reference="exhaustive")
    assert axes.get_xlabel() == "average JCT / exhaustive search"
    assert [bar.get_width() for bar in axes.patches] == pytest.approx([1.5, 1.25, 1.0])


@pytest.mark.parametrize(("batches", "error_bars", "longest"), [(1, 0, 30.0), (2, 0, 33.75), (3, 3, 37.5)])
def test_error_bars_need_three_batches(batches, error_bars, longest):
    table = frames.optimality()
    axes = optimality.policy_bars(table[table["batch"] < batches])
    assert sum(isinstance(each, ErrorbarContainer) for each in axes.containers) == error_bars
    assert [bar.get_width() for bar in axes.patches] == pytest.approx([longest, longest / 1.2, longest / 1.5])


def test_distance_from_floor_spans_from_bound_to_search():
    axes = optimality.distance_from_floor(frames.bounds())
    (floor,) = axes.collections
    spans = [(segment[0, 0], segment[1, 0]) for segment in floor.get_segments()]
    assert np.array(spans) == pytest.approx(np.array([(16.8, 28.0), (17.4, 29.0), (18.0, 30.0)]))
    assert frames.legend(axes) == ["fair", "capped SRW", "per-instance search", "lower bound"]
    assert frames.texts(axes.get_yticklabels()) == ["2", "1", "0"]
    assert axes.get_xlabel() == "average JCT (s)"
    assert axes.lines[0].get_color() == appearances()["fair"].color
