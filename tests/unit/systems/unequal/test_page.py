"""The page of the documentation shows what works."""

import json
import re
import shlex
from pathlib import Path

from decima.systems.unequal import list_schedulers, load_instance
from tests.unit.commands.calls import run

PAGE = (Path(__file__).parents[4] / "docs" / "unequal.md").read_text(encoding="utf-8")


def test_python_as_shown(capsys):
    (block,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(compile(block, "unequal.md", "exec"), {})
    assert "no schedule is shorter than" in capsys.readouterr().out


def test_file_as_shown(tmp_path):
    (block,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    path = tmp_path / "instance.json"
    path.write_text(json.dumps(json.loads(block)))
    assert len(load_instance(path)) == 2


def test_every_scheduler_is_on_the_page():
    for name in list_schedulers():
        assert f"`{name}`" in PAGE, name


def test_commands_as_shown(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shown = re.findall(r"^\$ decima (.+)$", PAGE, re.MULTILINE)
    assert len(shown) == 9
    for line in shown:
        result = run(*shlex.split(line))
        assert result.exit_code == 0, (line, result.stderr)
