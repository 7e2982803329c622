"""Pages, notebooks and texts of the package keep the style guide; a list has those that do not yet, with counts."""

import ast
import re
import tomllib
from collections import Counter
from pathlib import Path

import pytest

from tests.unit.prose import LIMITS, avoided, blocks, faults, numbers, read, sentences, words, wrapped

ROOT = Path(__file__).parents[2]
ALLOWED = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["decima"]["words"]["prose"]
PAGES = [*sorted((ROOT / "docs").rglob("*.md")), *(ROOT / name for name in ("README.md", "notebooks/README.md"))]
NOTEBOOKS = sorted((ROOT / "notebooks").rglob("*.ipynb"))
GENERATED = {f"docs/{page}.md" for page in ("accounts/decima", "benchmark-results", "claims")}  # as long as the results
# Pages with lines of a fixed width, or with several sentences in one.
WRAPPED = {f"docs/{page}.md" for page in ("benchmark-results", "claims")}
SOURCES = sorted(path for path in (ROOT / "src" / "decima").rglob("*.py") if not path.stem.endswith("_pb2"))
BEHIND = sorted(
    path for part in ("experiments", "measure", "benchmarks", "examples") for path in (ROOT / part).rglob("*.py")
)


def name(path):
    return path.relative_to(ROOT).as_posix()


def found_in(path):
    whole = path.suffix == ".md" and path.parent.name != "log" and name(path) not in GENERATED
    return faults(read(path), page=whole)


def shown(tree):
    """Texts of a module that people meet: docstrings and all that is more than a word."""
    texts = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return [re.sub(r"``[^`]+``|^ *>>> .*$", "CODE", text, flags=re.MULTILINE) for text in texts if " " in text]


@pytest.mark.parametrize("path", [*PAGES, *NOTEBOOKS], ids=name)
def test_a_page_keeps_the_style_guide(path):
    found = found_in(path)
    assert len(found) <= ALLOWED.get(name(path), 0), "\n".join(found)


@pytest.mark.parametrize("path", [*PAGES, *NOTEBOOKS], ids=name)
def test_a_line_of_prose_is_a_sentence(path):
    if name(path) not in WRAPPED:
        assert wrapped(read(path)) == []


def test_sentences_over_several_lines_are_found():
    assert wrapped("One sentence\nof two lines.\n\n- an item\n  of two\n") == ["One sentence"]
    assert wrapped("One.\nTwo (so).\n\n```\na b\nc\n```\n| a |\n") == []


def test_no_sentence_is_on_two_pages():
    found = Counter()
    for path in PAGES:
        if path.parent.name not in ("accounts", "log") and path.stem != "claims":
            found.update({each for block in blocks(read(path)) for each in sentences(block) if len(each.split()) >= 7})
    assert [sentence for sentence, pages in found.items() if pages > 1] == []


def test_all_pages_but_those_of_the_log_are_short_together():
    assert sum(len(words(read(path))) for path in PAGES if path.parent.name != "log") <= LIMITS["all"]


def test_texts_of_the_package_have_no_words_to_avoid():
    found = [each for path in SOURCES for text in shown(ast.parse(path.read_text("utf-8"))) for each in avoided(text)]
    assert len(found) <= ALLOWED["src/decima"], "\n".join(found)


def explained(tree):
    """Docstrings of a module and the helps of its options."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef)
    texts = [ast.get_docstring(node) for node in ast.walk(tree) if isinstance(node, kinds)]
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    helps = [word.value for call in calls for word in call.keywords if word.arg in ("help", "description", "epilog")]
    return [*filter(None, texts), *(each.value for each in helps if isinstance(each, ast.Constant))]


def test_docstrings_and_helps_behind_the_package_keep_the_style_guide():
    texts = [(path, text) for path in BEHIND for text in explained(ast.parse(path.read_text("utf-8")))]
    found = []
    for path, text in texts:
        plain = re.sub(
            r"``[^`]+``|:\w+:`[^`]+`|^ *(?:>>>|\.\.\.) .*$|::\n(?:\n| .*)+", "CODE", text, flags=re.MULTILINE
        )
        said = [each for each in faults(plain, page=False) if not each.startswith("a row of ")]
        found += [f"{name(path)}: {each}" for each in said]
    assert not found, "\n".join(found)


def test_the_list_of_pages_that_do_not_hold_yet_is_short_and_true():
    assert all((ROOT / page).exists() for page in ALLOWED)
    paid = [page for page in ALLOWED if (ROOT / page).is_file() and not found_in(ROOT / page)]
    assert not paid, "these pages hold by now: take them from the list"


@pytest.mark.parametrize(
    "text",
    [
        f"One {'word ' * LIMITS['sentence']}too many.",
        " ".join(["Nine words make a sentence that is rather short."] * 11),
        "There are 3 jobs, 4 stages, 5 tasks and 6 executors.",
        f"| {'cell ' * 40}|",
        "Four features say what an executor costs.",
        "'4' is no scheduler.",
        "It is level with fair sharing.",
        "Streams have gaps of 14 s.",
        "A warm start is better, too.",
    ],
)
def test_faults_are_found(text):
    assert faults(text)


@pytest.mark.parametrize(
    "text",
    [
        "The average JCT is 6.4 % lower (95 % CI 6.0 to 6.9 %).",
        "The change is −6.4 % [−6.9, −6.0] at 14 s.",
        "There is no such file.\n\n```python\nbeside = told\n```",
        "| a | `so many` |\n| --- | --- |\n| [short](https://example.org/a/very/long/address/that/nobody/reads) | b |",
        "Nine words make a sentence that is rather short.",
    ],
)
def test_good_prose_has_none(text):
    assert not faults(text)


def test_parts_of_a_text():
    page = "# Title\n\nOne. Two\nthree.\n\n- an item\n  of two lines\n- `code` and [a link](x.md)\n\n    shown\n"
    assert blocks(page) == ["One. Two three.", "an item of two lines", "CODE and a link"]
    assert sentences("One e.g. two. Three (3.5 s)! Four") == ["One e.g two.", "Three (3.5 s)!", "Four"]
    assert len(numbers("From 2 to 4 s, 1.5 ± 0.2 and −3 % [−4, −2] in Figure 9 with seeds 0")) == 3
