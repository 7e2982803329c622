"""Notebooks as they are committed: published outputs, literal parameters, nothing of one machine. nbval runs them."""

import ast
import json
import re
import shutil
from functools import cache
from itertools import pairwise
from pathlib import Path

import nbformat
import pytest
from ipykernel.ipkernel import IPythonKernel
from ipykernel.kernelspec import get_kernel_dict

import decima
import experiments
from experiments import figures, notebooks, published, report
from experiments.experiment import experiment_names
from experiments.notebooks import PUBLISHED, notebook_cells, notebook_path, notebook_slugs
from experiments.results import DIGESTS

ROOT = Path(__file__).parents[2]
START = ROOT / "notebooks" / "00-start-here.ipynb"
NOTEBOOKS = [START, *sorted((ROOT / "notebooks").glob("[!.]*/*.ipynb"), key=lambda path: path.stem)]
PAPERS = [path for path in NOTEBOOKS if path != START]
# Lessons in their order, as the page of the notebooks lists them.
LESSONS = [
    ROOT / "notebooks" / f"{found}.ipynb"
    for found in re.findall(r"^\d\. \[.+?\]\((.+?)\.ipynb\)", (ROOT / "notebooks/README.md").read_text("utf-8"), re.M)
]

each_of_lessons = pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
each = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
each_of_papers = pytest.mark.parametrize("path", PAPERS, ids=lambda path: path.stem)


@cache
def read(path):
    """A notebook; no test changes it."""
    return nbformat.read(path, as_version=4)


def code_cells(path):
    return [cell for cell in read(path).cells if cell.cell_type == "code"]


def parameters(path):
    """Names and values of the cell tagged ``parameters``."""
    (cell,) = [cell for cell in code_cells(path) if "parameters" in cell.metadata.get("tags", [])]
    values = {}
    for statement in ast.parse(cell.source).body:
        assert isinstance(statement, ast.Assign)
        values[statement.targets[0].id] = ast.literal_eval(statement.value)
    return values


def calls(path, function):
    """String arguments of the calls of a function, in all cells."""
    trees = [ast.parse(cell.source) for cell in code_cells(path)]
    found = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [node.args[0].value for node in found if ast.unparse(node.func) == function]


def test_every_notebook_lies_in_the_folder_of_its_paper():
    folders = {"decima": range(21), "idle_slots": range(21, 30), "cloud": range(30, 40), "heterogeneous": range(40, 50)}
    folders |= {"capacity": range(60, 70), "benchmark": range(70, 80)}
    assert {path.parent.name for path in PAPERS} == set(folders)
    assert [path for path in PAPERS if int(path.stem[:2]) not in folders[path.parent.name]] == []
    assert list((ROOT / "notebooks").glob("*.ipynb")) == [START]
    assert len({path.stem for path in PAPERS}) == len(PAPERS) == len(notebook_slugs())


