"""MaskablePPO of sb3-contrib: a policy from scratch that beats fair sharing.

    pip install . sb3-contrib        # in the clone
    python examples/maskable_ppo.py  # two minutes of CPU time, one thread

An action is a job, which gets one of the executors on offer; one network scores every job.
Rewards are shaped: an estimate of what is left to pay is the potential, which leaves the best policy as it is.
Results were measured on 5 executors, the default; on others (``--executors 50``) nothing was.

Source: Ng et al., ICML 1999 (shaping); Huang and Ontañón, 2022 (masks).
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium import spaces
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import nn

import decima

gymnasium.register_envs(decima.gym)
FRESH_SEED = 900_000  # of the first workload that the result is measured on
COLUMNS = 9


class JobRows(gymnasium.ObservationWrapper):
    """One row of numbers per job."""

    def __init__(self, env: gymnasium.Env) -> None:
        super().__init__(env)
        self.jobs, self.executors = len(env.observation_space["jobs"].low), env.unwrapped.settings.executors
        self.observation_space = spaces.Box(-10.0, 10.0, (self.jobs, COLUMNS), np.float32)

    def observation(self, seen: dict[str, np.ndarray]) -> np.ndarray:
        """Work left and executors held, alone and against the other jobs; the first column: the job is there."""
        self.seen, work_left, held = seen, seen["jobs"][:, 2], seen["job_allocation"]
        there = work_left > 0
        number = max(1, there.sum())
        path = np.zeros(self.jobs)
        np.maximum.at(path, seen["stage_job"], seen["stages"][:, 4] * (seen["stages"][:, 2] > 0))
        columns = (
            there,
            np.log1p(work_left) / 5.0,
            np.log((work_left + 1.0) / (work_left.sum() / number + 1.0)) / 2.0,
            np.log1p(path) / 5.0,
            np.log1p(held),
            held * number / self.executors / 2.0,
            np.arange(self.jobs) == seen["source_job"],
            np.full(self.jobs, number / self.jobs),
            np.full(self.jobs, seen["free_executors"] / self.executors),
        )
        return (np.stack(columns, axis=1) * there[:, None]).clip(-10.0, 10.0).astype(np.float32)


class OneExecutor(gymnasium.ActionWrapper):
    """An action is the row of a job. Its first stage that can run gets one executor."""

    def __init__(self, env: JobRows) -> None:
        super().__init__(env)
        self.action_space = spaces.Discrete(env.jobs)

    def action(self, action: int) -> np.ndarray:
        """Slot of the stage, and 0 for one executor."""
        seen = self.env.seen
        choices = seen["stage_mask"][:-1] * (seen["stage_job"] == action)
        return np.array([np.argmax(choices * (1.0 + seen["stages"][:, 7])), 0])

    def action_masks(self) -> np.ndarray:
        """Jobs with a stage that may be chosen, bool [jobs]."""
        seen, mask = self.env.seen, np.zeros(self.action_space.n, dtype=bool)
        mask[seen["stage_job"][seen["stage_mask"][:-1] > 0]] = True
        return mask


class Shaped(gymnasium.Wrapper):
    """Rewards plus the growth of a potential, divided by its first value, so that every episode counts alike."""

    def reset(self, **options: Any) -> tuple[np.ndarray, dict]:
        """Begin an episode."""
        begun = self.env.reset(**options)
        self.left = self.potential()
        self.scale = -self.left / 10.0
        return begun

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict]:
        """Act."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        before, self.left = self.left, 0.0 if terminated else self.potential()
        return observation, (reward + self.left - before) / self.scale, terminated, truncated, info

    def potential(self) -> float:
        """Minus the JCTs to come, in seconds, if all executors served the job with the least work left.

        Tasks after the first ones take about half of their nominal duration.
        """
        work_s = np.sort(self.get_wrapper_attr("seen")["jobs"][:, 2].astype(np.float64))
        return -0.5 * float(work_s @ np.arange(len(work_s), 0, -1)) / self.env.unwrapped.settings.executors


