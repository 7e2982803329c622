"""The site: what a browser finds on pages of it, and that every page is in its table of contents."""

import base64
import json
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from selenium.webdriver.common.by import By
from typer.testing import CliRunner

from decima.core.errors import ConfigError, DecimaError
from decima.plotting import style
from experiments import site
from experiments.__main__ import app
from experiments.notebooks import notebook_path, notebook_slugs
from tests.unit.experiments.kept import make_checkout

ROOT = Path(__file__).parents[3]
SHOWN = ("02-motivation", "07-decima", "18-appendix-h")
PAGES = (
    *("README", "docs/architecture", "docs/event-logs", "docs/results", "docs/write-a-scheduler"),
    *(f"notebooks/decima/{slug}" for slug in SHOWN),
)
SIZES = """
return [...document.querySelectorAll("article img")].map((each) => [each.complete ? each.naturalWidth : 0, each.alt])
"""


def figure(title):
    made = style.new_figure()
    made.subplots().plot([1, 2], [3, 4])
    return style.entitle(made, title, "5 seeds.", "TPC-H")


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Folder of a site of five pages; its notebooks were executed, as far as their first figure goes."""
    notebooks = tmp_path_factory.mktemp("notebooks")
    for slug in SHOWN:
        notebook = nbformat.read(notebook_path(slug), as_version=4)
        cell = next(cell for cell in notebook.cells if "experiments.figure(" in cell.source)
        png, words = figure(slug)._repr_png_()
        output = nbformat.v4.output_from_msg(
            {
                "header": {"msg_type": "display_data"},
                "content": {"data": {"image/png": base64.b64encode(png).decode()}, "metadata": {"image/png": words}},
            }
        )
        cell.outputs = [output]
        nbformat.write(notebook, notebooks / f"{slug}.ipynb")
    target = tmp_path_factory.mktemp("site")
    command = site.sphinx_command(target)
    command.remove("-W")  # links to pages that are left out here lead nowhere
    patterns = " ".join(
        f"{page}.*" for page in ("docs/index", "docs/accounts/cloud", "notebooks/00-start-here", *PAGES)
    )
    environment = site.sphinx_environment(notebooks) | {"DECIMA_SITE_PAGES": patterns}
    built = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return target


@pytest.mark.parametrize("page", PAGES)
def test_a_browser_finds_the_figures_of_a_page(page, pages, browser):
    browser.get((pages / f"{page}.html").as_uri())
    assert browser.find_element(By.TAG_NAME, "h1").text
    found = browser.execute_script(SIZES)
    assert all(width > 0 and alt for width, alt in found), found
    if page.startswith("notebooks/"):
        assert f"{page.rpartition('/')[2]} (TPC-H). 5 seeds." in [alt for _, alt in found]
    elif page == "README":
        assert len(found) == len(re.findall(r"!\[", (ROOT / "README.md").read_text()))


def test_pages_ask_no_server_for_anything_and_have_equations_and_diagrams(pages):
    loads = r"""(?:<script|<img|<link|<iframe|import|url\()[^>;]{0,200}https?://[^>;"')]*"""
    texts = {path.relative_to(pages).as_posix(): path.read_text() for path in pages.rglob("*.html")}
    assert {name: re.findall(loads, text) for name, text in texts.items() if re.search(loads, text)} == {}
    assert (
        '<math xmlns="http://www.w3.org/1998/Math/MathML" display="block">' in texts["notebooks/decima/07-decima.html"]
    )
    assert "<math" not in texts["docs/accounts/cloud.html"]  # dollars are amounts
    assert 'alt="figure that the cell above draws"' in texts["notebooks/00-start-here.html"]
    assert texts["docs/architecture.html"].count("</svg></div>") == 2
    assert "graph neural network" in texts["docs/architecture.html"]
    assert not any(mark in text for text in texts.values() for mark in (r"\(", r"\[", "```mermaid"))


@pytest.mark.parametrize(
    ("words", "page"),
    [("install", "README"), ("event log", "docs/event-logs"), ("custom scheduler", "docs/write-a-scheduler")],
)
def test_the_search_index_leads_to_the_right_page_first(words, page, pages):
    text = (pages / "searchindex.js").read_text()
    index = json.loads(text[text.index("(") + 1 : text.rindex(")")])
    [[number, _, leads]] = index["indexentries"][words]
    assert index["docnames"][number] == page
    assert leads  # a main entry comes before titles and words


def test_the_search_finds_a_page(pages, browser):
    browser.get((pages / "search.html").as_uri() + "?q=weighted+fair")
    titles = "return [...document.querySelectorAll('ul.search li a')].map((link) => link.textContent)"
    # The page lists one result after the other.
    browser.wait(lambda driver: "Results" in driver.execute_script(titles))


def test_every_page_is_in_the_table_of_contents():
    index = (ROOT / "docs" / "index.md").read_text()
    blocks = re.findall(r"```\{toctree\}\n(.*?)```", index, re.DOTALL)
    listed = {re.sub(r".*<(.+)>", r"\1", line) for block in blocks for line in block.splitlines()}
    assert {path.stem for path in (ROOT / "docs").glob("*.md")} - {"index"} <= listed
    assert {f"/notebooks/{notebook_path(slug).parent.name}/{slug}" for slug in notebook_slugs()} | {
        "/notebooks/00-start-here"
    } <= listed


def test_a_run_without_executed_notebooks_is_refused(tmp_path, monkeypatch):
    make_checkout(tmp_path, "runs: {tpch-quick: {}, tpch-full: {}}")
    (tmp_path / "notebooks" / "decima").mkdir(parents=True)
    (tmp_path / "notebooks" / "decima" / "07-decima.ipynb").write_text("{}")
    monkeypatch.chdir(tmp_path)
    answer = CliRunner().invoke(app, ["site", "--run", "tpch-full"])
    assert answer.exit_code == 2
    assert answer.stderr.count("\n") == 1
    assert "run tpch-full does not have all executed notebooks" in answer.stderr
    assert "run: decima notebook all --run tpch-full" in answer.stderr
    with pytest.raises(ConfigError, match="unknown run 'other'"):
        site.build_site("other")


def test_the_run_that_has_its_notebooks_is_shown_and_a_warning_is_an_error(tmp_path, monkeypatch):
    make_checkout(tmp_path, "runs: {tpch-quick: {}, tpch-full: {}}")
    for folder in (tmp_path / "notebooks" / "decima", tmp_path / "docs"):
        folder.mkdir(parents=True)
    (tmp_path / "notebooks" / "decima" / "07-decima.ipynb").write_text("{}")
    conf = "import os\nhtml_title = os.environ['DECIMA_SITE_NOTEBOOKS'] or 'committed'\nroot_doc = 'docs/index'\n"
    (tmp_path / "docs" / "conf.py").write_text(conf)
    (tmp_path / "docs" / "index.rst").write_text("Title\n=====\n")
    monkeypatch.chdir(tmp_path)
    assert site.build_site() == tmp_path / "build" / "site" / "index.html"
    page = tmp_path / "build" / "site" / "docs" / "index.html"
    assert "committed" in page.read_text()
    executed = tmp_path / "reports" / "tpch-full" / "notebooks"
    executed.mkdir(parents=True)
    (executed / "07-decima.ipynb").write_text("{}")
    site.build_site()
    assert str(executed) in page.read_text()
    (tmp_path / "docs" / "index.rst").write_text("Title\n=====\n\n:doc:`nowhere`\n")
    with pytest.raises(DecimaError, match="not built without warnings"):
        site.build_site("tpch-full")


def test_the_pages_of_every_tag_stand_beside_those_of_today(tmp_path, monkeypatch):
    make_checkout(tmp_path)
    for folder in (tmp_path / "notebooks", tmp_path / "docs"):
        folder.mkdir()
    conf = "import os\nhtml_title = os.environ['DECIMA_SITE_VERSIONS']\nroot_doc = 'docs/index'\nversion = '0.1'\n"
    (tmp_path / "docs" / "conf.py").write_text(conf)
    (tmp_path / "docs" / "index.rst").write_text("Old\n===\n")
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(tmp_path)]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "old"], ["tag", "v0.1.0"]):
        subprocess.run([*git, *words], check=True)
    (tmp_path / "docs" / "index.rst").write_text("New\n===\n")
    monkeypatch.chdir(tmp_path)
    page = site.build_site(versions=True)
    new, old = page.parent / "docs" / "index.html", page.parent / "v0.1.0" / "docs" / "index.html"
    assert "<h1>New" in new.read_text()
    assert "v0.1.0=v0.1.0/" in new.read_text()
    assert "<h1>Old" in old.read_text()
    assert "newest=../" in old.read_text()
    listed = subprocess.run([*git, "worktree", "list"], capture_output=True, text=True, check=True).stdout
    assert listed.count("\n") == 1


def test_the_search_leaves_the_reference_out_which_has_every_module_that_can_be_imported():
    code = "import runpy; source = ['Text']; conf = runpy.run_path('docs/conf.py'); " + (
        "conf['executed'](None, 'docs/api/decima.core', source); print(source[0]); "
        "source = ['Text']; conf['executed'](None, 'docs/spark', source); print(source[0]); "
        "print(*conf['reference'][0]['exclude_patterns'])"
    )
    shown = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    text, _, patterns = shown.rpartition("\nText\n")
    assert text == ":nosearch:\n\nText"
    modules = [path.relative_to(ROOT) for path in (ROOT / "src" / "decima").rglob("*.py")]
    refusing = [path for path in modules if re.search(r"^raise ", (ROOT / path).read_text("utf-8"), re.MULTILINE)]
    assert [path for path in refusing if not any(each.endswith(str(path)) for each in patterns.split())] == []


def test_sphinx_runs_in_this_environment():
    assert site.sphinx_command(Path("out"))[0] == sys.executable
