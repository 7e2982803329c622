"""What the README shows works as shown."""

import re
from pathlib import Path

import pandas
import pytest

import decima

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def block(language):
    return re.search(rf"```{language}\n(.*?)```", README, re.DOTALL).group(1)


def test_ten_lines_run(capsys):
    exec(compile(block("python"), "README.md", "exec"), {})
    shown = capsys.readouterr().out
    assert "jct_s" in shown
    assert "capped_srw" in shown


def test_ten_lines_of_unequal_executors_run(capsys):
    page = (ROOT / "docs" / "unequal.md").read_text(encoding="utf-8")
    exec(compile(re.search(r"```python\n(.*?)```", page, re.DOTALL)[1], "unequal.md", "exec"), {})
    makespan, bound = map(float, re.findall(r"\d+\.\d+", capsys.readouterr().out.splitlines()[-1]))
    assert 0.0 < bound <= makespan


def test_own_jobs_run(tmp_path):
    path = tmp_path / "jobs.json"
    path.write_text(block("json"))
    result = decima.simulate(path, "fair", executors=10)
    assert result.num_events["task"] == 80 + 4 + 40
    assert 10.0 < result.makespan_s < 60.0


def test_it_stays_short():
    assert len(README.splitlines()) < 150


def test_commands_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for command in re.findall(r"`?make ([a-z]+)", README):
        assert re.search(rf"^{command}:", makefile, re.MULTILINE), command


def test_the_gallery_has_a_row_per_paper_of_pictures_that_lead_to_notebooks():
    papers = {path.parent.name for path in (ROOT / "experiments").glob("*/__init__.py")}
    papers -= {"lookahead", "capacity", "benchmark"}  # not a paper's
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
    "Decima, residual (`tpch-stream-busy`)": "decima_residual",
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
