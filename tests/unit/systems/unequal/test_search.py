"""Search over priorities: never longer than what it begins with, the same for a seed, sensible on a known example."""

import pytest

from decima.core.errors import ConfigError, PolicyError
from decima.systems.unequal import Rules, canonical, lower_bound, plan, search, validate
from decima.systems.unequal.optimum.exact import optimum
from decima.systems.unequal.sources import ClusterOptions, read_instance

INSTANCE = read_instance("random:nodes=30,ccr=3", ClusterOptions(executors=4), seed=2)


def test_search_gets_shorter_and_repeats():
    found = search(INSTANCE, 300, seed=1)
    validate(INSTANCE, found.schedule)
    assert found.schedule.makespan_s == found.makespan_s < found.start_s
    assert found.start_s <= plan(INSTANCE, scheduler="discounted_rank").makespan_s
    assert found.makespan_s >= lower_bound(INSTANCE)
    assert found.tries == 300
    again = search(INSTANCE, 300, seed=1)
    assert again.priority.tolist() == found.priority.tolist()
    more = search(INSTANCE, 600, seed=1)
    assert more.makespan_s <= found.makespan_s


def test_search_stays_above_the_optimum():
    instance = read_instance("random:nodes=10,ccr=2", ClusterOptions(executors=3), seed=1)
    best = optimum(instance).makespan_s
    found = search(instance, 400)
    assert best * (1.0 - 1e-9) <= found.makespan_s <= 1.2 * best
    alone = search(instance, 400, rules=Rules(slots="insertion", duplicate=False))
    assert not alone.schedule.duplicate.any()
    assert alone.makespan_s >= optimum(instance, duplicate=False).makespan_s * (1.0 - 1e-9)


def test_search_ends_at_the_bound():
    chain = read_instance("gauss:size=2,ccr=0", ClusterOptions(executors=2))
    found = search(chain, 500)
    assert found.makespan_s == pytest.approx(lower_bound(chain))
    assert found.tries <= 5


def test_bad_budgets():
    with pytest.raises(ConfigError, match="budget must be a whole number of at least 1"):
        search(canonical(), 0)
    with pytest.raises(ConfigError, match="seed must be"):
        search(canonical(), 5, seed=-1)


def test_the_best_sample_is_never_longer_than_the_likeliest_plan():
    instance = read_instance("random:nodes=30,ccr=2", ClusterOptions(executors=4), seed=1)
    spans = [plan(instance, scheduler=f"best_sample:samples={count}").makespan_s for count in (0, 8, 64)]
    assert spans[0] == plan(instance, scheduler="lachesis").makespan_s
    assert spans[0] >= spans[1] >= spans[2]
    assert spans[2] < spans[0]
    with pytest.raises(ConfigError, match="samples is -1; expected 0 to"):
        plan(instance, scheduler="best_sample:samples=-1")


def test_the_best_plan_is_the_shortest_of_those_it_makes():
    instance = read_instance("random:nodes=30,ccr=2", ClusterOptions(executors=4), seed=1)
    ranks = [f"discounted_rank:discount={discount}" for discount in (1, 0.5, 0.25, 0.1, 0)]
    rules = [plan(instance, scheduler=name).makespan_s for name in (*ranks, "linear_rank")]
    assert plan(instance, scheduler="best_plan:policy=none").makespan_s == min(rules) < max(rules)
    learned = plan(instance, scheduler="lachesis").makespan_s
    assert plan(instance, scheduler="best_plan").makespan_s == min(*rules, learned)
    with pytest.raises(PolicyError, match="unknown policy 'nobody'"):
        plan(instance, scheduler="best_plan:policy=nobody")
    with pytest.raises(ConfigError, match="decision cannot be set to 'idle'"):
        plan(instance, scheduler="best_plan:decision=idle")
