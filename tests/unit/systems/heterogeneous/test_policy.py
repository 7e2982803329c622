"""The network that chooses nodes: compiled as in TensorFlow, records, features, stored policies."""

from types import SimpleNamespace

import numpy as np
import pytest

from decima.core.errors import ConfigError, InvalidDecisionError, PolicyError
from decima.learning.algorithms.actor_critic import ActorCritic, ActorCriticConfig
from decima.learning.cards import card
from decima.learning.recipe import Recipe
from decima.learning.returns import Episode, RegressionMemory, advantages
from decima.learning.store import save_policy
from decima.systems.heterogeneous import Cluster, Instance, Job, Rules, make_scheduler, plan, validate
from decima.systems.heterogeneous.generators import random_dag, tpch_instance
from decima.systems.heterogeneous.gym.environment import ARCHITECTURE as ENV_ARCHITECTURE
from decima.systems.heterogeneous.gym.environment import HeterogeneousExecutorsEnv
from decima.systems.heterogeneous.optimum.exact import optimum
from decima.systems.heterogeneous.policy.architecture import NodeArchitecture
from decima.systems.heterogeneous.policy.batch import NodeBatch, SeenInstance
from decima.systems.heterogeneous.policy.network import NodeNetwork
from decima.systems.heterogeneous.policy.planner import PolicyPlanner
from decima.systems.heterogeneous.policy.run import NodeRun
from decima.systems.heterogeneous.policy.task import NodeTask, read_task
from decima.systems.heterogeneous.schedulers.priorities import deepest, rank_up, static_features, units

pytestmark = pytest.mark.tensorflow

ARCHITECTURES = {
    "paper": NodeArchitecture.named("paper"),
    "fast": NodeArchitecture.named("fast"),
    "decima": NodeArchitecture.named("decima"),
    "no graph": NodeArchitecture.named("paper", graph=False),
    "no edges, no ranks": NodeArchitecture.named("paper", edge_features=False, ranks=False, message_f=True),
}
CASES = ((5, Rules(slots="insertion"), None), (4, Rules(decision="idle"), 20.0), (4, Rules(decision="event"), None))


def weights_of(architecture):
    noise = np.random.default_rng(1).normal(0.0, 0.1, architecture.num_parameters)
    return (architecture.initial_weights(0) + noise).astype(np.float32)


@pytest.mark.parametrize("architecture", ARCHITECTURES.values(), ids=ARCHITECTURES)
def test_compiled_is_the_network_of_tensorflow(architecture):
    weights, seen, records = weights_of(architecture), [], []
    for jobs, rules, gap_s in CASES:
        instance = tpch_instance(jobs, 1, edges=5.0, executors=6, interarrival_s=gap_s)
        planner = PolicyPlanner(instance, rules, architecture)
        planner.run(weights, rng=np.random.default_rng(0))
        validate(instance, planner.planner.schedule())
        seen.append(SeenInstance(instance, architecture))
        records.append(planner.done())
    batch = NodeBatch(seen, records)
    network = NodeNetwork(architecture, max(deepest(each.instance) for each in seen), weights)
    decisions = np.arange(sum(len(record.chosen) for record in records))
    found = network(batch.tensors(decisions))["log_prob_stage"].numpy()
    recorded = np.concatenate([record.log_prob for record in records])
    assert np.abs(found - recorded).max() < 1e-5
    part = decisions[3::2]
    assert np.abs(network(batch.tensors(part))["log_prob_stage"].numpy() - recorded[part]).max() < 1e-5


