"""Every registered scheduler, and the texts that say who decides."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import decima
from decima.core.errors import ConfigError
from decima.systems.spark.schedulers import (
    Scheduler,
    describe_scheduler,
    list_schedulers,
    make_scheduler,
    read_scheduler,
    scheduler_options,
    scheduler_text,
)
from decima.workload import synthetic_batch
from tests.services import running, sessions_of

JOBS = synthetic_batch(3, 2, ["xs"])


def fair_run():
    return decima.simulate(JOBS, "fair", 7, seed=4, log=True)


@pytest.fixture
def service():
    """Address of a service that schedules like `fair`."""
    with running(sessions_of("fair")) as started:
        yield started.target


@pytest.fixture
def file(tmp_path):
    """Decisions of `fair`."""
    path = tmp_path / "run.json"
    path.write_text(json.dumps({"decisions": fair_run().log.decision_lists()}))
    return str(path)


@pytest.fixture(params=list_schedulers())
def text(request):
    """Every scheduler, with the options that it needs taken from the fixtures of the same name."""
    needed = [option.name for option in scheduler_options(request.param) if option.required]
    values = ",".join(f"{name}={request.getfixturevalue(name)}" for name in needed)
    return f"{request.param}:{values}" if needed else request.param


def test_it_runs_as_its_text_says(text):
    name = text.partition(":")[0]
    scheduler = make_scheduler(text)
    assert isinstance(scheduler, Scheduler)
    assert scheduler.name == name
    assert len(describe_scheduler(name)) > 20
    json.dumps(scheduler.values)
    first = decima.simulate(JOBS, scheduler, 7, seed=4, log=True)
    assert first.num_unfinished == 0
    again = decima.simulate(JOBS, scheduler_text(scheduler), 7, seed=4, log=True)
    assert again.log.decision_lists() == first.log.decision_lists()
    if name in ("remote", "replay"):  # what their fixtures offer
        assert first.log.decision_lists() == fair_run().log.decision_lists()


def test_its_first_option_goes_without_a_key(text):
    name, colon, rest = text.partition(":")
    if colon:
        assert read_scheduler(f"{name}:{rest.partition('=')[2]}") == read_scheduler(text)


def test_it_refuses_what_it_does_not_know(text):
    with pytest.raises(ConfigError, match="colour"):
        make_scheduler(f"{text}{',' if ':' in text else ':'}colour=1")
    with pytest.raises(ConfigError):
        make_scheduler(text, colour=1)


def test_what_it_needs_it_asks_for(text):
    if ":" in text:
        with pytest.raises(ConfigError, match=f"expected .*{text.partition(':')[0]}:"):
            make_scheduler(text.partition(":")[0])


def test_names_that_need_no_option():
    needing = {name for name in list_schedulers() if any(option.required for option in scheduler_options(name))}
    assert set(list_schedulers()) - set(list_schedulers(bare=True)) == needing == {"remote", "replay"}


def test_texts_have_typed_values():
    assert read_scheduler("weighted_fair:alpha=-1,sticky=0") == ("weighted_fair", {"alpha": -1.0, "sticky": 0.0})
    assert read_scheduler("decima:tpch-stream,greedy=false") == ("decima", {"policy": "tpch-stream", "greedy": False})
    policy = {"policy": "models/a.weights.h5", "greedy": True}
    assert read_scheduler("models/a.weights.h5:greedy=1") == ("decima", policy)
    with pytest.raises(ConfigError, match="greedy is '2'; expected true or false"):
        make_scheduler("decima:greedy=2")
    assert read_scheduler("remote:h:5,scheduler=fair:sticky=0")[1] == {"service": "h:5", "scheduler": "fair:sticky=0"}


def test_listing_imports_no_package_above(tmp_path):
    import subprocess
    import sys

    unwanted = "{'decima.systems.spark.policy', 'grpc'}"
    code = f"import sys, decima; decima.list_schedulers(); assert not {unwanted} & set(sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr == ""


# ---- the code of docs/scheduler-interface.md and docs/gym.md runs as it stands, block after block --------------------

DOCS = Path(__file__).parents[5] / "docs"
CODE = "".join((DOCS / name).read_text(encoding="utf-8") for name in ("scheduler-interface.md", "gym.md"))
PAGE = (DOCS / "schedulers.md").read_text(encoding="utf-8")


def test_code_blocks_run_in_order(tmp_path):
    blocks = re.findall(r"^```python\n(.*?)^```$", CODE, flags=re.MULTILINE | re.DOTALL)
    blocks = [block for block in blocks if "as_scheduler(policy" not in block]  # the reader's own policy
    assert len(blocks) == 5
    script = tmp_path / "example.py"
    script.write_text("\n".join(blocks), encoding="utf-8")
    command = [sys.executable, "-W", "error::UserWarning", str(script)]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    assert finished.stderr == ""
    written, checked, compiled, largest, rewards, shapes = finished.stdout.splitlines()
    own, fair = map(int, re.fullmatch(r"average JCT (\d+) s, with fair sharing (\d+) s", written).groups())
    assert 0 < own < fair
    assert checked.startswith("shortest_remaining (Python) keeps to the interface: 44 cases, ")
    assert compiled.startswith("largest_first (compiled) keeps to the interface: ")
    assert int(re.fullmatch(r"average JCT (\d+) s", largest)[1]) > fair
    assert re.fullmatch(r"sum of rewards -\d+, jobs unfinished \d+", rewards)
    assert re.fullmatch(r"\(8, \d+, 8\) \(8, \d+\)", shapes)


def test_every_baseline_is_in_the_table():
    table = PAGE[PAGE.index("## The baselines") : PAGE.index("### Two forms of fair sharing")]
    named = re.findall(r"^\| (`.*?`) \|", table, flags=re.MULTILINE)
    assert sorted(name.strip("`") for cell in named for name in cell.split(", ")) == list_schedulers()
