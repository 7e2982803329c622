"""Whatever happens to an event log: an error of ours or tables that add up, never a wrong duration."""

import contextlib
import functools
import json
import random
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from decima.connect.eventlog.application import read_event_log, read_event_logs
from decima.connect.eventlog.files import Damage, find_logs, read_lines
from decima.connect.eventlog.profiles import collect_profiles
from decima.connect.eventlog.recordings import read_recordings
from decima.core.errors import DecimaError
from measure import recount
from tests.knobs import FIRST_SEED, LOG_MUTATIONS
from tests.unit.connect.event_lines import LOGS

COMPRESSED = ("queries.zstd", "broadcast.lz4", "unnamed.snappy")
SMALL = ("plain", "failed-task.zstd", "speculation.zstd", "killed-executor.zstd")
NEEDED = {
    f"SparkListener{name}"
    for name in ("JobStart", "JobEnd", "TaskEnd", "StageCompleted", "ExecutorAdded", "ExecutorRemoved")
}
# Objects that hold one of these are where damage matters most.
FIELDS = {"Task ID", "Job ID", "Stage ID", "Executor ID", "Executor Run Time", "Total Cores", "RDD ID"}
slow = settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])


@functools.cache
def lines_of(name):
    (log,) = find_logs([LOGS / name])
    return list(read_lines(log, Damage()))


