"""Placement rules: by hand on toys, against each other and against brute force."""

import itertools

import numpy as np
import pytest
from numba import njit

import decima
from decima.core.errors import ConfigError, SchedulerError, UnknownSchedulerError
from decima.systems.cloud import (
    Cluster,
    PlacementSettings,
    VmType,
    list_placements,
    make_placement,
    register_placement,
    simulate,
)
from decima.systems.cloud.fields import placement_at
from decima.systems.cloud.schedulers import registry
from decima.systems.cloud.schedulers.heuristics import count_room
from decima.systems.cloud.schedulers.ilp import cheapest
from decima.systems.cloud.sources import Generator, load_trace
from decima.systems.cloud.system import Episode
from decima.systems.cloud.workload import jobs_of_rows
from tests.unit.systems.cloud.cases import TWO_KINDS, Filling, Fixed, drawn_jobs, placements

SETTINGS = PlacementSettings(cluster=TWO_KINDS)
ROOMY = Cluster((VmType("a", 4, 16.0, 2, 0.24), VmType("b", 8, 32.0, 2, 0.40)), label="roomy")


def where(rule, rows, cluster=ROOMY, **options):
    return simulate(jobs_of_rows(rows, "hand"), rule, PlacementSettings(cluster=cluster, **options)).where.tolist()


ONE = (0, 1, 1, 2, 2, 3, 60)  # CPU-bound, three executors of two cores
NETWORK = (0, 1, 3, 2, 2, 3, 60)


@pytest.mark.parametrize(
    ("rule", "rows", "expected"),
    [
        ("rr", [ONE, (5, 2, 1, 1, 1, 1, 9)], [0, 1, 2, 0]),
        ("rr_continuing", [ONE, (5, 2, 1, 1, 1, 1, 9)], [0, 1, 2, 3]),
        ("rr", [(0, 1, 1, 4, 2, 6, 60)], [0, 1, 2, 3, 2, 3]),  # a second turn where there is room
        ("rrc", [ONE], [0, 0, 1]),
        ("rrc", [(0, 1, 1, 3, 2, 1, 60), (1, 2, 1, 1, 1, 2, 9)], [0, 0, 1]),  # one core is left on VM 1
        ("ff", [(0, 1, 1, 3, 2, 1, 60), (1, 2, 1, 2, 1, 1, 9)], [0, 1]),
        ("ff", [(0, 1, 1, 8, 2, 1, 60), (1, 2, 1, 2, 1, 1, 9), (2, 3, 1, 2, 1, 2, 5)], [2, 0, 0, 1]),
        ("fill", [ONE], [0, 0, 1]),
        ("aep", [ONE], [0, 1, 2]),
        ("aep", [NETWORK], [0, 0, 1]),
        ("aep_inverted", [ONE], [0, 0, 1]),
        ("aep_inverted", [NETWORK], [0, 1, 2]),
        ("gio", [ONE], [0, 0, 1]),  # the small VM twice, then the other small one
        ("ilp", [ONE], [2, 2, 2]),  # one large VM for 0.40 instead of two small ones for 0.48
        ("ilp_exact", [NETWORK], [2, 2, 2]),
        ("good_first", [ONE], [0, 1, 2]),
        ("good_first", [NETWORK], [2, 2, 2]),
    ],
)
def test_placements_by_hand(rule, rows, expected):
    assert where(rule, rows) == expected


def test_beta_weighs_cost_against_duration():
    assert where("ilp_beta", [ONE], beta=1.0) == [2, 2, 2]
    assert where("ilp_beta", [ONE], beta=0.0) == [0, 1, 2]
    assert where("ilp_beta:beta=0", [ONE], beta=1.0) == [0, 1, 2]


@njit
def cheapest_here(state, run_s):
    """Least cost of the per-job integer program by enumeration."""
    s = placement_at(state)
    count_room(s)
    return cheapest(s, run_s)


def views(seed, chosen=SETTINGS):
    """States on the way of a random episode, where a job that fits is shown."""
    workload = drawn_jobs(seed, n=8, gap=3.0, most=4, cores=2)
    episode = Episode.of(workload, chosen)

    class Watch:
        name = "watch"

        def __init__(self):
            self.rng = np.random.default_rng(seed)

        def decide(self, view):
            if not view.fits:
                return None
            found.append((cheapest_here(episode.state.address, view.job.duration_s), brute(view)))
            vms = [vm for vm, room in enumerate(view.room) for _ in range(room)]
            return self.rng.permutation(vms)[: view.job.executors].tolist()

    found = []
    episode.run(Watch(), seed)
    return found


def brute(view):
    """Least added cost over all counts per VM."""
    costs, rooms = view.added_cost(view.job.duration_s), view.room
    counts = itertools.product(*(range(int(room) + 1) for room in rooms))
    return min(costs[np.array(each) > 0].sum() for each in counts if sum(each) == view.job.executors)


