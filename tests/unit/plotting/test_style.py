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

# What people with a colour vision deficiency see of linear red, green and blue (Viénot, Brettel, Mollon 1999).
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


def lightness_and_hue(color, matrix):
    """CIELAB of a colour as somebody sees it, for light of the sun (D65)."""
    rgb = np.array(matplotlib.colors.to_rgb(color))
    linear = np.clip(matrix @ np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4), 0.0, 1.0)
    to_xyz = [[0.41246, 0.35758, 0.18044], [0.21267, 0.71515, 0.07218], [0.01933, 0.11919, 0.95030]]
    part = np.array(to_xyz) @ linear / [0.95047, 1.0, 1.08883]
    x, y, z = np.where(part > 0.008856, np.cbrt(part), 7.787 * part + 16.0 / 116.0)
    return np.array([116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)])


@pytest.mark.parametrize("matrix", [NORMAL, PROTANOPE, DEUTERANOPE], ids=["normal", "protanope", "deuteranope"])
def test_any_two_colours_of_schedulers_differ_for_everybody(matrix):
    used = sorted({each.color for each in appearances().values()} | {style.scheduler_style("mine").color, style.IDLE})
    seen = [lightness_and_hue(color, matrix) for color in used]
    near = {(a, b): np.linalg.norm(one - other) for a, one in zip(used, seen, strict=True)
            for b, other in zip(used, seen, strict=True) if a < b}  # fmt: skip
    assert min(near.values()) > 18.0, min(near, key=near.get)


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


def test_a_dense_line_is_an_image_inside_an_svg_and_coordinates_are_short():
    drawings = []
    for number in (100, 5000):
        made = style.new_figure()
        axes = made.subplots()
        axes.plot(np.random.default_rng(0).random(number), label="noise")
        axes.legend()
        drawings.append(style.image(made, "svg").decode())
        assert not axes.lines[0].get_rasterized()  # the figure itself is as before
    assert ["<image" in drawing for drawing in drawings] == [False, True]
    for drawing in drawings:
        assert "<!-- noise -->" in drawing
        assert not re.search(r' d="[^"]*\.\d{3}', drawing)


def test_labels_at_the_ends_of_lines_do_not_overlap():
    axes = style.new_figure().subplots()
    for name, end in (("low", 1.0), ("lower", 0.99), ("high", 2.0), ("_no label", 1.0)):
        axes.plot([0.0, end], label=name)
    axes.axhline(0.5, label="level")
    style.label_ends(axes)
    places = {text.get_text(): text.get_position()[1] for text in axes.texts}
    assert sorted(places, key=places.get) == ["level", "lower", "low", "high"]
    assert places["low"] - places["lower"] > 0.04
    assert [text.get_color() for text in axes.texts] == [axes.lines[index].get_color() for index in (4, 1, 0, 2)]


def test_every_argument_of_a_plot_is_described():
    """All but those of :func:`style.on_axes`."""
    for module in (import_module(f"decima.plotting.{each.name}") for each in iter_modules(plotting.__path__)):
        for name, function in vars(module).items():
            if isfunction(function) and function.__module__ == module.__name__ and "Args:" in (getdoc(function) or ""):
                arguments = set(signature(function).parameters) - {"axes", "legend"}
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


def test_job_label():
    assert words.job_label("q9-100g") == "Q9, 100 GB"
    assert words.job_label("etl-nightly") == "etl-nightly"
