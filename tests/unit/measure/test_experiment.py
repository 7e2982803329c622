"""Plan, resumption and rejection of contended runs of the experiment on real Spark, on a bench that runs nothing."""

import contextlib
from dataclasses import asdict, replace

import pytest

from decima.connect.cluster.contention import Load
from decima.connect.cluster.processes import free_port
from decima.connect.cluster.tpch_queries import NAMES
from decima.core.errors import ConfigError, SparkError
from measure.experiment import Experiment, Outcome, Plan
from measure.records import CONTROL, BatchRecord, QueryTimes, read_records
from measure.together import serving

SMALL = Plan(0.25, executors=2, queries=3, batches=2, repetitions=2, schedulers=("fifo", "fair"), rounds_per_start=3)
ABOUT = {"schedulers": {"fifo": {}, "fair": {}}}


class Bench:
    """Runs take no time; those in `busy` are contended as often as it says; after `stop` runs it fails."""

    def __init__(self, busy=None, stop=None):
        self.busy, self.stop = dict(busy or {}), stop
        self.blocks, self.keys = [], []

    @contextlib.contextmanager
    def application(self, block, number):
        self.blocks.append(block)
        self.log = f"app-{number:02d}.json"
        yield self

    def measure(self, run, key):
        if self.stop is not None and len(self.keys) >= self.stop:
            raise SparkError("the machine went away")
        self.keys.append(key)
        left = self.busy.get(run.key, 0)
        self.busy[run.key] = left - 1
        wait_s = 9.0 if left > 0 else 0.5
        queries = tuple(QueryTimes(name, 1000.0, 2000.0, 1) for name in SMALL.batch(run.batch))
        return Outcome(queries, Load(run_s=1.0, wait_s=wait_s, foreign_share=0.0, load_average=1.0, pressure=None))


def experiment(folder, plan=SMALL, **changes):
    return Experiment(folder, plan, ABOUT, **({"wait_limit": 0.5, "foreign_limit": 0.2} | changes))


def test_batches_of_one_query_are_all_queries_in_turn():
    plan = replace(SMALL, queries=1, batches=23)
    assert [plan.batch(number) for number in range(23)] == [(name,) for name in (*NAMES, NAMES[0])]


@pytest.mark.parametrize(("scale", "source"), [(0.5, "measured:sizes=0.5g"), (0.3, None)])
def test_the_service_starts_with_the_durations_of_a_scale(scale, source, tmp_path):
    durations = replace(SMALL, scale=scale).durations()
    assert durations == source
    with serving("fair", free_port(), tmp_path / "log", durations) as process:
        assert process.poll() is None


def test_every_scheduler_meets_every_batch_in_every_round():
    runs = SMALL.runs()
    expected = {(b, r, s) for b in range(2) for r in range(2) for s in ("fifo", "fair", CONTROL)}
    assert {(run.batch, run.repetition, run.scheduler) for run in runs} == expected
    assert len(runs) == len(expected)
    blocks = list(SMALL.blocks())
    assert [len({(run.batch, run.repetition) for run in block.runs}) for block in blocks] == [3, 3, 1, 1]
    assert all(block.control == (run.scheduler == CONTROL) for block in blocks for run in block.runs)


def test_everything_is_measured_once_and_kept(tmp_path):
    bench = Bench()
    experiment(tmp_path).measure(bench)
    assert sorted(bench.keys) == sorted(f"{run.key}-a0" for run in SMALL.runs())
    found = read_records(tmp_path)
    assert {record.run for record in found} == set(SMALL.runs())
    assert not any(record.contended for record in found)
    assert all(BatchRecord.from_dict(asdict(record)) == record for record in found)
    again = Bench()
    experiment(tmp_path).measure(again)
    assert again.blocks == []


def test_an_interrupted_experiment_goes_on_where_it_stopped(tmp_path):
    first, second = Bench(stop=5), Bench()
    with pytest.raises(SparkError):
        experiment(tmp_path).measure(first)
    experiment(tmp_path).measure(second)
    assert len(first.keys) == 5
    assert sorted(first.keys + second.keys) == sorted(f"{run.key}-a0" for run in SMALL.runs())


def test_contended_runs_are_repeated_until_the_attempts_are_used_up(tmp_path):
    once, always = SMALL.runs()[0], SMALL.runs()[-1]
    bench = Bench(busy={once.key: 1, always.key: 99})
    measured = experiment(tmp_path)
    measured.measure(bench)
    assert [record.contended for record in measured.attempts(once)] == [True, False]
    assert [record.contended for record in measured.attempts(always)] == [True] * SMALL.attempts
    assert not measured.is_open(always)
    assert measured.missing() == []
    assert {record.key for record in measured.attempts(once)} == {f"{once.key}-a0", f"{once.key}-a1"}


def test_a_folder_belongs_to_one_plan(tmp_path):
    experiment(tmp_path)
    with pytest.raises(ConfigError, match="another plan: queries is 3 there, 4 here"):
        experiment(tmp_path, replace(SMALL, queries=4))
    with pytest.raises(ConfigError, match=r"another limit: wait_share is 0\.5 there, 0\.4 here"):
        experiment(tmp_path, wait_limit=0.4)
    with pytest.raises(ConfigError, match="another scheduler: "):
        Experiment(tmp_path, SMALL, {"schedulers": {"fifo": {}, "fair": {"alpha": 1}}}, 0.5, 0.2)


def test_damaged_records_are_named(tmp_path):
    measured = experiment(tmp_path)
    measured.measure(Bench())
    path = tmp_path / "runs" / f"{measured.records[0].key}.json"
    path.write_text('{"run": {}}')
    with pytest.raises(ConfigError, match="is not a record of a run"):
        experiment(tmp_path)
    path.write_text("{")
    with pytest.raises(ConfigError, match="is not JSON"):
        experiment(tmp_path)
