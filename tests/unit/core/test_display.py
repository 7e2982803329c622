"""Short texts and HTML of results and workloads of all systems."""

import numpy as np
import pandas
import pytest

import decima
from decima.core.display import table_html

RUNS = {"spark": ("embedded:n=3", "fair"), "heterogeneous": ("canonical", "heft"), "cloud": ("generated:n=5", "rr")}


@pytest.mark.parametrize("system", RUNS)
def test_results_and_workloads_are_a_line_and_a_table(system):
    jobs, scheduler = RUNS[system]
    result = decima.simulate(jobs, scheduler, system=system, log=True)
    for shown in (result, result.workload, result.workload.jobs[0]):
        assert len(repr(shown)) < 400
        assert "\n" not in repr(shown)
    assert scheduler in repr(result)
    html = result._repr_html_()
    assert html.count("<svg") == len(result.workload.jobs)
    assert str(result)[:20] in html


def test_a_workload_shows_its_first_jobs():
    workload = decima.workload.embedded_batch(n=25)
    assert "25 jobs" in repr(workload)
    html = workload._repr_html_()
    assert html.count("<svg") == 20
    assert "The first 20 of 25 rows." in html


def test_charts_share_a_scale_and_texts_are_escaped():
    html = table_html("a < b", pandas.DataFrame({"name": ["<x>"], "value": [1234.5]}), [[0.0, 1.0, np.nan]])
    assert "a &lt; b" in html
    assert "&lt;x&gt;" in html
    assert "1,234.50" in html
    assert 'cx="157.0"' in html
    assert "<line" not in html
