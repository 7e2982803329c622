"""Pages of the documentation and the README: links lead somewhere, what is to be short is, and what they show works."""

import re
import shlex
from itertools import pairwise
from pathlib import Path

import nbformat
import pandas
import pytest

from decima.evaluation.statistics import paired_change
from decima.systems.heterogeneous import load_instance
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
def test_links_pictures_and_headings(path):
    for target in re.findall(r"\]\((?!https?://)([^)\s]+)\)", words(path)):
        file, _, anchor = target.partition("#")
        found = path.parent / file if file else path
        assert found.is_file(), f"{target} is no file"  # the site has no page of a folder
        if anchor and found.suffix == ".md":
            assert anchor in anchors(found), target
    for alternative, target in re.findall(r"!\[([^\]]*)\]\(([^)]+)\)", words(path)):
        assert len(alternative) > 20, target
    if path in PAGES:  # the site is not built where a level of headings is left out
        plain = re.sub(r"^```.*?^```", "", words(path), flags=re.MULTILINE | re.DOTALL)
        levels = [len(signs) for signs in re.findall(r"^(#+) ", plain, re.MULTILINE)]
        assert all(after <= before + 1 for before, after in pairwise(levels)), levels


def test_nothing_is_installed_from_an_index_that_does_not_have_it():
    shown = [
        *PAGES,
        *NOTEBOOKS,
        *(file for name in ("src", "examples", "deploy") for file in (ROOT / name).rglob("*.*")),
    ]
    for path in shown:
        if path.suffix in (".md", ".ipynb", ".py", ".service") and path.name != "CHANGELOG.md":
            content = path.read_text(encoding="utf-8")
            assert not re.search(r"pip install [\"']?decima-sched(?! @)", content), path


@pytest.mark.parametrize("name", WAYS)
def test_a_way_is_two_screens_long_and_its_commands_exist(name):
    assert len(text(name).split()) <= 730
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
    shown = capsys.readouterr().out
    for name, sentence in (
        ("smallest_first", "is {change} higher than that of fair sharing (95 % interval {low} to {high} %)"),
        ("mine", "Now it wins: −{change} against fair sharing (−{low} to −{high} %)"),
    ):
        ((change, low, high),) = re.findall(
            rf"^ *{name} .* [+-]([\d.]+ %) \([+-]([\d.]+) to [+-]([\d.]+)\)$", shown, re.M
        )
        assert sentence.format(change=change, low=low, high=high) in text("write-a-scheduler")
        assert name == "mine" or f"Without the cap it is {change} higher" in README
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


@pytest.mark.parametrize("name", ["bounds", "cloud", "cloud-environment", "executor-classes", "gym", "idle-slots"])
def test_python_of_a_page_needs_no_other_page(name):
    execute("".join(blocks(text(name), "python")))


# ---- the README -----------------------------------------------------------------------------------------------------


def test_the_heuristic_of_the_readme_wins_as_it_says(capsys):
    execute(blocks(README, "python")[0])
    (change,) = re.findall(
        r"^capped_smallest_first .* -([\d.]+ %) \(-([\d.]+) to -([\d.]+)\)$", capsys.readouterr().out, re.M
    )
    assert "Its average JCT is {0} lower than that of fair sharing (95 % CI {2} to {1} %".format(*change) in README


def test_the_agent_of_the_readme_runs():
    execute(blocks(README, "python")[1])


def test_the_first_comparison_prints_what_the_readme_shows():
    (command,) = re.findall(r"^    decima (compare fifo .+)$", README, re.MULTILINE)
    (shown,) = blocks(README, "text")
    assert run(*shlex.split(command)).stdout == shown


def cells(page):
    """Rows of the tables of a page, each as its cells, without links."""
    rows = re.findall(r"^\| (.+) \|$", page, re.MULTILINE)
    return [re.sub(r"\[(.+?)\]\(\S+?\)", r"\1", row).split(" | ") for row in rows]


def test_the_picture_of_the_readme_has_the_numbers_of_its_batch():
    table = pandas.read_csv(ROOT / "reports/results/tpch-full/tables/motivation/fig03_summary.csv")
    batch = table[table["seed"] == 4].set_index("scheduler")["avg_jct_s"]
    names = {"FIFO": "fifo", "SJF-CP": "sjf_cp", "Fair sharing": "fair", "Decima": "decima"}
    assert all(f"{shown} {batch[name]:.1f} s" in README for shown, name in names.items())


