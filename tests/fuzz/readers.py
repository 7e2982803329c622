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
from decima.learning.recipe import Recipe
from decima.learning.trainer import FILE_NAME, Checkpoint
from decima.systems.heterogeneous import canonical, load_instance, load_schedule, lower_bound, plan, validate
from decima.systems.heterogeneous.schedulers.registry import make_scheduler as make_planner
from decima.systems.heterogeneous.sources import ClusterOptions, read_instance
from decima.systems.spark.schedulers import make_scheduler
from decima.systems.spark.schedulers.registry import read_scheduler
from decima.systems.spark.schedulers.replay import Replay
from decima.systems.spark.settings import Settings
from decima.systems.spark.tables import WorkloadTables
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
    """Text of jobs, or of a scheduler of heterogeneous executors; of large DAGs only what is written is checked."""
    text = text_of(path)
    try:
        return make_planner(text)
    except DecimaError:
        large = any(len(number) > 2 for number in re.findall(r"\d+", text))
        return None if large else read_instance(text, ClusterOptions(), seed=1)


TINY_WEIGHTS, TINY_CARD = CORPUS / "weights" / "tiny.weights.h5", CORPUS / "card" / "tiny.json"
LOG_NAMES = ("failed-task.zstd", "speculation.zstd", "killed-executor.zstd", "unnamed.snappy")


def of_bytes(name, file, read):
    return Reader(file, corpus(name), damaged_bytes(corpus(name)), read)


def of_json(name, file, read, also=()):
    """A reader of JSON; ``also`` has changes of every document that are inputs as well."""
    documents = [json.loads(content) for content in corpus(name)]
    documents += [document | change for change in also for document in documents]
    return Reader(file, corpus(name), damaged_json(documents), read)


def of_text(name, read):
    """A reader of texts, of which the corpus has one per line."""
    lines = [line for content in corpus(name) for line in content.decode().splitlines()]
    return Reader("text", tuple(map(str.encode, lines)), damaged_text(lines), read)


def of_parquet(name, file, read):
    tables = [parquet.read_table(pyarrow.BufferReader(content)) for content in corpus(name)]
    return Reader(file, corpus(name), st.one_of(damaged_bytes(corpus(name)), damaged_tables(tables)), read)


def of_logs(name, file, read):
    logs = (*((LOGS / log).read_bytes() for log in LOG_NAMES), *corpus(name))
    events = [list(map(json.loads, content.splitlines())) for content in corpus(name)]
    return Reader(file, logs, st.one_of(damaged_bytes(logs), damaged_lines(events, 6)), read)


READERS = {
    "jobs_json": lambda: of_json("jobs_json", "jobs.json", use_workload),
    "jobs_parquet": lambda: of_parquet("jobs_parquet", "jobs.parquet", use_workload),
    "event_log": lambda: of_logs("event_log", "log", use_log),
    "card": lambda: of_json("card", "tiny.json", use_policy, also=[{"with_checksum": True}]),
    "weights": lambda: of_bytes("weights", "tiny.weights.h5", use_policy),
    "checkpoint": lambda: of_bytes("checkpoint", FILE_NAME, lambda path: Checkpoint.load(path.parent)),
    "replay": lambda: of_json("replay", "run.json", use_replay),
    "options": lambda: of_text("options", use_options),
    "jobs_text": lambda: of_text("jobs_text", use_jobs_text),
    "scheduler": lambda: of_text("scheduler", use_scheduler),
    "tuned_card": lambda: of_json("tuned_card", "tuned.json", lambda path: make_scheduler(str(path))),
    "instance": lambda: of_json("instance", "instance.json", use_instance),
    "schedule": lambda: of_json("schedule", "schedule.json", use_schedule),
    "workflow": lambda: of_json("workflow", "workflow.json", lambda path: read_instance(str(path))),
    "instance_text": lambda: of_text("instance_text", use_instance_text),
    "profile_archive": lambda: of_bytes(
        "profile_archive", "task_duration_1.npy", lambda path: load_restricted(path.read_bytes(), path)
    ),
}


def prepare(reader, folder):
    """Put the other half of a pair beside the file that is damaged."""
    if reader == "card":
        (folder / TINY_WEIGHTS.name).write_bytes(TINY_WEIGHTS.read_bytes())
    elif reader == "weights":
        (folder / TINY_CARD.name).write_bytes(TINY_CARD.read_bytes())
