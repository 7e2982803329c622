"""Continuing reinforcement learning: PPO on windows of long streams that never end for the learner.

An episode that ends teaches a policy to leave large jobs to the end (§5.3). Here every stream continues from
iteration to iteration. From its present state several copies run for one window, each with its own random numbers. The
stream continues in one of them, drawn at random. A critic predicts the remaining cost of the jobs in the system at the
end of the window. All copies are compared at equal times, so that their common part cancels exactly in the advantages.
Batches also run in windows; another one follows when all jobs of a batch are done.

Source: none of the papers. Branching from one state is the vine of TRPO (Schulman et al., 2015), the mean over runs
with the same arrivals the input-dependent baseline (§5.3), bootstrapping at time limits standard.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from decima.core.errors import ConfigError
from decima.learning.agent import Agent, Pause, Stretch, StretchJob
from decima.learning.algorithms.interface import AlgorithmState, register_algorithm
from decima.learning.algorithms.parts import UPDATE_COLUMNS, Surrogate, SurrogateAlgorithm
from decima.learning.configuration import Progress, choice, number, switch, whole
from decima.learning.critic import JobCritic, Runs
from decima.learning.loss import STREAMS
from decima.learning.returns import backward_sums

_CRITIC, _STREAM, _MEMORY = "critic.", "stream.", "memory."
_COLUMNS = ("decisions", "jobs_in_system", "pace", "advantage_std", "critic_explained", "critic_error", *UPDATE_COLUMNS)
CRITIC_RUNS = 2  # complete runs of one stream that the critic compares


@dataclass(frozen=True)
class ContinuingConfig(Surrogate):
    """Configuration of continuing reinforcement learning."""

    streams: int = whole(16, "Streams that run next to each other.", 1)
    copies: int = whole(8, "Copies of each stream's state that run a window; their mean is the baseline.", 2)
    window_s: float = number(175.0, "Length of a window.", above=True)
    step_s: float = number(5.0, "Time between two values of the critic in a window.", above=True)
    horizon_s: float = number(1500.0, "Time constant of the discount, exp(-dt / horizon_s).", above=True)
    trace_s: float = number(
        60.0, "Time constant of the advantage's trace (lambda of GAE is exp(-dt / trace_s)).", above=True
    )
    advantage_clip: float = number(5.0, "Advantages, in standard deviations, are clipped to this.", above=True)
    equal_times: bool = switch(
        True, "Subtract the copies' mean at equal times from temporal differences; off: no baseline but the critic."
    )
    warm_up_s: float = number(
        3000.0, "A new stream runs unrecorded to a time drawn from 0 to this one, with the present policy.", 0.0
    )
    crowd: int = whole(60, "A stream with more jobs in the system is replaced by a new one.", 1)
    load_start: float = number(
        1.0, "Rate of arrivals at the first iteration, as a share of the task's.", 0.0, 1.0, above=True
    )
    load_iterations: int = whole(120, "Iterations in which it grows, geometrically, to the task's.", 1)
    critic_memory: int = whole(12, "Streams of complete runs that the critic learns from; one is new per iteration.", 1)
    critic_step_s: float = number(10.0, "Time between two looks at the jobs in these runs.", above=True)
    critic_lr: float = number(1e-3, "Adam's learning rate of the critic.", above=True)
    critic_passes: int = whole(2, "Passes over these runs per iteration.", 1)
    critic_first_passes: int = whole(24, "Passes before the first iteration.", 0)
    critic_trace_s: float = number(
        300.0, "Time constant of the traces of the returns that the critic's correction learns from.", above=True
    )
    critic_sees: str = choice(
        "Inputs of a job: its work and executors, work alone, or the policy's embedding of the job as well.",
        "executors",
        "work",
        "embedding",
    )
    critic_correction: bool = switch(
        True, "Learn remaining times and what a job costs the others; off: remaining times alone."
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.step_s > self.window_s:
            raise ConfigError(f"recipe: step_s must be at most window_s ({self.window_s:g}), got {self.step_s:g}")

    def check_beside(self, recipe: Any) -> None:
        """Refuse pre-training by imitation: its episodes end.

        Raises:
            ConfigError: The recipe has a teacher.
        """
        if recipe.imitates:
            raise ConfigError(
                "recipe: algorithm continuing has no imitation; set teacher=none, and give an imitating policy as "
                "start_policy"
            )

    @property
    def steps(self) -> int:
        """Steps of a window."""
        return max(1, round(self.window_s / self.step_s))

    def pace(self, since: int) -> float:
        """Rate of arrivals as a share of the task's."""
        return self.load_start ** (1.0 - min(1.0, since / self.load_iterations))


