"""§7.4: duration and frequency of decisions (Figure 15b), one thread, wall clock."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import pandas

from decima import plotting
from decima.plotting.words import count
from decima.systems.spark.schedulers import CompiledScheduler, Observation
from decima.systems.spark.schedulers.interface import decision_parts
from decima.systems.spark.settings import Settings
from decima.systems.spark.state import new_state, offers, spawn_generators
from decima.workload.jobs import Workload
from decima.workload.sources import WorkloadSource
from experiments.captions import Run, Tables
from experiments.comparisons import learned_policy
from experiments.experiment import Context, Experiment, Profiles, StoredPolicy
from experiments.rooms import POLICY_ROOMS


def compute(source: WorkloadSource, params: dict, context: Context) -> dict[str, pandas.DataFrame]:
    """Tables ``latency`` (decisions of one stream) and ``latency_jobs`` (first decisions of batches by size)."""
    policy = learned_policy(context, "stream")
    settings = context.settings()
    stream = source.streams([0], params["stream_jobs"], params["interarrival_s"])[0]
    batches = dict(zip(params["jobs"], (source.batches([0], jobs)[0] for jobs in params["jobs"]), strict=True))
    for _ in timed_decisions(policy, batches[min(batches)], settings):  # compiles, fills caches
        pass
    decisions = pandas.DataFrame(timed_decisions(policy, stream, settings))
    by_jobs = []
    for jobs, batch in batches.items():
        rows = timed_decisions(policy, batch, settings)
        first = [row for row, _ in zip(rows, range(params["decisions"]), strict=False)]
        by_jobs.append(pandas.DataFrame(first).assign(jobs=jobs))
    return {"latency": decisions, "latency_jobs": pandas.concat(by_jobs)}


def timed_decisions(policy: CompiledScheduler, workload: Workload, settings: Settings) -> Iterator[dict]:
    """Run a workload and time every decision.

    Yields:
        time_s (simulated), active_jobs, frontier (stages to choose from), latency_ms (wall clock).
    """
    state = new_state(workload, settings)
    policy.bind(state)
    durations, chance = spawn_generators(0)
    state.start(durations, chance)
    policy.reset(chance)
    observation = Observation(state)
    for _ in offers(state):
        begin = time.perf_counter_ns()
        parts = decision_parts(policy.decide(observation))
        latency_ms = (time.perf_counter_ns() - begin) / 1e6
        yield {
            "time_s": state.now_ms / 1000.0,
            "active_jobs": int(state.num_active),
            "frontier": int(state.num_frontier),
            "latency_ms": latency_ms,
        }
        state.decide(*parts)


def event_intervals(time_s: np.ndarray) -> np.ndarray:
    """Times between successive scheduling events in seconds; one event may ask for several decisions.

    Args:
        time_s: Of the decisions, float64 [decisions], ascending.
    """
    return np.diff(np.unique(time_s))


def fig15b_latency(tables: Tables, run: Run) -> plotting.style.Figure:
    """Figure 15b, and latency over the number of jobs."""
    decisions, by_jobs = tables["latency"], tables["latency_jobs"]
    figure = plotting.style.new_figure(plotting.style.PAGE, 3.2)
    left, right = figure.subplots(1, 2)
    intervals_s = event_intervals(decisions["time_s"].to_numpy())
    plotting.learning.delay_cdf(decisions["latency_ms"].to_numpy(), intervals_s, left)
    plotting.learning.latency_over_jobs(by_jobs, right)
    per_size = int(by_jobs.groupby("jobs").size().max())
    caption = (
        f"1 thread. Left: {count(len(decisions), 'decision')} of 1 stream; right: up to {per_size} decisions of 1 "
        f"batch per size; policy {run.policies['stream']}, {run.cluster}."
    )
    return plotting.style.entitle(figure, "Figure 15b: time per decision", caption, run.workload)


EXPERIMENT = Experiment(
    "latency",
    "§7.4, Figure 15b",
    compute,
    rooms=POLICY_ROOMS,
    figures=(fig15b_latency,),
    inputs=(Profiles(), StoredPolicy("stream")),
    may_differ={"latency": ("latency_ms",), "latency_jobs": ("latency_ms",)},
    tiny={"stream_jobs": 5, "interarrival_s": 25, "jobs": [1, 3], "decisions": 5},
)
