import numpy as np
import pandas
import pytest

import decima
from decima.core import system as systems
from decima.core.display import table_html
from decima.core.errors import ConfigError
from decima.core.objectives import get_objective
from decima.core.system import TASK_COLUMNS, get_system, list_systems, objective_of, register_system, system_of
from decima.evaluation.pool import RunPool
from decima.evaluation.tuning import tune
from decima.plotting.gantt import gantt
from decima.systems.cloud import PlacementSettings
from decima.systems.cloud.sources import Generator
from decima.systems.heterogeneous.settings import Settings as HeterogeneousSettings
from decima.systems.spark.settings import Settings
from decima.workload import synthetic_poisson
from tests.heterogeneous_instances import draw_instance
from tests.toy_system import MachineSettings, Orders, SingleMachine

TOY = SingleMachine()
ORDERS = [Orders((0.0, 1.0, 2.0, 2.5), tuple(np.random.default_rng(k).uniform(0.5, 9.0, 4))) for k in range(4)]
# Workload, settings and two schedulers of every system.
CASES = {
    "spark": (synthetic_poisson(5, 10.0), Settings(executors=4), ("fifo", "fair")),
    "cloud": (Generator("burst", n=5).draw(0), PlacementSettings(), ("rr", "ilp")),
    "heterogeneous": (
        draw_instance(3, jobs=3, nodes=6, executors=3, ccr=1.0, kind="speeds"),
        HeterogeneousSettings(),
        ("heft", "random_deft"),
    ),
    "single_machine": (ORDERS[0], MachineSettings(2.0), ("in_order", "rule")),
}


@pytest.fixture
def toy():
    """The toy is registered, and forgotten again."""
    yield register_system(TOY)
    systems.SYSTEMS.remove(TOY.name)


@pytest.fixture(params=[*list_systems(), TOY.name])
def case(request, toy):
    """System, workload, settings and names of schedulers; a registered system without a case fails."""
    return get_system(request.param), *CASES[request.param]


# ---- what every system keeps to -----------------------------------------------------------------------------------


def test_settings_and_workloads_tell_the_system(case):
    system, workload, settings, names = case
    assert system_of(settings) is system
    assert isinstance(workload, system.workload_type)
    assert settings.label
    assert set(names) <= set(system.list_schedulers())
    assert set(system.scored) <= {objective_of(system, each).name for each in system.objectives()}
    assert all(objective_of(system, each).name == getattr(each, "name", each) for each in system.objectives())
    assert isinstance(type(settings).of_mode("paper"), system.settings_type)


def test_the_same_seed_gives_the_same_run(case):
    system, workload, settings, names = case
    used = system.state(system.tables(workload, settings), settings)
    for seed in (0, 1, 0):
        for name in names:
            new = system.state(system.tables(workload, settings), settings)
            for state in (used, new):
                system.run(state, system.make_scheduler(name), seed)
            again, expected = system.outcome(used), system.outcome(new)
            np.testing.assert_array_equal(again.completion_ms, expected.completion_ms)


@pytest.mark.slow
@pytest.mark.parametrize("name", list_systems())
def test_the_optimum_is_no_worse_than_any_scheduler_and_within_its_bound(name):
    system, (workload, settings, names) = get_system(name), CASES[name]
    best = decima.optimum(workload, budget=50, cluster=settings)
    objective = objective_of(system, best.objective)
    sign = -1.0 if objective.direction == "max" else 1.0
    assert best.value == pytest.approx(objective.measure(best.result.outcome))
    assert best.bound is None or sign * best.bound <= sign * best.value + 1e-9
    state = system.state(system.tables(workload, settings), settings)
    for name in names:
        system.run(state, system.make_scheduler(name), 0)
        assert sign * best.value <= sign * objective.measure(system.outcome(state)) + 1e-9
    assert f"best {best.objective} {best.value:.2f}" in repr(best)
    assert repr(best) in best._repr_html_()


