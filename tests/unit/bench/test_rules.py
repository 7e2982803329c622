"""Rules of one function: decisions, refusals, and the process that scores them."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from decima.bench.rules import NAMES, read_rule
from decima.bench.run import score
from decima.bench.scoring import RuleScorer
from decima.bench.tasks import tasks
from decima.core.errors import ConfigError, SchedulerError
from tests.unit.bench.entries_for_tests import Shortest
from tests.unit.commands.calls import refuse, run

TASK = replace(tasks()["embedded-batch"], jobs=("embedded:n=4",), validation=(170000, 2))
SHORTEST = "def rule(job_remaining_s):\n    return job_remaining_s\n"
# Numba has no format of texts, so that this one is interpreted.
INTERPRETED = "def rule(job_remaining_s):\n    return float(f'{job_remaining_s!r}')\n"
LIMITED = """import math
SHARE = 2.0


def rule(job_remaining_s, stage_runnable, work_s, executors):
    return math.log(1.0 + job_remaining_s) - stage_runnable, SHARE * executors * job_remaining_s / work_s
"""
SEVERAL = """def rule(jobs, stage_tasks):
    {}
    if jobs > 2.0:
        jobs += 1.0
        return stage_tasks, jobs
    return 1, 2
"""
NOT_FINITE = "the heuristic did not answer with a finite number"
FAILING = {
    "nan.py": ("def rule(jobs):\n    return math.nan\n", NOT_FINITE),
    "divides.py": ("def rule(jobs):\n    return 1.0 / (jobs - 20.0)\n", NOT_FINITE),
    "nothing.py": ("def rule(jobs):\n    if jobs > 30.0:\n        return jobs\n", NOT_FINITE),
    "raises.py": ("def rule(jobs):\n    return {}[f'{jobs}']\n", "the rule raised KeyError: "),
    "opens.py": ("def rule(jobs):\n    return open('x')\n", "raised NameError: name 'open' is not defined"),
    "imports.py": (
        "import os\ndef rule(jobs):\n    return 1.0\n",
        r"may not import modules other than math, which .* \(line 1\)",
    ),
    "reads.py": (
        "def rule(jobs):\n    return rule.__globals__\n",
        r"may not have attributes \(__globals__\) \(line 2\)",
    ),
    "escapes.py": (
        "math = ()\nmath = math.__class__\ndef rule(jobs):\n    return jobs\n",
        r"may not use math but for its functions and constants, nor bind that name \(line 1\)",
    ),
    "three.py": ("def rule(jobs):\n    return jobs, 2.0, 3.0\n", r"the rule returned \(.*expected one number or two"),
    "text.py": ("def rule(jobs):\n    return f'{jobs}'\n", "the rule returned '.*expected one number or two"),
    "keeps.py": ("SEEN = [0.0]\ndef rule(jobs):\n    return jobs\n", "SEEN is a list; outside of functions a rule has"),
    "deep.py": (f"def rule(jobs):\n    return {'-' * 50_000}jobs\n", "expressions are nested too deeply"),
    "feature.py": ("def rule(job_remaining):\n    return 1.0\n", "no feature 'job_remaining'; did you mean"),
    "other.py": ("def other(jobs):\n    return 1.0\n", r"has no function rule; expected def rule\(job_remaining_s"),
    "torn.py": ("def rule(", "is not Python"),
}


def written(folder, name, text):
    path = folder / name
    path.write_text(text)
    return path


def compiled_and_interpreted(folder, one, other):
    compiled, interpreted = read_rule(written(folder, "a.py", one)), read_rule(written(folder, "b.py", other))
    assert (compiled.compiled, interpreted.compiled) == (True, False)
    return compiled, interpreted


def test_a_rule_decides_as_the_scheduler_that_says_the_same(tmp_path):
    compiled, interpreted = compiled_and_interpreted(tmp_path, SHORTEST, INTERPRETED)
    for instance in TASK.instances("validation"):
        one, other, python = (score(TASK, each, instance) for each in (compiled, interpreted, Shortest()))
        assert one.value == other.value == python.value


def test_a_rule_with_several_returns_is_compiled_alike(tmp_path):
    compiled, interpreted = compiled_and_interpreted(tmp_path, *map(SEVERAL.format, ("", "f'{jobs!r}'")))
    instance = TASK.instances("validation")[0]
    assert score(TASK, compiled, instance).value == score(TASK, interpreted, instance).value


def test_limits_share_the_executors(tmp_path):
    limited = read_rule(written(tmp_path, "a.py", LIMITED))
    instance = TASK.instances("validation")[0]
    assert limited.compiled
    row = score(TASK, limited, instance)
    assert row.failure == ""
    assert row.value != score(TASK, read_rule(written(tmp_path, "b.py", SHORTEST)), instance).value


RULE = "def rule(jobs):\n    return jobs\n"
BINDS_MATH = [
    "math = 1.0\n",
    "math: float = 1.0\n",
    "def math(x):\n    return x\n",
    "def other(math):\n    return 1.0\n",
    "def other(*math):\n    return 1.0\n",
    "def other(x):\n    for math in (1.0, 2.0):\n        x += 1.0\n    return x\n",
    "ALL = [1.0 for math in (1.0, 2.0)]\n",
    "ALL = (math := 1.0)\n",
    "(math, OTHER) = 1.0, 2.0\n",
    "def other(x):\n    import math\n    return x\n",
    "import math as m\n",
    "import math as math\nmath.tau = 3.0\n",
    "from math import pi\n",
    "del math\n",
    "def other(x):\n    global math\n    return x\n",
    "with abs as math:\n    pass\n",
    "try:\n    X = 1.0\nexcept:\n    X = 2.0\n",
    "match 1.0:\n    case math:\n        pass\n",
    "X = lambda math: 1.0\n",
    "class math:\n    pass\n",
    "M = math\n",
    "math.sqrt = abs\n",
    "X = math.__loader__\n",
    "X = math.sqrt.__self__\n",
    "X = (1.0).real\n",
    "X = __builtins__\n",
]
KEEPS_STATE = [
    "S = {}\n",
    "S = {1.0}\n",
    "S = ((1.0, [2.0]), 3.0)\n",
    "S = zip((1.0, 2.0), (3.0, 4.0))\n",
    "S = enumerate((1.0, 2.0))\n",
    "S = (x for x in (1.0, 2.0))\n",
    "def other(x, s=[]):\n    return x\n",
    "def other(x, *, s=[]):\n    return x\n",
    "def make():\n    s = [0.0]\n    def inner(x):\n        s[0] += x\n    return inner\nF = make()\n",
    "def make():\n    s = [0.0]\n    return lambda x: s[0]\nF = make()\n",
    "def make():\n    yield 1.0\nF = make()\n",
]


@pytest.mark.parametrize("text", [*BINDS_MATH, *KEEPS_STATE])
def test_nothing_binds_math_reaches_objects_or_keeps_state(tmp_path, text):
    with pytest.raises(SchedulerError, match=r"a rule may not|outside of functions a rule has"):
        read_rule(written(tmp_path, "a.py", "import math\n" + text + RULE))


def test_constants_functions_loops_and_math_are_allowed(tmp_path):
    text = """import math
