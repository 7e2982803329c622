"""Fidelity on planted logs: a cluster that obeys the simulator is foretold; an effect that is switched off shows."""

import numpy as np
import pytest

from decima.connect.eventlog.application import read_event_logs
from decima.workload.profile import JobProfile, Stage
from measure.fidelity import simulation
from measure.fidelity.runs import Measurements, measured_floor
from measure.logs import with_slot_times
from tests.unit.connect.planted_logs import PlantedLog

LEVELS = (1, 3)
STARTUP_MS = 3000


def job(name, scale, rng, *, fresh=3.0, first=2.0, slowdown=0.25):
    """Four stages; tasks `first` times as long in first waves, `slowdown` longer per further executor."""

    def durations(factor):
        return tuple(
            100.0 * scale * factor * (1.0 + slowdown * (level - 1)) * rng.uniform(0.9, 1.1, 20) for level in LEVELS
        )

    shape = [(9, ()), (7, ()), (8, (0, 1)), (1, (2,))]
    stages = [
        Stage(f"stage-{index}", tasks, parents, LEVELS, durations(fresh), durations(first), durations(1.0))
        for index, (tasks, parents) in enumerate(shape)
    ]
    return JobProfile(name, tuple(stages), "planted")


def planted(folder, *, dispatch_ms=0, repetitions=3, **effects):
    """Three queries alone, warm and on new executors, and a mix of them, `repetitions` times each."""
    rng = np.random.default_rng(1)
    jobs = [job(f"q{index}", 1.0 + index / 2, rng, **effects) for index in range(3)]
    for repetition in range(repetitions):
        for executors in LEVELS:
            log = PlantedLog(f"app-{executors}-{repetition}", executors, dispatch_ms, STARTUP_MS + 10 * repetition)
            log.run([("", jobs[0], 0.0)], seed=0)
            for number, profile in enumerate(jobs):
                log.run([(f"{profile.name}#warm", profile, 0.0)], seed=100 * repetition + number)
            for number, profile in enumerate(jobs):
                log.new_executors()
                log.run([(f"{profile.name}#fresh", profile, 0.0)], seed=100 * repetition + 10 + number, fresh=True)
            log.write(folder)
        log = PlantedLog(f"mix-{repetition}", LEVELS[-1], dispatch_ms)
        log.run([("", jobs[0], 0.0)], seed=0)
        mix = [(f"{profile.name}#mix", profile, 20.0 * number) for number, profile in enumerate(jobs)]
        log.run(mix, seed=1000 + repetition)
        log.write(folder)
    return Measurements(read_event_logs([folder]))


@pytest.fixture(scope="module")
def measurements(tmp_path_factory):
    return planted(tmp_path_factory.mktemp("logs"))


@pytest.fixture(scope="module")
def alone(measurements):
    return simulation.simulate_alone(measurements, simulation.VARIANTS, seeds=8, threads=1)


def mean(table, **where):
    """Mean of |error| of the rows that have these values."""
    for column, value in where.items():
        table = table[table[column] == value]
    assert len(table)
    return (table.simulated_ms / table.real_ms - 1.0).abs().mean()


def test_runs_are_told_apart(measurements):
    counts = measurements.runs.groupby(["alone", "fresh", "executors"]).size().to_dict()
    assert counts == {(True, fresh, level): 9 for fresh in (False, True) for level in LEVELS} | {(False, False, 3): 9}
    assert sorted(measurements.runs.repetition.unique()) == [0, 1, 2]
    fresh = measurements.runs[measurements.runs.fresh]
    assert sorted(fresh.startup_ms.unique()) == [3000, 3010, 3020]
    assert [len(mix) for mix in measurements.mixes()] == [3, 3, 3]


def test_a_cluster_that_obeys_the_simulator_is_foretold(alone):
    for fresh in (False, True):
        for kind in (simulation.HELD_OUT, simulation.TRAINING, simulation.SAME_RUN):
            assert mean(alone, variant=simulation.ALL_EFFECTS, profile=kind, fresh=fresh) < 0.04


