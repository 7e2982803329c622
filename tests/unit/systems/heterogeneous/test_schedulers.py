"""Schedulers by name: published numbers, settings, bad input, and the clusters of nodes that some begin with."""

import pickle

import numpy as np
import pytest

import decima
from decima.core.errors import ConfigError, UnknownSchedulerError
from decima.systems.heterogeneous import (
    Cluster,
    Instance,
    Job,
    Rules,
    canonical,
    list_schedulers,
    lower_bound,
    make_scheduler,
    metrics,
    plan,
    validate,
)
from decima.systems.heterogeneous.generators import random_dag
from decima.systems.heterogeneous.schedulers.clustering import clusters, merged, times
from decima.systems.heterogeneous.schedulers.priorities import rank_down, rank_up
from decima.systems.heterogeneous.schedulers.registry import SCHEDULERS
from decima.systems.heterogeneous.settings import Settings
from tests.heterogeneous_instances import draw_instance

# A fork whose children both wait for the root: sending takes longer than executing it again.
FORK = Job("fork", [2.0, 3.0, 4.0], [(0, 1), (0, 2)], [9.0, 9.0])
TWO = Instance([FORK], Cluster([1.0, 1.0], 1.0))


def test_ranks_of_the_canonical_example():
    up = [108, 77, 80, 80, 69, 63.333, 42.667, 35.667, 44.333, 14.667]
    down = [0, 31, 25, 22, 24, 27, 62.333, 66.667, 63.667, 93.333]
    assert rank_up(canonical()) == pytest.approx(up, abs=1e-3)
    assert rank_down(canonical()) == pytest.approx(down, abs=1e-3)


@pytest.mark.parametrize(
    ("scheduler", "makespan", "copies"),
    [
        ("heft", 80.0, 10),
        ("cpop", 86.0, 10),
        ("dls", 91.0, 10),
        ("tds", 78.0, 13),
        ("tdca", 73.0, 14),
        ("high_rank_up_deft", 73.0, 14),
        ("high_rank_up_deft:slots=insertion", 73.0, 14),
        ("high_rank_up_deft:decision=event", 78.0, 12),
        ("high_rank_up_deft:decision=idle", 87.0, 12),
    ],
)
def test_makespans_of_the_canonical_example(scheduler, makespan, copies):
    schedule = plan(canonical(), scheduler=scheduler)
    assert (schedule.makespan_s, len(schedule)) == (makespan, copies)


PUBLISHED = ("heft", "cpop", "peft", "dls", "min_min", "max_min", "sufferage", "etf", "mct", "met", "tds", "tdca")


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_schedulers_do_not_depend_on_how_a_cluster_is_written(name):
    for seed in range(30):
        with_speeds = draw_instance(seed, jobs=2, nodes=9, executors=4, ccr=0.6, stream=seed % 3 == 0)
        own = with_speeds.cluster
        cluster = Cluster(costs=with_speeds.times_s, rate=own.rate, latency_s=own.latency_s)
        schedules = [plan(each, scheduler=name) for each in (with_speeds, Instance(with_speeds.jobs, cluster))]
        assert schedules[0].executor.tolist() == schedules[1].executor.tolist(), seed
        assert schedules[0].start_s == pytest.approx(schedules[1].start_s)


def some_cannot(seed, executors=3):
    """An instance where a third of the times are infinite, and the same with a huge time instead."""
    instance = draw_instance(seed, jobs=2, nodes=6, executors=executors, kind="costs", stream=seed % 2 == 0)
    rng = np.random.default_rng(seed)
    cannot = rng.random(instance.times_s.shape) < 0.35
    cannot[np.arange(len(instance)), rng.integers(0, executors, len(instance))] = False
    return [
        Instance(instance.jobs, Cluster(costs=np.where(cannot, time_s, instance.times_s), rate=1.0))
        for time_s in (np.inf, 1e6)
    ]


@pytest.mark.parametrize("name", [name for name in list_schedulers() if name != "remote"])
def test_nodes_go_only_where_they_can_be_executed(name):
    rules = ["", ":decision=idle", ":decision=event"] if set(SCHEDULERS.find(name).open) >= {"decision"} else [""]
    for seed in range(12):
        instance, _ = some_cannot(seed)
        for rule in rules:
            schedule = plan(instance, scheduler=name + rule)
            validate(instance, schedule)
            assert lower_bound(instance) <= schedule.makespan_s < 1e3, (seed, rule)


