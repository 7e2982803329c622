"""The compiled environment: stepped by hand, beside the plain-Python oracle, and what always holds."""

import random

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from benchmarks.placement_episodes import random_episodes
from decima.core.errors import ConfigError, DecimaError
from decima.systems.cloud import (
    TABLE_4,
    Billing,
    Cluster,
    PlacementJob,
    PlacementSettings,
    PlacementWorkload,
    VmType,
    simulate,
)
from decima.systems.cloud import engine as core
from decima.systems.cloud.fields import COMPLETE
from decima.systems.cloud.result import OBJECTIVES
from decima.systems.cloud.sources import load_trace
from decima.systems.cloud.state import give_chance, new_state
from decima.systems.cloud.system import VM_PLACEMENT, Episode
from decima.systems.cloud.workload import jobs_of_rows
from tests.placement_oracle import PlainPlacement, random_episode
from tests.unit.systems.cloud.cases import FIGURE_2, FIGURE_2_JOBS, TWO_KINDS, Fixed, drawn_jobs, placements

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
        (PlacementSettings.of_mode("paper", cluster=FIGURE_2, idle_waits=2), (0, 0, 0), [-1.0, -1.0, -200.0]),
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
    PlacementSettings.of_mode("paper", cluster=TWO_KINDS, idle_waits=2),
]


@given(st.integers(0, 10**6), st.sampled_from(CHOICES), st.booleans())
@settings(max_examples=20)
@example(1458, CHOICES[0], False)  # begins to place a job that has no room: its mask then leads nowhere
def test_step_by_step_as_the_oracle(seed, chosen, valid_only):
    workload, rng = drawn_jobs(seed), np.random.default_rng(seed)
    plain, state = PlainPlacement(workload, chosen), begun(workload, chosen)
    other, mask, valid = new_state(workload, chosen), np.zeros(4, dtype=np.int8), True
    while not plain.over:
        core.masked(state.address, other.address, mask)
        if chosen.rules.lookahead == "none":
            assert mask.astype(bool).tolist() == plain.mask()
            if plain.job < 2 and valid:
                assert plain.mask() == plain.tried_mask()
        actions = np.flatnonzero(plain.mask()) if valid_only or rng.random() < 0.9 else np.arange(4)
        action = int(rng.choice(actions)) if len(actions) else 0
        valid = plain.mask()[action] and (valid or plain.placed == 0)
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


# ---- boot times, started hours and prices where a rounded sum or a forgotten moment would decide ---------------------

ONE_CORE = Cluster((VmType("a", 1, 16.0, 1, 3.6),))
FOUR = Cluster((VmType("small", 4, 8.0, 2, 0.24), VmType("large", 8, 16.0, 2, 0.4)))
HOURS = Billing(granularity_s=3600.0)


def one_core_jobs(*times):
    """Jobs of an executor with one core and 1 GB: (arrival, duration)."""
    return PlacementWorkload(
        tuple(PlacementJob(at, number, 1, 1, 1.0, 1, run) for number, (at, run) in enumerate(times)), "toy"
    )


def test_a_job_on_a_vm_that_boots_waits_until_it_is_up():
    cluster = Cluster((VmType("a", 4, 16.0, 1, 3.6),))
    result = simulate(
        one_core_jobs((0.0, 60.0), (5.0, 60.0), (40.0, 60.0)),
        "ff",
        PlacementSettings(cluster=cluster, billing=Billing(boot_s=30.0)),
    )
    assert result.placed_s.tolist() == [0.0, 5.0, 40.0]
    assert result.start_s.tolist() == [30.0, 30.0, 40.0]
    assert result.billed_s.tolist() == [100.0]


@pytest.mark.parametrize("begin", [0.0, 0.1, 0.7, 1.3])
@pytest.mark.parametrize(("granularity_s", "minimum_s"), [(0.0, 0.0), (0.0, 10.0), (7.6, 0.0)])
def test_a_vm_whose_job_ends_now_does_not_boot_again(begin, granularity_s, minimum_s):
    """Whatever the rounding of the sums of times: each of four jobs begins at the end of the one before."""
    billing = Billing(granularity_s, minimum_s, 30.0)
    jobs = one_core_jobs(*((begin, run) for run in (8.3, 0.1, 7.7, 2.9)))
    result = simulate(jobs, "fill", PlacementSettings(cluster=ONE_CORE, billing=billing))
    assert result.start_s.tolist() == pytest.approx([begin + 30.0 + before for before in (0.0, 8.3, 8.4, 16.1)])
    assert result.billed_s.tolist() == [53.2 if granularity_s else 49.0]  # 6.4 parts of 7.6 s are seven


def test_exactly_an_hour_is_one_hour():
    rng = np.random.default_rng(0)
    settings = PlacementSettings(cluster=ONE_CORE, billing=HOURS)
    for _ in range(60):
        begin, first = float(rng.integers(1, 20_000)) / 10, float(rng.integers(1, 36_000)) / 10
        jobs = one_core_jobs((begin, first), (begin, round(3600 - first, 1)))
        assert simulate(jobs, "fill", settings).billed_s.tolist() == [3600.0], (begin, first)
        longer = one_core_jobs((begin, first), (begin, round(3600.001 - first, 3)))
        assert simulate(longer, "fill", settings).billed_s.tolist() == [7200.0], (begin, first)


def test_first_fit_prefers_a_vm_that_is_paid_for():
    cluster = Cluster((VmType("cheap", 2, 16.0, 1, 0.1), VmType("dear", 4, 16.0, 1, 0.2)))
    rows = [(0, 1, 1, 4, 1, 1, 60), (100, 2, 1, 1, 1, 1, 60)]  # the first one fits the dear VM only
    for billing, expected in ((HOURS, "dear-1"), (Billing(), "cheap-1")):
        settings = PlacementSettings(cluster=cluster, billing=billing)
        assert simulate(jobs_of_rows(rows, "toy"), "ff", settings).jobs()["vms"].tolist() == ["dear-1", expected]


@pytest.mark.parametrize(
    "billing", [Billing(boot_s=12.0), Billing(60.0, 0.0, 7.5), Billing(minimum_s=30.0, boot_s=4.0)]
)
def test_exact_programs_add_the_least_with_boot_times(billing):
    """The last of three jobs: against all placements after the program's own first ones."""
    different = 0
    for seed in range(40):
        workload = drawn_jobs(seed, n=3, gap=3.0, most=3, cores=2)
        for name, beta in (("ilp_exact", 1.0), ("ilp_beta", 0.5), ("good_first", 1.0)):
            settings = PlacementSettings(cluster=FOUR, billing=billing, beta=beta)
            result = simulate(workload, name, settings)
            plan = [result.where[result._job_of == job].tolist() for job in range(3)]
            if result.waits:
                continue
            losses = {}
            for last in placements(workload.jobs[2], FOUR):
                try:
                    tried = simulate(workload, Fixed(plan=[*plan[:2], last]), settings)
                except DecimaError:
                    continue  # no room beside the other jobs
                if name != "good_first" or tried.well_placed[2]:
                    losses[tuple(last)] = -tried.reward
            if losses:
                different += max(losses.values()) > min(losses.values()) + 1e-9
                assert -result.reward == pytest.approx(min(losses.values()), abs=1e-6), (seed, name)
    assert different > 40
