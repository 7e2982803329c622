"""Pages of the documentation and the README: links lead somewhere, what is to be short is, and what they show works."""

import re
import shlex
from itertools import pairwise
from pathlib import Path

import nbformat
import pandas
import pytest

import decima
from decima.systems.heterogeneous import list_schedulers, load_instance
from experiments.notebooks import notebook_path, notebook_slugs
from tests.unit.commands.calls import run

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [
    *sorted(DOCS.rglob("*.md")),
    *(ROOT / name for name in ("README.md", "CHANGELOG.md", "models/README.md", "notebooks/README.md")),
    *sorted((ROOT / "data").glob("*/README.md")),
    *sorted((ROOT / "reports" / "results").glob("*/README.md")),
]
NOTEBOOKS = [ROOT / "notebooks" / "00-start-here.ipynb", *map(notebook_path, notebook_slugs())]
WAYS = ("schedule-own-jobs", "write-a-scheduler", "reproduce-a-paper", "change-the-code")


README = (ROOT / "README.md").read_text(encoding="utf-8")


def text(name):
    return (DOCS / f"{name}.md").read_text(encoding="utf-8")


def blocks(page, language):
    """What a page shows in a language."""
    return re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)


def execute(block):
    """Run Python as it is shown."""
    exec(compile(block, "as shown", "exec"), {})


def anchors(path):
    """Names that a heading of a page can be linked by."""
    headings = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def words(path):
    """Text of a page, or of the text cells of a notebook."""
    if path.suffix == ".md":
        return path.read_text(encoding="utf-8")
    cells = nbformat.read(path, as_version=4).cells
    return "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")


