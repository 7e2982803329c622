"""Results of the project's own entries: complete, small, and what the page shows."""

from pathlib import Path

from decima.bench.report import read_folder, sections

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "reports" / "bench"


def test_results_are_complete_and_small():
    documents = read_folder(FOLDER)
    assert len(documents) >= 15
    assert not any(document["quick"] for document in documents)
    assert {"heuristic", "policy"} <= {document["form"] for document in documents}
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 300_000


def test_page_shows_the_table():
    page = (ROOT / "docs" / "benchmark.md").read_text(encoding="utf-8").split("## Results")[1]
    for task, note, table in sections(read_folder(FOLDER)):
        part = page.split(f"### {task.name}\n")[1].split("### ")[0]
        assert note in part
        for cells in table:
            assert f"| {' | '.join(cells)} |" in part, (task.name, cells)
