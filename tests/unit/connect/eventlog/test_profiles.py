"""Merging runs of several logs into job profiles."""

import numpy as np
import pytest

from decima.connect.eventlog.application import read_event_log, read_event_logs
from decima.connect.eventlog.profiles import collect_profiles, profiles_of
from decima.connect.eventlog.tables import assign_slots, mean_slots
from decima.workload.profile import WAVES
from tests.unit.connect.event_lines import LOGS, executor_added, job_end, job_start, small_log, stage, task_end, write


def collect(tmp_path, *logs, **options):
    paths = [write(tmp_path / f"log-{number}", lines) for number, lines in enumerate(logs)]
    return collect_profiles(read_event_logs(paths), **options)


def lists(stage_, wave):
    return [values.tolist() for values in getattr(stage_, wave)]


def test_levels_and_waves_of_several_logs(tmp_path):
    one = small_log(1) + small_log(1, "q#1", at=1000, factor=0.5, first_id=1)[1:]
    two = small_log(2)
    (profile,) = collect(tmp_path, two, one).profiles
    assert (profile.name, profile.source) == ("q", "spark")
    scan, total = profile.stages
    assert (scan.num_tasks, total.num_tasks, total.parents) == (2, 1, (0,))
    assert scan.levels == total.levels == (1, 2)
    # One executor: a fresh task and a later one; in the second run the first task of the stage is not fresh.
    # Two executors: each begins with the scan, so all are fresh.
    assert lists(scan, "fresh") == [[400.0], [400.0, 300.0]]
    assert lists(scan, "first") == [[200.0], []]
    assert lists(scan, "rest") == [[300.0, 150.0], []]
    assert lists(total, "fresh") == [[], []]
    assert lists(total, "first") == [[100.0, 50.0], [100.0]]


def test_run_beside_others_has_the_level_of_its_own_tasks(tmp_path):
    other = [job_start(5, [stage(50)], 0, **{"decima.query": "other"}), task_end(50, 50, 800, 900), job_end(5, 900)]
    collected = collect(tmp_path, [executor_added("9"), executor_added("8"), *small_log(1), *other])
    assert dict(zip(collected.runs["query"], collected.runs["level"], strict=True)) == {"q#0": 1, "other": 1}


def three_stages(at, first_id, query):
    first, second, third = (10 * first_id + number for number in range(3))
    infos = [stage(first, rdd=first), stage(second, 1, (first,), second), stage(third, 1, (second,), third)]
    lines = [job_start(first_id, infos, at, **{"decima.query": query})]
    for number, kind in enumerate(["ShuffleMapTask", "ShuffleMapTask", "ResultTask"]):
        lines.append(task_end(first + number, first + number, at + number, at + number + 1, kind=kind))
    return [*lines, job_end(first_id, at + 3)]


def test_other_structure_becomes_a_profile_of_its_own_and_is_reported(tmp_path):
    lines = three_stages(5000, 3, "q#9") + small_log(1) + small_log(1, "q#1", at=1000, first_id=1)[1:]
    collected = collect(tmp_path, lines)
    assert [(profile.name, len(profile.stages)) for profile in collected.profiles] == [("q", 2), ("q~2", 3)]
    assert dict(zip(collected.runs["query"], collected.runs["job"], strict=True)) == {
        "q#0": "q",
        "q#1": "q",
        "q#9": "q~2",
    }
    (note,) = collected.report.table.query("item == 'note profile'").to_dict("records")
    assert note["reason"] == "runs of one name with another DAG: made another profile"
    assert note["detail"] == "q~2: 1 of 3 runs, q#9"


def test_task_counts_that_differ_are_reported_and_the_most_frequent_is_kept(tmp_path):
    def run(first_id, tasks):
        return [
            job_start(first_id, [stage(first_id, tasks)], 100 * first_id, **{"decima.query": f"q#{first_id}"}),
            *(task_end(10 * first_id + n, first_id, 100 * first_id, 100 * first_id + 5, n) for n in range(tasks)),
            job_end(first_id, 100 * first_id + 5),
        ]

    collected = collect(tmp_path, [executor_added(), *run(1, 3), *run(2, 2), *run(3, 3)])
    assert [each.num_tasks for each in collected.profiles[0].stages] == [3]
    (note,) = collected.report.table.query("item == 'note profile'").to_dict("records")
    assert note["reason"] == "task count of a stage differs: the most frequent kept"
    assert note["detail"] == "q, stage-0: 2 tasks in 1 runs, 3 tasks in 2 runs"


