"""Lines that would hide each other, or press the others together, are named instead of drawn."""

import pandas
import pytest

from decima.plotting import packing, style, unequal


def makespans():
    by_name = {"lachesis": 1.0, "heft": 1.01, "tdca": 1.5}
    rows = [
        (ccr, jobs, name, level * jobs) for ccr in ("1", "5") for jobs in (10, 20) for name, level in by_name.items()
    ]
    return pandas.DataFrame(rows, columns=["ccr", "jobs", "scheduler", "above_bound"])


@pytest.mark.parametrize(("near", "drawn"), [(0.02, 2), (0.005, 3)])
def test_lines_near_lachesis_are_named_below_the_panel(near, drawn):
    figure = style.new_figure()
    unequal.lines_by_ccr(makespans(), "jobs", "above_bound", "makespan", figure, near=near)
    first, second = figure.axes
    assert len(first.lines) == len(second.lines) == drawn
    assert ("HEFT" in first.get_xlabel()) == (near == 0.02)
    assert (first.get_ylabel(), second.get_ylabel()) == ("makespan", "")
    (legend,) = figure.legends
    assert len(legend.get_texts()) == drawn


def test_schedulers_far_above_the_others_are_named_below_the_axes():
    means = {"fair": (40.0, 80.0), "graphene": (30.0, 60.0), "tetris": (100.0, 900.0)}
    rows = [(load, name, values[place]) for place, load in enumerate((0.5, 0.8)) for name, values in means.items()]
    axes = packing.score_over_load(pandas.DataFrame(rows, columns=["load", "scheduler", "avg_jct_s"]))
    assert len(axes.lines) == 2
    assert axes.get_xlabel() == "nominal load (%)\nfar above:\nTetris: 100 to 900 s"
    assert [label.get_text() for label in axes.get_xticklabels()] == ["50", "80"]