class Scores(BaseFeaturesExtractor):
    """Scores of all jobs by one network, and the value of the state: float32 [N, jobs + 1]."""

    def __init__(self, observation_space: spaces.Box, width: int = 32) -> None:
        super().__init__(observation_space, observation_space.shape[0] + 1)
        self.embed = nn.Sequential(nn.Linear(COLUMNS, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh())
        self.score = nn.Sequential(nn.Linear(2 * width, width), nn.Tanh(), nn.Linear(width, 1))
        self.value = nn.Sequential(nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1))

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """Scores, and at the end the value."""
        embedded = self.embed(rows) * rows[:, :, :1]
        mean = embedded.sum(dim=1) / rows[:, :, :1].sum(dim=1).clamp(min=1.0)
        scores = self.score(torch.cat([embedded, mean[:, None].expand_as(embedded)], dim=2))[:, :, 0]
        return torch.cat([scores, self.value(mean)], dim=1)


class Columns(nn.Module):
    """Columns of the features."""

    def __init__(self, *where: int | None) -> None:
        super().__init__()
        self.where = slice(*where)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """The columns."""
        return features[:, self.where]


class RowPolicy(MaskableActorCriticPolicy):
    """Features are the logits and, at the end, the value."""

    def _build(self, lr_schedule: Callable[[float], float]) -> None:
        super()._build(lr_schedule)
        self.action_net, self.value_net = Columns(None, -1), Columns(-1, None)
        self.optimizer = self.optimizer_class(self.parameters(), lr=lr_schedule(1.0), **self.optimizer_kwargs)


class UntilSpent(BaseCallback):
    """Learning ends when its CPU time, in seconds, is spent."""

    def __init__(self, cpu_s: float) -> None:
        super().__init__()
        self.begin, self.cpu_s, self.spent = time.process_time(), cpu_s, 0.0

    def _on_step(self) -> bool:
        self.spent = time.process_time() - self.begin
        return self.spent < self.cpu_s


def main(arguments: list[str] | None = None) -> Any:
    """Train, and compare with fair sharing and the tuned heuristic on fresh workloads."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options = {"seed": 0, "workload": "embedded:n=20", "executors": 5}
    options |= {"cpu-s": 120.0, "fresh": 20}  # CPU time of learning; workloads that the result is measured on
    for name, default in options.items():
        parser.add_argument(f"--{name}", type=type(default), default=default)
    args = parser.parse_args(arguments)
    torch.set_num_threads(1)
    until = UntilSpent(args.cpu_s)

    def make() -> gymnasium.Env:
        env = gymnasium.make("decima/SparkCluster-v0", workload=args.workload, executors=args.executors)
        return Shaped(OneExecutor(JobRows(env)))

    model = MaskablePPO(
        RowPolicy,
        make_vec_env(make, n_envs=8, seed=args.seed),
        learning_rate=lambda _left: 3e-3 * (1.05 - min(1.0, until.spent / args.cpu_s)),
        n_steps=256,
        batch_size=512,
        n_epochs=4,
        gamma=1.0,
        gae_lambda=0.95,
        ent_coef=0.003,
        policy_kwargs={"features_extractor_class": Scores, "net_arch": []},
        seed=args.seed,
        verbose=1,
    )
    model.learn(10**9, callback=until, log_interval=10)
    spent = until.spent
    entries = ["fair", "capped_srw", decima.as_scheduler(model, name="maskable_ppo")]
    seeds = range(FRESH_SEED, FRESH_SEED + args.fresh)
    comparison = decima.compare(entries, args.workload, executors=args.executors, seeds=seeds)
    print(comparison, f"{spent:.0f} s of CPU time, seed {args.seed}", sep="\n")
    return comparison


if __name__ == "__main__":
    main()