def check(content):
    """Read these bytes as a log; the application, or None when it was refused."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log"
        path.write_bytes(content)
        try:
            application = read_event_log(path)
        except DecimaError:
            return None
    check_tables(application)
    check_profiles(application)
    return application


def check_tables(application):
    tasks, queries, stages = application.tasks, application.queries, application.stages
    assert np.isfinite(tasks.duration_ms).all()
    assert (tasks.duration_ms >= 0).all()
    assert not (tasks.scheduler_delay_ms < 0).any()
    used = tasks[tasks.use == "used"]
    assert (used.status == "success").all()
    assert not used.duplicated(["query_number", "stage", "partition"]).any()
    assert set(tasks.wave) <= {"fresh", "first", "rest"}
    fresh = tasks[tasks.wave == "fresh"]
    assert not fresh.duplicated(["executor", "slot"]).any()
    usable = queries[queries.skipped == ""]
    assert (usable.duration_ms >= 0).all()
    assert (usable.stages > 0).all()
    assert (queries.executors >= 0).all()
    assert (queries.busy >= 0).all()
    assert (queries.busy <= application.executors.slots.sum() + 1e-9).all()
    assert (queries.peak_tasks <= application.executors.slots.sum()).all()
    assert set(stages["query"]) <= set(usable["query"])
    assert not queries["query"].duplicated().any()
    count = application.report.table.groupby("item")["count"].sum()
    assert count.get("query", 0) == len(queries)
    assert count.get("task", 0) >= len(tasks)
    assert (application.report.table["count"] > 0).all()


def check_profiles(application):
    collected = collect_profiles([application])
    profiled = [each.all_durations_ms for profile in collected.profiles for each in profile.stages]
    in_a_profile = set(collected.runs[collected.runs["job"] != ""]["query"])
    used = application.tasks[(application.tasks.use == "used") & application.tasks["query"].isin(in_a_profile)]
    assert sum(map(len, profiled)) == len(used)
    assert len(collected.sizes) == len(profiled)
    assert set(collected.runs["query"]) == set(application.queries[application.queries.skipped == ""]["query"])


def check_counts(application, lines):
    """The report against a count of its own over the lines."""
    count = application.report.table.groupby("item")["count"].sum()
    assert count["line"] == len(lines)
    assert count.get("task", 0) == sum(_event(line) == "SparkListenerTaskEnd" for line in lines)


def _event(line):
    try:
        return json.loads(line)["Event"]
    except (ValueError, KeyError, TypeError):
        return None


@slow
@given(st.sampled_from(SMALL), st.floats(0.0, 1.0))
def test_cut_at_any_byte(name, share):
    content = b"".join(lines_of(name))
    content = content[: round(share * len(content))]
    application = check(content)
    if application is not None:
        check_counts(application, content.splitlines())
        assert set(application.queries["query"]) <= set(check(b"".join(lines_of(name))).queries["query"])


@slow
@given(st.sampled_from(COMPRESSED), st.floats(0.0, 1.0))
def test_cut_of_a_compressed_log(name, share):
    content = (LOGS / name).read_bytes()
    check(content[: round(share * len(content))])


@slow
@given(st.sampled_from(COMPRESSED), st.data())
def test_changed_bytes_of_a_compressed_log(name, data):
    content = bytearray((LOGS / name).read_bytes())
    for place in data.draw(st.lists(st.integers(0, len(content) - 1), min_size=1, max_size=4)):
        content[place] = data.draw(st.integers(0, 255))
    check(bytes(content))


@slow
@given(st.sampled_from(SMALL), st.data())
def test_lines_removed_repeated_or_in_another_order(name, data):
    lines = lines_of(name)
    mixed = data.draw(st.lists(st.sampled_from(lines), max_size=len(lines)) | st.permutations(lines))
    application = check(b"".join(mixed))
    if application is not None:
        check_counts(application, mixed)


@pytest.mark.parametrize("name", SMALL)
def test_each_line_left_out_once(name):
    lines = lines_of(name)
    for index in range(len(lines)):
        rest = lines[:index] + lines[index + 1 :]
        application = check(b"".join(rest))
        check_counts(application, rest)


values = (
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from([[], {}, [1], {"Event": 1}, 2**31, 2**62, -(2**63), 1e308])
)


@slow
@given(st.sampled_from(SMALL), st.data())
def test_changed_fields(name, data):
    lines = list(lines_of(name))
    needed = [index for index, line in enumerate(lines) if _event(line) in NEEDED]
    for _ in range(data.draw(st.integers(1, 6))):
        place = data.draw(st.sampled_from(needed))
        event = json.loads(lines[place])
        _mutate(event, data)
        lines[place] = json.dumps(event, separators=(",", ":")).encode() + b"\n"
    application = check(b"".join(lines))
    if application is not None:
        check_counts(application, lines)


def _mutate(event, data):
    """Change, remove or add one field somewhere inside."""
    places = list(_places(event))
    shallow = places[:1] + [place for place in places if isinstance(place[0], dict) and place[0].keys() & FIELDS]
    holder, key = data.draw(st.sampled_from(shallow) | st.sampled_from(places))
    what = data.draw(st.sampled_from(["change", "change", "remove", "add"]))
    if what == "remove":
        del holder[key]
    elif what == "add" and isinstance(holder, dict):
        holder[data.draw(st.text(max_size=4))] = data.draw(values)
    else:
        holder[key] = data.draw(values)


def _places(value):
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in list(pairs):
        yield value, key
        if isinstance(item, dict | list):
            yield from _places(item)


# Logs in which everything counts, and where it counts: whatever the recount has less of was lost.
MUTATED = ("plain", "speculation.zstd", "killed-executor.zstd", "queries.zstd", "unnamed.snappy")
COUNTED = ("jobs", "stages that ran", "tasks succeeded", "queries", "queries that succeeded")


def test_a_mutation_that_loses_something_shows_in_the_completeness(tmp_path, tally):
    refused = lost_some = 0
    for seed in range(FIRST_SEED, FIRST_SEED + LOG_MUTATIONS):
        dice = random.Random(seed)
        name = dice.choice(MUTATED)
        path = tmp_path / f"{name}-{seed}"
        path.write_bytes(b"".join(mutated(lines_of(name), dice)))
        lost = lost_in(path, name)
        lost_some += bool(lost)
        try:
            logs = read_event_logs([path])
            answer = bool(collect_profiles(logs).profiles)
            read_recordings(logs)
        except DecimaError:
            answer = False
        refused += not answer
        assert not answer or not lost or logs.report.completeness.least < 1.0, f"seed {seed}: {name} lacks {lost}"
        path.unlink()
    tally("mutated event logs", inputs=LOG_MUTATIONS, with_a_loss=lost_some, without_an_answer=refused)
    assert LOG_MUTATIONS / 4 < lost_some < LOG_MUTATIONS
    assert refused < lost_some


@pytest.mark.parametrize("name", ["plain", "killed-executor.zstd"])
def test_log_that_is_still_written(name, tmp_path):
    lines = lines_of(name)
    for end in range(1, len(lines)):
        (tmp_path / "log.inprogress").write_bytes(b"".join(lines[:end]))
        with contextlib.suppress(DecimaError):
            logs = read_event_logs([tmp_path])
            assert logs.report.completeness.least < 1.0
            read_recordings(logs)


def test_logs_without_damage_are_complete():
    for name in MUTATED:
        assert read_event_logs([LOGS / name]).report.completeness.least == 1.0, name


@functools.cache
def recount_of(name):
    (counts,) = map(recount.count, recount.applications(LOGS / name).values())
    return counts


def lost_in(path, name):
    """What a mutated log has less of, by the recount: over all applications that it seems to be of now."""
    found = [recount.count(events) for events in recount.applications(path).values()]
    edges = set().union(*(counts["edges"] for counts in found))
    less = [part for part in COUNTED if sum(counts[part] for counts in found) < recount_of(name)[part]]
    return less + ["edges"] * (not recount_of(name)["edges"] <= edges)


def mutated(lines, dice):
    """Lines of a log after one to four mutations: lost, swapped, repeated or cut lines, dropped fields."""
    lines = list(lines)
    for _ in range(dice.choice([1, 1, 1, 2, 3, 4])):
        what, place = dice.choice(["lose", "lose", "block", "swap", "repeat", "cut", "end", "drop", "drop"]), -1
        if lines:
            place = dice.randrange(len(lines))
        if not lines:
            break
        if what == "lose":
            del lines[place]
        elif what == "block":
            del lines[place : place + dice.randrange(1, 10)]
        elif what == "swap":
            other = dice.randrange(len(lines))
            lines[place], lines[other] = lines[other], lines[place]
        elif what == "repeat":
            lines.insert(dice.randrange(len(lines)), lines[place])
        elif what == "cut":
            lines[place] = lines[place][: dice.randrange(len(lines[place]))] + b"\n"
        elif what == "end":
            lines = lines[: max(place, len(lines) // 2)]
        elif _event(lines[place]):
            event = json.loads(lines[place])
            holder, key = dice.choice(list(_places(event)))
            del holder[key]
            lines[place] = json.dumps(event, separators=(",", ":")).encode() + b"\n"
    return lines
