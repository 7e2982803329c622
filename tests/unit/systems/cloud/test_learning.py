"""Learned placement: the network in the core beside TensorFlow, what is recorded, training, storing, running."""

import numpy as np
import pytest

from decima.core.errors import ConfigError, PolicyError
from decima.learning.algorithms.dqn import ReplayMemory, Transitions
from decima.learning.loss import Loss
from decima.learning.recipe import Recipe
from decima.learning.rollout import RolloutJob, Teacher
from decima.learning.store import save_policy
from decima.learning.trainer import Checkpoint
from decima.systems.cloud import make_placement, simulate
from decima.systems.cloud.fields import COMPLETE
from decima.systems.cloud.policy.architecture import FEATURES, PlacementArchitecture
from decima.systems.cloud.policy.episodes import STARTS, Explorer, PlacementEpisodes
from decima.systems.cloud.policy.network import PlacementBatch, PlacementLearner, scores
from decima.systems.cloud.policy.run import PlacementRun, PlacementValidation
from decima.systems.cloud.policy.scheduler import LearnedPlacement, give_actions, learned, play
from decima.systems.cloud.policy.task import PAPER_REINFORCE, PlacementTask
from decima.systems.cloud.sources import Generator
from decima.systems.cloud.system import Episode
from tests.unit.learning.small import same_arrays, without_times

pytestmark = pytest.mark.tensorflow

TASK = PlacementTask(("generated:n=8", "generated:pattern=burst,n=8"), betas=(1.0, 0.5))
SHARED = PlacementArchitecture(hidden=(8, 4))
VECTOR = PlacementArchitecture.named("paper", 12, hidden=(6,), masked=True)
BARE = PlacementArchitecture.named("paper", 12, hidden=(6,))
SCALED = PlacementArchitecture.named("paper", 12, hidden=(6,), scaled=True)
NETWORKS = pytest.mark.parametrize(
    "network", [SHARED, VECTOR, BARE, SCALED], ids=["shared", "vector", "bare", "scaled"]
)


def small_weights(network, seed=0):
    return (0.3 * network.initial_weights(seed)).astype(np.float32)


def record_of(network, seed=0, task=TASK, teacher=None):
    sequence = task.training_sequences(0, seed, 1)[0]
    return PlacementEpisodes(task)((network, small_weights(network), RolloutJob(sequence, seed, teacher)))


@NETWORKS
def test_the_core_computes_what_tensorflow_computes(network):
    weights = small_weights(network)
    for seed in range(4):
        record = record_of(network, seed)
        found = scores(network, weights, record.x).numpy()
        for d in range(len(record)):
            actions = record.action[record.first[d] : record.first[d + 1]]
            own = found[d, actions] if network.form == "vector" else found[record.first[d] : record.first[d + 1], 0]
            shifted = own - own.max()
            log_prob = shifted - np.log(np.exp(shifted).sum())
            assert log_prob[record.chosen[d]] == pytest.approx(record.log_prob[d], abs=1e-5)


@NETWORKS
def test_the_learner_s_log_probabilities_are_those_of_the_core(network):
    records = [record_of(network, seed) for seed in range(3)]
    batch = PlacementBatch(records, network.form == "vector")
    recorded = np.concatenate([record.log_prob for record in records])
    learner = PlacementLearner(network, small_weights(network))
    every = np.arange(len(recorded))
    gradient = learner.gradient(batch, every, np.ones(len(every)), recorded, Loss(ratio=True))
    assert gradient.sums["log_prob"] == pytest.approx(float(recorded.sum()), abs=1e-4 * len(every))
    assert gradient.mean("kl") == pytest.approx(0.0, abs=1e-6)
    # Against differences of the loss: likelier decisions lower it along the gradient.
    step = np.float32(2e-3 / np.linalg.norm(gradient.values))
    moved = PlacementLearner(network, (small_weights(network) - step * gradient.values).astype(np.float32))
    after = moved.gradient(batch, every, np.ones(len(every)), recorded, Loss())
    gain = after.sums["log_prob"] - gradient.sums["log_prob"]
    assert gain == pytest.approx(2e-3 * float(np.linalg.norm(gradient.values)), rel=0.1)