def test_a_system_without_an_optimum_says_so(toy):
    with pytest.raises(
        ConfigError, match="unknown system with an optimum 'single_machine'; known: cloud, heterogeneous, spark"
    ):
        decima.optimum(ORDERS[0], cluster=MachineSettings())
    with pytest.raises(ConfigError, match="budget"):
        decima.optimum("embedded:n=2", budget=0)


def test_outcomes_outlive_the_state(case):
    system, workload, settings, names = case
    state = system.state(system.tables(workload, settings), settings)
    system.run(state, system.make_scheduler(names[0]), 0)
    outcome = system.outcome(state)
    before = outcome.completion_ms.copy()
    system.run(state, system.make_scheduler(names[1]), 1)
    np.testing.assert_array_equal(outcome.completion_ms, before)
    assert (system.outcome(state).completion_ms != before).any()


def test_results_have_tasks_scores_and_a_gantt_chart(case):
    system, workload, settings, names = case
    result = decima.simulate(workload, names[1], seed=3, cluster=settings, log=True)
    assert (result.workload, result.settings, result.scheduler, result.seed) == (workload, settings, names[1], 3)
    tasks = result.task_frame()
    assert tuple(tasks.columns) == TASK_COLUMNS
    assert tasks["executor"].between(0, result.num_executors - 1).all()
    assert (tasks["finish_s"] >= tasks["start_s"]).all()
    ends_s = tasks.groupby("job")["finish_s"].max().to_numpy()
    np.testing.assert_allclose(ends_s, result.outcome.completion_ms / 1000.0)
    assert (ends_s > workload.arrival_ms / 1000.0).all()
    for name in system.objectives():
        assert np.isfinite(result.score(objective_of(system, name)))
    mean_s, makespan_s = (get_objective(name).score(result.outcome) for name in ("avg_jct", "makespan"))
    said = {"heterogeneous": f"makespan {makespan_s:g} s", "cloud": f"mean duration {mean_s:.1f} s"}
    assert said.get(system.name, f"average JCT {mean_s:.1f} s") in gantt(result).get_title(loc="left")


def test_pools_score_what_single_runs_do(case):
    system, workload, settings, names = case
    pool = RunPool([workload, workload], settings, seeds=[4, 5], workers=2)
    found = pool.measure([system.make_scheduler(name) for name in names], ("avg_jct", "makespan"))
    for row, name in enumerate(names):
        for column, seed in enumerate((4, 5)):
            outcome = decima.simulate(workload, name, seed=seed, cluster=settings).outcome
            for objective in ("avg_jct", "makespan"):
                known = get_objective(objective)
                assert found[known.column][row, column] == known.score(outcome)


def test_another_system_is_compared_and_tuned(toy):
    compared = decima.compare(["in_order", "rule"], ORDERS, cluster=MachineSettings(), metric="slowdown")
    assert compared.title == "mean slowdown, orders, one machine of speed 1, 4 runs each"
    means = compared.summary("avg_jct").set_index("scheduler")["mean_s"]
    assert means["rule"] < means["in_order"]
    tuned = tune("rule", ORDERS[:3], MachineSettings(), test=ORDERS[3:], baseline="in_order", budget=20, seed=1)
    assert tuned.tuned == ("haste",)
    assert tuned.train["tuned"].mean() <= tuned.train["default"].mean()
    assert tuned.make().values == tuned.parameters


def test_bad_input(toy):
    with pytest.raises(ConfigError, match="expected a Orders, got Workload"):
        RunPool([synthetic_poisson(2, 1.0)], MachineSettings())
    with pytest.raises(ConfigError, match="objective p90_jct does not apply to the single machine"):
        objective_of(toy, "p90_jct")
    with pytest.raises(ConfigError, match=r"expected the settings of a system \(.*\), got 3 \(int\)"):
        system_of(3)
    with pytest.raises(
        ConfigError, match="unknown system 'vm_placement'; known: cloud, heterogeneous, single_machine, spark"
    ):
        get_system("vm_placement")
    with pytest.raises(ConfigError, match="executors cannot be given together with cluster"):
        decima.simulate(ORDERS[0], "rule", 4, cluster=MachineSettings())


# ---- what notebooks show of every system ----------------------------------------------------------------------------


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
