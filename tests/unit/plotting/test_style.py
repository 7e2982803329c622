import re
from importlib import import_module
from inspect import getdoc, isfunction, signature
from pkgutil import iter_modules

import matplotlib
import matplotlib.colors
import numpy as np
import pytest
from IPython.core.formatters import DisplayFormatter

from decima import plotting
from decima.core.appearance import TABLES, appearances
from decima.plotting import style, words
from decima.systems.spark.schedulers import list_schedulers


def simulated(color, matrix):
    """A colour as people with a colour vision deficiency see it (Viénot, Brettel, Mollon 1999, on linear RGB)."""
    rgb = np.array(matplotlib.colors.to_rgb(color))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    seen = np.clip(matrix @ linear, 0.0, 1.0)
    return np.where(seen <= 0.0031308, 12.92 * seen, 1.055 * seen ** (1 / 2.4) - 0.055)


NORMAL = np.eye(3)
PROTANOPE = np.array([[0.11238, 0.88762, 0.0], [0.11238, 0.88762, 0.0], [0.00401, -0.00401, 1.0]])
DEUTERANOPE = np.array([[0.29275, 0.70725, 0.0], [0.29275, 0.70725, 0.0], [-0.02234, 0.02234, 1.0]])


def test_every_registered_scheduler_has_a_look():
    assert set(list_schedulers(bare=True)) <= set(appearances())


@pytest.mark.parametrize("system", TABLES.members(), ids=TABLES.names())
def test_no_two_schedulers_of_a_system_look_alike(system):
    looks = system.values()
    assert len({(look.color, look.linestyle) for look in looks}) == len(looks)
    assert (
        len({(look.color, look.marker) for look in looks}) >= len(looks) - 2
    )  # variants of one scheduler share theirs
    assert len({look.label for look in looks}) == len(looks)


def test_every_name_has_one_look():
    assert sum(map(len, TABLES.members())) == len(appearances())


@pytest.mark.parametrize("matrix", [NORMAL, PROTANOPE, DEUTERANOPE], ids=["normal", "protanope", "deuteranope"])
def test_schedulers_of_one_figure_differ_in_colour_for_everybody(matrix):
    names = ("fifo", "sjf_cp", "fair", "naive_weighted_fair", "weighted_fair", "capped_srw", "decima")
    colors = [simulated(appearances()[name].color, matrix) for name in names]
    distances = [np.linalg.norm(a - b) for place, a in enumerate(colors) for b in colors[:place]]
    assert min(distances) > 0.1


def test_an_unknown_scheduler_gets_a_look_that_depends_on_its_name_alone():
    look = style.scheduler_style("my_own")
    assert look == style.scheduler_style("my_own")
    assert look.label == "my own"
    assert look.color not in {appearances()[name].color for name in ("fifo", "fair", "weighted_fair", "capped_srw")}


def test_display_order_is_that_of_the_table_with_unknown_names_last():
    names = ["mine", "capped_srw", "fifo", "fifo", "also_mine"]
    assert style.display_order(names) == ["fifo", "capped_srw", "mine", "also_mine"]


def test_context_leaves_the_callers_settings_alone():
    before = dict(matplotlib.rcParams)
    with style.context():
        assert matplotlib.rcParams["pdf.fonttype"] == 42
    assert dict(matplotlib.rcParams) == before


def figure():
    made = style.new_figure()
    made.subplots().plot([1, 2], [3, 4])
    return style.entitle(made, "A title", "5 seeds.", "embedded synthetic")


def test_title_names_the_workload_and_long_titles_and_captions_are_broken_not_cut():
    made = figure()
    assert made.get_suptitle() == "A title (embedded synthetic)"
    assert made.caption == made.get_supxlabel() == "5 seeds."
    made = style.entitle(
        style.new_figure(), "A rather long title of a narrow figure", "word " * 60, "embedded synthetic"
    )
    assert made.get_suptitle().count("\n") == 1
    assert max(map(len, made.get_supxlabel().split("\n"))) <= 17 * made.get_figwidth()
    assert made.get_supxlabel().split() == made.caption.split() == ["word"] * 60


def test_files_are_the_same_byte_for_byte_and_carry_no_date(tmp_path):
    first = style.save(figure(), tmp_path / "one" / "name")
    second = style.save(figure(), tmp_path / "two" / "name.png")
    assert [path.name for path in first] == ["name.png", "name.pdf", "name.svg"]
    for a, b in zip(first, second, strict=True):
        assert a.read_bytes() == b.read_bytes()
    assert b"Software" not in first[0].read_bytes()
    assert b"CreationDate" not in first[1].read_bytes()
    assert b"dc:date" not in first[2].read_bytes()
    names = [path.name for path in style.save(figure(), tmp_path / "alpha-0.5")]
    assert names == ["alpha-0.5.png", "alpha-0.5.pdf", "alpha-0.5.svg"]


def test_every_argument_of_a_plot_is_described():
    """Those of the decorator too, which writes about axes."""
    for module in (import_module(f"decima.plotting.{each.name}") for each in iter_modules(plotting.__path__)):
        for name, function in vars(module).items():
            if isfunction(function) and function.__module__ == module.__name__ and "Args:" in (getdoc(function) or ""):
                arguments = set(signature(function).parameters) - {"legend"}
                assert arguments <= set(re.findall(r"^ +(?:\*\*)?(\w+): ", function.__doc__, re.MULTILINE)), name


def test_a_notebook_shows_a_figure_as_png():
    content, words = DisplayFormatter().format(figure())
    assert content["image/png"].startswith(b"\x89PNG")
    assert words["image/png"] == {"alt": "A title (embedded synthetic). 5 seeds."}
    # Without a title it is described by its axes.
    made = style.new_figure()
    axes = made.subplots()
    axes.set(title="Curve", xlabel="time (s)", ylabel="jobs")
    assert made.alt == "Chart: Curve, time (s), jobs"


@pytest.mark.parametrize(
    ("number", "noun", "text"), [(1, "seed", "1 seed"), (20, "batch", "20 batches"), (1500, "task", "1,500 tasks")]
)
def test_count(number, noun, text):
    assert words.count(number, noun) == text


def test_job_label():
    assert words.job_label("q9-100g") == "Q9, 100 GB"
    assert words.job_label("etl-nightly") == "etl-nightly"


def test_the_largest_number_shown_is_not_far_from_the_others():
    assert style.largest_shown([1.0, 2.0, 3.0, 400.0]) == 3.0
    assert style.largest_shown([1.0, 2.0, 9.0]) == 9.0
    assert style.largest_shown([7.0]) == 7.0