def mapped_in_plain_python(instance, key):
    """Node, executor and finish of each step: of all ready nodes the one of the least key, where its pair is least."""
    start, parent, data = instance.parents
    free_s, copies, steps = [0.0] * len(instance.cluster), {}, []
    while len(copies) < len(instance):
        choices = []
        for node in sorted(set(range(len(instance))) - set(copies)):
            edges, pairs = range(start[node], start[node + 1]), []
            for executor in range(len(instance.cluster)) if all(parent[each] in copies for each in edges) else ():
                sent_s = [instance.there_s(data[each], [copies[parent[each]]], executor) for each in edges]
                begin_s = max([free_s[executor], *sent_s])
                pairs.append((begin_s, begin_s + instance.time_s(node, executor), executor))
            if pairs:
                choices.append(key(node, pairs))
        *_, node, executor, finish_s = min(choices)
        free_s[executor] = finish_s
        copies[node] = executor, finish_s
        steps.append((node, executor, finish_s))
    return steps


def by_finish(key):
    def keyed(node, pairs):
        ends = sorted((finish_s, executor) for _, finish_s, executor in pairs)
        return key([finish_s for finish_s, _ in ends]), node, ends[0][1], ends[0][0]

    return keyed


def starts_first(node, pairs):
    begin_s, executor, finish_s = min((begin_s, executor, finish_s) for begin_s, finish_s, executor in pairs)
    return begin_s, node, executor, finish_s


MAPPINGS = {
    "min_min": by_finish(lambda ends: ends[0]),
    "max_min": by_finish(lambda ends: -ends[0]),
    "sufferage": by_finish(lambda ends: ends[0] - ends[1]),
    "mct": by_finish(lambda ends: 0.0),
}


@pytest.mark.parametrize("name", [*MAPPINGS, "etf"])
def test_mapping_heuristics_are_their_rules(name):
    for seed in range(8):
        instance = draw_instance(seed, jobs=1, nodes=9, executors=3, ccr=0.7)
        level = rank_up(instance, transfers=0.0, node_s=instance.mean_cost_s)

        def longest_first(node, pairs, level=level):
            begin_s, *rest = starts_first(node, pairs)
            return begin_s, -level[node], *rest

        schedule = plan(instance, scheduler=name)
        rows = zip(schedule.node.tolist(), schedule.executor.tolist(), schedule.finish_s.tolist(), strict=True)
        for row, expected in zip(
            rows, mapped_in_plain_python(instance, MAPPINGS.get(name, longest_first)), strict=True
        ):
            assert row == pytest.approx(expected), seed


def test_min_min_of_a_bag_and_met():
    bag = plan([Job("bag", [5.0, 2.0, 3.0])], Cluster([1.0, 1.0], 1.0), scheduler="min_min")
    assert bag.node.tolist() == [1, 2, 0]
    assert bag.finish_s.tolist() == [2.0, 3.0, 7.0]
    schedule = plan(canonical(), scheduler="met")
    assert schedule.executor.tolist() == canonical().times_s.argmin(axis=1)[schedule.node].tolist()


def test_paths_share_the_nodes_that_are_placed():
    """The second path costs 1 s beside the first one, with its first node once more 11 s, on the slow executor 18 s."""
    fork = Job("fork", [10.0, 1.0, 1.0], [(0, 1), (0, 2)], [9.0, 9.0])
    instance = Instance([fork], Cluster([1.0, 0.6], 1.0))
    assert merged(instance, [[0, 1], [0, 2]]) == [[0, 1, 2], []]


def test_settings_come_from_text_and_keywords():
    made = make_scheduler("discounted_rank:discount=0.5,slots=append", decision="event")
    assert made.rules == Rules("event", "append")
    assert made.values == {"discount": 0.5}
    assert made.name == "discounted_rank:discount=0.5,slots=append,decision=event"
    assert make_scheduler(made) is made
    # Insertion by default is what it can be: nothing, where a free executor is waited for.
    assert make_scheduler("heft:decision=idle").rules == Rules("idle", "append", duplicate=False)
    schedule = plan(canonical(), scheduler="discounted_rank", discount=1.0)
    assert schedule.settings["discount"] == 1.0
    assert schedule.settings["slots"] == "insertion"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("heft:decision=later", "decision is 'later'; expected plan or event or idle"),
        ("heft:slot=append", "has no setting 'slot'; did you mean 'slots'"),
        ("cpop:decision=event", "decision cannot be set to 'event'"),
        ("heft:slots=insertion,decision=idle", "slots=insertion has no effect"),
        ("heft:decision=event,drop_unread=true", "drop_unread needs decision=plan"),
        ("discounted_rank:discount=2", "discount is 2; expected 0 to 1"),
        ("discounted_rank:discount=x", "expected a number"),
    ],
)
def test_bad_settings(text, sentence):
    with pytest.raises(ConfigError, match=sentence):
        make_scheduler(text)


