"""What the README shows works as shown."""

import re
from pathlib import Path

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


def test_own_jobs_run(tmp_path):
    path = tmp_path / "jobs.json"
    path.write_text(block("json"))
    result = decima.simulate(path, "fair", executors=10)
    assert result.num_events["task"] == 80 + 4 + 40
    assert 10.0 < result.makespan_s < 60.0


def test_links_and_commands_exist():
    for target in re.findall(r"\]\((?!https?://)([^)]+)\)", README):
        assert (ROOT / target).exists(), target
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for command in re.findall(r"`?make ([a-z]+)", README):
        assert re.search(rf"^{command}:", makefile, re.MULTILINE), command
