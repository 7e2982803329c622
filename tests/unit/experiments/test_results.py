"""The folder of results that the repository shows: how it is made, and the one that is committed."""

import base64
import io
import json
import re
import shutil
from pathlib import Path

import pytest
import yaml
from PIL import Image
from typer.testing import CliRunner

from decima.core.appearance import appearances
from decima.core.errors import ConfigError
from experiments import reference, report, results
from experiments.__main__ import app
from experiments.experiment import experiment_names
from experiments.figures import draw, figure_names
from tests.unit.experiments.kept import kept, make_checkout

ROOT = Path(__file__).parents[3]
COMMITTED = sorted((ROOT / "reports" / "results").glob("*/README.md"))
PARAMS = """
runs:
  tpch-full: {workload: tpch, executors: 50, policies: {batch: one, stream: two, warm_batch: three, entry_batch: four}}
  tpch-quick: {}
results:
  tpch-full: {figure_kb: 250, table_kb: 10}
"""


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """Figures of the experiment."""
    root = tmp_path_factory.mktemp("drawn")
    make_checkout(root, PARAMS)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        draw("batch", "tpch-full", kept("batch"), root / "figures")
    return root / "figures"


@pytest.fixture
def run(drawn, tmp_path, monkeypatch):
    """Folder of a run of one experiment, in a checkout of its own."""
    make_checkout(tmp_path, PARAMS)
    for name in ("decima/07-baselines.ipynb", "decima/07-decima.ipynb"):
        (tmp_path / "notebooks" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "notebooks" / name, tmp_path / "notebooks" / name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(results, "experiment_names", lambda: ["batch"])
    folder = tmp_path / "reports" / "tpch-full"
    shutil.copytree(drawn, folder / "figures" / "batch")
    (folder / "tables" / "batch").mkdir(parents=True)
    for name, table in kept("batch").items():
        table.to_csv(folder / "tables" / "batch" / f"{name}.csv", index=False)
    return folder


def contents(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def pictures(page):
    """Alternative text and path of every picture of a page."""
    return re.findall(r"!\[([^\]]*)\]\(([^)]+)\)", page.read_text(encoding="utf-8"))


def test_every_figure_is_small_and_has_caption_notebook_and_tables(run):
    folder = results.collect("tpch-full")
    shown = [Path(path) for _, path in pictures(folder / "README.md")]
    assert [path.stem for path in shown] == figure_names("batch")
    assert {path.suffix for path in shown} == {".svg"}
    page = (folder / "README.md").read_text()
    assert "### §7.2, Figure 9a (batch)" in page
    assert "#### Figure 9a: batched arrivals (TPC-H)" in page
    caption = "20 batches of 20 jobs, one seed each, 50 executors; policy one, sampled."
    assert f"\n{caption} Notebook: " in page
    assert "[07-decima](../../../notebooks/decima/07-decima.ipynb)" in page


def test_a_figure_over_the_limit_is_refused_before_anything_is_deleted(run):
    before = contents(results.collect("tpch-full"))
    large = run / "figures" / "batch" / "fig09a_batch.svg"
    large.write_bytes(large.read_bytes() + b" " * 250 * 1024)
    with pytest.raises(ConfigError, match=r"fig09a_batch\.svg is larger than figure_kb in params\.yaml allows: 250 kB"):
        results.collect("tpch-full")
    assert contents(results.results_folder("tpch-full")) == before


def test_figures_are_drawn_anew_from_kept_tables(run):
    folder = results.collect("tpch-full")
    before = contents(folder)
    shutil.rmtree(run)  # as in a fresh clone: what is kept is all there is
    answer = CliRunner().invoke(app, ["redraw"])
    assert answer.exit_code == 0, answer.output
    assert "batch/alpha_batch: not drawn, a table of it is too large to be kept" in answer.output
    assert "0 figures differ, 1 not drawn" in answer.output
    table = folder / "tables" / "batch" / "batch.csv"
    table.write_text(re.sub(r"\d$", "9", table.read_text(), flags=re.MULTILINE))
    answer = CliRunner().invoke(app, ["redraw"])
    assert answer.exit_code == 1
    assert "batch/fig09a_batch: differs from the kept file" in answer.output
    assert CliRunner().invoke(app, ["redraw", "--write"]).exit_code == 0
    assert CliRunner().invoke(app, ["redraw"]).exit_code == 0
    changed = {path.name for path, content in contents(folder).items() if before[path] != content}
    assert {"fig09a_batch.svg", "digests.json"} <= changed
    assert "batch_changes.svg" not in changed


def test_a_kept_figure_that_was_edited_is_found(run):
    folder = results.collect("tpch-full")
    path = folder / "figures" / "batch" / "fig09a_batch.svg"
    path.write_bytes(path.read_bytes().replace(b"#0072b2", b"#e69f00"))
    answer = CliRunner().invoke(app, ["redraw"])
    assert answer.exit_code != 0
    assert "fig09a_batch.svg is not the figure of its digest" in answer.output


def test_a_run_is_compared_with_what_is_kept(run, monkeypatch):
    monkeypatch.setattr(report, "reproduce", lambda profile: "tpch-full")
    with pytest.raises(ConfigError, match=r"nothing to compare run tpch-full with: .*digests\.json is missing"):
        reference.compare_with_kept("tpch-full")
    assert reference.record("tpch-full") == results.results_folder("tpch-full")
    answer = CliRunner().invoke(app, ["reproduce", "--profile", "full", "--check"])
    assert answer.exit_code == 0
    assert "4 of 4 tables equal the kept ones byte for byte" in answer.output
    assert "4 of 4 figures are equal" in answer.output
    for name in ("batch", "alpha_batch"):
        path = run / "tables" / "batch" / f"{name}.csv"
        path.write_text(re.sub(r"\d$", "9", path.read_text(), count=1, flags=re.MULTILINE))
    (run / "figures" / "batch" / "fig09a_batch.svg").write_text("another font")
    answer = CliRunner().invoke(app, ["reproduce", "--profile", "full", "--check"])
    assert answer.exit_code == 1
    assert "batch/batch: DIFFERS (" in answer.output
    assert "batch/alpha_batch: DIFFERS (which columns is not known: only its digest is kept)" in answer.output
    assert "figures with other bytes: batch/fig09a_batch.svg" in answer.output


def test_what_is_missing_is_named(run):
    with pytest.raises(ConfigError, match=r"results of run tpch-quick are not kept; params.yaml names .* tpch-full"):
        results.collect("tpch-quick")
    before = contents(results.collect("tpch-full"))
    (run / "figures" / "batch" / "fig09a_batch.svg").unlink()
    answer = CliRunner().invoke(app, ["results", "--run", "tpch-full"])
    assert answer.exit_code == 2
    assert "fig09a_batch.svg is missing; run: decima plot batch --run tpch-full" in answer.output
    assert contents(results.results_folder("tpch-full")) == before  # nothing was deleted


# ---- what is committed ---------------------------------------------------------------------------------------------

committed = pytest.mark.parametrize("page", COMMITTED, ids=lambda page: page.parent.name)


# Figures whose first full run is still to come.
AWAITED = {"price_of_coming"}
HEXES = re.compile(r"#[0-9a-f]{6}")


@committed
def test_committed_results_have_every_figure_with_a_caption(page):
    shown = pictures(page)
    expected = {name for each in experiment_names() for name in figure_names(each)} - AWAITED
    assert {Path(path).stem for _, path in shown} == expected
    for alternative, path in shown:
        assert len(alternative) > 40, path
        assert (page.parent / path).is_file(), path


@committed
def test_committed_figures_are_vectors(page):
    assert {path.suffix for path in (page.parent / "figures").glob("*/*")} == {".svg"}


def colours(drawing):
    """Colours that an SVG draws with, and those that fill at least 30 pixels of an image inside it."""
    used = {tuple(bytes.fromhex(each[1:])) for each in HEXES.findall(drawing)} | {(0, 0, 0)}  # black is not written
    for encoded in re.findall(r"base64,\s*([^\"]+)", drawing):
        image = Image.open(io.BytesIO(base64.b64decode(encoded))).convert("RGBA")
        used |= {
            pixel[:3] for count, pixel in image.getcolors(image.width * image.height) if count >= 30 and pixel[3] == 255
        }
    return used


def faults(used, labels):
    """Appearances among the labels that no colour is near, and near colours of appearances that no label names.

    A colour is near within 8 levels per channel; the second kind counts where the figure has no such colour itself.
    """

    def near(color):
        return any(max(abs(a - b) for a, b in zip(color, each, strict=True)) <= 8 for each in used)

    named = {tuple(bytes.fromhex(look.color[1:])) for look in appearances().values() if look.label in labels}
    others = {tuple(bytes.fromhex(look.color[1:])) for look in appearances().values()} - named - used
    return [color for color in named if not near(color)], [color for color in others if near(color)]


@committed
def test_committed_figures_have_the_exact_colours_of_what_they_name(page):
    for path in sorted((page.parent / "figures").glob("*/*.svg")):
        drawing = path.read_text(encoding="utf-8")
        assert faults(colours(drawing), re.findall(r"<!-- (.*?) -->", drawing)) == ([], []), path.name


def test_a_picture_in_few_colours_is_found_to_be_wrong(drawn):
    """Median cut takes the colours of thin lines away, and gives them those of others."""
    drawing = (drawn / "batch_changes.svg").read_text(encoding="utf-8")
    labels = re.findall(r"<!-- (.*?) -->", drawing)
    whole = Image.open(drawn / "batch_changes.png").convert("RGB")
    found = {}
    for name, picture in (("exact", whole), ("few", whole.resize((576, 300)).quantize(6, dither=0).convert("RGB"))):
        used = {pixel for count, pixel in picture.getcolors(picture.width * picture.height) if count >= 5}
        found[name], _ = faults(used, labels)
    assert found["exact"] == []
    assert found["few"]


@committed
def test_committed_metrics_are_those_of_the_tables_and_dvc_shows_them(page, tmp_path):
    shutil.copytree(page.parent / "tables", tmp_path / "tables")
    results._write_metrics(tmp_path)
    shown = yaml.safe_load((ROOT / "dvc.yaml").read_text(encoding="utf-8"))
    (plot,) = [path for each in shown["plots"] for form in each.values() for path in form["y"]]
    for name, path in ((results.METRICS, shown["metrics"][0]), (results.PLOTS, plot)):
        assert ROOT / path == page.parent / name
        assert (page.parent / name).read_bytes() == (tmp_path / name).read_bytes()
    assert json.loads((tmp_path / results.METRICS).read_text(encoding="utf-8"))["batch"]["decima"] < 0.0


@committed
def test_committed_results_are_small(page):
    sizes = [path.stat().st_size for path in page.parent.rglob("*") if path.is_file()]
    assert sum(sizes) < 12 * 1024**2
    assert max(sizes) <= 250 * 1024


@pytest.mark.slow
@pytest.mark.parametrize("name", experiment_names())
def test_committed_figures_are_those_that_are_drawn_today(name, monkeypatch):
    monkeypatch.setattr(results, "experiment_names", lambda: [name])
    stale, _ = results.redraw("tpch-full")
    assert stale == [], "python -m experiments redraw --write"


def test_code_of_ones_own_that_a_parameter_names_is_in_the_stamp(tmp_path, monkeypatch):
    from experiments import stamps

    params = dict(stamps.run_params("tpch-quick"))
    name = next(each for each in stamps.experiment_names() if "schedulers" in params[each])
    params[name] = params[name] | {"schedulers": ["fair", "own/mine.py:Mine:most=2"]}
    monkeypatch.setattr(stamps, "run_params", lambda run: params)
    (tmp_path / "own").mkdir()
    monkeypatch.setattr(stamps, "checkout", lambda: tmp_path)
    monkeypatch.setattr(stamps, "digest", lambda *_: "")
    found = []
    for content in ("a", "b"):
        (tmp_path / "own" / "mine.py").write_text(content)
        found.append(stamps.table_stamp(name, "tpch-quick"))
    assert found[0]["own/mine.py"] != found[1]["own/mine.py"]
    assert len(found[0]) == len(found[1])