@dataclass
class _Stream:
    number: int  # streams are numbered through the run
    pace: float  # rate of its arrivals, as a share of the task's
    pause: Pause


@register_algorithm(ContinuingConfig, "continuing", learns=STREAMS)
class Continuing(SurrogateAlgorithm):
    """Makes decisions more probable that cost less than those of other copies.

    Args:
        config: How.
        agent: What acts and learns; it runs stretches of streams.
        seed: Seed of the run.
    """

    def __init__(self, config: ContinuingConfig, agent: Agent, seed: int) -> None:
        super().__init__(config, agent, seed, _COLUMNS)
        self.columns, self.headline = _COLUMNS, "jobs_in_system"
        width = agent.job_widths.get(config.critic_sees)
        if width is None:
            raise ConfigError("recipe: critic_sees=embedding needs a network with graph_embedding")
        self.width = width
        self.critic = JobCritic(width, seed, config.horizon_s, config.reward_scale_s, config.critic_correction)
        self.streams: list[_Stream] = []
        self.memory: list[Runs] = []
        self.drawn = 0  # streams so far
        longest_s = agent.stream_s
        if config.window_s * 2.0 > longest_s > 0.0:
            raise ConfigError(
                f"recipe: window_s is {config.window_s:g}, and the last job of a stream arrives after about "
                f"{longest_s:g} s; expected a window of at most half of that, or streams of more jobs"
            )

    # ---- an iteration -------------------------------------------------------------------------------------------

    def iterate(self, now: Progress) -> dict:
        """Run all copies for one window, and update the weights and the critic."""
        config, agent = self.config, self.agent
        rng = np.random.default_rng([self.seed, now.iteration, 4])
        pace = config.pace(now.since)
        self._replace(pace, rng)
        begin_s = [stream.pause.time_s for stream in self.streams for _ in range(config.copies)]
        windows, runs = self._run(now, pace, rng)
        explained = self.critic.explained(runs[-1])
        values = self._advantages(windows)
        self.memory = (self.memory + runs)[-config.critic_memory :]
        passes = config.critic_passes if now.since else config.critic_first_passes
        options = {"step_s": config.critic_step_s, "trace_s": config.critic_trace_s, "rng": rng}
        error = self.critic.fit(self.memory, config.critic_lr, passes, **options) if passes else 0.0
        whole_s = config.steps * config.step_s
        costs = [window.samples.area_s[-1] - window.samples.area_s[0] for window in windows]
        row = {
            "decisions": sum(len(window.record) for window in windows),
            "jobs_in_system": float(np.mean(costs)) / whole_s,
            "pace": pace,
            "critic_explained": explained,
            "critic_error": error,
        }
        kept = [index for index, window in enumerate(windows) if len(window.record)]
        records = [windows[index].record for index in kept]
        groups = self.choices(records, now)
        if not any(map(len, groups)):
            return row | {"updates": 0}
        row["advantage_std"], of_decisions = self._of_decisions(
            records, values[kept], [begin_s[index] for index in kept]
        )
        return row | self.update(records, groups, agent.batch(records), of_decisions, now)

    def _replace(self, pace: float, rng: np.random.Generator) -> None:
        """Replace streams that are over or crowded; run new ones to a first state."""
        config = self.config
        old = {index: stream for index, stream in enumerate(self.streams) if not self._over(stream.pause)}
        fresh = [index for index in range(config.streams) if index not in old]
        jobs = []
        latest_s = max(0.0, self.agent.stream_s - 2.0 * config.window_s) or config.warm_up_s  # a window is left then
        for _ in fresh:
            until_s = rng.uniform(0.0, min(config.warm_up_s, latest_s))
            sequence = self.agent.stream(self._next(), pace)
            jobs.append(StretchJob(sequence, int(rng.integers(2**62)), until_s, keep=True))
        first = self.drawn - len(fresh)
        new = {
            index: _Stream(first + offset, pace, stretch.pause)
            for offset, (index, stretch) in enumerate(zip(fresh, self.agent.stretches(jobs), strict=True))
        }
        self.streams = [old[index] if index in old else new[index] for index in range(config.streams)]

    def _over(self, pause: Pause) -> bool:
        """Whether a stream is over or crowded; a batch, whether it is done."""
        if self.agent.stream_s == 0.0:
            return pause.jobs == 0 and pause.time_s > 0.0
        return pause.time_s + 2.0 * self.config.window_s > pause.last_arrival_s or pause.jobs > self.config.crowd

    def _next(self) -> int:
        self.drawn += 1
        return self.drawn - 1

    def _run(self, now: Progress, pace: float, rng: np.random.Generator) -> tuple[list[Stretch], list[Runs]]:
        """Run one window of all copies, and complete runs for the critic."""
        config, agent = self.config, self.agent
        chosen = rng.integers(config.copies, size=config.streams)
        chance = np.random.default_rng([self.seed, now.iteration, 1])
        seeds = [int(seed) for seed in chance.integers(2**62, size=config.streams * config.copies)]
        jobs = [
            StretchJob(
                agent.stream(stream.number, stream.pace),
                seeds[index * config.copies + copy],
                until_s=stream.pause.time_s + config.steps * config.step_s,
                begin=stream.pause,
                step_s=config.step_s,
                width=self.width,
                record=True,
                keep=copy == chosen[index],
            )
            for index, stream in enumerate(self.streams)
            for copy in range(config.copies)
        ]
        wanted = 1 if self.memory else config.critic_memory
        crowd = config.crowd if agent.stream_s else None  # all jobs of a batch are there from the beginning
        for _ in range(wanted):
            sequence = agent.stream(self._next(), pace)
            for _ in range(CRITIC_RUNS):
                seed = int(rng.integers(2**62))
                jobs.append(StretchJob(sequence, seed, step_s=config.critic_step_s, width=self.width, crowd=crowd))
        done = agent.stretches(jobs)
        windows, complete = done[: len(seeds)], done[len(seeds) :]
        for index, stream in enumerate(self.streams):
            stream.pause = windows[index * config.copies + chosen[index]].pause
        pairs = [complete[first : first + CRITIC_RUNS] for first in range(0, len(complete), CRITIC_RUNS)]
        units = config.critic_step_s, config.horizon_s, config.reward_scale_s
        return windows, [Runs.of(pair, *units) for pair in pairs]

    def _advantages(self, windows: Sequence[Stretch]) -> np.ndarray:
        """Advantages of the steps of all windows, float64 [windows, steps], not scaled."""
        config = self.config
        surprises = np.stack([self.critic.surprises(window.samples, config.step_s) for window in windows])
        if config.equal_times:
            groups = surprises.reshape(config.streams, config.copies, -1)
            surprises = (groups - groups.mean(axis=1, keepdims=True)).reshape(surprises.shape)
        fading = math.exp(-config.step_s / config.horizon_s - config.step_s / config.trace_s)
        factors = np.full(surprises.shape[1], fading)
        return np.stack([backward_sums(each, factors) for each in surprises])

    def _of_decisions(
        self, records: Sequence[Any], values: np.ndarray, begin_s: Sequence[float]
    ) -> tuple[float, list[np.ndarray]]:
        """Standard deviation of the advantages, and advantages of decisions in its unit, clipped.

        Args:
            records: Decisions of windows.
            values: Advantages of their steps, float64 [windows, steps].
            begin_s: When the windows began.
        """
        config, advantages = self.config, []
        for episode, of_steps, begin in zip(self.agent.episodes(records), values, begin_s, strict=True):
            step = ((episode.time_s - begin) / config.step_s).astype(int)
            advantages.append(of_steps[np.clip(step, 0, config.steps - 1)])
        spread = float(np.concatenate(advantages).std())
        limit = config.advantage_clip
        return spread, [np.clip(each / (spread or 1.0), -limit, limit) for each in advantages]

    # ---- checkpoints --------------------------------------------------------------------------------------------

    def state(self) -> AlgorithmState:
        """Weights, critic, the streams where they are, and the critic's runs."""
        arrays = super().state().arrays | {_CRITIC + name: value for name, value in self.critic.state().items()}
        arrays |= {f"{_STREAM}{index}": stream.pause.memory for index, stream in enumerate(self.streams)}
        for index, runs in enumerate(self.memory):
            arrays |= {f"{_MEMORY}{index}.{name}": value for name, value in runs.arrays().items()}
        streams = [
            (stream.number, stream.pace, stream.pause.time_s, stream.pause.jobs, stream.pause.last_arrival_s)
            for stream in self.streams
        ]
        return AlgorithmState(arrays, {"drawn": self.drawn, "streams": streams, "memory": len(self.memory)})

    def restore(self, state: AlgorithmState) -> None:
        """Take over what :meth:`state` returned."""
        arrays, counters = state.arrays, state.counters

        def part(prefix: str) -> dict[str, np.ndarray]:
            return {name.removeprefix(prefix): arrays[name] for name in arrays if name.startswith(prefix)}

        self.critic.restore(part(_CRITIC))
        self.memory = [Runs.from_arrays(part(f"{_MEMORY}{index}.")) for index in range(counters["memory"])]
        memories = part(_STREAM)
        self.streams = [
            _Stream(number, pace, Pause(*about, memories[str(index)]))
            for index, (number, pace, *about) in enumerate(counters["streams"])
        ]
        self.drawn = counters["drawn"]
        super().restore(AlgorithmState(arrays))
