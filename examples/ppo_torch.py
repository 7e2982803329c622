"""Proximal policy optimisation (PPO) in PyTorch: a scheduler from scratch that beats fair sharing.

    pip install . torch  # in the clone
    python examples/ppo_torch.py                      # four minutes of CPU time, one thread
    python examples/ppo_torch.py --seed 1 --out mine  # writes mine.weights.h5 and mine.json
    decima bench run mine.weights.h5 --task embedded-batch

Episodes run in the compiled core with the module's present weights. PyTorch computes losses and gradients of what was
recorded. Everything else of the method is in this file, from top to bottom.
"""

import argparse
import time
from dataclasses import dataclass, fields

import numpy as np
import torch
from torch_policy import DecimaModule, episodes, tensors

from decima.evaluation.run import score_matrix
from decima.evaluation.statistics import paired_change
from decima.systems.spark.policy.architecture import Architecture
from decima.systems.spark.schedulers import make_scheduler
from decima.systems.spark.settings import Settings
from decima.workload.sources import parse_jobs

FRESH_SEED = 900_000  # of the batches that the result is measured on; training draws below 800,000


@dataclass
class Options:
    """Options of a training; each is one of the command line, ``--cpu-s`` for ``cpu_s``."""

    seed: int = 0  # source of all chance
    jobs: str = "embedded:n=20"  # what is learned on
    executors: int = 50  # of the cluster
    cpu_s: float = 240.0  # CPU time of learning, seconds; the compilation before it is not counted
    iterations: int = 100_000  # at most so many
    sequences: int = 4  # job sequences of an iteration
    rollouts: int = 4  # episodes of each, which share a baseline
    epochs: int = 3  # passes over an iteration's decisions
    minibatches: int = 4  # gradient steps of a pass
    learning_rate: float = 2e-3  # falls linearly to a tenth
    clip: float = 0.2  # range of the ratio of probabilities
    entropy: float = 0.02  # weight of the entropy; falls linearly to 0
    largest_norm: float = 0.5  # gradients are cut to this norm
    fresh: int = 100  # batches that the result is measured on; 0: not measured
    graph: bool = False  # with the graph embedding of the paper, which takes more time
    out: str = ""  # where to store the policy; empty: nowhere


def architecture(options: Options) -> Architecture:
    """Heads of the paper on features such as the work left in a job."""
    return Architecture(
        name="torch-example",
        feature_log=True,
        more_features=("log_job_work", "log_job_executors", "runnable", "executors_per_job"),
        graph_embedding=options.graph,
        embedding=8,
        hidden=(16,),
        score_hidden=(32, 16),
        limit_grid=12,
        max_executors=options.executors,
    )


def returns_to_go(records: list) -> list[np.ndarray]:
    """Minus the time of jobs in the system from each decision on, 100 s.

    One array per episode, float64 [decisions].
    """
    return [-(record.end_area_ms - record.area_ms) / 1e5 for record in records]


def advantages_of(records: list, rollouts: int) -> np.ndarray:
    """Returns less the mean at the same time of episodes of the same jobs.

    Float32 [decisions], of mean 0 and standard deviation 1.

    Source: §5.3, input-dependent baseline.
    """
    returns, values = returns_to_go(records), []
    for first in range(0, len(records), rollouts):
        group = range(first, first + rollouts)
        for each in group:
            when, baseline = records[each].time_ms, 0.0
            for other in group:
                times = np.append(records[other].time_ms, records[other].end_ms)
                baseline = baseline + np.interp(when, times, np.append(returns[other], 0.0))
            values.append(returns[each] - baseline / rollouts)
    joined = np.concatenate(values)
    return ((joined - joined.mean()) / (joined.std() + 1e-8)).astype(np.float32)


def recorded_log_prob(records: list) -> np.ndarray:
    """Log-probabilities under the policy that decided; a limit counts where limits differ, float32 [decisions]."""
    return np.concatenate(
        [record.log_prob_stage + np.where(record.classes > 1, record.log_prob_class, 0.0) for record in records]
    ).astype(np.float32)


def useful_decisions(records: list) -> np.ndarray:
    """Decisions at which there was a choice, int64 [n], counted through all episodes."""
    return np.flatnonzero(
        np.concatenate([(np.diff(record.decision_candidates) > 1) | (record.classes > 1) for record in records])
    )


