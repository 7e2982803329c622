"""Charts of bars, boxes and distances from the best."""

import matplotlib.colors
import numpy as np
import pandas
import pytest
from matplotlib.container import BarContainer, ErrorbarContainer

from decima.core.display import appearances
from decima.plotting import bars, optimality, style
from tests.unit.plotting import frames


def test_scheduler_bars_draw_the_mean_of_every_group():
    axes = bars.scheduler_bars(frames.effects(), group="setting")
    assert frames.legend(axes) == ["FIFO", "fair", "capped SRW"]
    bars_of = {each.get_label(): each for each in axes.containers if isinstance(each, BarContainer)}
    heights = {label: [bar.get_height() for bar in each] for label, each in bars_of.items()}
    assert heights["FIFO"] == pytest.approx([102.0, 91.8, 51.0])
    assert axes.get_ylabel() == "average JCT (s)"
    assert axes.get_xticklabels()[1].get_text() == "no first-wave\nslowdown"


def test_a_scheduler_may_be_missing_in_a_group():
    table = frames.effects()
    table = table[(table["setting"] != "none of the three") | (table["scheduler"] != "fifo")]
    axes = bars.scheduler_bars(table, group="setting")
    assert len(axes.patches) == 8


def test_bars_keep_the_colour_of_the_scheduler_and_a_number_stays_beside_its_unit():
    axes = bars.scheduler_bars(frames.scores(group="one job every 25 s"), group="group")
    assert [matplotlib.colors.to_hex(bar.get_facecolor()).upper() for bar in axes.patches] == [
        appearances()[name].color for name in ("fifo", "fair", "capped_srw")
    ]
    assert frames.texts(axes.get_xticklabels()) == ["one job every\n25 s"]


def test_changes_are_paired_by_seed():
    table = bars.changes_against(frames.effects(), "setting", "all effects")
    halved = table[(table["setting"] == "none of the three") & (table["scheduler"] == "fair")].iloc[0]
    assert (halved["change_percent"], halved["low"], halved["high"]) == pytest.approx((-50.0, -50.0, -50.0))
    assert len(table) == 6
    assert "all effects" not in set(table["setting"])


def test_change_points_have_a_row_per_change_and_a_marker_per_scheduler():
    axes = bars.change_points(bars.changes_against(frames.effects(), "setting", "all effects"), "setting")
    assert frames.texts(axes.get_yticklabels()) == ["no first-wave slowdown", "none of the three"]
    assert frames.legend(axes) == ["FIFO", "fair", "capped SRW"]
    assert axes.get_xlabel() == "change of average JCT (%)"
    assert axes.get_ylim() == (1.5, -0.5)


def test_switches_are_shown_by_what_they_do():
    table = frames.switches()
    table = table[(table["base"] == "released") & (table["arrivals"] == "batch")]
    axes = bars.change_points(bars.changes_against(table, "switch", "none"), "switch")
    assert frames.texts(axes.get_yticklabels()) == ["idle executors offered again"]


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


def test_boxes_are_labelled():
    waves, levels = bars.wave_boxes(frames.waves()), bars.level_boxes(frames.waves())
    assert [label.get_text().split("\n")[0] for label in waves.get_xticklabels()] == ["fresh", "first"]
    assert frames.texts(levels.get_xticklabels()) == ["20"]
    assert levels.get_xlabel() == "profiled level (executors)"


def test_a_bar_that_dwarfs_the_others_is_cut_off_and_says_its_mean():
    table = frames.effects()
    table.loc[table["scheduler"] == "fifo", "avg_jct_s"] *= 100.0
    axes = bars.scheduler_bars(table, group="setting")
    heights = sorted(bar.get_height() for bar in axes.patches)
    shown = heights[-4]
    assert axes.get_ylim() == (0.0, pytest.approx(1.25 * shown))
    assert heights[-3:] == [pytest.approx(1.25 * shown)] * 3
    assert frames.texts(axes.texts) == ["10,200", "9,180", "5,100"]


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


def test_ratio_bars_name_their_reference():
    axes = optimality.ratio_bars(frames.optimality(), reference="exhaustive")
    assert frames.texts(axes.get_yticklabels()) == ["fair: 1.50", "SJF-CP: 1.25", "exhaustive search: 1.00"]
    assert len([each for each in axes.collections if len(each.get_offsets()) == 3]) == 3  # a dot per batch
    assert axes.get_xlabel() == "average JCT / exhaustive search"
    assert [bar.get_width() for bar in axes.patches] == pytest.approx([1.5, 1.25, 1.0])


@pytest.mark.parametrize(("batches", "error_bars"), [(1, 0), (2, 0), (3, 3)])
def test_error_bars_need_three_batches(batches, error_bars):
    table = frames.optimality()
    axes = optimality.ratio_bars(table[table["batch"] < batches], reference="exhaustive")
    assert sum(isinstance(each, ErrorbarContainer) for each in axes.containers) == error_bars


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