def test_rewards_per_job_add_up_to_what_r_epi_lacks():
    for seed in range(4):
        record = record_of(SHARED, seed)
        sequence = TASK.training_sequences(0, seed, 1)[0]
        settings, workload = TASK.settings_of(sequence), TASK.workload(sequence)
        best_s = np.mean([job.duration_s for job in workload.jobs])
        fixed, beta = settings.rules.fixed_reward, sequence.beta
        offset = fixed * (1.0 - beta) * best_s / (0.3 * best_s)
        cost_max = 1.3 * sum(job.duration_s for job in workload.jobs) * settings.cluster.price_per_hour / 3600.0
        share = (record.duration_s - best_s) / (0.3 * best_s)
        expected = fixed * (beta * (1.0 - record.cost / cost_max) + (1.0 - beta) * (1.0 - share))
        assert record.complete
        assert record.total + fixed + offset == pytest.approx(expected)


def test_what_is_recorded_has_a_choice_and_can_be_repeated():
    sequence = TASK.training_sequences(0, 3, 1)[0]
    episode = Episode.of(TASK.workload(sequence), TASK.settings_of(sequence))
    scheduler = LearnedPlacement(SHARED, small_weights(SHARED), greedy=False)
    memory = scheduler.memory(episode.state, record=True)
    episode.start(5)
    play(episode.state, episode.other, memory)
    assert episode.state.status == COMPLETE
    first, state = memory.rec_first[: memory.decisions + 1].copy(), episode.state
    assert (np.diff(first) > 1).all()
    assert np.isfinite(memory.rec_x[: memory.rows * len(FEATURES)]).all()
    actions, cost = state.action[: state.steps].copy(), state.cost
    episode.start(6)
    again = scheduler.memory(episode.state)
    give_actions(again, actions)
    play(episode.state, episode.other, again)
    assert (episode.state.cost, again.decisions) == (cost, 0)


@pytest.mark.parametrize("name", ["ilp_beta", "good_first", "rr"])
def test_a_teacher_that_always_acts_gives_its_own_run(name):
    for seed in range(3):
        sequence = TASK.training_sequences(0, seed, 1)[0]
        expected = simulate(TASK.workload(sequence), name, TASK.settings_of(sequence))
        record = record_of(SHARED, seed, teacher=Teacher(name))
        assert record.duration_s == pytest.approx(expected.mean_duration_s)
        assert record.cost == pytest.approx(expected.cost)


def test_the_search_is_a_teacher_that_knows_all_jobs():
    task = PlacementTask(("generated:pattern=burst,n=30",))

    def total(name, *parameters):
        return record_of(SHARED, 1, task, Teacher(name, parameters)).total

    known = [total(name) for name in STARTS]
    assert total("search", ("budget", 1000.0)) == total("search", ("budget", 1000.0)) > max(known)


def test_equal_vms_are_one_action():
    record = record_of(SHARED, 0)
    for d in range(len(record)):
        rows = record.x[record.first[d] : record.first[d + 1]]
        assert len(np.unique(rows, axis=0)) == len(rows)
    # The cluster is empty at first: one VM of each type, and those that the program has chosen.
    assert len(record.action[: record.first[1]]) < 12


def test_without_a_mask_an_invalid_action_ends_the_episode():
    records = [record_of(BARE, seed, PlacementTask(("generated:n=8",), reward="table3")) for seed in range(8)]
    failed = [record for record in records if not record.complete]
    assert failed
    assert all(np.isnan(record.cost) and record.reward[-1] == -200.0 for record in failed)
    assert all((np.diff(record.first) == 13).all() for record in records)


