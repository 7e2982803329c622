"""Merging the jobs of a query into one DAG."""

from decima.connect.eventlog.events import JobRecord, StageRecord
from decima.connect.eventlog.lineage import merge_jobs


def stages(**described):
    """`s3=(rdd, parents, operator)`."""
    return {
        int(name[1:]): StageRecord(int(name[1:]), 4, tuple(parents), rdd, (operator,))
        for name, (rdd, parents, operator) in described.items()
    }


def job(job_id, ids, begin, end):
    return JobRecord(job_id, begin, tuple(ids), {}, False, end, True)


def shape(merged):
    return [(stage.operators[0], stage.parents, stage.stage_ids) for stage in merged]


def test_one_job_keeps_its_dag():
    known = stages(s0=(5, (), "scan a"), s1=(6, (), "scan b"), s2=(9, (0, 1), "join"))
    merged = merge_jobs([job(0, (0, 1, 2), 0, 9)], known, {0, 1, 2}, {2})
    assert sorted(stage.operators[0] for stage in merged[:2]) == ["scan a", "scan b"]
    assert shape(merged)[2] == ("join", (0, 1), (2,))
    assert [stage.role for stage in merged] == ["shuffle", "shuffle", "result"]


def adaptive():
    """Scan a, scan b, join of both, result: four jobs, ancestors repeated under new ids and skipped."""
    known = stages(
        s0=(5, (), "scan a"),
        s1=(6, (), "scan b"),
        s2=(5, (), "scan a"),
        s3=(6, (), "scan b"),
        s4=(9, (2, 3), "join"),
        s5=(5, (), "scan a"),
        s6=(6, (), "scan b"),
        s7=(9, (5, 6), "join"),
        s8=(12, (7,), "result"),
    )
    jobs = [job(0, (0,), 0, 3), job(1, (1,), 0, 5), job(2, (2, 3, 4), 5, 8), job(3, (5, 6, 7, 8), 8, 9)]
    return jobs, known


def test_repeated_ancestors_are_one_stage():
    jobs, known = adaptive()
    merged = merge_jobs(jobs, known, {0, 1, 4, 8}, {8})
    assert [stage.parents for stage in merged] == [(), (), (0, 1), (2,)]
    assert shape(merged)[2:] == [("join", (0, 1), (4,)), ("result", (2,), (8,))]


def test_lost_output_computed_again_for_a_later_job_is_the_same_stage():
    jobs, known = adaptive()
    merged = merge_jobs(jobs, known, {0, 1, 3, 4, 8}, {8})
    assert [stage.parents for stage in merged] == [(), (), (0, 1), (2,)]
    assert {stage.stage_ids for stage in merged} == {(0,), (1, 3), (4,), (8,)}


def test_skipped_stage_hands_its_parents_on():
    known = stages(s0=(1, (), "scan"), s1=(2, (0,), "cached"), s2=(3, (1,), "count"))
    merged = merge_jobs([job(0, (0, 1, 2), 0, 9)], known, {0, 2}, {2})
    assert shape(merged) == [("scan", (), (0,)), ("count", (0,), (2,))]


def test_result_of_a_job_comes_before_the_next_job_only():
    known = stages(
        s0=(1, (), "broadcast a"),
        s1=(2, (), "broadcast b"),
        s2=(3, (), "scan"),
        s3=(4, (2,), "sum"),
        s4=(5, (), "late scan"),
    )
    jobs = [job(0, (0,), 0, 4), job(1, (1,), 0, 9), job(2, (2, 3), 5, 8), job(3, (4,), 9, 12)]
    merged = {stage.operators[0]: stage for stage in merge_jobs(jobs, known, set(range(5)), {0, 1, 3, 4})}
    names = list(merged)
    parents = {name: {names[parent] for parent in stage.parents} for name, stage in merged.items()}
    assert parents == {
        "broadcast a": set(),
        "broadcast b": set(),
        "scan": {"broadcast a"},  # submitted after its end; the other broadcast still runs
        "sum": {"scan"},
        "late scan": {"broadcast b", "sum"},
    }


def test_two_actions_on_one_rdd_are_two_result_stages():
    known = stages(s0=(1, (), "table"), s1=(1, (), "table"))
    merged = merge_jobs([job(0, (0,), 0, 3), job(1, (1,), 4, 6)], known, {0, 1}, {0, 1})
    assert shape(merged) == [("table", (), (0,)), ("table", (0,), (1,))]


def test_cycle_and_nothing_at_all_give_no_stage():
    known = stages(s0=(1, (1,), "a"), s1=(2, (0,), "b"))
    assert merge_jobs([job(0, (0, 1), 0, 3)], known, {0, 1}, {1}) == []
    assert merge_jobs([job(0, (0, 1), 0, 3)], known, set(), set()) == []
    assert merge_jobs([], known, {0}, set()) == []


def test_order_of_stages_does_not_depend_on_ids_timing_or_code_numbers():
    """Two branches, whose shuffles end in either order, so that ids and code numbers change places."""

    def found(left_id, right_id):
        known = stages(
            s0=(10, (), "Scan x"),
            s1=(11, (), "Scan y"),
            s4=(30, (2, 3), "Sort"),
            **{f"s{left_id}": (20 + left_id, (0,), f"Sum ({left_id})")},
            **{f"s{right_id}": (20 + right_id, (1,), f"Window ({right_id})")},
        )
        jobs = [job(0, (0,), 0, 3), job(1, (1,), 0, 3), job(2, (2,), 4, 6), job(3, (3,), 5, 7), job(9, (4,), 7, 9)]
        merged = merge_jobs(jobs, known, set(range(5)), {4})
        return [(stage.operators[0].split(" (")[0], stage.parents) for stage in merged]

    one, two = found(2, 3), found(3, 2)
    assert one == two
    position = {name: index for index, (name, _) in enumerate(one)}
    assert dict(one) == {
        "Scan x": (),
        "Scan y": (),
        "Sum": (position["Scan x"],),
        "Window": (position["Scan y"],),
        "Sort": tuple(sorted((position["Sum"], position["Window"]))),
    }