def test_bad_names_and_seeds():
    with pytest.raises(UnknownSchedulerError, match="unknown scheduler 'hefd'; did you mean 'heft'"):
        plan(canonical(), scheduler="hefd")
    with pytest.raises(ConfigError, match="seed must be a whole number"):
        plan(canonical(), scheduler="random_deft", seed=-1)
    with pytest.raises(ConfigError, match="an instance has its cluster"):
        plan(canonical(), Cluster([1.0]))


def test_a_comparison_scores_the_distance_from_the_bound():
    instances = [canonical(), random_dag(seed=1, nodes=12)]
    compared = decima.compare(["heft", "high_rank_up_deft"], instances)
    table = compared.scores.set_index(["scheduler", "seed"])
    for (name, seed), row in table.iterrows():
        schedule = plan(instances[seed], scheduler=name)
        judged, floor_s = metrics(schedule), lower_bound(instances[seed])
        assert row["makespan_s"] == pytest.approx(judged.makespan_s, rel=1e-12)
        assert row["avg_jct_s"] == pytest.approx(judged.avg_jct_s, rel=1e-12)
        assert row["above_bound"] == judged.makespan_s / floor_s >= 1.0
        assert (row["speedup"], row["utilisation"]) == (judged.speedup, judged.utilisation)
    assert "makespan over the lower bound" in str(compared)


def test_what_draws_nothing_is_scheduled_once():
    assert decima.compare(["heft"], canonical(), seeds=3).num_runs == 1
    assert decima.compare(["heft", "random_deft"], canonical(), seeds=3).num_runs == 3
    assert decima.compare(["heft"], "random:nodes=6", system="heterogeneous", seeds=2).num_runs == 2


def test_executors_of_the_settings_replace_those_of_the_instance():
    job = Job("a", [2.0, 2.0])
    instance = Instance([job], Cluster([1.0], 1.0))
    assert decima.simulate(instance, "heft").makespan_s == 4.0
    result = decima.simulate(instance, "heft", cluster=Settings(Cluster([2.0, 2.0], 1.0)))
    assert (result.makespan_s, result.num_executors) == (1.0, 2)
    assert result.settings.as_dict()["cluster"]["speeds"] == [2.0, 2.0]
    assert result.task_frame()["executor"].tolist() == [0, 1]


def test_nothing_is_put_over_a_node_that_takes_no_time():
    """It parts the gap that it lies in, though it takes nothing from it."""
    instance = draw_instance(1482, jobs=4, nodes=7, executors=5, ccr=0.0, kind="speeds", whole=True)
    validate(instance, make_scheduler("random_deft:slots=insertion").schedule(instance, 439))


def test_times_by_hand():
    found = times(TWO)
    assert found.earliest_s.tolist() == [0.0, 2.0, 2.0]
    assert found.completion_s.tolist() == [2.0, 5.0, 6.0]
    assert found.favourite.tolist() == [-1, 0, 0]
    assert found.latest_completion_s.tolist() == [2.0, 6.0, 6.0]
    join = times(Instance([Job("join", [1.0, 2.0, 1.0], [(0, 2), (1, 2)], [5.0, 3.0])], Cluster([1.0], 1.0)))
    # The first parent's data would be there at 6, the second's at 5; behind the first the node starts at 5.
    assert join.favourite.tolist() == [-1, -1, 0]
    assert join.earliest_s.tolist() == [0.0, 0.0, 5.0]
    assert np.isfinite(times(canonical()).latest_s).all()


def test_shared_nodes_are_on_both_paths_or_on_one():
    assert clusters(TWO, times(TWO), duplicate=True) == [[0, 1], [0, 2]]
    assert clusters(TWO, times(TWO), duplicate=False) == [[0, 1], [2]]
    schedule = plan(TWO, scheduler="tds")
    assert schedule.makespan_s == 6.0
    assert schedule.duplicate.sum() == 1


def test_memory_of_a_plan_serves_the_next_one_and_never_two():
    instance, heft = random_dag(30, 4, 1), make_scheduler("heft")
    schedule = heft.schedule(instance)
    kept = vars(instance)["planner"]
    rules = [heft.list_rule(instance) for _ in range(2)]
    assert [rule.planner is kept for rule in rules] == [True, False]
    for other in [rule.schedule() for rule in rules] + [heft.schedule(pickle.loads(pickle.dumps(instance)))]:
        assert np.array_equal(other.start_s, schedule.start_s)
        assert np.array_equal(other.executor, schedule.executor)
    assert "planner" not in vars(pickle.loads(pickle.dumps(instance)))
    assert make_scheduler("heft:slots=append").schedule(instance).settings["slots"] == "append"
