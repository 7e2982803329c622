"""Proximal policy optimisation (PPO) in one file, after CleanRL: a graph network in PyTorch that beats fair sharing.

    pip install . torch             # in the clone
    python examples/cleanrl_ppo.py  # two minutes of CPU time, one thread

A vector environment steps the clusters. An action is a stage, which gets one of the executors on offer.
Rewards are shaped: an estimate of what is left to pay is the potential, which leaves the best policy as it is.
Results were measured on 5 executors, the default; on others (``--executors 50``) nothing was.

Source: Ng et al., ICML 1999 (shaping); Schulman et al., 2017 (PPO). The network follows Decima, section 5.1.
"""

import argparse
import time
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any

import gymnasium
import numpy as np
import torch
from torch import Tensor, nn
from torch.distributions import Categorical

import decima

gymnasium.register_envs(decima.gym)
ENVIRONMENT, FRESH_SEED = "decima/SparkCluster-v0", 900_000  # training draws seeds below 800,000
SEEN = ("stages", "stage_job", "edges", "stage_mask", "jobs", "job_allocation", "source_job", "free_executors")
STAGE_SCALE = torch.tensor([0.3, 0.3, 0.3, 0.5, 0.2, 0.5, 0.5, 1.0])  # of log(1 + column)


@dataclass
class Args:
    """Options of a training; each is one of the command line, ``--cpu-s`` for ``cpu_s``."""

    seed: int = 0  # source of all chance
    workload: str = "embedded:n=20"  # what is learned on
    executors: int = 5  # of the cluster
    cpu_s: float = 120.0  # CPU time of learning, seconds
    num_envs: int = 8  # clusters; each plays one episode in an iteration
    learning_rate: float = 4e-3  # falls linearly to a twentieth
    epochs: int = 3  # passes over an iteration's decisions, of four gradient steps each
    entropy: float = 0.01  # weight of the entropy; falls linearly to 0
    fresh: int = 20  # workloads that the result is measured on


def network(*widths: int) -> nn.Sequential:
    """Layers with tanh between them."""
    return nn.Sequential(*[part for pair in pairwise(widths) for part in (nn.Tanh(), nn.Linear(*pair))][1:])