def test_the_page_of_the_notebooks_lists_each_once_with_a_lesson_of_six_at_most_per_folder():
    page = (ROOT / "notebooks" / "README.md").read_text(encoding="utf-8")
    for folder in {path.parent.name for path in PAPERS}:
        (section,) = re.findall(rf"^## `{folder}`.*?(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
        lesson, _, behind = section.partition("\nBehind it:\n")
        taught, others = (re.findall(r"\]\(([\w/-]+)\.ipynb\)", part) for part in (lesson, behind))
        assert 1 <= len(taught) <= 6
        assert [line[:3] for line in lesson.splitlines() if ".ipynb" in line] == [
            f"{n}. " for n in range(1, len(taught) + 1)
        ]
        expected = sorted(f"{folder}/{path.stem}" for path in PAPERS if path.parent.name == folder)
        assert sorted(taught + others) == expected


@each
def test_outputs_are_small_tables_and_their_cells_counted(path):
    for cell in code_cells(path):
        assert (cell.execution_count is None) == (cell.outputs == [])
        assert set(cell.metadata) <= {"tags"}
        for output in cell.outputs:
            if path == START and output.output_type == "stream":
                assert output.name == "stdout"  # no progress, no warnings
                continue
            assert output.output_type == "execute_result"
            pictures = {"image/png"} if path == START else set()
            assert set(output.data) <= {"text/plain", "text/html"} | pictures
            for form, text in output.data.items():
                assert len(text) <= (150_000 if form in pictures else published.MOST)


@each_of_papers
def test_outputs_are_of_these_cells_and_of_the_published_results(path):
    cells = notebook_cells(path.stem)
    said = read(path).metadata.published
    assert said == {"run": published.RUN, "stamp": published.published_stamp(cells)}, (
        "run: python -m experiments publish"
    )


@pytest.mark.parametrize("slug", [slug for slug in notebook_slugs() if published.is_plain(notebook_cells(slug))])
def test_outputs_are_those_of_the_kept_numbers_to_the_last_digit(slug):
    assert notebook_path(slug).read_text(encoding="utf-8") == published.published_text(slug), (
        "run: python -m experiments publish"
    )


@each_of_papers
def test_every_figure_is_shown_behind_the_cell_that_draws_it(path):
    cells = read(path).cells
    for cell, behind in pairwise(cells):
        drawn = notebooks.calls(cell.source, "experiments.figure") if cell.cell_type == "code" else []
        drawn = [name for name in drawn if published.picture(name)]  # the others wait for the next full run
        assert (PUBLISHED in behind.metadata.get("tags", [])) == bool(drawn)
        for name in drawn:
            (link,) = re.findall(r"^\*\*Published run \(`tpch-full`\)\.\*\*\n\n!\[.+\]\((\S+)\)$", behind.source)
            assert (path.parent / link).resolve() == published.picture(name)


def test_a_changed_number_makes_outputs_stale(tmp_path, monkeypatch):
    copy = tmp_path / published.RUN
    shutil.copytree(published.results_folder(published.RUN), copy)
    monkeypatch.setattr(published, "results_folder", lambda run: tmp_path / run)
    slug = "11-appendix-a"
    cells = notebook_cells(slug)
    before = published.published_stamp(cells)
    table = copy / "tables" / "appendix_a" / "appendix_a.csv"
    table.write_text(table.read_text().replace("28.0", "28.1", 1))
    assert published.published_stamp(cells) != before


@each
def test_jupyterlab_saves_what_is_committed(path):
    """Opening and saving an unchanged notebook dirties no checkout; only the version of Python is another's."""
    content = json.loads(path.read_text(encoding="utf-8"))
    assert path.read_text(encoding="utf-8") == nbformat.writes(read(path)) + "\n"
    spoken = {name: value for name, value in content["metadata"]["language_info"].items() if name != "version"}
    kernel = {name: value for name, value in IPythonKernel.language_info.items() if name != "version"}
    assert spoken == json.loads(json.dumps(kernel))
    named = {key: get_kernel_dict()[key] for key in ("display_name", "language")}
    assert content["metadata"]["kernelspec"] == named | {"name": "python3"}


TOO_LARGE = json.loads((published.results_folder(published.RUN) / DIGESTS).read_text(encoding="utf-8"))["tables"]


@each
@pytest.mark.parametrize("folder", [Path("/"), ROOT, ROOT / "notebooks" / "decima"], ids=str)
def test_the_first_cells_run_in_any_folder(path, folder, monkeypatch):
    def computed(name, run, **_):
        tables = (published.results_folder(published.RUN) / "tables" / name).glob("*.csv")
        return {table.stem: table for table in tables}

    monkeypatch.setattr("experiments.tables.run_experiment", computed)  # of a table with times of this machine
    monkeypatch.chdir(folder)
    names = {}
    for cell in code_cells(path)[:2]:
        try:
            exec(compile(cell.source, path.stem, "exec"), names)
        except KeyError as error:
            if f"{error.args[0]}/{error.args[0]}" not in TOO_LARGE:
                raise
            pytest.skip(f"table {error} is too large to be published")


@each
def test_valid_and_named_by_section(path):
    nbformat.validate(read(path))
    assert re.fullmatch(r"\d\d-[a-z0-9]+(-[a-z0-9]+)*", path.stem)


@each_of_papers
def test_parameters_are_literals_with_a_comment(path):
    assert parameters(path)["run"] == "auto"
    assert (len(parameters(path)) > 1) == (path in LESSONS)
    (cell,) = [cell for cell in code_cells(path) if "parameters" in cell.metadata.get("tags", [])]
    assert all("#" in line for line in cell.source.splitlines())


@each
def test_nothing_of_one_machine(path):
    text = path.read_text(encoding="utf-8")
    found = re.findall(
        r"(?<![\w.:<`/])/(?:home|root|tmp|work|Users|mnt|opt|usr|var)\b|[A-Z]:\\\\|https?://(?!doi\.org/10\.)|file://",
        text,
    )
    assert found == []


def test_the_first_one_begins_with_what_one_learns_and_ends_with_where_to_go():
    cells = read(START).cells
    for word in ("**Question.**", "Runtime:"):
        assert word in cells[0].source
    assert cells[-1].source.startswith("## Where to go next")
    for name in re.findall(r"`(docs/[\w-]+\.md)`", cells[-1].source):
        assert (ROOT / name).exists(), name
    assert all(isinstance(value, int) for value in parameters(START).values())
    code = "\n".join(cell.source for cell in code_cells(START))
    for part in ("load", "gantt.gantt", "explore", "compare", "check_scheduler", "train", "from_logs"):
        assert re.search(rf"\b{part}\(", code), part


def test_the_first_one_shows_a_heuristic_that_loses_then_wins_and_a_policy_that_beats_another():
    shown = {}
    for cell in code_cells(START):
        for output in cell.outputs:
            rows = output.get("data", {}).get("text/plain", "").splitlines()
            if rows and rows[0].startswith("average JCT"):
                shown[cell.source] = [row.split()[0] for row in rows[2:]]
    first, second, third = (
        next(order for source, order in shown.items() if part in source) for part in ("first =", "second =", "third =")
    )
    assert first.index("fair") < first.index("smallest_first")
    assert second.index("capped_smallest_first") < second.index("fair")
    assert third.index("learned") < max(third.index(name) for name in ("fair", "fifo", "mine"))
    assert all(cell.outputs for cell in code_cells(START)[2:])


OWN = range(50, 80)  # notebooks on questions of this project, which no paper asks


@each_of_papers
def test_opens_with_the_question_and_ends_with_the_gap(path):
    cells = read(path).cells
    opening = cells[0].source
    for word in ("**Question.**", "Runtime:"):
        assert word in opening
    assert ("Paper:" in opening) == (int(path.stem[:2]) not in OWN)
    assert "Paper: no paper" not in opening
    assert "against_paper(" in cells[-2].source
    ending = "What limits these numbers" if int(path.stem[:2]) in OWN else "Where we do not match"
    assert cells[-1].source.startswith(f"**{ending}.**")


@each_of_papers
def test_opens_with_what_one_will_do_needs_and_gets_and_ends_with_three_sentences(path):
    first, *_, last = read(path).cells
    (done,) = re.findall(r"\*\*After this notebook you can\*\*\n\n((?:- .+\n){3})", first.source)
    parts = (
        "**Question.**",
        done,
        "**You need** ",
        "Reading ",
        "**Result in one line.**",
        "> Before you continue, guess:",
    )
    assert [first.source.count(part) for part in parts] == [1] * len(parts)
    (closing,) = re.findall(r"^\*\*Summary\.\*\*\n((?:.+\n?){3})(?:\n|$)", last.source, re.MULTILINE)
    assert all(line.endswith(".") for line in closing.splitlines())


@each_of_papers
def test_checks_stand_in_cells_of_their_own_that_the_site_folds_and_tables_are_shown_for_people(path):
    cells = [cell for cell in read(path).cells if cell.cell_type == "code" and not is_live(cell)]
    for cell in cells:
        statements = ast.parse(cell.source).body
        checks = [isinstance(each, ast.Assert) for each in statements]
        assert any(checks) == all(checks) == ({"check", "hide-cell"} <= set(cell.metadata.get("tags", [])))
        if any("text/html" in output.data for output in cell.outputs):
            assert "experiments.show(" in cell.source or "experiments.against_paper(" in cell.source


@each
def test_shows_the_equations(path):
    """Formulas stand in markdown cells, dollars in pairs; numbers are those of the paper, which has five."""
    sources = [cell.source for cell in read(path).cells if cell.cell_type == "markdown"]
    displayed = [formula for source in sources for formula in re.findall(r"\$\$(.+?)\$\$", source, flags=re.DOTALL)]
    assert displayed
    for source in sources:
        assert source.count("$$") % 2 == 0
        assert source.replace("$$", "").count("$") % 2 == 0
    for formula in displayed:
        assert formula.count("{") == formula.count("}")
        assert formula.count(r"\left") - formula.count(r"\leftarrow") == formula.count(r"\right") - formula.count(
            r"\rightarrow"
        )
    assert set(re.findall(r"\\tag\{(.+?)\}", "".join(sources))) <= {"1", "2", "3", "4", "5"}


def is_live(cell):
    return published.LIVE in cell.metadata.get("tags", [])


@each_of_lessons
def test_a_lesson_has_a_live_cell_for_each_of_its_parameters(path):
    """Only live cells read them, so that numbers of the paper stay what they are."""
    live = [cell for cell in code_cells(path) if is_live(cell)]
    assert any(cell.outputs for cell in live)
    names = set(parameters(path)) - {"run"}
    for cell in code_cells(path):
        found = names & {node.id for node in ast.walk(ast.parse(cell.source)) if isinstance(node, ast.Name)}
        assert is_live(cell) or "parameters" in cell.metadata.get("tags", []) or not found
    used = {node.id for cell in live for node in ast.walk(ast.parse(cell.source)) if isinstance(node, ast.Name)}
    assert names <= used


# Lessons whose system has another way than ``decima.compare``.
MAIN = {"60-capacity": "sweep", "70-benchmark": "score"}


@each_of_lessons
def test_a_lesson_builds_its_main_table_itself_in_few_lines_after_a_guess(path):
    called = MAIN.get(path.stem, "decima.compare")
    at, table = next(
        (number, cell.source)
        for number, cell in enumerate(read(path).cells)
        if is_live(cell) and re.search(rf"\b{re.escape(called)}\(", cell.source)
    )
    lines = [line for line in table.splitlines() if line and not line.startswith(("import ", "from "))]
    assert len(lines) <= 8
    said = next(cell.source for cell in read(path).cells[at - 1 :: -1] if cell.cell_type == "markdown")
    assert "this run" in said.lower()
    assert "\n> Guess first: " in said


@each_of_lessons
def test_a_lesson_says_what_to_change_and_has_two_exercises_with_folded_solutions(path):
    texts = [cell.source for cell in read(path).cells if cell.cell_type == "markdown"]
    (tried,) = [text for text in texts if text.startswith("## Try it: ")]
    changed = set(parameters(path)) - {"run"}
    assert [name for name in changed if f"`{name}" in tried]
    (exercises,) = [text for text in texts if text.startswith("## Exercises\n")]
    assert re.findall(r"^(\d)\. ", exercises, re.MULTILINE) == ["1", "2"]
    solutions = re.findall(r"<details><summary>(.+?)</summary>\n\n.+?\n\n</details>", exercises, re.DOTALL)
    assert solutions == ["Solution of exercise 1", "Solution of exercise 2"]
    for block in re.findall(r"^```python\n(.+?)^```", exercises, re.MULTILINE | re.DOTALL):
        ast.parse(block)
    assert exercises.endswith("</details>")


@each_of_lessons
def test_a_lesson_links_to_its_paper_the_glossary_and_what_comes_next(path):
    first, *_, last = read(path).cells
    assert "](https://doi.org/10." in first.source or int(path.stem[:2]) in OWN
    assert "](../../docs/glossary.md)" in first.source
    after = LESSONS[LESSONS.index(path) + 1 :]
    expected = f"{after[0].stem}.ipynb)" if after else "write-a-scheduler.md)"
    assert expected in last.source


@each
def test_cells_are_short_and_claims_are_asserted(path):
    sources = [cell.source for cell in code_cells(path)]
    assert max(len(source.splitlines()) for source in sources) <= 16
    assert max(len(line) for source in sources for line in source.splitlines()) <= 120
    nodes = [node for source in sources for node in ast.walk(ast.parse(source))]
    assert sum(isinstance(node, ast.Assert) for node in nodes) >= 2


@each_of_papers
def test_experiments_exist_and_their_figures_are_shown_once(path):
    experiments = calls(path, "experiments.load")
    assert experiments
    assert set(experiments) <= set(experiment_names())
    known = {name for experiment in experiments for name in figures.figure_names(experiment)}
    shown = calls(path, "experiments.figure")
    assert set(shown) <= known
    assert len(shown) == len(set(shown))


def test_every_figure_of_the_pipeline_is_in_a_notebook():
    shown = {name for path in NOTEBOOKS for name in calls(path, "experiments.figure")}
    assert {name for experiment in experiment_names() for name in figures.figure_names(experiment)} <= shown


@each
def test_the_pipeline_passes_parameters_that_exist(path):
    passed = report.notebook_parameters(path.stem, "tpch-quick")
    assert set(passed) <= set(parameters(path))
    assert (passed == {}) == (path == START)


def test_notebooks_find_the_checkout_from_any_folder(monkeypatch, tmp_path):
    (cell,) = [cell for cell in code_cells(START) if "from_logs(" in cell.source]
    for folder in (ROOT, ROOT / "notebooks", tmp_path):
        monkeypatch.chdir(folder)
        assert experiments.checkout() == ROOT
    names = {"decima": decima}
    exec(compile(cell.source, "start", "exec"), names)
    assert len(names["queries"]) >= 20
    for path in NOTEBOOKS:
        code = "\n".join(cell.source for cell in code_cells(path))
        assert not re.search(r"checkout_root|Path\.cwd|\.\./", code), path


def test_copies_that_jupyter_keeps_are_no_notebooks(monkeypatch, tmp_path):
    for name in ("decima/07-decima", ".ipynb_checkpoints/00-start-here-checkpoint", "decima/.ipynb_checkpoints/07-a"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / f"{name}.ipynb").write_text("{}")
    monkeypatch.setattr(notebooks, "notebooks_folder", lambda: tmp_path)
    assert notebook_slugs() == ["07-decima"]