def test_a_record_says_when_nodes_could_be_chosen():
    instance = tpch_instance(4, 2, edges=2.0, executors=3)
    architecture = ARCHITECTURES["paper"]
    planner = PolicyPlanner(instance, Rules(), architecture)
    makespan_s = planner.run(weights_of(architecture), rng=np.random.default_rng(3))
    record = planner.done()
    assert sorted(record.chosen) == list(range(len(instance)))
    step = np.argsort(record.chosen)
    start, parents, _ = instance.parents
    for node in range(len(instance)):
        above = parents[start[node] : start[node + 1]]
        assert record.offered[node] == max((step[parent] + 1 for parent in above), default=0)
    assert record.length_s[-1] == makespan_s
    assert (np.diff(record.length_s) >= 0.0).all()
    cut = record.until(5)
    assert len(cut.chosen) == len(cut.length_s) - 1 == 5
    assert list(cut.candidates()) == list(record.candidates()[:5])


def test_a_teacher_is_followed_and_noted():
    instance = tpch_instance(4, 2, edges=2.0, executors=3)
    architecture = ARCHITECTURES["paper"]
    planner = PolicyPlanner(instance, Rules(slots="insertion"), architecture)
    priority = rank_up(instance)
    taught_s = planner.run(weights_of(architecture), rng=np.random.default_rng(0), teacher=priority, share=1.0)
    assert taught_s == plan(instance, scheduler="high_rank_up_deft", slots="insertion").makespan_s
    planner.run(weights_of(architecture), rng=np.random.default_rng(0), teacher=priority, share=0.0)
    record = planner.done()
    assert (record.chosen != record.wanted).any()
    assert (record.log_prob <= 0.0).all()


def test_twice_the_work_and_data_is_the_same_to_the_network():
    job = Job("a", [3.0, 5.0, 2.0], [(0, 1), (0, 2)], [4.0, 6.0])
    twice = Job("a", [6.0, 10.0, 4.0], [(0, 1), (0, 2)], [8.0, 12.0])
    cluster = Cluster([1.0, 2.0], 3.0)
    names = ARCHITECTURES["fast"].node_features
    one, other = (static_features(Instance([each], cluster), names, True) for each in (job, twice))
    assert one == pytest.approx(other)
    late = Job("b", [100.0], arrival_s=50.0)
    assert units(Instance([job, late], cluster))[0] == units(Instance([job], cluster))[0]


def test_weights_that_are_no_numbers_are_refused():
    architecture = ARCHITECTURES["paper"]
    planner = PolicyPlanner(tpch_instance(2, 0), Rules(), architecture)
    with pytest.raises(PolicyError, match="not a finite number"):
        planner.run(np.full(architecture.num_parameters, np.nan, np.float32))


def test_a_stored_policy_is_a_scheduler(tmp_path):
    architecture = ARCHITECTURES["paper"]
    save_policy(tmp_path / "mine", architecture, weights_of(architecture), {"label": "none"})
    instance = tpch_instance(3, 0, edges=3.0, executors=4)
    made = make_scheduler(f"lachesis:policy={tmp_path / 'mine.weights.h5'}").schedule(instance)
    validate(instance, made)
    planner = PolicyPlanner(instance, Rules(slots="insertion"), architecture)
    assert planner.run(weights_of(architecture)) == made.makespan_s
    with pytest.raises(PolicyError, match="unknown policy"):
        plan(instance, scheduler="lachesis", policy="nobody")
    with pytest.raises(PolicyError, match="of system"):
        plan(instance, scheduler="lachesis", policy="tpch-batch")


@pytest.mark.parametrize("scheduler", ["lachesis", "decima_deft"])
def test_the_committed_policies_work_on_any_dag(scheduler):
    instance = random_dag(8, 3, seed=1, ccr=1.0)
    for decision in ("plan", "idle"):
        made = plan(instance, scheduler=scheduler, decision=decision)
        validate(instance, made)
        assert made.makespan_s >= optimum(instance, time_limit_s=30.0).makespan_s - 1e-9


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lachesis-batch:jobs=0", "jobs must be a low and a high number"),
        ("lachesis-batch:jobs=9-3", "jobs must be a low and a high number"),
        ("lachesis-batch:ccr=x", "ccr"),
        ("lachesis-batch:job=3", "no field 'job'; did you mean"),
        ("lachesis-stream:decision=never", "decision is 'never'"),
    ],
)
def test_wrong_tasks_are_refused(text, message):
    with pytest.raises(ConfigError, match=message):
        read_task(text)


