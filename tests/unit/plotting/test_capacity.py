import re

import numpy as np
import pandas
import pytest

from decima.plotting import capacity, style
from decima.systems.spark.capacity import PARTS, run_recording, time_parts
from decima.systems.spark.schedulers import make_scheduler
from tests.unit.plotting.frames import texts
from tests.unit.systems.spark.test_capacity import WIDE


def points(loads=(1.0,), cost=np.nan):
    rows = [
        {"scheduler": name, "load": load, "executors": executors, "run_s": time, "run_s_low": time - 1.0}
        | {
            "run_s_high": time + 1.0,
            "executor_hours": executors * time / 3600.0,
            "cost": cost * executors,
            "error_percent": 15.0,
        }
        for name, times in (("fifo", (9.0, 6.0, 5.0)), ("fair", (8.0, 5.0, 4.0)))
        for load in loads
        for executors, time in zip((1, 2, 4), times, strict=True)
    ]
    return pandas.DataFrame(rows)


def test_curve_has_a_line_per_scheduler_and_marks():
    axes = capacity.time_curve(points(), measure="run_s", recorded=[(2, 5.5)], chosen=4, floor_s=3.0)
    lines = {line.get_label(): line for line in axes.lines}
    assert list(lines) == ["fifo", "fair", "recorded", "chosen", "critical path"]
    assert lines["fifo"].get_ydata().tolist() == [9.0, 6.0, 5.0]
    assert lines["recorded"].get_xdata() == (2,)
    tops = [band.get_datalim(axes.transData).y1 for band in axes.collections]
    assert tops == pytest.approx([10.0, 9.0 * 1.15, 9.0, 8.0 * 1.15])  # interval and error of each
    assert axes.get_ylabel() == "run time (s)"


@pytest.mark.parametrize(("cost", "label"), [(np.nan, "executor hours"), (0.5, "cost")])
def test_cost_or_hours(cost, label):
    axes = capacity.cost_curve(points(cost=cost), measure="run_s")
    assert axes.get_xlabel() == label
    assert texts(axes.texts) == ["1", "2", "4"]  # once: the curves have the same


@pytest.fixture(scope="module")
def wide():
    """A run of a recording on 8 executors."""
    return run_recording(WIDE, make_scheduler("fifo"), 8)


def test_bars_of_parts_add_up_to_a_hundred(wide):
    axes = capacity.part_bars({"8 executors": time_parts(WIDE, wide)})
    assert list(capacity.PARTS) == list(PARTS)
    assert sum(bar.get_width() for bar in axes.patches) == pytest.approx(100.0)
    assert axes.patches[0].get_width() == pytest.approx(25.0)  # 2 of 8 s are work


def test_page_needs_nothing_else(wide):
    figure = capacity.time_curve(points(), measure="run_s").figure
    parts = ["a < b", pandas.DataFrame({"name": ["<b>"], "time": [1.23456]}), figure]
    sections = [("Time", parts), ("Schedules", [capacity.schedule(wide, "8 executors")])]
    text = capacity.page("Capacity & cost", sections)
    assert "<title>Capacity &amp; cost</title>" in text
    assert "<p>a &lt; b</p>" in text
    assert "<td>&lt;b&gt;</td><td class=n>1.235</td>" in text
    assert text.count("<svg") == 2
    assert "<script" not in text
    addresses = set(re.findall(r'(?:src|href)="([^"]+)"', text))
    names = re.findall(r'\bid="([^"]+)"', text)
    assert len(names) == len(set(names))
    assert all(address.startswith(("#", "data:")) for address in addresses)
    assert {address[1:] for address in addresses if address.startswith("#")} <= set(names)
    assert text == capacity.page("Capacity & cost", sections)


def test_queries_of_one_application_have_colours_of_their_own(wide):
    figure = capacity.schedule(wide, "8 executors")
    assert isinstance(figure, style.Figure)
    (tasks,) = [each for each in figure.axes[0].collections if each.get_gid() == "tasks"]
    assert len(np.unique(tasks.get_facecolors(), axis=0)) == 2  # stages a and b, which stand for queries here
