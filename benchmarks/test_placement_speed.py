"""Steps per second of executor placement, random valid actions with masks: compiled core against plain Python."""

import os
import random
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from benchmarks.placement_episodes import random_episodes
from decima.systems.cloud import PlacementSettings
from decima.systems.cloud.sources import Generator
from decima.systems.cloud.state import give_chance, new_state
from tests.placement_oracle import PlainPlacement, random_episode

EPISODES = 400
AIM = 300.0
THREADS = min(4, os.cpu_count() or 1)
AIM_THREADS = 0.75 * THREADS  # three times the speed on four cores


def ready(workload, settings, seed):
    rng = np.random.default_rng(seed)
    state = new_state(workload, settings)
    give_chance(state, rng)
    random_episodes(state.address, 1)
    return state, rng


def best_rate(run, rounds=7, clock=time.process_time):
    """Most steps per second of several rounds; of one thread by its CPU time, as machines are shared."""
    rates = []
    for _ in range(rounds):
        start = clock()
        steps = run()
        rates.append(steps / (clock() - start))
    return max(rates)


@pytest.mark.parametrize("pattern", ["normal", "burst"])
def test_core_against_plain_python(pattern):
    workload, settings = Generator(pattern).draw(0), PlacementSettings()
    plain, chance = PlainPlacement(workload, settings), random.Random(0)
    slow = best_rate(lambda: sum(random_episode(plain, chance) for _ in range(10)))
    states = [ready(workload, settings, seed) for seed in range(max(2, THREADS))]
    fast = best_rate(lambda: random_episodes(states[0][0].address, EPISODES))

    def all_threads():
        with ThreadPoolExecutor(len(states)) as pool:
            return sum(pool.map(lambda pair: random_episodes(pair[0].address, EPISODES), states))

    wall = time.perf_counter
    alone = best_rate(lambda: random_episodes(states[0][0].address, EPISODES), clock=wall)
    threads = best_rate(all_threads, clock=wall)
    # On a machine that others use, too: what a step costs in CPU time should not be more with threads.
    busy = best_rate(all_threads)
    print(
        f"\nplacement, {pattern}: plain Python {slow / 1e3:.0f} k steps/s, core {fast / 1e6:.1f} M "
        f"({fast / slow:.0f} x, aim {AIM:.0f}), "
        f"{len(states)} threads {threads / alone:.1f} x (aim {AIM_THREADS:.1f}), each {busy / fast:.2f} x by CPU time"
    )
