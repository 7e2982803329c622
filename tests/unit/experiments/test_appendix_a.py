import itertools

import pytest

from decima.core.errors import ConfigError
from decima.evaluation.run import simulate
from decima.workload.jobs import Job, Workload
from experiments.decima.s11_appendix_a import SLOTS, StageOrder, example_job, run_example

EPSILONS = (1e-3, 0.01, 0.1, 0.5, 1.0)


def stage_span(result, name):
    """(start, end) of a stage in seconds."""
    names = [stage.name for stage in result.workload.jobs[0].profile.stages]
    tasks = result.log.tasks()
    tasks = tasks[tasks["stage"] == names.index(name)]
    return tasks["start_s"].min(), tasks["finish_s"].max()


@pytest.mark.parametrize("epsilon_s", EPSILONS)
def test_makespans_of_the_paper(epsilon_s):
    example = run_example(epsilon_s)
    assert example.critical_path.makespan_s == pytest.approx(28.0 + 3.0 * epsilon_s, rel=1e-12)
    assert example.optimal.makespan_s == pytest.approx(20.0 + 3.0 * epsilon_s, rel=1e-12)
    work_s = example.optimal.workload.jobs[0].profile.work_ms / 1000.0
    assert work_s / SLOTS == pytest.approx(20.0 + 3.0 * epsilon_s, rel=1e-12)  # no schedule can be shorter
    for row in example.rows():
        assert row["makespan_s"] == pytest.approx(row["paper_s"], rel=1e-12)


def test_29_percent_faster_as_epsilon_vanishes():
    critical_path, optimal = (row["makespan_s"] for row in run_example(1e-6).rows())
    assert optimal / critical_path == pytest.approx(1.0 - 0.29, abs=0.005)


def test_work_of_the_branches():
    job = example_job(1e-9)
    work_s = {stage.name: stage.work_ms / 1000.0 for stage in job.stages}
    assert work_s["blue"] + work_s["orange"] == pytest.approx(90.0)
    assert work_s["green"] == pytest.approx(10.0)
    assert set(job.stages[5].parents) == {1, 4}


def test_what_the_text_says_about_the_schedules():
    example = run_example(0.1)
    late = {name: stage_span(example.critical_path, name) for name in ("green", "orange", "join")}
    assert late["orange"][1] == pytest.approx(18.1)
    assert late["green"] == pytest.approx((18.2, 28.2))  # the join waits for green alone
    assert late["join"][0] == pytest.approx(28.2)
    planned = {name: stage_span(example.optimal, name) for name in ("green", "blue", "orange", "join")}
    assert planned["green"] == pytest.approx(planned["blue"])  # side by side
    assert planned["join"][0] == pytest.approx(planned["orange"][1])
    assert example.optimal.utilization == pytest.approx(1.0)


@pytest.mark.parametrize("stage_rule", [1, 2])
def test_critical_path_with_and_without_preference_for_runnable_stages(stage_rule):
    workload = Workload((Job(example_job(0.1)),), "Figure 16")
    result = simulate(workload, "sjf_cp", SLOTS, mode="simplified", parameters={"stage_rule": stage_rule})
    assert result.makespan_s == pytest.approx(28.3, rel=1e-12)


def test_no_order_of_stages_is_better():
    workload = Workload((Job(example_job(0.1)),), "Figure 16")
    spans = [
        simulate(workload, StageOrder(order), SLOTS, mode="simplified").makespan_s
        for order in itertools.permutations(range(6))
    ]
    assert min(spans) == pytest.approx(20.3, rel=1e-12)
    assert max(spans) == pytest.approx(28.3, rel=1e-12)
    assert run_example(0.1).num_orders == 10  # those with parents first; the others add nothing


@pytest.mark.parametrize("epsilon_s", [0.0, -1.0, float("nan"), float("inf")])
def test_refuses_bad_epsilon(epsilon_s):
    with pytest.raises(ConfigError, match="epsilon_s must be a finite number above 0"):
        example_job(epsilon_s)