TABLE: tuple = ((1.0, 2.0), (3.0, math.pi))
LOG = math.log


def other(x: float) -> float:
    for low, high in TABLE:
        if low <= x < high or (total := sum([y * y for y in range(3)])) < 0:
            return math.sqrt(x)
    return min(x, total, key=abs)


def rule(jobs, work_s):
    \'\'\'Text.\'\'\'
    while work_s > 1e9:
        work_s /= 2.0
    return other(jobs) if jobs else -work_s
"""
    assert score(TASK, read_rule(written(tmp_path, "a.py", text)), TASK.instances("validation")[0]).failure == ""


def test_a_rule_that_is_refused_changes_no_later_score(tmp_path):
    escape = """math = ()
math = math.__class__
math = math.__base__
S = math.__subclasses__()
for math in S:
    if math.__name__ == "_wrap_close":
        W = math
math = W
math = math.__init__
G = math.__globals__
math = G["sys"]
M = math.modules
math = M["decima.core.objectives"]
math = math.Objective
O = math.measure
math.measure = lambda self, x: 0.01 * O(self, x)
"""
    instance = TASK.instances("validation")[0]
    before = score(TASK, read_rule(written(tmp_path, "a.py", RULE)), instance).value
    with pytest.raises(SchedulerError, match="a rule may not"):
        read_rule(written(tmp_path, "b.py", escape + RULE))
    assert score(TASK, read_rule(tmp_path / "a.py"), instance).value == before


@pytest.fixture(scope="module")
def scored(tmp_path_factory):
    """Lines about all files, by name, from one process of `decima bench score`."""
    folder = tmp_path_factory.mktemp("rules")
    for name, (text, _) in FAILING.items():
        written(folder, name, text)
    for name, text in (("shortest.py", SHORTEST), ("shortest_interpreted.py", INTERPRETED), ("zlimited.py", LIMITED)):
        written(folder, name, text)
    shown = run("bench", "score", *sorted(folder.glob("*.py")), "--limit-s", 600).stdout
    return {Path(line["file"]).name: line for line in map(json.loads, shown.splitlines())}


@pytest.mark.parametrize("name", FAILING)
def test_what_is_no_rule_is_one_sentence(scored, name):
    assert "score" not in scored[name]
    assert re.search(FAILING[name][1], scored[name]["error"]), scored[name]["error"]


def test_who_never_answers_is_ended(tmp_path):
    endless = written(
        tmp_path, "endless.py", "def rule(jobs):\n    while True:\n        jobs += 1.0\n    return jobs\n"
    )
    with RuleScorer(tasks()["embedded-batch"], "training", limit_s=1.0) as scorer:
        assert scorer.score(endless)["error"] == "the rule took more than 1 s"


def test_lines_are_exact_and_compare_with_the_tuned_rule(scored):
    one, other = scored["shortest.py"], scored["shortest_interpreted.py"]
    assert one["scores"] == other["scores"]
    assert len(one["scores"]) == len(tasks()["embedded-batch"].seeds("validation"))
    assert one["score"] == pytest.approx(sum(one["scores"]) / len(one["scores"]))
    assert one["change_low"] < one["change_percent"] < one["change_high"]
    assert scored["zlimited.py"]["compiled"]


def test_features_are_on_the_page():
    page = (Path(__file__).parents[3] / "docs" / "benchmark-entries.md").read_text()
    assert re.findall(
        r"^\| `(\w+)` \| .* \|$", page.split("## Programs that write heuristics")[1].split("## Agents")[0], re.MULTILINE
    ) == list(NAMES)


def test_bad_input_of_the_command(tmp_path):
    assert "there is no file" in refuse("bench", "score", tmp_path / "none.py")
    assert "seeds must be validation, training, test" in refuse("bench", "score", tmp_path, "--seeds", "all")
    rule = written(tmp_path, "a.py", RULE)
    assert "task heterogeneous is of system heterogeneous" in refuse("bench", "score", rule, "--task", "heterogeneous")
    with pytest.raises(ConfigError, match="rules are scored on tasks of spark"):
        RuleScorer(tasks()["placement"])
    with pytest.raises(SchedulerError, match="cannot read"):
        read_rule(tmp_path / "none.py")