def test_scaled_inputs_are_the_raw_ones_over_the_largest():
    fields = {"hidden": (6,), "masked": True}
    raw, scaled = (PlacementArchitecture.named("paper", 12, scaled=each, **fields) for each in (False, True))
    sequence = TASK.training_sequences(0, 1, 1)[0]
    settings, workload = TASK.settings_of(sequence), TASK.workload(sequence)
    vms, jobs = settings.cluster.vms, workload.jobs
    cores, memory = (max(getattr(vm, name) for vm in vms) for name in ("cores", "memory_gb"))
    largest = np.array([*[cores, memory] * len(vms), len(jobs), cores, memory, max(job.executors for job in jobs)])
    x = []
    for network in (raw, scaled):
        # All actions are given, so that both see the same states; the decision after them is recorded.
        episode = Episode.of(workload, settings)
        memory_of = LearnedPlacement(network, small_weights(network)).memory(episode.state, record=True)
        episode.start(0)
        give_actions(memory_of, [1, 2, 3][: jobs[0].executors])
        play(episode.state, episode.other, memory_of)
        x.append(memory_of.rec_x[: network.inputs].copy())
    np.testing.assert_allclose(x[1], x[0] / largest, rtol=1e-6)
    assert x[1].max() == 1.0


def test_exploring_goes_on_where_it_was(tmp_path):
    network, weights = VECTOR, small_weights(VECTOR)
    one, other = (Explorer(TASK, network, 4) for _ in range(2))
    found, _ = one.go_on(weights, 0, 37, 0.3)
    assert len(found) == 37
    at = found.arrays
    assert (at["x"][1:][~at["done"][:-1]] == at["next_x"][:-1][~at["done"][:-1]]).all()
    assert at["next_mask"][~at["done"]].any(axis=1).all()
    other.restore(*one.state())
    for iteration in (1, 2):
        mine, ended = one.go_on(weights, iteration, 25, 0.3)
        yours, also = other.go_on(weights, iteration, 25, 0.3)
        assert same_arrays(mine.arrays, yours.arrays)
        assert [record.total for record in ended] == [record.total for record in also]


def test_temporal_differences_by_hand():
    network = PlacementArchitecture.named("paper", 1, hidden=(), masked=True)
    weights = np.zeros(network.num_parameters, np.float32)
    weights[-2:] = 1.0, 3.0  # biases: values of waiting and of the VM
    learner = PlacementLearner(network, weights)
    target = weights.copy()
    target[-2:] = 5.0, 4.0
    x = np.zeros((2, network.inputs), np.float32)
    arrays = {
        "x": x, "action": np.array([0, 1], np.int32), "reward": np.array([1.0, -2.0]), "next_x": x,
        "next_mask": np.ones((2, 2), bool), "steps": np.array([2, 1], np.int32), "done": np.array([False, True]),
    }  # fmt: skip
    # Aims: 1 + 0.5^2 x 5 = 2.25 (double: the network likes the VM, 4, so 2), and -2 at the end.
    for double, aim in ((False, 2.25), (True, 2.0)):
        gradient, means = learner.value_gradient(Transitions(arrays), target, 0.5, double=double)
        assert means["loss"] == pytest.approx(((1.0 - aim) ** 2 + 5.0**2) / 2.0)
        np.testing.assert_allclose(gradient[-2:], [1.0 - aim, 5.0], rtol=1e-5)


def test_the_memory_forgets_the_oldest_and_comes_back_as_it_was():
    memory, rng = ReplayMemory(30), np.random.default_rng(0)
    for first in range(0, 77, 7):
        memory.add(Transitions({"number": np.arange(first, first + 7)}))
    assert len(memory) == 30
    drawn = memory.draw(2000, rng).arrays["number"]
    assert set(drawn) == set(range(47, 77))
    again = ReplayMemory(30)
    again.restore(memory.state())
    assert same_arrays(again.state(), memory.state())
    draws = [each.draw(9, np.random.default_rng(1)).arrays for each in (again, memory)]
    assert same_arrays(*draws)


def small_run(**changes):
    values = {
        "iterations": 4, "sequences": 2, "rollouts": 3, "teacher_iterations": 2, "teacher_sequences": 4,
        "validation_sequences": 4, "validate_every": 2, "validation_seeds": 1, "checkpoint_every": 1,
        "lr_start": 1e-3, "lr_end": 1e-3, "entropy_start": 0.01, "entropy_end": 0.01,  # none depends on the limit
    }  # fmt: skip
    return PlacementRun(TASK, Recipe.named("fast", "placement", **(values | changes)), SHARED, 1)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    return folder, small_run().trainer(folder, workers=2, tensorboard=False).train()


