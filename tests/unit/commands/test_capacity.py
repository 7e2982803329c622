"""`decima capacity`."""

import re

import pytest

from decima.commands.capacity import read_price
from decima.core.errors import ConfigError
from tests.unit.commands.calls import names, read_json, refuse, run, show, succeed
from tests.unit.connect.event_lines import (
    LOGS,
    application_end,
    application_start,
    executor_added,
    job_end,
    job_start,
    small_log,
    stage,
    task_end,
    write,
)

QUERIES = LOGS / "queries.zstd"
FEW = ("--executors", "1+2+4", "--cores", 1, "--draws", 3)


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_answer_table_and_files_which_the_same_call_writes_again(folder):
    files = ("--out", folder / "o.json", "--page", folder / "p.html", "--emit", folder / "e.conf")
    shown = show("capacity", QUERIES, *FEW, "--price", 0.5, *files)
    written = contents(folder)
    assert sorted(written) == ["e.conf", "o.json", "p.html"]
    lines = shown.splitlines()
    assert lines[0].startswith("1 recording, each application alone: 6 queries used")
    table = [line.split() for line in lines if re.match(r" +\d+\*? .* s ", line)]
    assert [row[0].rstrip("*") for row in table] == ["1", "2", "4"]
    assert any("the logs have one size" in line.lower() for line in lines)
    assert re.search(r"executors? of 1 core with spark_fifo \(knee\): run [\d.]+ s ± 15 %", lines[-1])
    document = read_json(folder / "o.json")
    assert [point["executors"] for point in document["points"]] == [1, 2, 4]
    assert document["points"][0]["run_s_low"] <= document["points"][0]["run_s"] <= document["points"][0]["run_s_high"]
    size = document["recorded_slots"][0]
    assert [point["extrapolated"] for point in document["points"]] == [count != size for count in (1, 2, 4)]
    assert document["simulated_s"] == pytest.approx(document["recorded_s"], rel=0.25)
    hours = document["points"][2]["executor_hours"]
    assert document["points"][2]["cost"] == pytest.approx(0.5 * hours)
    page = (folder / "p.html").read_text(encoding="utf-8")
    assert "<h2>What the time is made of</h2>" in page
    assert page.count("<svg") >= 4
    chosen = document["chosen"]["executors"]
    assert f"--num-executors {chosen}\n" in (folder / "e.conf").read_text(encoding="utf-8")
    assert document["report"]["completeness"]["least"] == 1.0
    assert "completeness: 100 % of tasks, 100 % of stages, 100 % of queries could be used" in lines
    assert "100 % of tasks" in page
    assert show("capacity", QUERIES, *FEW, "--price", 0.5, *files) == shown
    assert contents(folder) == written


def test_queries_on_one_cluster_with_loads(folder):
    line = succeed(
        *("capacity", QUERIES, *FEW, "--unit", "query", "--load", "1+50", "--scheduler", "fair"),
        *("--target", "p95<1h", "--out", folder / "o.json"),
    )
    assert "1 executor of 1 core with fair (smallest for p95<3600s): p95 " in line
    points = read_json(folder / "o.json")["points"]
    assert [(point["load"], point["executors"]) for point in points] == [
        (load, executors) for load in (1.0, 50.0) for executors in (1, 2, 4)
    ]
    assert points[3]["mean_s"] > points[0]["mean_s"]


def test_logs_of_two_sizes_give_an_error_of_their_own(tmp_path, folder):
    logs = [write(tmp_path / f"log{count}", small_log(count, f"q#{count}")) for count in (1, 2)]
    result = run("capacity", *logs, *FEW, "--out", folder / "o.json")
    assert "Error when these logs of a size are predicted from those of the others: 1 slot:" in result.stdout
    assert sorted(read_json(folder / "o.json")["errors_percent"]) == ["1", "2"]


def test_a_target_that_no_cluster_meets(folder):
    files = ("--out", folder / "o.json", "--page", folder / "p.html", "--emit", folder / "e.conf")
    sentence = refuse("capacity", QUERIES, *FEW, "--target", "run<10ms", *files)
    assert sentence.startswith("no cluster of 1 to 4 executors meets run<0.01s: the nearest is ")
    assert "; the critical path with the driver takes 1" in sentence
    assert names(folder) == []


def test_bad_logs(folder):
    cut = write(folder / "cut", small_log()[:-1])
    sentence = refuse("capacity", cut)
    assert sentence.startswith("no application in the event logs has a complete query; nothing can be simulated (")
    assert "1 query: a job did not end in the log" in sentence
    (folder / "secret").write_bytes(b"\x8f\x03 encrypted")
    assert "holds no event of a Spark event log" in refuse("capacity", folder / "secret")
    assert refuse("capacity", folder / "missing") == f"no event log at {folder / 'missing'}"
    assert "is not a folder of this machine" in refuse("capacity", "hdfs://localhost:18080/logs")
    assert "the command reads that file" in refuse("capacity", cut, "--emit", cut)
    assert "ends in .html" in refuse("capacity", cut, "--page", folder / "p.pdf")


