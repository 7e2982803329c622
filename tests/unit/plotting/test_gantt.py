import matplotlib.colors
import numpy as np
import pandas
import pytest

import decima
from decima.plotting import style
from decima.plotting.gantt import gantt, gantt_grid, gantt_stack, job_colors
from tests.unit.plotting import frames


def artist(axes, gid):
    (found,) = [child for child in axes.get_children() if child.get_gid() == gid]
    return found


def fair():
    return frames.tasks(("fair",))


def test_tasks_that_follow_each_other_merge_into_one_block_which_covers_what_they_cover():
    boxes = [path.get_extents() for path in artist(gantt(fair()), "tasks").get_paths()]
    spans = sorted((box.y0 + 0.5, box.x0, box.x1) for box in boxes)
    assert spans == [(0.0, 0.0, 3.0), (1.0, 0.5, 2.0), (1.0, 3.0, 4.0)]
    assert len(artist(gantt(fair(), each_task=True), "tasks").get_paths()) == 4


def test_idle_time_in_slots_is_hatched():
    slots = pandas.DataFrame({"job": [0, 1], "stage": [0, 0], "start_s": [0.5, 3.0], "end_s": [2.0, 9.0]})
    axes = gantt(fair(), slots=slots)
    spans = [path.get_extents() for path in artist(axes, "slots").get_paths()]
    assert [(box.x0, box.x1) for box in spans] == [(0.5, 2.0), (3.0, 4.0)]
    assert artist(axes, "slots").get_hatch()
    assert artist(axes, "idle").get_zorder() < artist(axes, "slots").get_zorder() < artist(axes, "tasks").get_zorder()
    assert not [child for child in gantt(fair()).get_children() if child.get_gid() == "slots"]


def test_a_stack_has_a_chart_per_result_on_one_time_axis():
    result = decima.simulate("canonical", "heft", system="heterogeneous")
    charts = [axes for axes in gantt_stack([result, result]).axes if axes.get_title(loc="left")]
    assert [axes.get_xlabel() for axes in charts] == ["", "time (s)"]


def test_idle_is_white_completions_are_black_lines_and_labels_hold_units():
    axes = gantt(fair(), executors=3, title="fair")
    idle = artist(axes, "idle")
    assert matplotlib.colors.same_color(idle.get_facecolor(), style.IDLE)
    assert (idle.get_x(), idle.get_width(), idle.get_y(), idle.get_height()) == (0.0, 4.0, -0.5, 3)
    lines = artist(axes, "completions")
    assert sorted(segment[0, 0] for segment in lines.get_segments()) == [3.0, 4.0]
    assert matplotlib.colors.same_color(lines.get_color(), style.COMPLETION)
    assert axes.get_title(loc="left") == "fair: average JCT 3.5 s"
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("time (s)", "executor")


def test_panels_share_the_time_axis_and_the_colours_of_the_jobs_which_they_list():
    figure = gantt_grid(frames.tasks(("fair", "fifo")), executors=4)
    first, second = (artist(axes, "tasks").get_facecolor() for axes in figure.axes)
    assert {tuple(color) for color in first} == {tuple(color) for color in second}
    assert figure.axes[0].get_title(loc="left").startswith("(a) FIFO: ")
    assert figure.axes[0].get_xlim() == figure.axes[1].get_xlim() == (0.0, 4.0)
    assert [axes.get_xlabel() for axes in figure.axes] == ["", "time (s)"]
    (legend,) = figure.legends
    assert frames.texts(legend.get_texts()) == ["Q9, 100 GB", "Q2, 2 GB", "idle"]


@pytest.mark.parametrize("number", [1, 12, 13, 60])
def test_job_colours_are_distinct_and_neither_idle_nor_completion(number):
    colors = job_colors(number)
    assert len(set(colors)) == number
    rgb = np.array([matplotlib.colors.to_rgb(color) for color in colors])
    for taken in (style.IDLE, style.COMPLETION):
        assert np.linalg.norm(rgb - matplotlib.colors.to_rgb(taken), axis=1).min() > 0.25


def test_jobs_that_follow_each_other_differ_clearly_even_if_there_are_many():
    rgb = np.array([matplotlib.colors.to_rgb(color) for color in job_colors(500)])
    assert np.linalg.norm(np.diff(rgb, axis=0), axis=1).min() > 0.2