def test_every_effect_that_is_switched_off_shows_where_it_was_planted(alone):
    held_out = alone[alone["profile"] == simulation.HELD_OUT]

    def of(variant, fresh, executors):
        return mean(held_out, variant=variant, fresh=fresh, executors=executors)

    assert of("no first-wave slowdown", False, 3) > 0.1
    assert of("no slowdown by parallelism", False, 3) > 0.2
    assert of("no slowdown by parallelism", False, 1) == of(simulation.ALL_EFFECTS, False, 1)
    assert of("no start-up of executors", True, 3) > 0.3
    assert of("no start-up of executors", False, 3) == of(simulation.ALL_EFFECTS, False, 3)
    assert of("none of the three", True, 3) > of("no start-up of executors", True, 3)


def test_an_effect_that_was_not_planted_does_not_show(tmp_path):
    measurements = planted(tmp_path, first=1.0, slowdown=0.0)
    variants = {name: simulation.VARIANTS[name] for name in ("no first-wave slowdown", "no slowdown by parallelism")}
    assert mean(simulation.simulate_alone(measurements, variants, seeds=8, threads=1), fresh=False) < 0.04


def test_a_mix_is_foretold_by_queries_alone_and_by_other_mixes(measurements):
    variants = {name: simulation.VARIANTS[name] for name in (simulation.ALL_EFFECTS, "no slowdown by parallelism")}
    table = simulation.simulate_mixes(measurements, variants, seeds=8, threads=1)
    assert len(table) == 9 * 2 * (3 + 1)
    for kind in (simulation.ALONE, simulation.HELD_OUT, simulation.SAME_RUN):
        assert mean(table, variant=simulation.ALL_EFFECTS, bound=True, profile=kind) < 0.04
    assert mean(table, variant="no slowdown by parallelism", bound=True) > 0.2


def test_levels_that_were_not_measured_beside_a_mix_come_from_other_runs(measurements):
    executors = LEVELS[-1]
    beside = Measurements([each for each in measurements.applications if "app-1" not in each.key.app_id])
    slowdown = "no slowdown by parallelism"
    variants = {name: simulation.VARIANTS[name] for name in (simulation.ALL_EFFECTS, slowdown)}
    without = simulation.simulate_mixes(beside, variants, seeds=1, threads=1)
    assert set(without.variant) == {simulation.ALL_EFFECTS}
    levels = measurements.profiles(measurements.runs[measurements.runs.alone & ~measurements.runs.fresh], dispatch=True)
    for simulate in (simulation.simulate_alone, simulation.simulate_mixes):
        table = simulate(beside, variants, seeds=4, threads=1, levels=levels)
        table = table[(table.executors == executors) & table["profile"].isin([simulation.HELD_OUT, simulation.ALONE])]
        assert mean(table, variant=slowdown) > 0.1 > mean(table, variant=simulation.ALL_EFFECTS)


def test_dispatch_times_count_to_the_tasks_that_waited(tmp_path):
    measurements = planted(tmp_path, dispatch_ms=30, repetitions=2)
    names = (simulation.ALL_EFFECTS, "no dispatch times")
    table = simulation.simulate_alone(measurements, {name: simulation.VARIANTS[name] for name in names}, 8, 1)
    table = table[~table.fresh & (table["profile"] == simulation.HELD_OUT)]
    assert mean(table, variant=simulation.ALL_EFFECTS) < 0.04
    assert mean(table, variant="no dispatch times") > 0.1


def test_slot_times_add_up_to_the_span_of_one_executor(tmp_path):
    planted(tmp_path, dispatch_ms=30, repetitions=1)
    (application,) = read_event_logs([tmp_path / "app-1-0"])
    tasks = with_slot_times(application).tasks
    queries = application.queries.set_index("query").duration_ms
    for query, mine in tasks.groupby("query", observed=True):
        assert mine.duration_ms.sum() == pytest.approx(queries[query])
        assert (mine.duration_ms >= application.tasks.loc[mine.index, "duration_ms"]).all()


def test_the_floor_is_the_distance_to_the_other_repetitions(measurements):
    floor = measured_floor(measurements)
    assert len(floor) == len(measurements.runs)
    row = floor.iloc[0]
    same = measurements.runs[["name", "executors", "fresh", "alone"]] == row[["name", "executors", "fresh", "alone"]]
    times = measurements.runs.real_ms[same.all(axis=1)]
    assert row.others_ms == pytest.approx((times.sum() - row.real_ms) / (len(times) - 1))
