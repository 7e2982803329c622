import itertools

import networkx
import numpy as np
import pytest

from decima.core.errors import ConfigError
from decima.evaluation.run import simulate
from decima.workload.jobs import Job, Workload
from experiments.decima.s11_appendix_a import SLOTS, StageOrder, example_job, run_example
from experiments.decima.s15_appendix_e import SCHEMES, CriticalPathLearner, Graphs

EPSILONS = (1e-3, 0.01, 0.1, 0.5, 1.0)


@pytest.mark.parametrize("epsilon_s", EPSILONS)
def test_makespans_of_the_paper(epsilon_s):
    example = run_example(epsilon_s)
    assert example.critical_path.makespan_s == pytest.approx(28.0 + 3.0 * epsilon_s, rel=1e-12)
    assert example.optimal.makespan_s == pytest.approx(20.0 + 3.0 * epsilon_s, rel=1e-12)
    work_s = example.optimal.workload.jobs[0].profile.work_ms / 1000.0
    assert work_s / SLOTS == pytest.approx(20.0 + 3.0 * epsilon_s, rel=1e-12)  # no schedule can be shorter
    for row in example.rows():
        assert row["makespan_s"] == pytest.approx(row["paper_s"], rel=1e-12)


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


# Critical paths of random DAGs, and networks that learn them.


def draw(count, stages=6, seed=0):
    return Graphs.draw(np.random.default_rng(seed), count, stages)


def digraph(graphs, index):
    return networkx.from_numpy_array(graphs.child[index], create_using=networkx.DiGraph)


def test_critical_paths_and_levels_are_those_of_all_paths():
    graphs = draw(20)
    for index in range(20):
        dag = digraph(graphs, index)
        for stage in range(6):
            ends = networkx.descendants(dag, stage)
            paths = [[stage], *(path for end in ends for path in networkx.all_simple_paths(dag, stage, end))]
            assert graphs.critical_path[index, stage] == pytest.approx(max(graphs.work[index, p].sum() for p in paths))
            assert graphs.level[index, stage] == max(map(len, paths)) - 1


def test_tensors_hold_every_stage_and_edge_once():
    graphs = draw(8)
    tensors = graphs.tensors(5)
    level = np.repeat(np.arange(6), tensors["level_sizes"])
    assert tensors["x"].shape == (48, 5)
    assert tensors["x"][:, 0] == pytest.approx(graphs.work.reshape(-1)[graphs.order])
    assert not tensors["x"][:, 1:].any()
    assert level.tolist() == graphs.level.reshape(-1)[graphs.order].tolist()
    first = np.cumsum(tensors["level_sizes"]) - tensors["level_sizes"]
    parent_level = np.repeat(np.arange(6), tensors["edge_level_sizes"])
    parents = graphs.order[tensors["edge_target"] + first[parent_level]]
    children = graphs.order[tensors["edge_source"]]
    found = {(a // 6, a % 6, b % 6) for a, b in zip(parents, children, strict=True)}
    assert (parents // 6 == children // 6).all()
    assert found == set(zip(*np.nonzero(graphs.child), strict=True))


def test_accuracy_and_guess():
    graphs = draw(50)
    assert graphs.accuracy(graphs.critical_path) == 1.0
    assert graphs.accuracy(-graphs.critical_path) < 0.2
    sources = [sum(degree == 0 for _, degree in digraph(graphs, index).in_degree()) for index in range(50)]
    assert graphs.guess_accuracy == pytest.approx(np.mean(1.0 / np.array(sources)))


@pytest.mark.parametrize("scheme", SCHEMES)
def test_network_passes_messages_along_the_edges(scheme):
    """The value of a stage depends on its descendants and on nothing else."""
    learner = CriticalPathLearner(scheme, stages=6)
    assert len(list(learner.train(seed=1, iterations=1, every=1, test=draw(2)))) == 2
    graphs = draw(1, seed=3)
    before, dag = learner.predict(graphs)[0], digraph(graphs, 0)
    for stage in range(6):
        work = graphs.work.copy()
        work[0, stage] += 0.5
        changed = learner.predict(Graphs(graphs.child, work))[0] != before
        assert set(np.flatnonzero(changed)) == {stage} | networkx.ancestors(dag, stage)


def test_training_learns_repeats_and_starts_anew():
    learner = CriticalPathLearner("two_level", stages=6)
    test = draw(200, seed=9)
    first = list(learner.train(seed=0, iterations=60, every=30, test=test))
    again = list(learner.train(seed=0, iterations=60, every=30, test=test))
    assert first == again
    assert [iteration for iteration, _, _ in first] == [0, 30, 60]
    assert first[-1][1] > test.guess_accuracy + 0.2
    assert first[-1][2] < 0.2 * first[0][2]
    other = list(learner.train(seed=1, iterations=0, every=1, test=test))
    assert other[0][2] != first[0][2]