def test_enumeration_finds_the_least_of_all_counts():
    compared = np.array([found for seed in range(6) for found in views(seed)])
    assert len(compared) > 30
    assert compared[:, 0] == pytest.approx(compared[:, 1], abs=1e-9)


def test_what_knows_the_effect_of_placement_finds_the_best_of_all_placements():
    """One job on an empty cluster: every count per VM is tried."""
    for seed in range(12):
        workload = drawn_jobs(seed, n=1, most=5, cores=2)
        for beta in (0.0, 0.6, 1.0):
            chosen = PlacementSettings(cluster=TWO_KINDS, beta=beta)
            scores = [simulate(workload, Fixed(vms), chosen).reward for vms in placements(workload.jobs[0], TWO_KINDS)]
            found = simulate(workload, f"ilp_beta:beta={beta}", chosen).reward
            assert found == pytest.approx(max(scores))
            if beta == 1.0:
                assert simulate(workload, "ilp_exact", chosen).reward == pytest.approx(max(scores))


@pytest.mark.parametrize("name", list_placements())
def test_every_rule_finishes_under_every_rule_set(name):
    workload = Generator(n=12, pattern="burst").draw(1)
    for mode in ("paper", "released"):
        results = [simulate(workload, name, PlacementSettings.of_mode(mode, beta=0.5), seed=2) for _ in range(2)]
        if (name, mode) == ("learned", "released"):
            # It places executor by executor, and the published look-ahead may leave the last one no valid VM.
            assert results[0].complete or results[0].status == "waited with a job partly placed"
            continue
        assert results[0].complete
        assert results[0].cost == results[1].cost > 0.0
        assert results[0].where.tolist() == results[1].where.tolist()


def test_rules_on_the_published_traces(published):
    """Costs and durations of the package's own earlier runs, and the paper's 0.78 $ and 1.07 $ of AEP within 6 %."""
    normal, burst = load_trace("normal"), load_trace("burst")
    costs = {name: simulate(normal, name).cost for name in ("rr", "rrc", "aep", "gio", "ilp", "ilp_exact")}
    expected = {"rr": 0.808, "rrc": 0.652, "aep": 0.754, "gio": 0.650, "ilp": 0.568, "ilp_exact": 0.546}
    assert costs == pytest.approx(expected, abs=6e-4)
    good = simulate(normal, "good_first")
    assert (round(good.mean_duration_s, 2), good.good_placements) == (51.38, 49)
    aep = simulate(burst, "aep")
    assert (round(aep.cost, 3), round(aep.mean_duration_s, 1), aep.good_placements) == (1.134, 61.7, 77)
    assert abs(costs["aep"] / 0.78 - 1.0) < 0.06
    assert abs(aep.cost / 1.07 - 1.0) < 0.06


def test_a_rule_of_one_s_own_is_like_the_compiled_one():
    workload = Generator(n=20, pattern="burst").draw(3)
    own, compiled = simulate(workload, Filling()), simulate(workload, "fill")
    assert own.where.tolist() == compiled.where.tolist()
    assert own.cost == compiled.cost
    assert own.waits == compiled.waits


def test_a_registered_rule_is_found_by_name(monkeypatch):
    monkeypatch.setattr(registry.SCHEDULERS, "_members", dict(registry.SCHEDULERS._members))
    register_placement("first", "first VMs with room", "a test", Filling)
    assert "first" in list_placements()
    compared = decima.compare(["first", "fill"], "generated:n=5", system="cloud", seeds=2)
    assert set(compared.scores["scheduler"]) == {"filling", "fill"}  # the name of the object


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ([0], "expected 3 numbers of VMs"),
        ([0, 1, 9], "expected numbers of VMs from 0 to 3"),
        ([0, 0, 0], "3 executors on VM 0, which has room for 2"),
        (["a", "b", "c"], "expected 3 numbers of VMs"),
        (None, "waits with job 1 although nothing runs"),
    ],
)
def test_answers_that_cannot_be_carried_out(answer, message):
    with pytest.raises(SchedulerError, match=f"scheduler fixed.*{message}"):
        simulate(jobs_of_rows([ONE], "hand"), Fixed(answer), PlacementSettings(cluster=ROOMY))


def test_bad_names_and_parameters():
    with pytest.raises(UnknownSchedulerError, match="unknown scheduler 'lip'; did you mean"):
        make_placement("lip")
    with pytest.raises(ConfigError, match=r"beta is 2\.0; expected the weight of cost, from 0 to 1"):
        make_placement("ilp_beta:beta=2")
    with pytest.raises(ConfigError, match="has no option 'gamma'"):
        make_placement("ilp_beta:gamma=2")
    with pytest.raises(ConfigError, match=r"has no parameter 'gamma'; it has: beta"):
        make_placement("ilp_beta", gamma=2)
    with pytest.raises(SchedulerError, match="is not a placement scheduler"):
        make_placement(3)
