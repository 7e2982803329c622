"""The training loop: imitation, then policy gradients (Algorithm 1 of appendix C, or what the recipe makes of it)."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from decima.exceptions import CheckpointError, ConfigError, TrainingError
from decima.policy.architecture import Architecture
from decima.policy.batch import GraphBatch
from decima.training import schedules
from decima.training.checkpoint import FILE_NAME, Checkpoint
from decima.training.gradient import Learner
from decima.training.imitation import imitate, teacher_of
from decima.training.improvement import episodes_of, improve, recipe_advantages
from decima.training.logs import TrainingLog
from decima.training.recipe import Recipe
from decima.training.returns import RegressionMemory, RewardRate
from decima.training.rollout import RolloutBackend, RolloutJob, check_workers, make_backend
from decima.training.task import Task, children_of, rollout_seeds
from decima.training.validation import Validation

SUMMARY_WIDTH = 8  # numbers that summarise the state at a decision


@dataclass(frozen=True)
class Trained:
    """Outcome of a run.

    Attributes:
        weights: Float32 [parameters], the best at validation; the last if there was none.
        score: Validation score of these weights, NaN if there was none.
        greedy: Whether the greedy policy had that score; else the sampled one.
        iteration: After how many iterations.
        iterations: Iterations of the run.
        curve: Rows of the curve.
    """

    weights: np.ndarray
    score: float
    greedy: bool
    iteration: int
    iterations: int
    curve: list[dict]


class Trainer:
    """Trains one policy.

    Args:
        task: Jobs, cluster and objective.
        recipe: How to learn, and when to stop.
        architecture: Shape of the network.
        seed: Source of all chance. A run that is limited by iterations has the same result for the same seed.
        folder: Where checkpoint, curve and policy go.
        backend: ``"threads"``, ``"processes"``, ``"ray"`` or a :class:`RolloutBackend`; no result depends on it.
        workers: Workers of the backend and threads of the gradient, all cores by default; no result depends on it.
        progress: Show a progress bar.
        tensorboard: Write TensorBoard events.

    Raises:
        ConfigError: The run would never stop, or arguments contradict each other.
    """

    def __init__(
        self,
        task: Task,
        recipe: Recipe,
        architecture: Architecture,
        seed: int,
        folder: str | Path,
        *,
        backend: str | RolloutBackend = "threads",
        workers: int | None = None,
        progress: bool = False,
        tensorboard: bool = True,
    ) -> None:
        if not recipe.has_stop:
            raise ConfigError("nothing ends the training: set iterations, wall_seconds or cpu_seconds")
        if task.executors > architecture.max_executors:
            raise ConfigError(
                f"the task has {task.executors} executors, the architecture allows {architecture.max_executors}"
            )
        self.task, self.recipe, self.architecture, self.seed = task, recipe, architecture, seed
        self.folder = Path(folder)
        self.workers = check_workers(workers)
        self._backend = make_backend(backend, task, workers) if isinstance(backend, str) else backend
        self._progress, self._tensorboard = progress, tensorboard
        *self._children, num_levels = children_of(task)
        self._over = False
        self._learner = Learner(
            architecture,
            architecture.initial_weights(seed),
            num_levels=num_levels,
            threads=self.workers,
            betas=(recipe.adam_beta1, recipe.adam_beta2),
            epsilon=recipe.adam_epsilon,
        )
        self._validation = Validation(task, recipe, self.workers)
        self._memory = RegressionMemory.empty(SUMMARY_WIDTH)
        self._reward_rate = RewardRate.empty()
        self._best = self._learner.weights
        self._curve: list[dict] = []
        self._counters = {
            "iteration": 0,
            "wall_s": 0.0,
            "cpu_s": 0.0,
            "learning_from": None,
            "best_score": None,
            "best_greedy": True,
            "best_iteration": 0,
        }

    @property
    def iterations(self) -> int:
        """Iterations done."""
        return self._counters["iteration"]

    @property
    def references(self) -> dict[str, float]:
        """Validation scores of the reference heuristics."""
        return self._validation.references

    # ---- the loop -----------------------------------------------------------------------------------------------

    def train(self, resume: bool = False) -> Trained:
        """Run to the end of the budget.

        Args:
            resume: Continue from the checkpoint in the folder; the result is that of a run without interruption.

        Raises:
            CheckpointError: The folder already holds a run (or, to resume, none or another one), or cannot be written.
            TrainingError: A gradient is not finite; the last good checkpoint stays.
        """
        try:
            self._open(resume)
            options = {"tensorboard": self._tensorboard, "progress": self._progress}
            with TrainingLog(self.folder, self._curve, **options) as log:
                self._loop(log)
        finally:
            self._backend.close()
            self._learner.close()
        return self._outcome()

    def _loop(self, log: TrainingLog) -> None:
        """Iterations until the budget is used; a checkpoint is always of a whole number of them."""
        self._start = time.perf_counter() - self._counters["wall_s"], time.process_time() - self._counters["cpu_s"]
        self._over = self._is_over()
        good = self._checkpoint()
        try:
            while not self._over:
                row = self._iterate()
                self._curve.append(row)
                log.add(row, self._budget_used())
                good = self._checkpoint()
                if self._counters["iteration"] % self.recipe.checkpoint_every == 0:
                    good.save(self.folder)
        except TrainingError as error:
            kept = f"; the last good checkpoint is {self.folder / FILE_NAME}" if self._has_checkpoint() else ""
            raise TrainingError(f"iteration {self._counters['iteration']}: {error}{kept}") from error
        except KeyboardInterrupt:
            good.save(self.folder)
            raise
        good.save(self.folder)

    def _iterate(self) -> dict:
        """One iteration; returns its row of the curve."""
        iteration = self._counters["iteration"]
        imitating = self.recipe.imitates and iteration < self.recipe.teacher_iterations
        if not imitating and self._counters["learning_from"] is None:
            self._counters["learning_from"] = [iteration, self._budget_used()]
            self._learner.restart_adam()
        records = self._rollouts(iteration, imitating)
        batch = GraphBatch(records, *self._children)
        rng = np.random.default_rng([self.seed, iteration, 2])
        row = {"iteration": iteration, "phase": "imitation" if imitating else self.recipe.algorithm}
        if imitating:
            row |= imitate(self._learner, batch, records, self.recipe, rng, iteration)
            row["teacher_share"] = schedules.teacher_share(self.recipe, iteration)
        else:
            row |= self._improve(batch, records, rng)
        row |= describe(records)
        self._counters["iteration"] = iteration + 1
        self._over = self._is_over()
        if self._validates(iteration + 1):
            row |= self._validate(iteration + 1)
        self._clock()
        return row | {name: self._counters[name] for name in ("wall_s", "cpu_s")}

    def _rollouts(self, iteration: int, imitating: bool) -> list:
        recipe = self.recipe
        length_s = schedules.mean_episode_s(recipe, *self._learning_time()) if self.task.streaming else None
        count, runs = recipe.sequences, recipe.rollouts
        if imitating:
            count, runs = recipe.teacher_sequences, recipe.teacher_rollouts
        sequences = self.task.training_sequences(self.seed, iteration, count, length_s)
        teacher = teacher_of(recipe, iteration) if imitating else None
        seeds = iter(rollout_seeds(self.seed, iteration, count * runs))
        jobs = [RolloutJob(sequence, next(seeds), teacher) for sequence in sequences for _ in range(runs)]
        return self._backend.collect(self.architecture, self._learner.weights, jobs)

    def _improve(self, batch: GraphBatch, records: list, rng: np.random.Generator) -> dict:
        now = self._learning_time()
        rate = schedules.learning_rate(self.recipe, *now)
        weight = schedules.entropy_weight(self.recipe, *now)
        episodes = episodes_of(records, self.task, self.recipe, self._reward_rate)
        trace_s = schedules.trace_s(self.recipe, now[1])
        found = recipe_advantages(episodes, self.recipe, self._memory, trace_s)
        total = np.concatenate(found.returns)
        row = improve(self._learner, batch, records, found, self.recipe, rng, rate, weight)
        return row | {
            "learning_rate": rate,
            "entropy_weight": weight,
            "explained_by_time": found.explained_by_time,
            "explained_by_summary": found.explained_by_summary,
            "return_mean": float(total.mean()),
            "return_std": float(total.std()),
        }

    def _validates(self, done: int) -> bool:
        """Whether to validate after so many iterations."""
        turning = self.recipe.imitates and done == self.recipe.teacher_iterations
        return turning or done % self.recipe.validate_every == 0 or self._over

    def _validate(self, done: int) -> dict:
        weights = self._learner.weights
        scores = self._validation.scores(self.architecture, weights)
        greedy, sampled = scores["val_greedy"], scores.get("val_sampled", np.inf)
        best = self._counters["best_score"]
        if best is None or min(greedy, sampled) < best:
            self._best = weights
            self._counters |= {
                "best_score": min(greedy, sampled),
                "best_greedy": bool(greedy <= sampled),
                "best_iteration": done,
            }
        return scores

    # ---- time and budget ----------------------------------------------------------------------------------------

    def _clock(self) -> tuple[float, float]:
        """Bring elapsed wall and CPU seconds up to date."""
        self._counters["wall_s"] = time.perf_counter() - self._start[0]
        self._counters["cpu_s"] = time.process_time() - self._start[1]
        return self._counters["wall_s"], self._counters["cpu_s"]

    def _is_over(self) -> bool:
        return schedules.is_over(self.recipe, self._counters["iteration"], *self._clock())

    def _budget_used(self) -> float:
        counters = self._counters
        return schedules.budget_used(self.recipe, counters["iteration"], counters["wall_s"], counters["cpu_s"])

    def _learning_time(self) -> tuple[int, float]:
        """Iterations since imitation, and the share of the budget left then that is used now."""
        if self._counters["learning_from"] is None:
            return 0, 0.0
        first, used_before = self._counters["learning_from"]
        left = max(1.0 - used_before, 1e-9)
        return self._counters["iteration"] - first, min(1.0, (self._budget_used() - used_before) / left)

    # ---- checkpoints --------------------------------------------------------------------------------------------

    def _has_checkpoint(self) -> bool:
        return (self.folder / FILE_NAME).exists()

    def _about(self) -> dict:
        return {
            "task": self.task.as_dict(),
            "recipe": self.recipe.without_stops(),
            "architecture": self.architecture.as_dict(),
            "seed": self.seed,
        }

    def _checkpoint(self) -> Checkpoint:
        arrays = self._learner.state() | {
            "best": self._best.copy(),
            "memory_gram": self._memory.gram.copy(),
            "memory_moment": self._memory.moment.copy(),
            "rate_rewards": self._reward_rate.rewards.copy(),
            "rate_gaps_s": self._reward_rate.gaps_s.copy(),
        }
        return Checkpoint(self._about(), dict(self._counters), arrays, list(self._curve))

    def _open(self, resume: bool) -> None:
        """Begin in an empty folder, or where the checkpoint left off."""
        if not resume:
            if self._has_checkpoint():
                raise CheckpointError(
                    f"{self.folder} already holds a training run: resume it, or choose another folder"
                )
            self._checkpoint().save(self.folder)
            return
        stored = Checkpoint.load(self.folder)
        for name, mine in self._about().items():
            if stored.about.get(name) != mine:
                raise CheckpointError(
                    f"cannot resume {self.folder}: its {name} is another one ({_difference(stored.about[name], mine)})"
                )
        self._learner.restore(stored.arrays)
        self._best = stored.arrays["best"]
        self._memory = RegressionMemory(stored.arrays["memory_gram"], stored.arrays["memory_moment"])
        self._reward_rate = RewardRate(stored.arrays["rate_rewards"], stored.arrays["rate_gaps_s"])
        self._counters, self._curve = dict(stored.counters), list(stored.curve)

    def _outcome(self) -> Trained:
        counters = self._counters
        scored = counters["best_score"] is not None
        return Trained(
            self._best if scored else self._learner.weights,
            counters["best_score"] if scored else float("nan"),
            counters["best_greedy"],
            counters["best_iteration"] if scored else counters["iteration"],
            counters["iteration"],
            self._curve,
        )


def describe(records: list) -> dict:
    """Columns of the curve: decisions, mean length of the episodes and mean JCT of the jobs that finished."""
    jct_ms = np.concatenate([record.completion_ms - record.arrival_ms for record in records])
    finished = jct_ms[~np.isnan(jct_ms)]
    return {
        "decisions": int(sum(len(record.choice) for record in records)),
        "episode_s": float(np.mean([record.end_ms for record in records])) / 1000.0,
        "jct_s": float(finished.mean()) / 1000.0 if len(finished) else float("nan"),
    }


def _difference(stored, mine) -> str:
    """First difference between two JSON values, for a message."""
    if isinstance(stored, dict) and isinstance(mine, dict):
        for name in sorted(set(stored) | set(mine)):
            if stored.get(name) != mine.get(name):
                return f"{name} is {stored.get(name)!r} there, {mine.get(name)!r} here"
    return f"{stored!r} there, {mine!r} here"
