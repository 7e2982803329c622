"""Recorded runs predicted from logs of other sizes."""

from pathlib import Path

import numpy as np
import pandas
import pytest

from decima.connect.eventlog import prediction
from decima.connect.eventlog.application import read_event_log
from tests.unit.connect.event_lines import executor_added, small_log, write

EVENTS = Path(__file__).parents[4] / "data" / "spark" / "events"


def planted(tmp_path, name, executors, factor=1):
    lines = [executor_added(str(number + 1), 0) for number in range(executors)]
    return read_event_log(write(tmp_path / name, lines + small_log(executors, f"q#{name}", factor=factor)[executors:]))


def warm(name):
    """Queries of a recorded log that ran on executors that were there."""
    application = read_event_log(EVENTS / f"{name}.jsonl.zstd")
    queries = application.queries["query"]
    return application.only(queries[queries.str.contains("#warm-")])


def test_prediction_by_hand(tmp_path):
    # One slot: scan 400 and 300 ms, sum 100 ms: 800 ms. Two slots: 400 ms, the driver's gap of 300 ms, 100 ms.
    one, two = planted(tmp_path, "one", 1), planted(tmp_path, "two", 2)
    runs = prediction.predict_runs([one], [two], draws=1)
    assert runs[["name", "slots", "recorded_s"]].to_numpy().tolist() == [["q", 2, 0.8]]
    errors = prediction.cross_errors([one, two])
    assert sorted(errors) == [1, 2]
    assert prediction.cross_errors([one]) == {}


def test_a_query_that_the_sources_lack_is_left_out(tmp_path):
    other = read_event_log(write(tmp_path / "other", small_log(1, "other#1")))
    assert len(prediction.predict_runs([planted(tmp_path, "one", 1)], [other])) == 0
    assert prediction.cross_errors([planted(tmp_path, "two", 2), other]) == {}


def test_errors_of_a_table():
    rows = [("a", "q", 1.2, 1.0), ("a", "r", 0.8, 1.0), ("b", "q", 1.0, 1.0), ("b", "r", 2.0, 1.0)]
    runs = pandas.DataFrame(rows, columns=["app_id", "name", "predicted_s", "recorded_s"])
    error = prediction.error_of(runs)
    assert error.query[0] == pytest.approx((10.0 + 60.0) / 2)
    assert error.total[0] == pytest.approx((0.0 + 50.0) / 2)
    assert error.applications == 2
    assert error.text == "25 % (0 to 343) per application, 35 % (0 to 353) per query"


def test_recorded_runs_on_two_and_three_executors():
    two, three = warm("sf0.25-e2-r0-a0"), warm("sf0.25-e3-r0-a0")
    assert list(prediction.sizes_of([two, three])) == [2, 3]
    errors = prediction.cross_errors([two, three])
    assert errors[2].query[0] < 20.0
    assert errors[3].query[0] < 20.0
    # Without contention on the one host, what three executors waited for counts as work of two.
    assert prediction.error_of(prediction.predict_runs([three], [two])).total[0] < 10.0


@pytest.mark.slow
def test_the_error_that_is_shown_is_that_of_the_recorded_runs():
    percent, data = [], []
    logs = {
        scale: {size: [warm(f"sf{scale}-e{size}-r{run}-a0") for run in (0, 1)] for size in (1, 2, 3, 4)}
        for scale in ("0.25", "0.5")
    }
    for of_size in logs.values():
        for source, sources in of_size.items():
            for size, targets in of_size.items():
                if size != source:
                    percent.append(prediction.error_of(prediction.predict_runs(sources, targets)).query[0])
    assert len(percent) == 24
    assert float(np.mean(percent)) == pytest.approx(prediction.REFERENCE_PERCENT, abs=0.5)
    for size, sources in logs["0.25"].items():
        runs = prediction.predict_runs(sources, logs["0.5"][size], data=2.0)
        data.append(prediction.error_of(runs).query[0])
    assert float(np.mean(data)) < 22.0