def test_prices_are_of_whole_vms():
    price = read_price("families:m5.2xlarge", 3)  # 8 cores, 2 executors of 3 cores
    assert [price(count) for count in (1, 2, 3)] == pytest.approx([0.384, 0.384, 0.768])
    assert read_price("0.25", 3)(4) == 1.0
    with pytest.raises(ConfigError, match="an executor of 9 cores does not fit"):
        read_price("families:m5.2xlarge", 9)


def test_dynamic_allocation_and_losses(folder):
    files = ("--out", folder / "o.json", "--page", folder / "p.html", "--emit", folder / "e.conf")
    call = ("capacity", QUERIES, *FEW, "--dynamic", "1-4", "--set", "settings.executor_startup_ms=100", "--price", 0.5)
    shown = show(*call, *files)
    assert re.search(r"dynamic allocation, 1 to 4 executors, spark_fifo, load 1: run [\d.]+ s, [\d.e-]+ exec", shown)
    document = read_json(folder / "o.json")
    (ranged,), points = document["dynamic"], {point["executors"]: point for point in document["points"]}
    assert (ranged["min_executors"], ranged["executors"]) == (1, 4)
    # More executors disturb each other on one host; those that come later are cold.
    assert points[1]["run_s"] < ranged["run_s"] < 1.1 * points[4]["run_s"]
    assert points[1]["executor_hours"] < ranged["executor_hours"] < points[4]["executor_hours"] / 2
    assert ranged["cost"] == pytest.approx(0.5 * ranged["executor_hours"])
    emitted = (folder / "e.conf").read_text(encoding="utf-8")
    assert "spark.dynamicAllocation.minExecutors 1\n" in emitted
    assert "# settings.executor_startup_ms=100 was simulated; Spark has no such setting\n" in emitted
    assert "<h2>Dynamic allocation</h2>" in (folder / "p.html").read_text(encoding="utf-8")
    losing = run(*call, "--lose", 300, "--out", folder / "l.json")
    assert "Every executor is lost 300 times an hour on average and replaced" in losing.stdout
    lost = read_json(folder / "l.json")
    assert lost["points"][0]["run_s"] > points[1]["run_s"]
    assert lost["dynamic"][0]["run_s"] > ranged["run_s"]


def lossy_log(lost):
    """A query of ten stages of two tasks, so many of which have no end of their second one."""
    stages = [stage(number, 2, (number - 1,) if number else (), number) for number in range(10)]
    lines = [application_start(), executor_added("1", 0, 2), job_start(0, stages)]
    for number in range(10):
        for index in range(1 if number < lost else 2):
            lines.append(task_end(2 * number + index, number, 1000 * number, 1000 * number + 1000, index))
    return [*lines, job_end(0, 10_000), application_end(10_000)]


@pytest.mark.parametrize(("lost", "refused"), [(0, False), (4, False), (6, True)])
def test_what_is_lost_stands_beside_every_answer(lost, refused, tmp_path, folder):
    log = write(tmp_path / "log", lossy_log(lost))
    files = ("--out", folder / "o.json", "--page", folder / "p.html")
    if refused:
        sentence = refuse("capacity", log, *FEW, *files)
        assert sentence.startswith("only 70 % of tasks, 40 % of stages, 100 % of queries")
        assert "6 task: not in the log although the job succeeded" in sentence
        assert names(folder) == []
    shown = show("capacity", log, *FEW, *files, *(("--anyway",) if refused else ()))
    document, page = read_json(folder / "o.json"), (folder / "p.html").read_text(encoding="utf-8")
    assert document["report"]["completeness"]["stages"] == pytest.approx((10 - lost) / 10)
    warning = "Less than half of the logs could be used" if refused else "The logs are not complete"
    for text in (shown, page, "".join(document["warnings"])):
        assert (warning in text) == bool(lost)


def test_a_stream_is_sized_by_its_interval(tmp_path, folder):
    stream = {"sql.streaming.queryId": "s", "spark.job.description": "words"}
    batches = []
    for number in range(5):  # 4 tasks of 1 s, one every 3 s: 2 slots
        at, tasks = 3000 * number, range(4)
        batches += [job_start(number, [stage(number, 4, (), number)], at, **stream)]
        batches += [task_end(4 * number + each, number, at, at + 1000, each) for each in tasks]
        batches += [job_end(number, at + 1000)]
    log = write(tmp_path / "log", [application_start(), executor_added("1", 0, 4), *batches])
    shown = show("capacity", log, *FEW, "--hosts", "many", "--out", folder / "o.json")
    assert "stream words: 5 micro-batches, one every 3 s" in shown
    assert "2 executors of 1 core" in shown.splitlines()[-1]
    assert "(smallest for p95<3s)" in shown.splitlines()[-1]
    assert read_json(folder / "o.json")["stream_interval_s"] == 3.0


def test_losses_without_an_end_are_refused(folder):
    sentence = refuse("capacity", QUERIES, *FEW, "--lose", 1e9, "--out", folder / "o.json")
    assert sentence.startswith("--lose 1e+09: with 1 executor, which live 3.6e-06 s on average, a task takes up to")
