"""What can go wrong between Spark and the service, in a real Spark."""

from __future__ import annotations

import contextlib
import time

import pytest

from decima.connect.service import scheduler_pb2 as protocol
from tests.services import until
from tests.spark.real_spark import BUG, OUTAGE, RECOVERY, plugin_driver, slow_sum, start_queries
from tests.spark.toy_service import WRONG, delay_again, toy_service

pytestmark = pytest.mark.spark_slow


@pytest.fixture(scope="module")
def toy():
    with toy_service(cap=1) as service:
        yield service


@pytest.fixture(scope="module")
def driver(tmp_path_factory, toy):
    folder = tmp_path_factory.mktemp("driver")
    with plugin_driver(folder, toy.address, conf={"spark.decima.timeout": "1s"}) as running:
        # The first decisions of a driver, with nothing compiled, are no measure of how slow a service is.
        start_queries(running, {"warm": slow_sum(running, 4, 0.0)}).wait()
        yield running


@pytest.fixture
def usable(driver, toy):
    """The service answers rightly and the driver believes it, before and after the test."""

    def restore() -> None:
        toy.spoil, toy.delay_s = None, 0.0
        # Only decisions prove it, so there have to be some.
        until(
            lambda: (
                start_queries(driver, {"probe": slow_sum(driver, 2, 0.0)}).wait()
                and len(driver.lines(RECOVERY)) == len(driver.lines(OUTAGE))
            )
        )

    restore()
    yield driver
    restore()
    assert not driver.lines(BUG)


@pytest.mark.parametrize("delay_s", [0.3, 0.0], ids=["time is over", "session unknown"])
def test_the_session_of_a_rehearsal_is_closed_whatever_ends_it(tmp_path, delay_s):
    """500 calls of 0.3 s do not fit in 5 s; a query makes the toy forget the session of the rehearsal."""
    conf = {"spark.decima.rehearsals": "500" if delay_s else "1000000", "spark.decima.connect.timeout": "5s"}
    with toy_service(cap=1, delay_s=delay_s) as toy, plugin_driver(tmp_path, toy.address, conf=conf) as driver:
        until(lambda: len(toy.opened) >= 2)
        if not delay_s:
            toy.forget_session()
        rehearsed = protocol.CloseRequest(session="toy-2").SerializeToString()
        until(lambda: rehearsed in toy.closed)
        assert driver.spark.range(4).count() == 4


@pytest.mark.parametrize("spoil", WRONG.values(), ids=WRONG)
def test_wrong_replies_cost_nothing_but_the_order(usable, toy, spoil):
    before = len(usable.lines(OUTAGE))
    toy.spoil = spoil
    pair = {name: slow_sum(usable, 6, 0.1) for name in ("a", "b")}
    assert start_queries(usable, pair).wait() == {"a": 15, "b": 15}
    assert len(usable.lines(OUTAGE)) == before + 1


def test_stages_that_are_delayed_again_and_again_run_all_the_same(usable, toy):
    """The first delay of a stage is obeyed, so that there may be several outages."""
    before = len(usable.lines(OUTAGE))
    toy.spoil = delay_again
    pair = {name: slow_sum(usable, 6, 0.1) for name in ("a", "b")}
    assert start_queries(usable, pair).wait() == {"a": 15, "b": 15}
    assert len(usable.lines(OUTAGE)) > before


def test_a_service_that_lost_its_memory_is_told_all_again(usable, toy):
    outages = len(usable.lines(OUTAGE))
    sessions = len(toy.opened)
    running = start_queries(usable, {"a": slow_sum(usable, 6, 0.3)})
    time.sleep(0.5)
    toy.forget_session()
    assert running.wait() == {"a": 15}
    assert len(toy.opened) == sessions + 2
    assert len(usable.lines(OUTAGE)) == outages


def test_failed_tasks_are_tried_again_within_the_limit(usable, toy):
    from pyspark import TaskContext

    def fail_first(number):
        if TaskContext.get().attemptNumber() == 0 and number % 3 == 0:
            raise ValueError("first attempt")
        return number

    context = usable.spark.sparkContext
    run = lambda: context.parallelize(range(6), 6).map(fail_first).sum()  # noqa: E731
    assert start_queries(usable, {"a": run, "b": slow_sum(usable, 6, 0.2)}).wait() == {"a": 15, "b": 15}
    assert {job for job, _, _ in toy.decisions[-4:]} >= {"a"}


def test_a_cancelled_job_is_gone_and_others_go_on(usable, toy):
    context = usable.spark.sparkContext

    def cancelled():
        context.setJobGroup("doomed", "to be cancelled", interruptOnCancel=True)
        with contextlib.suppress(Exception):  # any: the cancellation comes as an error of py4j
            slow_sum(usable, 6, 30.0)()
        return -1

    running = start_queries(usable, {"a": cancelled})
    until(lambda: "a" in toy.jobs)
    context.cancelJobGroup("doomed")
    assert running.wait() == {"a": -1}
    assert start_queries(usable, {"b": slow_sum(usable, 4, 0.1)}).wait() == {"b": 6}
    assert "a" not in toy.jobs


def test_adaptive_execution_adds_stages_to_one_job(usable, toy):
    spark = usable.spark
    spark.conf.set("spark.sql.adaptive.enabled", "true")

    def join():
        left = spark.range(0, 100, 1, 3).selectExpr("id", "id % 10 AS key")
        right = spark.range(0, 10, 1, 2).selectExpr("id AS key", "id * 2 AS twice")
        rows = left.join(right.hint("shuffle_hash"), "key").groupBy("twice").count().collect()
        return sum(row[1] for row in rows)

    seen = len(toy.requests)
    try:
        assert start_queries(usable, {"aqe": join}).wait() == {"aqe": 100}
    finally:
        spark.conf.set("spark.sql.adaptive.enabled", "false")
    graphs = [job for data in toy.requests[seen:] for job in protocol.DecideRequest.FromString(data).jobs]
    assert {job.job for job in graphs} == {"aqe"}
    sizes = [len(job.stages) for job in graphs]
    assert sizes == sorted(sizes)
    assert sizes[-1] >= 3
    last = {stage.stage: set(stage.parents) for stage in graphs[-1].stages}
    assert all(parents <= set(last) for parents in last.values())
    assert any(len(parents) == 2 for parents in last.values())