@pytest.mark.parametrize("changes", [{"features": "all"}, {"embedding": 0}, {"layers": -1}, {"hidden": ()}])
def test_wrong_architectures_are_refused(changes):
    with pytest.raises(ConfigError):
        NodeArchitecture.named("paper", **changes)


@pytest.mark.parametrize(("jobs", "rules", "gap_s"), CASES)
def test_the_environment_shows_what_the_network_sees(jobs, rules, gap_s):
    instance, architecture = tpch_instance(jobs, 1, edges=5.0, executors=6, interarrival_s=gap_s), ENV_ARCHITECTURE
    planner = PolicyPlanner(instance, rules, architecture)
    makespan_s = planner.run(weights_of(architecture), rng=np.random.default_rng(0))
    batch = NodeBatch([SeenInstance(instance, architecture)], [planner.done()])
    options = {name: getattr(rules, name) for name in ("decision", "slots", "duplicate")}
    env, total = HeterogeneousExecutorsEnv(instance, invalid_action="error", **options), 0.0
    seen, _ = env.reset(seed=0)
    for decision, node in enumerate(planner.done().chosen):
        expected, there = batch.tensors(np.array([decision])), seen["node_job"] >= 0
        for name in ("x", "outgoing"):
            shown = seen["nodes"][there, -1] if name == "outgoing" else seen["nodes"][there, :-1]
            assert np.sort(shown, axis=0) == pytest.approx(np.sort(expected[name], axis=0), abs=1e-6)
        assert (seen["edges"][:, 0] >= 0).sum() == len(expected["edge_child"])
        assert seen["action_mask"].sum() == len(expected["candidate_node"])
        seen, reward, over, *_ = env.step(node)
        total += reward
    assert over
    assert total == pytest.approx(-makespan_s)
    with pytest.raises(ConfigError, match=r"has \d+ nodes, more than the 4 the .* max_nodes of at least"):
        HeterogeneousExecutorsEnv(instance, max_nodes=4).reset(seed=0)


@pytest.mark.parametrize(("decision", "slots"), [("plan", "insertion"), ("event", "append"), ("idle", "append")])
def test_an_order_in_the_environment_is_the_schedule_of_its_rule(decision, slots):
    instance = tpch_instance(4, 2, edges=1.0, executors=3, interarrival_s=10.0)
    options = {"decision": decision, "slots": slots}
    env = HeterogeneousExecutorsEnv(instance, objective="avg_jct", invalid_action="error", **options)
    rank, total, over = rank_up(instance), 0.0, False
    _, info = env.reset(seed=0)
    while not over:
        allowed = np.flatnonzero(info["action_mask"])
        with pytest.raises(InvalidDecisionError, match=rf"cannot be placed now; expected one of \[{allowed[0]}"):
            env.step(np.flatnonzero(info["action_mask"] == 0)[0])
        _, reward, over, _, info = env.step(allowed[np.argmax(rank[allowed])])
        total += reward
    expected = plan(instance, scheduler="high_rank_up_deft", **options)
    np.testing.assert_array_equal(env.result().schedule.finish_s, expected.finish_s)
    assert total == pytest.approx(-np.sum(expected.completion_s - instance.arrival_ms / 1000.0))
    assert info["avg_jct_s"] == pytest.approx(-total / len(instance.jobs))


# ---- targets of the critic, and short trainings from random weights that learn ---------------------------------------


SLOW = np.array([5.0, 7.0, 11.0, 13.0, 17.0, 19.0])


class Agent:
    columns, headline, summary_width, critic, learns = (), "", 2, None, ("a critic",)


