"""The compiled environment: stepped by hand, beside the plain-Python oracle, and what always holds."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.placement_episodes import random_episodes
from decima.core.errors import ConfigError
from decima.systems.cloud import TABLE_4, Billing, PlacementSettings, simulate
from decima.systems.cloud import engine as core
from decima.systems.cloud.fields import COMPLETE
from decima.systems.cloud.result import OBJECTIVES
from decima.systems.cloud.sources import load_trace
from decima.systems.cloud.state import give_chance, new_state
from decima.systems.cloud.system import VM_PLACEMENT, Episode
from tests.placement_oracle import PlainPlacement, random_episode
from tests.unit.systems.cloud.cases import FIGURE_2, FIGURE_2_JOBS, TWO_KINDS, drawn_jobs

FIGURE = PlacementSettings(cluster=FIGURE_2, beta=1.0)
RELEASED_FIGURE = PlacementSettings.of_mode("released", cluster=FIGURE_2)


def begun(workload, chosen):
    episode = Episode.of(workload, chosen)
    episode.start(0)
    return episode.state


@pytest.mark.parametrize(
    ("chosen", "actions", "rewards"),
    [
        (FIGURE, (1, 1), [1.0, -200.0]),  # Figure 2 (a): the first VM twice
        (FIGURE, (0,), [-200.0]),  # nothing runs
        (FIGURE, (2, 0), [1.0, -200.0]),  # partly placed
        (RELEASED_FIGURE, (2, 0), [1.0, -50.0]),
        # Both executors of job 1 on the large VM leave 4 cores for job 2: in mode released one has to wait first.
        (RELEASED_FIGURE, (2, 2), [1.0, -200.0]),
    ],
)
def test_actions_that_end_the_episode(chosen, actions, rewards):
    state = begun(FIGURE_2_JOBS, chosen)
    assert [core.step(state.address, action) for action in actions] == rewards
    assert state.status > COMPLETE


CHOICES = [
    PlacementSettings(cluster=TWO_KINDS, beta=0.3),
    PlacementSettings.of_mode("paper", cluster=TWO_KINDS, beta=0.5, lookahead="shares"),
    PlacementSettings.of_mode("released", cluster=TWO_KINDS, beta=0.5),
    PlacementSettings(cluster=TWO_KINDS, billing=Billing(granularity_s=10.0, minimum_s=15.0)),
    PlacementSettings(cluster=TWO_KINDS, billing=Billing(boot_s=3.0)),
]


@given(st.integers(0, 10**6), st.sampled_from(CHOICES), st.booleans())
@settings(max_examples=20)
def test_step_by_step_as_the_oracle(seed, chosen, valid_only):
    workload, rng = drawn_jobs(seed), np.random.default_rng(seed)
    plain, state = PlainPlacement(workload, chosen), begun(workload, chosen)
    other, mask = new_state(workload, chosen), np.zeros(4, dtype=np.int8)
    while not plain.over:
        core.masked(state.address, other.address, mask)
        if chosen.rules.lookahead == "none":
            assert mask.astype(bool).tolist() == plain.mask()
            if plain.job < 2:
                assert plain.mask() == plain.tried_mask()
        actions = np.flatnonzero(plain.mask()) if valid_only or rng.random() < 0.9 else np.arange(4)
        action = int(rng.choice(actions)) if len(actions) else 0
        assert core.step(state.address, action) == pytest.approx(plain.step(action))
        assert (state.now_s, state.job, state.placed) == (plain.now_s, plain.job, plain.placed % 99) or plain.over
        assert state.free_cores.tolist() == plain.cores
        assert state.cost == pytest.approx(plain.cost())
    assert (state.status == 1) == plain.complete
    done = len(plain.run_s)
    assert state.finish_s[:done].tolist() == pytest.approx(plain.finish_s)
    assert state.run_s[:done].tolist() == pytest.approx(plain.run_s)
    assert state.num_good == plain.good


def test_masks_under_the_lookahead_are_what_trying_gives():
    chosen = PlacementSettings.of_mode("released", cluster=TWO_KINDS)
    masked = 0
    for seed in range(20):
        workload, rng = drawn_jobs(seed, gap=2.0), np.random.default_rng(seed)
        plain, state = PlainPlacement(workload, chosen), begun(workload, chosen)
        other, mask = new_state(workload, chosen), np.zeros(4, dtype=np.int8)
        while not plain.over:
            core.masked(state.address, other.address, mask)
            for action in range(1, 4):
                expected = plain.mask()[action]
                if expected:
                    twin = plain.twin()
                    twin.step(action)
                    masked += twin.over and not twin.complete
                    expected = twin.complete or not twin.over
                assert mask[action] == expected
            actions = np.flatnonzero(mask)
            action = int(rng.choice(actions)) if len(actions) else 1
            assert core.step(state.address, action) == pytest.approx(plain.step(action))
    assert masked > 0


def test_random_episodes_have_the_oracle_s_distribution():
    workload, chosen = drawn_jobs(1), PlacementSettings(cluster=TWO_KINDS)
    state, rng = new_state(workload, chosen), np.random.default_rng(0)
    give_chance(state, rng)
    steps = []
    for _ in range(400):
        random_episodes(state.address, 1)
        steps.append(state.steps)
    plain, chance = PlainPlacement(workload, chosen), random.Random(0)
    expected = [random_episode(plain, chance) for _ in range(400)]
    assert np.mean(steps) == pytest.approx(np.mean(expected), abs=0.25)


# Reference runs of the published environment (one thousand prices are 0.24 $ per 3600 units), beta 1 and 0.5.
REFERENCE = {
    ("normal", "rr"): (174, 0, 13463.8, 54.554, 44, 7227.002, 7461.3244),
    ("normal", "fill"): (174, 0, 10932.0, 61.088, 18, 7780.9821, 5593.7693),
    ("burst", "rr"): (424, 92, 13808.0, 62.199, 71, 8849.306, 7430.9283),
    ("burst", "fill"): (425, 93, 13491.2, 66.156, 34, 8880.19, 6251.124),
}


@pytest.mark.parametrize(("trace", "rule"), REFERENCE)
def test_mode_released_repeats_the_published_environment(trace, rule, published):
    steps, waits, cost, duration, good, *returns = REFERENCE[trace, rule]
    workload = load_trace(trace)
    for beta, expected in zip((1.0, 0.5), returns, strict=True):
        result = simulate(workload, rule, PlacementSettings.of_mode("released", beta=beta))
        assert (result.steps, result.waits, result.good_placements) == (steps, waits, good)
        assert round(result.cost * 3600.0 / 0.24, 4) == cost
        assert round(result.mean_duration_s, 3) == duration
        assert round(result.table_3_return, 4) == expected


def test_an_incomplete_episode_says_so():
    episode = Episode.of(FIGURE_2_JOBS, FIGURE)
    episode.start(0)
    for action in (1, 1):
        core.step(episode.state.address, action)
    result = VM_PLACEMENT.result(episode, "hand", 0)
    assert not result.complete
    assert result.table_3_return == -199.0
    assert np.isnan(result.finish_s).all()
    assert (result.where == -1).all()
    assert np.isnan(result.score(OBJECTIVES["cost"]))
    with pytest.raises(ConfigError, match="hand: the episode ended at job 1: the executor does not fit the VM"):
        result.require_complete()


def test_table_4():
    assert (len(TABLE_4), TABLE_4.cores, TABLE_4.memory_gb) == (12, 96, 384.0)
    assert TABLE_4.price_per_hour == pytest.approx(5.76)
    assert set(TABLE_4.describe()["price_per_core_hour"].round(9)) == {0.06}