class Agent(nn.Module):
    """Scores of stages and the value of a state, of embeddings of stages, jobs and the cluster."""

    def __init__(self, executors: int, width: int = 16) -> None:
        super().__init__()
        self.executors = executors
        self.stage, self.message = network(8, width, width), network(width, width, width)
        self.job = network(width + 5, width, width)
        self.score, self.critic = network(3 * width + 5, 32, 16, 1), network(width + 3, 32, 1)
        nn.init.normal_(self.score[-1].weight, std=0.02)  # begins nearly uniform

    def forward(self, seen: dict[str, Tensor]) -> tuple[Categorical, Tensor]:
        """Distribution over the stages, and values [N], of N observations; nothing is computed for padding."""
        (count, stages, _), jobs = seen["stages"].shape, seen["jobs"].shape[1]
        stage_at, stage_row = numbered(seen["stages"][:, :, 2] > 0)  # tasks that have not finished
        job_at, job_row = numbered((work_left := seen["jobs"][:, :, 2]) > 0)
        number = (work_left > 0).sum(1, keepdim=True).clamp(min=1)
        job_of = job_row[(seen["stage_job"] + jobs * torch.arange(count)[:, None]).flatten()]
        # Children tell their parents, twice.
        embedding = self.stage(torch.log1p(seen["stages"].flatten(0, 1)[stage_at]) * STAGE_SCALE)
        where, edge = torch.nonzero(seen["edges"][:, :, 0] >= 0, as_tuple=True)
        ends = stage_row[seen["edges"][where, edge] + stages * where[:, None]]
        parent, child = ends[(ends >= 0).all(1)].T
        for _ in range(2):
            embedding = embedding + sums(self.message(embedding)[child], parent, len(embedding))
        # Embeddings of jobs: work left, alone and against the mean; executors held, alone and against an equal share.
        held, mean = seen["job_allocation"], work_left.sum(1, keepdim=True) / number
        columns = [torch.log1p(work_left) / 5.0, torch.log((work_left + 1.0) / (mean + 1.0)) / 2.0, torch.log1p(held)]
        columns += [held * number / self.executors / 2.0, (torch.arange(jobs) == seen["source_job"]).float()]
        shown = torch.stack(columns, dim=2).flatten(0, 1)[job_at]
        job = self.job(torch.cat([sums(embedding, job_of[stage_at], len(job_at)) / 4.0, shown], dim=1))
        cluster = sums(job, job_at // jobs, count) / number
        choice = torch.nonzero(seen["stage_mask"][:, :-1].flatten())[:, 0]
        its_job = job_of[choice]
        inputs = embedding[stage_row[choice]], job[its_job], shown[its_job], cluster[choice // stages]
        scores = torch.full((count * stages,), -1e9).index_put((choice,), self.score(torch.cat(inputs, dim=1))[:, 0])
        facts = number / jobs, seen["free_executors"] / self.executors, torch.log1p(mean) / 5.0
        return Categorical(logits=scores.reshape(count, stages)), self.critic(torch.cat([cluster, *facts], dim=1))[:, 0]


def numbered(present: Tensor) -> tuple[Tensor, Tensor]:
    """Places of what is present in a batch, [n], and the number of every place, -1 for what is not there."""
    at = torch.nonzero(present.flatten())[:, 0]
    return at, (present.flatten().cumsum(0) - 1).where(present.flatten(), -1)


def sums(values: Tensor, index: Tensor, count: int) -> Tensor:
    """Sums of the rows with equal indices, [count, ...]."""
    return torch.zeros(count, values.shape[1]).index_add(0, index, values)


def tensors(observation: dict[str, np.ndarray]) -> dict[str, Tensor]:
    """Arrays of an observation as tensors."""
    kinds = {np.dtype(np.float32): torch.float32}
    return {name: torch.as_tensor(each := observation[name], dtype=kinds.get(each.dtype, torch.long)) for name in SEEN}


def potential(observation: dict[str, np.ndarray], executors: int) -> np.ndarray:
    """Minus the JCTs to come, in seconds, if all executors served the job with the least work left; [N]."""
    # Half, since tasks after the first ones take about half of their nominal duration.
    work_s = np.sort(observation["jobs"][:, :, 2].astype(np.float64), axis=1)
    return -0.5 * work_s @ np.arange(work_s.shape[1], 0, -1) / executors


def play(envs: gymnasium.vector.VectorEnv, agent: Agent, seeds: list[int]) -> dict[str, Tensor]:
    """One episode of every cluster: what was seen, done and paid at every step, [T, N, ...]."""
    observation, _ = envs.reset(seed=seeds)
    steps, over, left = [], np.zeros(len(seeds), dtype=bool), potential(observation, agent.executors)
    scale = -left / 10.0  # every episode counts alike
    while not over.all():
        seen = tensors(observation)
        with torch.no_grad():
            distribution, value = agent(seen)
        action = distribution.sample()
        steps.append(seen | {"action": action, "log_prob": distribution.log_prob(action), "value": value})
        one_executor = np.stack([action.numpy(), np.zeros_like(action)], axis=1)
        observation, reward, terminated, truncated, _ = envs.step(one_executor)
        before, left = left, np.where(terminated, 0.0, potential(observation, agent.executors))
        steps[-1] |= {"reward": torch.Tensor((reward + left - before) / scale), "goes_on": torch.from_numpy(~over)}
        over = over | terminated | truncated  # the vector begins another episode, which is ignored
    return {name: torch.stack([step[name] for step in steps]) for name in steps[0]}


def update(agent: Agent, optimizer: torch.optim.Optimizer, steps: dict[str, Tensor], args: Args, left: float) -> float:
    """Gradient steps of an iteration; the mean entropy of the last. ``left`` falls from 1 to 0."""
    values, goes_on = steps["value"] * steps["goes_on"], steps["goes_on"]
    advantage, last, following = torch.zeros_like(values), torch.zeros(values.shape[1]), torch.zeros(values.shape[1])
    for step in reversed(range(len(values))):  # generalised advantages: lambda 0.95, no discount
        last = (steps["reward"][step] + following - values[step] + 0.95 * last) * goes_on[step]
        advantage[step], following = last, values[step]
    target, decided = (advantage + values).flatten(), torch.nonzero(goes_on.flatten())[:, 0]
    advantage = advantage.flatten()
    advantage = (advantage - advantage[decided].mean()) / (advantage[decided].std() + 1e-8)
    batch = {name: each.flatten(0, 1) for name, each in steps.items()}
    for _ in range(args.epochs):
        for part in torch.tensor_split(decided[torch.randperm(len(decided))], 4):
            distribution, value = agent({name: batch[name][part] for name in SEEN})
            ratio = torch.exp(distribution.log_prob(batch["action"][part]) - batch["log_prob"][part])
            gain = torch.minimum(ratio * advantage[part], ratio.clamp(0.8, 1.2) * advantage[part]).mean()
            error, entropy = (value - target[part]).square().mean(), distribution.entropy().mean()
            optimizer.zero_grad()
            (0.5 * error - gain - args.entropy * left * entropy).backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            optimizer.step()
    return entropy.item()


def train(args: Args) -> tuple[Agent, float]:
    """Agent trained from scratch, and the CPU time in seconds that it took."""
    torch.manual_seed(args.seed)
    rng, made = np.random.default_rng(args.seed), {"workload": args.workload, "executors": args.executors}
    envs = gymnasium.make_vec(ENVIRONMENT, args.num_envs, "vector_entry_point", threads=1, **made)
    agent = Agent(args.executors)
    optimizer = torch.optim.Adam(agent.parameters(), lr=args.learning_rate)
    begin, spent = time.process_time(), 0.0
    while (left := 1.0 - spent / args.cpu_s) > 0:
        optimizer.param_groups[0]["lr"] = args.learning_rate * (0.05 + 0.95 * left)
        steps = play(envs, agent, rng.integers(800_000, size=args.num_envs).tolist())
        entropy = update(agent, optimizer, steps, args, left)
        spent = time.process_time() - begin
        shaped = (steps["reward"] * steps["goes_on"]).sum(0).mean()
        print(f"{spent:6.1f} s  shaped return {shaped:.2f}  entropy {entropy:.2f}", flush=True)
    return agent, spent


def main(arguments: list[str] | None = None) -> Any:
    """Train, and compare with fair sharing and the tuned heuristic on fresh workloads."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    for field in fields(Args):
        parser.add_argument("--" + field.name.replace("_", "-"), type=field.type, default=field.default)
    args = Args(**vars(parser.parse_args(arguments)))
    torch.set_num_threads(1)
    agent, spent = train(args)

    def greedy(observation: dict[str, np.ndarray]) -> tuple[int, int]:
        with torch.no_grad():
            distribution, _ = agent({name: each[None] for name, each in tensors(observation).items()})
        return int(distribution.logits.argmax()), 0

    env = gymnasium.make(ENVIRONMENT, workload=args.workload, executors=args.executors)
    entries = ["fair", "capped_srw", decima.as_scheduler(greedy, env, name="cleanrl_ppo")]
    seeds = range(FRESH_SEED, FRESH_SEED + args.fresh)
    comparison = decima.compare(entries, args.workload, executors=args.executors, seeds=seeds)
    print(comparison, f"{spent:.0f} s of CPU time, seed {args.seed}", sep="\n")
    return comparison


if __name__ == "__main__":
    main()