def test_the_results_of_the_readme_are_those_of_the_committed_tables():
    tables = ROOT / "reports" / "results" / "tpch-full" / "tables"
    batch, trained, stream, changes, learned = (
        pandas.read_csv(tables / f"{name}.csv")
        for name in (
            "batch/batch",
            "batch/batch_trainings",
            "stream/stream",
            "stream/stream_changes",
            "generalisation/generalisation_changes",
        )
    )
    busy = stream[stream["interarrival_s"] == 14]

    def paired(table, scheduler):
        groups = {name: group["avg_jct_s"].to_numpy() for name, group in table.groupby("scheduler")}
        return paired_change(groups[scheduler], groups["weighted_fair"])

    def stored(table, **where):
        where = {"against": "weighted_fair"} | where
        (row,) = table[(table[list(where)] == pandas.Series(where)).all(axis="columns")].itertuples()
        return row.change_percent, row.low, row.high

    expected = [
        (paired(batch, "fair"), paired(busy, "fair")),
        (paired(batch, "capped_srw"), stored(changes, scheduler="capped_srw", interarrival_s=14)),
        *(
            (stored(trained, scheduler=name, training="mean"), stored(learned, scheduler=other, interarrival_s=14))
            for name, other in (("decima", "trained_long"), ("decima_entry", "trained_entry"))
        ),
        (paired(batch, "decima_warm"), stored(learned, scheduler="trained_warm", interarrival_s=14)),
    ]
    shown = [
        [f"{change:+.1f} % [{low:+.1f}, {high:+.1f}]".replace("-", "−") for change, low, high in row]
        for row in expected
    ]
    assert [row[2:] for row in cells(README) if len(row) == 4 and "% [" in row[3]] == shown


def test_the_readme_stays_short():
    assert len(README.split()) < 1250
    assert len(README.splitlines()) <= 140


def test_targets_of_make_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for command in re.findall(r"`?make ([a-z]+)", README):
        assert re.search(rf"^{command}:", makefile, re.MULTILINE), command


def test_the_gallery_has_a_row_per_paper_of_pictures_that_lead_to_notebooks():
    papers = {path.parent.name for path in (ROOT / "experiments").glob("*/__init__.py")}
    papers -= {"capacity", "benchmark"}  # not a paper's
    rows = re.findall(r"^\| \*\*\[.*$", text("index"), re.MULTILINE)
    assert len(rows) == len(papers)
    for row in rows:
        pictures = re.findall(r"\[!\[[^\]]+\]\(\.\./(reports/results/[^)]+)\)\]\(\.\./(notebooks/[^)]+\.ipynb)\)", row)
        assert len(pictures) == 3  # more cannot be read on a phone
        for picture, notebook in pictures:
            assert Path(picture).stem in (ROOT / notebook).read_text(encoding="utf-8"), picture


ROWS = {
    "FIFO": "fifo", "SJF-CP": "sjf_cp", "naive weighted fair": "naive_weighted_fair", "fair": "fair",
    "tuned weighted fair": "weighted_fair", "capped shortest remaining work": "capped_srw",
    "Decima (`tpch-batch-random`, sampled; `tpch-stream-continuing`)": "decima",
    "Decima, imitation-pretrained (`tpch-batch`, `tpch-stream-entry-warm`)": "decima_warm",
}  # fmt: skip


def test_the_table_of_results_is_that_of_the_committed_tables():
    tables = ROOT / "reports" / "results" / "tpch-full" / "tables"
    streams = pandas.read_csv(tables / "stream" / "stream.csv")
    columns = [
        pandas.read_csv(tables / "batch" / "batch.csv"),
        *(streams[streams["interarrival_s"] == gap] for gap in (14, 25, 45)),
    ]
    page = text("results")
    for label, name in ROWS.items():
        (row,) = re.findall(rf"^\| {re.escape(label)} \| (.+ ± .+) \|$", page, re.MULTILINE)
        scores = [table.loc[table["scheduler"] == name, "avg_jct_s"] for table in columns]
        expected = [f"{score.mean():.1f} ± {score.sem():.1f}" if len(score) else "–" for score in scores]
        assert row.split(" | ") == expected, label