@pytest.mark.parametrize("path", [*PAGES, *NOTEBOOKS], ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(path):
    for target in re.findall(r"\]\((?!https?://)([^)\s]+)\)", words(path)):
        file, _, anchor = target.partition("#")
        found = path.parent / file if file else path
        assert found.is_file(), f"{target} is no file"  # the site has no page of a folder
        if anchor and found.suffix == ".md":
            assert anchor in anchors(found), target


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_no_level_of_headings_is_left_out(path):
    """The site is not built with such a page."""
    plain = re.sub(r"^```.*?^```", "", words(path), flags=re.MULTILINE | re.DOTALL)
    levels = [len(signs) for signs in re.findall(r"^(#+) ", plain, re.MULTILINE)]
    assert all(after <= before + 1 for before, after in pairwise(levels)), levels


@pytest.mark.parametrize("path", [*PAGES, *NOTEBOOKS], ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_picture_says_what_it_shows(path):
    for alternative, target in re.findall(r"!\[([^\]]*)\]\(([^)]+)\)", words(path)):
        assert len(alternative) > 20, target


@pytest.mark.parametrize("name", WAYS)
def test_a_way_is_two_screens_long(name):
    assert len(text(name).splitlines()) <= 70


@pytest.mark.parametrize("name", WAYS)
def test_commands_exist(name):
    commands = re.findall(r"(?:^    |`)decima ((?:[a-z-]+ ?)+)", text(name), re.MULTILINE)
    assert commands
    for command in {words.split()[0] for words in commands}:
        assert run(command, "--help").exit_code == 0, command


def run_commands(page, sign, count):
    """Run the commands that a page shows, so many of them."""
    shown = re.findall(rf"^{sign}decima (.+)$", page, re.MULTILINE)
    assert len(shown) == count
    for line in shown:
        result = run(*shlex.split(line))
        assert result.exit_code == 0, (line, result.stderr)


def test_own_jobs_as_shown(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("jobs.json").write_text(*blocks(text("schedule-own-jobs"), "json"))
    run_commands(text("schedule-own-jobs"), "    ", 2)
    assert Path("schedule.html").stat().st_size > 10**6
    assert Path("all.html").stat().st_size > 10**6


def test_a_scheduler_as_shown(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    execute("".join(blocks(text("write-a-scheduler"), "python")))
    assert "mine" in capsys.readouterr().out
    assert Path("schedules.html").exists()


def test_a_notebook_that_is_named_is_there():
    for name in re.findall(r"decima notebook (\d\d-[a-z-]+)", text("reproduce-a-paper")):
        assert name in notebook_slugs()


def test_heterogeneous_executors_as_shown(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    run_commands(text("heterogeneous"), r"\$ ", 9)
    capsys.readouterr()
    (python, own), (instance,) = blocks(text("heterogeneous"), "python"), blocks(text("heterogeneous"), "json")
    execute(own)
    assert "round robin keeps to the rules" in capsys.readouterr().out
    execute(python)
    shown = capsys.readouterr().out
    assert "no schedule is shorter than" in shown
    makespan, bound = map(float, re.findall(r"\d+\.\d+", shown.splitlines()[-1]))
    assert 0.0 < bound <= makespan
    Path("as_shown.json").write_text(instance)
    assert len(load_instance("as_shown.json")) == 2


def test_every_scheduler_of_heterogeneous_executors_is_on_their_page():
    for name in list_schedulers():
        assert f"`{name}`" in text("heterogeneous"), name


# ---- the README -----------------------------------------------------------------------------------------------------


def test_ten_lines_run(capsys):
    execute(blocks(README, "python")[0])
    shown = capsys.readouterr().out
    assert "jct_s" in shown
    assert "capped_srw" in shown


def test_own_jobs_run(tmp_path):
    path = tmp_path / "jobs.json"
    path.write_text(blocks(README, "json")[0])
    result = decima.simulate(path, "fair", executors=10)
    assert result.num_events["task"] == 80 + 4 + 40
    assert 10.0 < result.makespan_s < 60.0


def test_the_readme_stays_short():
    assert len(README.splitlines()) < 150


def test_targets_of_make_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for command in re.findall(r"`?make ([a-z]+)", README):
        assert re.search(rf"^{command}:", makefile, re.MULTILINE), command


def test_the_gallery_has_a_row_per_paper_of_pictures_that_lead_to_notebooks():
    papers = {path.parent.name for path in (ROOT / "experiments").glob("*/__init__.py")}
    papers -= {"capacity", "benchmark"}  # not a paper's
    rows = re.findall(r"^\| \*\*\[.*$", README, re.MULTILINE)
    assert len(rows) == len(papers)
    for row in rows:
        pictures = re.findall(r"\[!\[[^\]]+\]\((reports/results/[^)]+)\)\]\((notebooks/[^)]+\.ipynb)\)", row)
        assert len(pictures) == 3  # more cannot be read on a phone
        for picture, notebook in pictures:
            assert Path(picture).stem in (ROOT / notebook).read_text(encoding="utf-8"), picture


ROWS = {
    "FIFO": "fifo", "SJF-CP": "sjf_cp", "naive weighted fair": "naive_weighted_fair", "fair": "fair",
    "tuned weighted fair": "weighted_fair", "capped shortest remaining work": "capped_srw",
    "Decima (`tpch-batch-random`, `tpch-stream-random-long`; sampled)": "decima",
    "Decima, warm start (`tpch-batch`, `tpch-stream-entry-warm`)": "decima_warm",
}  # fmt: skip


@pytest.mark.parametrize("page", ["README.md", "docs/results.md"])
def test_the_table_of_results_is_that_of_the_committed_tables(page):
    tables = ROOT / "reports" / "results" / "tpch-full" / "tables"
    streams = pandas.read_csv(tables / "stream" / "stream.csv")
    columns = [
        pandas.read_csv(tables / "batch" / "batch.csv"),
        *(streams[streams["interarrival_s"] == gap] for gap in (14, 25, 45)),
    ]
    text = (ROOT / page).read_text(encoding="utf-8")
    for label, name in ROWS.items():
        (row,) = re.findall(rf"^\| {re.escape(label)} \| (.+ ± .+) \|$", text, re.MULTILINE)
        scores = [table.loc[table["scheduler"] == name, "avg_jct_s"] for table in columns]
        expected = [f"{score.mean():.1f} ± {score.sem():.1f}" if len(score) else "–" for score in scores]
        assert row.split(" | ") == expected, label
