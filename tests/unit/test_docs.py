"""Pages of the documentation: links lead somewhere, the four that lead through are short, and what they show works."""

import re
import shlex
from pathlib import Path

import nbformat
import pytest

from experiments.notebooks import notebook_slugs
from tests.unit.commands.calls import run

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [
    *sorted(DOCS.rglob("*.md")),
    *(ROOT / name for name in ("README.md", "CHANGELOG.md", "models/README.md", "notebooks/README.md")),
    *sorted((ROOT / "data").glob("*/README.md")),
    *sorted((ROOT / "reports" / "results").glob("*/README.md")),
]
NOTEBOOKS = sorted((ROOT / "notebooks").rglob("[0-9]*.ipynb"))
WAYS = ("schedule-own-jobs", "write-a-scheduler", "reproduce-a-paper", "change-the-code")


def text(name):
    return (DOCS / f"{name}.md").read_text(encoding="utf-8")


def blocks(name, language):
    return re.findall(rf"```{language}\n(.*?)```", text(name), re.DOTALL)


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
        assert found.exists(), target
        if anchor and found.suffix == ".md":
            assert anchor in anchors(found), target


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


def test_own_jobs_as_shown(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("jobs.json").write_text(*blocks("schedule-own-jobs", "json"))
    shown = re.findall(r"^    decima (.+)$", text("schedule-own-jobs"), re.MULTILINE)
    assert len(shown) == 2
    for line in shown:
        result = run(*shlex.split(line))
        assert result.exit_code == 0, result.stderr
    assert Path("schedule.html").stat().st_size > 10**6
    assert Path("all.html").stat().st_size > 10**6


def test_a_scheduler_as_shown(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in blocks("write-a-scheduler", "python"):
        exec(compile(block, "write-a-scheduler.md", "exec"), names)
    assert "mine" in capsys.readouterr().out
    assert Path("schedules.html").exists()


def test_a_notebook_that_is_named_is_there():
    for name in re.findall(r"decima notebook (\d\d-[a-z-]+)", text("reproduce-a-paper")):
        assert name in notebook_slugs()