def episodes():
    """One sequence, two episodes of three decisions."""
    rng = np.random.default_rng(0)
    return [[Episode(np.arange(3.0), 3.0, -rng.random(3), rng.random((3, 2))) for _ in range(2)]]


def targets(groups, **fields):
    return ActorCritic(ActorCriticConfig(rollouts=2, **fields), Agent(), 0)._targets(groups, SLOW)


def test_targets_reach_from_the_next_value_to_the_return():
    groups = episodes()
    one, other = (episode.rewards for episode in groups[0])
    next_value = np.concatenate([one + 0.5 * np.array([7.0, 11.0, 0.0]), other + 0.5 * np.array([17.0, 19.0, 0.0])])
    np.testing.assert_allclose(targets(groups, discount=0.5), next_value)
    returns = np.concatenate([each[::-1].cumsum()[::-1] for each in (one, other)])
    np.testing.assert_allclose(targets(groups, trace=1.0), returns)
    half = one[1] + 0.5 * 11.0 + 0.5 * one[2]
    assert targets(groups, trace=0.5)[1] == pytest.approx(half)
    assert targets(groups, trace=0.5)[0] == pytest.approx(one[0] + 0.5 * 7.0 + 0.5 * half)


@pytest.mark.parametrize(("baseline", "memory"), [("time", None), ("regression", RegressionMemory.empty(2))])
def test_the_baseline_of_returns_is_that_of_the_policy_gradient(baseline, memory):
    expected = np.concatenate(advantages(episodes(), memory=memory).values)
    np.testing.assert_allclose(targets(episodes(), trace=1.0, baseline=baseline), expected, atol=1e-12)


def test_a_baseline_of_one_rollout_is_refused():
    with pytest.raises(ConfigError, match="baseline time needs several rollouts"):
        ActorCriticConfig(baseline="time")


def test_values_count_beyond_the_baseline():
    """A target of one step is a temporal difference of the baseline and the slow critic's next value."""
    groups = episodes()
    one_step = targets(groups, baseline="time")
    one, other = (episode.rewards for episode in groups[0])
    mean = (one[::-1].cumsum() + other[::-1].cumsum())[::-1] / 2.0
    assert one_step[0] == pytest.approx(one[0] + 7.0 + mean[1] - mean[0])
    assert one_step[2] == pytest.approx(one[2] - mean[2])


# Ten jobs on ten executors. HighRankUp-DEFT is at 1.098 of the bound, random weights at 1.190.
TASK = NodeTask(source="embedded", jobs=(10, 10), ccr=(5.0, 5.0), executors=(10, 10))
SHORT = {"sequences": 2, "rollouts": 8, "validate_every": 6, "validation_sequences": 10, "iterations": 6}


def test_it_passes_the_rule_of_ranks_from_random_weights(tmp_path):
    changes = {"teacher": None, "lr_start": 3e-3, "lr_end": 3e-3} | SHORT
    run = NodeRun(TASK, Recipe.named("fast", "lachesis-batch", **changes), NodeArchitecture.named("paper"), 0)
    trained = run.trainer(tmp_path, workers=1, tensorboard=False).train()
    assert trained.score < trained.references["high_rank_up_deft"]


@pytest.mark.parametrize("losses", [{}, {"critic_loss": 0.25}])
def test_a_card_keeps_the_loss_of_a_critic(losses):
    run = NodeRun(TASK, Recipe.named("paper", "lachesis-batch"), NodeArchitecture.named("paper"), 0)
    row = {"iteration": 19, "phase": "actor_critic", "wall_s": 2.0, "cpu_s": 1.0, "val_greedy": 1.5} | losses
    trained = SimpleNamespace(curve=[row], mode="greedy", score=1.5, references={}, iterations=20, iteration=20)
    curve = card(run, trained)["curve"]
    assert curve["val_greedy"] == [1.5]
    assert curve.get("critic_loss") == ([0.25] if losses else None)
