"""Everything of the project that reads what people or other programs wrote: where it begins, and what it is given."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow
from hypothesis import strategies as st
from pyarrow import parquet

import decima
from decima.connect.eventlog.application import read_event_log
from decima.connect.eventlog.profiles import collect_profiles
from decima.core.errors import DecimaError
from decima.core.grammar import key_values, read_fields, read_value, split_options
from decima.learning import store
from decima.learning.checkpoint import FILE_NAME, Checkpoint
from decima.learning.recipe import Recipe
from decima.systems.spark.schedulers import make_scheduler
from decima.systems.spark.schedulers.registry import read_scheduler
from decima.systems.spark.schedulers.replay import Replay
from decima.systems.spark.settings import Settings
from decima.systems.spark.tables import WorkloadTables
from decima.systems.unequal import canonical, load_instance, load_schedule, lower_bound, plan, validate
from decima.systems.unequal.schedulers.registry import make_scheduler as make_planner
from decima.systems.unequal.sources import ClusterOptions, read_instance
from decima.systems.unequal.wfcommons import import_wfcommons
from decima.workload import load
from decima.workload.sources import parse_jobs
from decima.workload.tpch.raw import load_restricted
from tests.fuzz.damage import damaged_bytes, damaged_json, damaged_lines, damaged_tables, damaged_text
from tests.unit.connect.event_lines import LOGS

CORPUS = Path(__file__).parent / "corpus"
MOST_TASKS = 2000
MOST_EXECUTORS = 100
SMALL = decima.workload.synthetic_batch(2, seed=0, sizes=["xs"])


@dataclass(frozen=True)
class Reader:
    """A reader, its good inputs and how they are damaged."""

    file: str  # name of the file that it is given
    seeds: tuple[bytes, ...]
    inputs: st.SearchStrategy
    read: Callable[[Path], object]  # a result or a DecimaError


def corpus(reader, pattern="[!_]*"):
    """Good inputs; those whose name begins with an underscore once ended a reader in a traceback."""
    return tuple(path.read_bytes() for path in sorted((CORPUS / reader).glob(pattern)))


def lines(reader):
    return [line for content in corpus(reader) for line in content.decode().splitlines()]


def use_workload(path):
    workload = load(path)
    workload.describe().to_csv()
    workload.signature()
    tables = WorkloadTables(workload, Settings())
    if tables.num_tasks <= MOST_TASKS:
        result = decima.simulate(workload, "fair", executors=3)
        result.jobs.to_csv()
        assert result.num_unfinished == 0
        assert (result.jct_ms >= 0.0).all()


def use_log(path):
    application = read_event_log(path)
    return collect_profiles([application]).profiles


def use_policy(path):
    """Read the policy; with a card that lacks only its checksum, add that first, so that more than it is tried."""
    card_path = path.with_name("tiny.json")
    try:
        card = json.loads(card_path.read_bytes())
        if isinstance(card, dict) and card.pop("with_checksum", False):
            card["policy_sha256"] = store._policy_checksum(card)
            card_path.write_text(json.dumps(card))
    except (ValueError, KeyError, TypeError, RecursionError):
        pass  # not a card to which anything could be added
    return decima.simulate(SMALL, decima.load_policy(path), executors=3).avg_jct_s


def use_checkpoint(path):
    return Checkpoint.load(path.parent)


def use_replay(path):
    with Replay(path) as replay:
        return decima.simulate(SMALL, replay, executors=3)


def text_of(path):
    return path.read_bytes().decode("utf-8", "surrogatepass")


def use_options(path):
    """Settings, a recipe and values of every kind from one text."""
    text = text_of(path)
    name, options = split_options(text, "n")
    kind = (int, float, bool, str, tuple[int, ...], float | None, dict[str, float])[len(text) % 7]
    if name == "settings":
        return Settings(**read_fields(options, Settings, "settings."))
    if name == "recipe":
        return Recipe.named("fast-batch", **read_fields(options, Recipe, "recipe."))
    if name == "value":
        return [read_value(value, kind, key) for key, value in options.items()]
    return key_values(text.split(","), "text")


def use_jobs_text(path):
    spec = parse_jobs(text_of(path))
    if spec.path is None and (spec.n or 20) <= 50:
        return spec.workload(0)
    return spec


def use_scheduler(path):
    """A text that names a scheduler; a service or a file that it may name is not opened."""
    text = text_of(path)
    name, values = read_scheduler(text)
    if name in ("remote", "replay", "decima"):
        return values
    return decima.simulate(SMALL, make_scheduler(text), executors=3)


def use_card(path):
    return make_scheduler(str(path))


def use_instance(path):
    instance = load_instance(path)
    if len(instance.cluster) <= MOST_EXECUTORS:
        schedule = plan(instance, scheduler="high_rank_up_deft")
        validate(instance, schedule)
        # Rounding apart, which numbers of very different size lose more to.
        assert schedule.makespan_s >= lower_bound(instance) * (1.0 - 1e-6)
    return instance


def use_schedule(path):
    instance = canonical()
    schedule = load_schedule(path, instance)
    validate(instance, schedule)
    return schedule.frame()


def use_instance_text(path):
    """Text of jobs, or of a scheduler of unequal executors; of large DAGs only what is written is checked."""
    text = text_of(path)
    try:
        return make_planner(text)
    except DecimaError:
        large = any(len(number) > 2 for number in re.findall(r"\d+", text))
        return None if large else read_instance(text, ClusterOptions(), seed=1)


TINY_WEIGHTS, TINY_CARD = CORPUS / "weights" / "tiny.weights.h5", CORPUS / "card" / "tiny.json"
CARDS = [json.loads(content) for content in corpus("card")]
JOBS = [json.loads(content) for content in corpus("jobs_json")]
TUNED = [json.loads(content) for content in corpus("tuned_card")]
INSTANCES, SCHEDULES, WORKFLOWS = (
    [json.loads(content) for content in corpus(name)] for name in ("instance", "schedule", "workflow")
)
REPLAYS = [json.loads(content) for content in corpus("replay")]
LOG_NAMES = ("failed-task.zstd", "speculation.zstd", "killed-executor.zstd", "unnamed.snappy")


def _tables():
    return [parquet.read_table(pyarrow.BufferReader(content)) for content in corpus("jobs_parquet")]


def _events():
    return [list(map(json.loads, content.splitlines())) for content in corpus("event_log")]


def _logs():
    kept = [(LOGS / name).read_bytes() for name in LOG_NAMES]
    return (*kept, *corpus("event_log"))


READERS = {
    "jobs_json": lambda: Reader("jobs.json", corpus("jobs_json"), damaged_json(JOBS), use_workload),
    "jobs_parquet": lambda: Reader(
        "jobs.parquet",
        corpus("jobs_parquet"),
        st.one_of(damaged_bytes(corpus("jobs_parquet")), damaged_tables(_tables())),
        use_workload,
    ),
    "event_log": lambda: Reader(
        "log", _logs(), st.one_of(damaged_bytes(_logs()), damaged_lines(_events(), 6)), use_log
    ),
    "card": lambda: Reader(
        "tiny.json",
        corpus("card"),
        damaged_json([*CARDS, *(card | {"with_checksum": True} for card in CARDS)]),
        use_policy,
    ),
    "weights": lambda: Reader("tiny.weights.h5", corpus("weights"), damaged_bytes(corpus("weights")), use_policy),
    "checkpoint": lambda: Reader(FILE_NAME, corpus("checkpoint"), damaged_bytes(corpus("checkpoint")), use_checkpoint),
    "replay": lambda: Reader("run.json", corpus("replay"), damaged_json(REPLAYS), use_replay),
    "options": lambda: Reader(
        "text", tuple(map(str.encode, lines("options"))), damaged_text(lines("options")), use_options
    ),
    "jobs_text": lambda: Reader(
        "text", tuple(map(str.encode, lines("jobs_text"))), damaged_text(lines("jobs_text")), use_jobs_text
    ),
    "scheduler": lambda: Reader(
        "text", tuple(map(str.encode, lines("scheduler"))), damaged_text(lines("scheduler")), use_scheduler
    ),
    "tuned_card": lambda: Reader("tuned.json", corpus("tuned_card"), damaged_json(TUNED), use_card),
    "instance": lambda: Reader("instance.json", corpus("instance"), damaged_json(INSTANCES), use_instance),
    "schedule": lambda: Reader("schedule.json", corpus("schedule"), damaged_json(SCHEDULES), use_schedule),
    "workflow": lambda: Reader("workflow.json", corpus("workflow"), damaged_json(WORKFLOWS), import_wfcommons),
    "instance_text": lambda: Reader(
        "text", tuple(map(str.encode, lines("instance_text"))), damaged_text(lines("instance_text")), use_instance_text
    ),
    "profile_archive": lambda: Reader(
        "task_duration_1.npy",
        corpus("profile_archive"),
        damaged_bytes(corpus("profile_archive")),
        lambda path: load_restricted(path.read_bytes(), path),
    ),
}


def prepare(reader, folder):
    """Put the other half of a pair beside the file that is damaged."""
    if reader == "card":
        (folder / TINY_WEIGHTS.name).write_bytes(TINY_WEIGHTS.read_bytes())
    elif reader == "weights":
        (folder / TINY_CARD.name).write_bytes(TINY_CARD.read_bytes())