def test_policy_gradient_resumes_exactly_with_any_number_of_workers(trained, tmp_path):
    folder, whole = trained
    small_run(iterations=3).trainer(tmp_path, workers=1, tensorboard=False).train()
    again = small_run().trainer(tmp_path, workers=1, tensorboard=False).train(resume=True)
    assert np.array_equal(whole.weights, again.weights)
    one, other = Checkpoint.load(folder), Checkpoint.load(tmp_path)
    assert same_arrays(one.arrays, other.arrays)
    assert [row["phase"] for row in without_times(one.curve)] == ["imitation", "imitation", "ppo", "ppo"]


def test_the_score_is_one_for_the_reference_and_can_be_checked(trained):
    _, whole = trained
    validation = PlacementValidation(TASK, SHARED, 4, 0)
    assert validation.references["aep"] > 1.0
    assert validation.measure(whole.weights).row["val_complete"] == 1.0
    losses = []
    for sequence in TASK.validation_sequences(4):
        results = [
            simulate(TASK.workload(sequence), rule, TASK.settings_of(sequence))
            for rule in (LearnedPlacement(SHARED, whole.weights), "ilp_beta")
        ]
        losses.append([1.01 - result.reward / 10_000.0 for result in results])
    assert validation.measure(whole.weights).score == pytest.approx(np.mean([a / b for a, b in losses]))


def test_a_stored_policy_is_a_rule(trained, tmp_path):
    save_policy(tmp_path / "mine", SHARED, trained[1].weights, {"greedy": True})
    rule = make_placement(f"learned:policy={tmp_path / 'mine'}.weights.h5")
    workload = Generator(n=6).draw(3)
    assert simulate(workload, rule).cost == simulate(workload, LearnedPlacement(SHARED, trained[1].weights)).cost
    assert learned(f"{tmp_path / 'mine'}.weights.h5", greedy=False).greedy is False
    save_policy(tmp_path / "odd", SHARED, trained[1].weights, {"greedy": 2})
    with pytest.raises(PolicyError, match="greedy = 2"):
        learned(f"{tmp_path / 'odd'}.weights.h5")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PlacementArchitecture(form="other"), "form must be shared or vector"),
        (lambda: PlacementArchitecture(hidden=(0,)), "hidden must be"),
        (lambda: PlacementArchitecture(vms=3), "vms must be 0 with the shared scorer"),
        (lambda: PlacementArchitecture(form="vector"), "vms must be the number of VMs"),
        (lambda: PlacementArchitecture.named("other", 3), "unknown architecture 'other'"),
        (lambda: PlacementTask(betas=(1.5,)), "betas hold 1.5"),
        (lambda: PlacementTask(jobs=()), "jobs is empty"),
        (lambda: PlacementTask(reward="other"), "reward must be per_job or table3"),
        (lambda: PlacementRun(TASK, Recipe(), PlacementArchitecture.named("paper", 3), 0), "made for 3 VMs"),
        (lambda: small_run(teacher="ilp_bet"), "unknown scheduler 'ilp_bet'"),
        (lambda: small_run(teacher="search", teacher_parameters={"budget": 0}), "budget of the teacher search must be"),
        (lambda: small_run(teacher="search", teacher_parameters={"steps": 1}), "option of the teacher search: steps"),
        (lambda: Recipe.named("fast", "placement", algorithm="dqn"), "set teacher to none"),
        (lambda: small_run(start_policy="tpch-batch").agent(None, 1), "tpch-batch"),
    ],
)
def test_bad_input(make, message):
    with pytest.raises((ConfigError, PolicyError), match=message):
        make()


def test_the_recipe_of_the_paper_discounts_by_nine_tenths_per_step():
    assert np.exp(-1.0 / PAPER_REINFORCE["horizon_s"]) == pytest.approx(0.9)
    assert Recipe.named("paper", "placement").learning.rollouts == 10
    dqn = Recipe.named("paper-dqn", "placement").learning
    assert (dqn.minibatch, dqn.memory, dqn.discount, dqn.steps, dqn.explore_start) == (64, 10_000, 0.9, 10, 0.001)