def test_sizes_are_means_over_the_runs():
    collected = collect_profiles([read_event_log(LOGS / "queries.zstd")])
    assert [profile.name for profile in collected.profiles] == ["join", "subquery", "scan"]
    assert len(collected.sizes) == sum(len(profile.stages) for profile in collected.profiles)
    assert (collected.sizes.runs == 2).all()
    join = collected.sizes[collected.sizes["job"] == "join"]
    # Every shuffle is read once, whole.
    profile = collected.profiles[0]
    for index, each in enumerate(profile.stages):
        written = join.shuffle_write_bytes.iloc[list(each.parents)].sum()
        assert join.shuffle_read_bytes.iloc[index] == pytest.approx(written)


def test_every_used_task_is_in_a_profile_once():
    logs = read_event_logs([LOGS])
    collected = collect_profiles(logs)
    used = np.concatenate([log.tasks[log.tasks.use == "used"].duration_ms for log in logs])
    profiled = np.concatenate([each.all_durations_ms for profile in collected.profiles for each in profile.stages])
    assert sorted(profiled) == sorted(used)
    assert sum(len(log.queries[log.queries.skipped == ""]) for log in logs) == len(collected.runs)


def test_profiles_of_chosen_queries(tmp_path):
    one = read_event_log(write(tmp_path / "one", small_log(1)))
    two = read_event_log(write(tmp_path / "two", small_log(2)))
    assert one.only([]).queries.skipped.tolist() == ["not asked for"]
    assert one.queries.skipped.tolist() == [""]
    (query,) = one.queries["query"]
    assert [stage_.levels for stage_ in profiles_of([one, two], [[query], [query]])["q"].stages] == [(1, 2)] * 2
    assert [stage_.levels for stage_ in profiles_of([one, two], [[], {query}])["q"].stages] == [(2,)] * 2
    assert profiles_of([one, two], [[], ["another"]]) == {}


# Slots, waves and executor counts, by hand.


def place(tasks, slots=(1, 1)):
    """Tasks are (executor, launch, finish, query, stage)."""
    executor, launch, finish, query, stage = np.array(tasks, dtype=np.int64).T
    placement = assign_slots(executor, launch, finish, np.arange(len(tasks)), query, stage, slots)
    return placement.slot.tolist(), [WAVES[code] for code in placement.wave], placement.first_of_query.tolist()


def test_waves_of_one_core_executors():
    tasks = [(0, 0, 10, 0, 0), (1, 0, 8, 0, 0), (0, 10, 15, 0, 0)]
    tasks += [(1, 8, 20, 0, 1), (1, 20, 25, 0, 1), (0, 15, 20, 1, 2)]
    slot, wave, new = place(tasks)
    assert slot == [0] * 6
    assert wave == ["fresh", "fresh", "rest", "first", "rest", "first"]
    assert new == [True, True, False, False, False, True]


def test_late_stamp_of_an_end_does_not_open_a_second_slot():
    slot, wave, _ = place([(0, 0, 136, 0, 0), (0, 100, 200, 0, 0), (0, 190, 300, 0, 0)])
    assert slot == [0, 0, 0]
    assert wave == ["fresh", "rest", "rest"]


def test_executor_with_two_cores_is_two_executors():
    tasks = [(0, 0, 50, 0, 0), (0, 1, 20, 0, 0), (0, 20, 40, 0, 0), (0, 50, 60, 0, 1), (0, 50, 70, 0, 1)]
    slot, wave, _ = place(tasks, slots=[2])
    # The task at 20 follows the short one; at 50 the slot that has waited longer, since 40, comes first.
    assert slot == [0, 1, 1, 1, 0]
    assert wave == ["fresh", "fresh", "rest", "first", "first"]


def test_order_of_the_rows_does_not_matter():
    generator = np.random.default_rng(3)
    launch = np.sort(generator.integers(0, 500, 60))
    executor, finish = generator.integers(0, 2, 60), launch + generator.integers(0, 90, 60)
    columns = [executor, launch, finish, np.arange(60), generator.integers(0, 3, 60), generator.integers(0, 5, 60)]
    whole = assign_slots(*columns, [1, 3])
    order = generator.permutation(60)
    mixed = assign_slots(*(column[order] for column in columns), [1, 3])
    for name in ("slot", "wave", "first_of_query"):
        assert getattr(whole, name)[order].tolist() == getattr(mixed, name).tolist()


@pytest.mark.parametrize(
    ("begin", "end", "expected"),
    [
        (0, 10, 2.0),
        (0, 20, (2 * 20 + 4 * 5) / 20),
        (20, 20, 6.0),  # no time passes: those that are there
        (30, 30, 4.0),
        (50, 60, 4.0),
    ],
)
def test_mean_slots(begin, end, expected):
    # Two slots from 0 to 30, four from 15 on.
    assert mean_slots(begin, end, [0, 15], [30, np.inf], [2, 4]) == expected