def update(module: DecimaModule, optimiser: torch.optim.Optimizer, records: list, batch, options: Options, left: float):
    """Mean entropy in the gradient steps of an iteration; ``left`` falls from 1 to 0."""
    advantages = torch.from_numpy(advantages_of(records, options.rollouts))
    old = torch.from_numpy(recorded_log_prob(records))
    useful, entropies = useful_decisions(records), []
    for _ in range(options.epochs):
        for part in np.array_split(useful[torch.randperm(len(useful))], options.minibatches):
            result = module(tensors(batch, part))
            ratio = torch.exp(result["log_prob_stage"] + result["log_prob_class"] - old[part])
            clipped = torch.clamp(ratio, 1.0 - options.clip, 1.0 + options.clip)
            gain = torch.minimum(ratio * advantages[part], clipped * advantages[part]).mean()
            entropy = (result["entropy_stage"] + result["entropy_class"]).mean()
            loss = -gain - options.entropy * left * entropy
            optimiser.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(module.parameters(), options.largest_norm)
            optimiser.step()
            entropies.append(entropy.item())
    return float(np.mean(entropies))


def collect(module: DecimaModule, settings: Settings, options: Options, iteration: int):
    """Episodes of an iteration, ``rollouts`` of every sequence, as records and a batch."""
    rng = np.random.default_rng([options.seed, iteration])
    spec = parse_jobs(options.jobs)
    drawn = [spec.workload(int(seed)) for seed in rng.integers(100_000, 800_000, options.sequences)]
    workloads = [workload for workload in drawn for _ in range(options.rollouts)]
    seeds = [int(seed) for seed in rng.integers(2**31, size=len(workloads))]
    return episodes(module.scheduler(greedy=False, record=True), workloads, settings, seeds)


def train(options: Options) -> tuple[DecimaModule, float]:
    """Module trained from scratch, and the CPU time in seconds that it took."""
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    settings = Settings.paper(executors=options.executors)
    module = DecimaModule(architecture(options), seed=options.seed)
    optimiser = torch.optim.Adam(module.parameters(), lr=options.learning_rate)
    collect(module, settings, options, 0)  # compiles the core
    begin, spent = time.process_time(), 0.0
    for iteration in range(options.iterations):
        left = max(0.0, 1.0 - max(spent / options.cpu_s, iteration / options.iterations))
        for group in optimiser.param_groups:
            group["lr"] = options.learning_rate * (0.1 + 0.9 * left)
        records, batch = collect(module, settings, options, iteration)
        entropy = update(module, optimiser, records, batch, options, left)
        spent = time.process_time() - begin
        jct_s = np.mean([np.mean(record.completion_ms - record.arrival_ms) for record in records]) / 1000.0
        if iteration % 10 == 0:
            print(f"{iteration:5d}  {spent:6.1f} s  average JCT {jct_s:6.2f} s  entropy {entropy:.3f}", flush=True)
        if spent >= options.cpu_s:
            break
    return module, spent


def measure(module: DecimaModule, options: Options) -> dict[str, tuple[float, ...]]:
    """Mean average JCT on fresh batches, and the policy's change against each rule, with interval."""
    spec, settings = parse_jobs(options.jobs), Settings.paper(executors=options.executors)
    seeds = list(range(FRESH_SEED, FRESH_SEED + options.fresh))
    names = ("fair", "capped_srw:plain")
    schedulers = [module.scheduler(greedy=True), *map(make_scheduler, names)]
    values = score_matrix([spec.workload(seed) for seed in seeds], schedulers, settings, seeds=seeds, metric="avg_jct")
    rows = {name: (row.mean(), *paired_change(values[0], row)) for name, row in zip(names, values[1:], strict=True)}
    return {"policy": (values[0].mean(),)} | rows


def main(arguments: list[str] | None = None) -> dict[str, tuple[float, ...]]:
    """Train, measure and store; returns what was measured."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    for field in fields(Options):
        takes = {"type": field.type} if field.type is not bool else {"action": argparse.BooleanOptionalAction}
        parser.add_argument("--" + field.name.replace("_", "-"), default=field.default, **takes)
    options = Options(**vars(parser.parse_args(arguments)))
    module, spent = train(options)
    rows = measure(module, options) if options.fresh else {}
    for name, (mean, *change) in rows.items():
        against = f"  policy against it {change[0]:+.1f} % [{change[1]:+.1f}, {change[2]:+.1f}]" if change else ""
        print(f"{name:18} {mean:6.2f} s{against}")
    print(f"{spent:.0f} s of CPU time, seed {options.seed}, {options.fresh} fresh batches")
    if options.out:
        print(module.save(options.out, {"greedy": True, "label": options.jobs, "learned": {"from": "random weights"}}))
    return rows


if __name__ == "__main__":
    main()
