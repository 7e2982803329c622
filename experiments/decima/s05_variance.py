"""§5.3: influence of the remaining arrivals on the reward, whatever the action (Figure 7).

Sequences share their first jobs and differ from a time on. The sampled policy runs several times on each; the return
from then on is minus the integral of the number of jobs in the system up to the horizon.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas

from decima import plotting
from decima.evaluation.workers import map_threads
from decima.systems.spark.state import new_state
from decima.systems.spark.system import run_state
from decima.workload.jobs import Job, Workload
from decima.workload.sources import WorkloadSource
from experiments.captions import Run, Tables, distinct
from experiments.comparisons import learned_policy
from experiments.experiment import Context, Experiment, Profiles, StoredPolicy
from experiments.rooms import POLICY_ROOMS

if TYPE_CHECKING:
    from decima.plotting.style import Figure


def compute(source: WorkloadSource, params: dict, context: Context) -> dict[str, pandas.DataFrame]:
    """Tables ``variance_arrivals``, ``variance_returns`` (by sequence, rollout and time) and ``variance_explained``."""
    sequences = shared_prefix_sequences(source, params)
    times_s = np.arange(0.0, params["horizon_s"] + 1e-9, params["step_s"])
    settings = context.settings()
    policy = learned_policy(context, "stream", greedy=False)
    _ = policy.decision.address  # compiled before threads start

    def rollouts(index: int) -> list[pandas.DataFrame]:
        state = new_state(sequences[index], settings)
        tables = []
        for rollout in range(params["rollouts"]):
            run_state(state, policy, index * params["rollouts"] + rollout)
            penalty = penalties(sequences[index].arrival_ms / 1000.0, state.job_finish_ms / 1000.0, times_s)
            tables.append(penalty.assign(sequence=index, rollout=rollout))
        return tables

    tables = map_threads(rollouts, range(len(sequences)), context.threads)
    returns = pandas.concat([table for of_sequence in tables for table in of_sequence])
    spread = explained(returns)
    arrivals = [
        {"sequence": index, "arrival_s": job.arrival_ms / 1000.0, "work_s": job.profile.work_ms / 1000.0}
        for index, sequence in enumerate(sequences)
        for job in sequence.jobs
    ]
    return {
        "variance_arrivals": pandas.DataFrame(arrivals),
        "variance_returns": returns,
        "variance_explained": spread.assign(parted=(spread["time_s"] > params["shared_s"]).astype(int)),
    }


def shared_prefix_sequences(source: WorkloadSource, params: dict) -> list[Workload]:
    """Poisson sequences that agree before ``shared_s``; nothing arrives after the horizon."""
    shared_s, horizon_s, gap_s = params["shared_s"], params["horizon_s"], params["interarrival_s"]
    enough = int(4 * horizon_s / gap_s) + 20
    first, *others = source.streams(range(params["sequences"] + 1), enough, gap_s)
    prefix = tuple(job for job in first.jobs if job.arrival_ms < 1000.0 * shared_s)
    sequences = []
    for other in others:
        # The job that is there at the start of a stream is no arrival.
        moved = [Job(job.profile, job.arrival_ms + 1000.0 * shared_s) for job in other.jobs if not job.initial]
        rest = tuple(job for job in moved if job.arrival_ms < 1000.0 * horizon_s)
        sequences.append(Workload(prefix + rest, source.label, first.universe))
    return sequences


def penalties(arrival_s: np.ndarray, completion_s: np.ndarray, times_s: np.ndarray) -> pandas.DataFrame:
    """Reward of one rollout over time, in job seconds.

    Args:
        arrival_s: float64 [jobs].
        completion_s: float64 [jobs].
        times_s: float64 [times], ascending; the last one is the horizon.

    Returns:
        time_s, active_jobs (the penalty per second), return_s (minus the integral of active_jobs from time_s to the
        horizon).
    """
    held = np.clip(times_s[:, None], arrival_s, completion_s) - arrival_s
    area_s = held.sum(axis=1)
    active = ((arrival_s <= times_s[:, None]) & (times_s[:, None] < completion_s)).sum(axis=1)
    return pandas.DataFrame({"time_s": times_s, "active_jobs": active, "return_s": area_s - area_s[-1]})


def explained(returns: pandas.DataFrame) -> pandas.DataFrame:
    """Spread of the returns around two baselines, at each time.

    Args:
        returns: sequence, rollout, time_s, return_s.

    Returns:
        time_s; time_baseline_s, standard deviation around the mean over all rollouts of all sequences;
        input_baseline_s, around the mean over the rollouts of the same sequence (unbiased); share, the part of the
        variance that the arrival sequence explains, from 0 to 1.
    """
    rows = []
    for time_s, group in returns.groupby("time_s"):
        within = group.groupby("sequence")["return_s"].var(ddof=1).mean()
        # Variance of a single rollout of a random sequence: between sequences, plus within.
        means = group.groupby("sequence")["return_s"].agg(["mean", "count"])
        between = max(0.0, float(means["mean"].var(ddof=1) - (within / means["count"]).mean()))
        total = between + within
        share = between / total if total > 0.0 else 0.0
        rows.append((time_s, np.sqrt(total), np.sqrt(within), share))
    return pandas.DataFrame(rows, columns=["time_s", "time_baseline_s", "input_baseline_s", "share"])


def fig07_sequences(tables: Tables, run: Run) -> Figure:
    """Figure 7."""
    arrivals, returns = tables["variance_arrivals"], tables["variance_returns"]
    shared_s, horizon_s = _times(tables)
    figure = plotting.learning.sequence_penalties(arrivals, returns, shared_s, horizon_s)
    caption = (
        f"The worst and the best for the reward of {distinct(returns, 'sequence', 'sequence')} that agree up to t = "
        f"{shared_s:g} s. Line and band: mean and range of {distinct(returns, 'rollout', 'rollout')} each of policy "
        f"{run.policies['stream']}, sampled; return ± standard deviation; {run.cluster}."
    )
    title = "Figure 7: what happens after the action decides the reward"
    return plotting.style.entitle(figure, title, caption, run.workload)


def fig07_baselines(tables: Tables, run: Run) -> Figure:
    """Draw what is left of the variance of returns with either baseline."""
    returns = tables["variance_returns"]
    shared_s, horizon_s = _times(tables)
    figure = plotting.learning.baseline_spread(tables["variance_explained"], shared_s).figure
    caption = (
        f"{distinct(returns, 'sequence', 'sequence')}, {distinct(returns, 'rollout', 'rollout')} each, returns up to "
        f"{horizon_s:g} s, {run.cluster}."
    )
    return plotting.style.entitle(figure, "Noise in the gradient with either baseline", caption, run.workload)


def _times(tables: Tables) -> tuple[float, float]:
    """Times at which the sequences part and at which they end."""
    table = tables["variance_explained"]
    return float(table.loc[table["parted"] == 0, "time_s"].max()), float(table["time_s"].max())


EXPERIMENT = Experiment(
    "variance",
    "§5.3, Figure 7",
    compute,
    rooms=POLICY_ROOMS,
    figures=(fig07_sequences, fig07_baselines),
    inputs=(Profiles(), StoredPolicy("stream")),
    tiny={"interarrival_s": 10, "shared_s": 30, "horizon_s": 90, "step_s": 10, "sequences": 3, "rollouts": 2},
)
